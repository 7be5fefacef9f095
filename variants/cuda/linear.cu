/* Linear attention (Katharopoulos et al. 2020) by chunks of 64 keys, in float32: since the weight of a key is
 * phi(q).phi(k), the sum over keys can be taken first, and once for all queries.
 *
 *     state_c  = sum of phi(k_j) v_j^T over the keys of chunk c, D x Dv, and of phi(k_j): its normaliser
 *     prefix_c = state_0 + ... + state_c
 *     output_i = (phi(q_i) prefix_c + pairs with keys behind chunk c that the row sees) / (normaliser + epsilon)
 *
 * Three launches, one for each line. The first and the last have work for each chunk of each head, where a walk
 * along the keys, as the host's linear takes it, would leave the device with a block for a head. Only the second
 * walks, one thread for each number of a state. Pairs are met where the rows of a tile do not all see the same
 * keys (the diagonal, and what the last chunk lacks), at most two tiles of them: O(T) time, and O(T) workspace
 * for the prefixes, a 64th of Tk times D Dv for each key/value head.
 *
 * Chunks lie at multiples of 64 whatever is asked, so that the bits of a row follow from its head alone. */
#include "products.h"
#include "tiles.h"
#include "variants.h"

namespace {

/* Keys of a chunk, queries of a tile, and features that a block takes at once. */
constexpr int CHUNK = 64, PITCH = padded(CHUNK);
constexpr size_t TILE_FLOATS = CHUNK * PITCH;

/* elu(x) + 1 */
struct phi {
  __device__ float operator()(float x) const { return x > 0 ? x + 1 : expf(x); }
};

__host__ __device__ constexpr int64_t slices_of(int64_t width) { return (width + CHUNK - 1) / CHUNK; }

/* Chunks that have all their keys: no other is ever added up. */
__host__ __device__ constexpr int64_t chunks_of(int64_t key_length) { return key_length / CHUNK; }

/* Floats of a state: [D, Dv], and the normaliser [D]. */
__host__ __device__ constexpr int64_t state_floats(int64_t head_dim, int64_t value_dim) {
  return head_dim * (value_dim + 1);
}

/* The state of one chunk, of features [d, d + CHUNK) by [e, e + CHUNK) of it. */
__global__ void __launch_bounds__(PRODUCT_THREADS)
    sum_chunks(attn_problem problem, attn_tensors tensors, float *states) {
  __shared__ __align__(16) float keys[TILE_FLOATS], values[TILE_FLOATS];
  const int64_t D = problem.head_dim, Dv = problem.value_dim, chunks = chunks_of(problem.key_length);
  const int64_t slice = blockIdx.x % (slices_of(D) * slices_of(Dv)),
                item = blockIdx.x / (slices_of(D) * slices_of(Dv));
  const int64_t d0 = slice / slices_of(Dv) * CHUNK, e0 = slice % slices_of(Dv) * CHUNK;
  const int64_t j = item % chunks * CHUNK, b = item / chunks / problem.kv_heads,
                h = item / chunks % problem.kv_heads;
  float *const state = states + item * state_floats(D, Dv);

  load_tile<CHUNK, CHUNK, PITCH, true>(keys, from_column(rows_from(tensors.key, problem.key, b, h, j, D), d0),
                                       CHUNK, phi());
  load_tile<CHUNK, CHUNK, PITCH>(
      values, from_column(rows_from(tensors.value, problem.value, b, h, j, Dv), e0), CHUNK);
  __syncthreads();
  weighted_sums<CHUNK, CHUNK> sums;
  sums.clear();
  add_weighted<false, CHUNK>(sums, keys, values);

  ATTN_UNROLL
  for (int m = 0; m < CHUNK / SIDE; m++)
    for (int x = 0; x < 4; x++) {
      const int64_t d = d0 + thread_row() + m * SIDE, e = e0 + 4 * thread_column() + x;
      if (d < D && e < Dv) state[d * Dv + e] = sums.of[m][0][x];
    }
  const int64_t d = d0 + threadIdx.x;
  if (e0 == 0 && threadIdx.x < CHUNK && d < D) {
    float sum = 0;
    for (int n = 0; n < CHUNK; n++) sum += keys[threadIdx.x * PITCH + n];
    state[D * Dv + d] = sum;
  }
}

/* Each state becomes the sum of all up to it. */
__global__ void add_up(float *states, int64_t heads, int64_t chunks, int64_t floats) {
  const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= heads * floats) return;
  float *const first = states + n / floats * chunks * floats + n % floats;
  float sum = 0;
  for (int64_t c = 0; c < chunks; c++) first[c * floats] = sum += first[c * floats];
}

/* What a thread keeps of its rows. Of the sum of weights, its own columns' part. */
struct row_sums {
  weighted_sums<CHUNK, CHUNK> output;
  float weights[CHUNK / SIDE];
};

/* Tiles in shared memory: phi(q), what it is multiplied with, and weights. */
struct shared_tiles {
  float *queries, *other, *weights;
};

/* Adds phi(q) times the state. */
__device__ __forceinline__ void apply_state(const attn_problem &problem, const tensor_rows &queries,
                                            int64_t count, const float *state, int64_t e0,
                                            const shared_tiles &tiles, row_sums &rows) {
  const int64_t D = problem.head_dim, Dv = problem.value_dim;
  for (int64_t d0 = 0; d0 < D; d0 += CHUNK) {
    const tensor_rows state_rows = {state + d0 * Dv + e0, ATTN_FLOAT32, Dv, Dv - e0};
    __syncthreads(); /* what was there was read */
    load_tile<CHUNK, CHUNK, PITCH>(tiles.queries, from_column(queries, d0), count, phi());
    load_tile<CHUNK, CHUNK, PITCH>(tiles.other, state_rows, D - d0);
    __syncthreads();
    if (!warp_has_rows(count)) continue;
    add_weighted<false, CHUNK>(rows.output, tiles.queries, tiles.other);
    for (int64_t d = d0 + thread_column(); d < d0 + CHUNK && d < D; d += SIDE)
      for (int m = 0; m < CHUNK / SIDE; m++)
        rows.weights[m] += tiles.queries[(thread_row() + m * SIDE) * PITCH + d - d0] * state[D * Dv + d];
  }
}

/* Adds keys [j, j + CHUNK), pair by pair. */
__device__ __forceinline__ void add_pairs(const attn_problem &problem, const tensor_rows &queries,
                                          int64_t count, const tensor_rows &keys, const tensor_rows &values,
                                          int64_t j, const query_row (&row)[CHUNK / SIDE],
                                          const shared_tiles &tiles, row_sums &rows) {
  const int64_t D = problem.head_dim, key_count = min((int64_t)CHUNK, problem.key_length - j);
  float weight[CHUNK / SIDE][CHUNK / SIDE] = {};
  for (int64_t d0 = 0; d0 < D; d0 += CHUNK) {
    __syncthreads();
    load_tile<CHUNK, CHUNK, PITCH>(tiles.queries, from_column(queries, d0), count, phi());
    load_tile<CHUNK, CHUNK, PITCH>(tiles.other, from_column(keys, d0), key_count, phi());
    __syncthreads();
    if (warp_has_rows(count))
      add_dots<CHUNK, CHUNK, PITCH>(weight, tiles.queries, tiles.other,
                                    (int)min((int64_t)CHUNK, (D - d0 + 3) / 4 * 4));
  }
  ATTN_UNROLL
  for (int m = 0; m < CHUNK / SIDE; m++)
    for (int c = 0; c < CHUNK / SIDE; c++) {
      const bool visible = sees(row[m], j + thread_column() + c * SIDE);
      if (visible) rows.weights[m] += weight[m][c];
      tiles.weights[(thread_row() + m * SIDE) * PITCH + thread_column() + c * SIDE] =
          visible ? weight[m][c] : LEFT_OUT;
    }
  __syncthreads();
  load_tile<CHUNK, CHUNK, PITCH>(tiles.other, values, key_count);
  __syncthreads();
  if (warp_has_rows(count)) add_weighted<true, CHUNK>(rows.output, tiles.weights, tiles.other);
}

/* A tile of queries of one head, and features [e0, e0 + CHUNK) of its output. */
__global__ void __launch_bounds__(PRODUCT_THREADS, 1)
    solve_tiles(attn_problem problem, attn_tensors tensors, const float *prefixes) {
  ATTN_DYNAMIC_SHARED(memory);
  const shared_tiles tiles = {reinterpret_cast<float *>(memory),
                              reinterpret_cast<float *>(memory) + TILE_FLOATS,
                              reinterpret_cast<float *>(memory) + 2 * TILE_FLOATS};
  const int64_t D = problem.head_dim, Dv = problem.value_dim, row_tiles = slices_of(problem.query_length);
  const int64_t e0 = blockIdx.x % slices_of(Dv) * CHUNK, item = blockIdx.x / slices_of(Dv);
  const int64_t first_row = item % row_tiles * CHUNK, head = item / row_tiles;
  const int64_t b = head / problem.query_heads, h = head % problem.query_heads,
                kv_head = kv_head_of(problem, h);
  const int64_t last_row = min(first_row + CHUNK, problem.query_length);
  const tensor_rows queries = rows_from(tensors.query, problem.query, b, h, first_row, D);

  query_row row[CHUNK / SIDE];
  row_sums rows;
  rows.output.clear();
  ATTN_UNROLL
  for (int m = 0; m < CHUNK / SIDE; m++) {
    row[m] = place_row(problem, tensors, b, h, first_row + thread_row() + m * SIDE);
    rows.weights[m] = 0;
  }

  /* The first row sees the fewest keys, the last one the most. */
  const int64_t seen_by_all = attn_visible_keys(&problem, b, first_row).end / CHUNK;
  const int64_t end = keys_of_rows(problem, b, first_row, last_row).end;
  if (seen_by_all > 0)
    apply_state(problem, queries, last_row - first_row,
                prefixes +
                    ((b * problem.kv_heads + kv_head) * chunks_of(problem.key_length) + seen_by_all - 1) *
                        state_floats(D, Dv),
                e0, tiles, rows);
  for (int64_t j = seen_by_all * CHUNK; j < end; j += CHUNK)
    add_pairs(problem, queries, last_row - first_row, rows_from(tensors.key, problem.key, b, kv_head, j, D),
              from_column(rows_from(tensors.value, problem.value, b, kv_head, j, Dv), e0), j, row, tiles,
              rows);

  ATTN_UNROLL
  for (int m = 0; m < CHUNK / SIDE; m++) {
    const int64_t i = first_row + thread_row() + m * SIDE;
    const float divisor = sum_of_row(rows.weights[m]) + (float)problem.epsilon;
    for (int x = 0; x < 4; x++) {
      const int64_t e = e0 + 4 * thread_column() + x;
      if (i < problem.query_length && e < Dv)
        attn_store(tensors.output, problem.output.type, row_begin(problem.output, b, h, i) + e,
                   row[m].keys.end == 0 ? 0 : rows.output.of[m][0][x] / divisor);
    }
  }
}

const char *unsupported(const attn_call *call) {
  return call->problem->left == ATTN_UNLIMITED ? nullptr
                                               : "a running sum cannot forget keys: needs an unlimited left";
}

size_t workspace_size(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->kv_heads * chunks_of(p->key_length) *
                  state_floats(p->head_dim, p->value_dim)) *
         sizeof(float);
}

void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t chunks = chunks_of(p->key_length), heads = p->batch * p->kv_heads;
  const int64_t floats = state_floats(p->head_dim, p->value_dim), value_slices = slices_of(p->value_dim);
  const dim3 threads(PRODUCT_THREADS);
  float *const states = static_cast<float *>(call->workspace);
  if (p->batch * p->query_heads * p->query_length * p->value_dim == 0) return;
  if (chunks > 0) {
    attn_launch(sum_chunks, dim3((unsigned)(heads * chunks * slices_of(p->head_dim) * value_slices)), threads,
                0, call->stream, *p, call->tensors, states);
    attn_launch(add_up, dim3((unsigned)((heads * floats + PRODUCT_THREADS - 1) / PRODUCT_THREADS)), threads,
                0, call->stream, states, heads, chunks, floats);
  }
  attn_launch(
      solve_tiles, dim3((unsigned)(p->batch * p->query_heads * slices_of(p->query_length) * value_slices)),
      threads, 3 * TILE_FLOATS * sizeof(float), call->stream, *p, call->tensors, (const float *)states);
}

} // namespace

const attn_variant cuda_linear = {
    "cuda_linear",
    "elu(x) + 1 feature map and associativity: states of chunks, their prefix sums, outputs",
    ATTN_LINEAR,
    ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS,
    CUDA_ALL_TYPES,
    ATTN_CUDA,
    ATTN_BATCH_INVARIANT,
    1,
    1,
    nullptr,
    unsupported,
    workspace_size,
    run,
};
