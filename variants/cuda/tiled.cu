/* The online softmax (Milakov and Gimelshein 2018) in shared memory, as FlashAttention has it (Dao et al.
 * 2022), in float32: a block of threads takes a tile of queries past the keys, tile by tile. What naive reads
 * from memory for each query is read once for 64 of them (32 where rows are long), and the scores, of which
 * naive writes Tq x Tk, never leave the block: row maximum, row sum and weighted values are kept in registers,
 * and rescaled where a maximum rises. Key tiles that no query of the tile sees are not looked at, so that time
 * follows the band.
 *
 * 16-bit elements are converted on their way in and out: nothing is rounded between. What this leaves on the
 * table is the matrix units (cuda_fused) and loads that run while others compute. */
#include "products.h"
#include "tiles.h"
#include "variants.h"

namespace {

/* The largest D and Dv; tiles are such that each device's shared memory holds a block, 99 KB at the least. */
constexpr int MOST_WIDTH = 256;

template <int rows, int keys, int width> struct tile_shape {
  static constexpr int ROWS = rows, KEYS = keys, WIDTH = width;
  static constexpr int PITCH = padded(width), WEIGHTS_PITCH = padded(keys);
  static constexpr size_t SHARED_BYTES =
      sizeof(float) * (size_t)((rows + keys) * PITCH + rows * WEIGHTS_PITCH);
};

/* What a thread keeps of its rows while keys pass. Of the sum, its own columns' part. */
template <class shape> struct row_states {
  query_row row[shape::ROWS / SIDE];
  float max[shape::ROWS / SIDE], sum[shape::ROWS / SIDE];
  bool warp_works;
  weighted_sums<shape::ROWS, shape::WIDTH> output;
};

/* One of each for the thread's pairs of a query and a key. */
template <class shape> using pair_floats = float[shape::ROWS / SIDE][shape::KEYS / SIDE];
template <class shape> using pair_flags = bool[shape::ROWS / SIDE][shape::KEYS / SIDE];

/* Scores of the thread's pairs, in place of their products; -inf for hidden ones. */
template <bool hides, class shape>
__device__ __forceinline__ void finish_scores(const attn_problem &problem, const attn_tensors &tensors,
                                              const row_states<shape> &rows, int64_t first_key,
                                              pair_floats<shape> &score, pair_flags<shape> &visible) {
  ATTN_UNROLL
  for (int m = 0; m < shape::ROWS / SIDE; m++)
    for (int c = 0; c < shape::KEYS / SIDE; c++) {
      const int64_t j = first_key + thread_column() + c * SIDE;
      visible[m][c] = !hides || sees(rows.row[m], j);
      score[m][c] = visible[m][c] ? score_of(problem, tensors, rows.row[m], j, score[m][c]) : -INFINITY;
    }
}

/* Weights of the thread's pairs relative to the row's maximum so far; what was summed before is rescaled to it. */
template <class shape>
__device__ __forceinline__ void take_weights(row_states<shape> &rows, const pair_floats<shape> &score,
                                             const pair_flags<shape> &visible, float *weights) {
  ATTN_UNROLL
  for (int m = 0; m < shape::ROWS / SIDE; m++) {
    float max = -INFINITY;
    for (int c = 0; c < shape::KEYS / SIDE; c++) max = fmaxf(max, score[m][c]);
    max = fmaxf(rows.max[m], max_of_row(max));
    /* -inf minus -inf would be NaN where all scores are -inf so far. */
    const float shift = max == -INFINITY ? 0 : max, rescale = expf(rows.max[m] - shift);
    rows.max[m] = max;
    rows.sum[m] *= rescale;
    rows.output.scale_row(m, rescale);
    for (int c = 0; c < shape::KEYS / SIDE; c++) {
      const float weight = expf(score[m][c] - shift);
      rows.sum[m] += weight;
      weights[(thread_row() + m * SIDE) * shape::WEIGHTS_PITCH + thread_column() + c * SIDE] =
          visible[m][c] ? weight : LEFT_OUT;
    }
  }
}

/* One tile of keys from first_key on, in shared memory: its values take its place once the weights are known. */
template <bool hides, class shape>
__device__ __forceinline__ void pass_keys(const attn_problem &problem, const attn_tensors &tensors,
                                          row_states<shape> &rows, int64_t first_key, int64_t count,
                                          const tensor_rows &values, const float *queries, float *tile,
                                          float *weights) {
  pair_floats<shape> score = {};
  pair_flags<shape> visible;
  if (rows.warp_works) {
    add_dots<shape::ROWS, shape::KEYS, shape::PITCH>(score, queries, tile,
                                                     ((int)problem.head_dim + 3) / 4 * 4);
    finish_scores<hides, shape>(problem, tensors, rows, first_key, score, visible);
    take_weights<shape>(rows, score, visible, weights);
  }
  __syncthreads();
  load_tile<shape::KEYS, shape::WIDTH, shape::PITCH>(tile, values, count);
  __syncthreads();
  if (rows.warp_works) add_weighted<hides, shape::KEYS>(rows.output, weights, tile);
}

template <class shape>
__device__ __forceinline__ void write_rows(const attn_problem &problem, const attn_tensors &tensors,
                                           row_states<shape> &rows, int64_t b, int64_t h, int64_t first_row) {
  const float sink = sink_of(problem, tensors, h);
  ATTN_UNROLL
  for (int m = 0; m < shape::ROWS / SIDE; m++) {
    const int64_t i = first_row + thread_row() + m * SIDE;
    const finished_row finished = finish_row(rows.max[m], sum_of_row(rows.sum[m]), sink);
    if (i >= problem.query_length) continue;
    const int64_t output = row_begin(problem.output, b, h, i);
    for (int c = 0; c < shape::WIDTH / 64; c++)
      for (int x = 0; x < 4; x++) {
        const int e = 64 * c + 4 * thread_column() + x;
        if (e < problem.value_dim)
          attn_store(tensors.output, problem.output.type, output + e,
                     finished.saw_nothing ? 0 : rows.output.of[m][c][x] * finished.factor);
      }
    if (problem.lse.type && thread_column() == 0) tensors.lse[row_begin(problem.lse, b, h, i)] = finished.lse;
  }
}

/* A block for each tile of queries of each head; the last tiles, which see the most where it is causal, first. */
template <class shape>
__global__ void __launch_bounds__(PRODUCT_THREADS, 1)
    solve_tiles(attn_problem problem, attn_tensors tensors) {
  ATTN_DYNAMIC_SHARED(memory);
  float *const queries = reinterpret_cast<float *>(memory), *const tile =
                                                                queries + shape::ROWS * shape::PITCH;
  float *const weights = tile + shape::KEYS * shape::PITCH;
  const int64_t tiles = (problem.query_length + shape::ROWS - 1) / shape::ROWS, head = blockIdx.x / tiles;
  const int64_t first_row = (tiles - 1 - blockIdx.x % tiles) * shape::ROWS;
  const int64_t b = head / problem.query_heads, h = head % problem.query_heads,
                kv_head = kv_head_of(problem, h);
  const int64_t last_row = min(first_row + shape::ROWS, problem.query_length);

  row_states<shape> rows;
  rows.output.clear();
  rows.warp_works = warp_has_rows(last_row - first_row);
  ATTN_UNROLL
  for (int m = 0; m < shape::ROWS / SIDE; m++) {
    rows.row[m] = place_row(problem, tensors, b, h, first_row + thread_row() + m * SIDE);
    rows.max[m] = -INFINITY;
    rows.sum[m] = 0;
  }
  load_tile<shape::ROWS, shape::WIDTH, shape::PITCH>(
      queries, rows_from(tensors.query, problem.query, b, h, first_row, problem.head_dim),
      last_row - first_row);

  /* Tiles lie at multiples of their length, so that a row's bits do not follow from the others of its tile. */
  const attn_range seen = keys_of_rows(problem, b, first_row, last_row);
  for (int64_t j = seen.first / shape::KEYS * shape::KEYS; j < seen.end; j += shape::KEYS) {
    const int64_t count = min((int64_t)shape::KEYS, problem.key_length - j);
    const tensor_rows values = rows_from(tensors.value, problem.value, b, kv_head, j, problem.value_dim);
    __syncthreads(); /* the values before it were read */
    load_tile<shape::KEYS, shape::WIDTH, shape::PITCH>(
        tile, rows_from(tensors.key, problem.key, b, kv_head, j, problem.head_dim), count);
    __syncthreads();
    if (attn_tile_visibility(&problem, b, first_row, last_row, j, j + shape::KEYS) == ATTN_FULL)
      pass_keys<false, shape>(problem, tensors, rows, j, count, values, queries, tile, weights);
    else
      pass_keys<true, shape>(problem, tensors, rows, j, count, values, queries, tile, weights);
  }
  write_rows<shape>(problem, tensors, rows, b, h, first_row);
}

template <class shape> void launch_tiles(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t tiles = (p->query_length + shape::ROWS - 1) / shape::ROWS;
  attn_launch(solve_tiles<shape>, dim3((unsigned)(tiles * p->batch * p->query_heads)), dim3(PRODUCT_THREADS),
              shape::SHARED_BYTES, call->stream, *p, call->tensors);
}

const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (p->head_dim > MOST_WIDTH || p->value_dim > MOST_WIDTH)
    return "a tile of rows has to fit into shared memory: needs D and Dv of at most 256";
  return nullptr;
}

void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t width = p->head_dim > p->value_dim ? p->head_dim : p->value_dim;
  if (p->batch * p->query_heads * p->query_length == 0) return;
  if (width <= 64)
    launch_tiles<tile_shape<64, 64, 64>>(call);
  else if (width <= 128)
    launch_tiles<tile_shape<64, 64, 128>>(call);
  else
    launch_tiles<tile_shape<32, 32, 256>>(call);
}

} // namespace

const attn_variant cuda_tiled = {
    "cuda_tiled",
    "online softmax over tiles in shared memory, float32 arithmetic",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_ALL_TYPES,
    ATTN_CUDA,
    ATTN_BATCH_INVARIANT | ATTN_FLOAT32_WEIGHTS,
    2,
    0,
    nullptr,
    unsupported,
    nullptr,
    run,
};
