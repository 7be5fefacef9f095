/* cuda_fused for Hopper (sm_90a), whose matrix units mma does not use in full: as FlashAttention-3 (Shah
 * et al. 2024), without its overlap of softmax and products within a group. A block has 128 query rows of a
 * head and three groups of four warps. Two multiply, 64 rows each: queries by keys from shared memory, and
 * weights from the registers in which they arise by values (wgmma). Of the third, one thread asks for tiles
 * of keys and values (TMA), so that nobody computes addresses, and its registers go to the others. Tiles
 * come in two stages; of each a barrier says that it is full, and one that it is empty.
 *
 * What becomes of scores, and which rows go past the keys a second time, is cuda_fused's (softmax_rows.h,
 * passage.h). */
#include "hopper.h"
#include "softmax_rows.h"
#include "variants.h"

namespace {

/* ---- shapes ---- */

constexpr int GROUP_THREADS = 128, CONSUMERS = 2, PRODUCER = CONSUMERS, STAGES = 2;
constexpr int CONSUMER_WARPS = 4 * CONSUMERS, BLOCK_THREADS = GROUP_THREADS * (CONSUMERS + 1);

/* Barriers of a part of the block: of all; and of those who multiply. */
constexpr unsigned WHOLE_BLOCK = 1, ALL_CONSUMERS = 2;

__device__ __forceinline__ int group_of_warps() { return (int)threadIdx.x / GROUP_THREADS; }

/* A tile's rows are cut into panels of 128 bytes, which is what a swizzle spans. Rows of a panel follow one
 * another. */
constexpr int PANEL_WIDTH = 64, PANEL_ROW_BYTES = 2 * PANEL_WIDTH;
constexpr unsigned EIGHT_ROWS = 8 * PANEL_ROW_BYTES;

template <attn_type element_type, int padded_width> struct hopper_shape {
  static constexpr attn_type type = element_type;
  static constexpr int width = padded_width, panels = width / PANEL_WIDTH, row_tiles = 1;
  static constexpr int keys = 128, eights = keys / 8;
  static constexpr int warp_rows = 16, together_rows = 64, rows = together_rows * CONSUMERS;
  static constexpr unsigned query_panel = rows * PANEL_ROW_BYTES, panel = keys * PANEL_ROW_BYTES;
  static constexpr unsigned query_bytes = panels * query_panel, tile_bytes = panels * panel;
  static constexpr unsigned keys_at = query_bytes, values_at = keys_at + STAGES * tile_bytes;
  static constexpr unsigned barriers_at = values_at + STAGES * tile_bytes;
  static constexpr size_t votes_at = barriers_at + (1 + 4 * STAGES) * sizeof(mbarrier);
  static constexpr size_t shared_bytes = votes_at + CONSUMER_WARPS * sizeof(int);

  __device__ static int first_together() { return group_of_warps() * together_rows; }
  __device__ static int first_row() { return first_together() + warp_number() % 4 * warp_rows; }
};

/* Boxes of one panel and of a tile's rows, of a head of a batch entry. */
struct tensor_maps {
  tensor_map query, key, value;
};

/* ---- what is full, and what is empty ---- */

/* Tiles of keys, or of values, on their way through the stages. The n-th since the block began is in stage
 * n % STAGES, whose barriers it finds in the same phase. */
struct stages {
  unsigned char *tiles;
  unsigned tile_bytes;
  mbarrier *full, *empty;

  __device__ __forceinline__ unsigned char *tile(int n) const { return tiles + n % STAGES * tile_bytes; }
  __device__ __forceinline__ static unsigned parity(int n) { return n / STAGES & 1; }

  __device__ __forceinline__ void prepare() const {
    for (int n = 0; n < STAGES; n++) {
      make_mbarrier(full + n, 1);
      make_mbarrier(empty + n, CONSUMER_WARPS);
    }
  }

  /* By one thread: when all have left what was there, the panels from this row on are asked for. */
  template <class shape>
  __device__ __forceinline__ void fill(int n, const tensor_map *map, int row, int head, int b) const {
    mbarrier *const filled = full + n % STAGES;
    wait_at_mbarrier(empty + n % STAGES, parity(n) ^ 1);
    arrive_expecting(filled, shape::tile_bytes);
    for (int p = 0; p < shape::panels; p++)
      copy_box(tile(n) + p * shape::panel, map, p * PANEL_WIDTH, row, head, b, filled);
  }

  __device__ __forceinline__ void wait(int n) const { wait_at_mbarrier(full + n % STAGES, parity(n)); }

  /* By whole warps. */
  __device__ __forceinline__ void leave(int n) const {
    __syncwarp();
    if (lane_number() == 0) arrive_at_mbarrier(empty + n % STAGES);
  }
};

/* ---- products ---- */

/* Of the 64 queries of a group and the keys of a tile: both have their features side by side. */
template <class shape>
__device__ __forceinline__ void multiply_keys_of(float (&scores)[shape::eights][4],
                                                 const unsigned char *queries, const unsigned char *keys) {
  fence_products();
  ATTN_UNROLL
  for (int d = 0; d < shape::width; d += 16) {
    const int panel = d / PANEL_WIDTH, bytes = 2 * (d % PANEL_WIDTH);
    multiply_group<shape::type, false>(
        scores, describe_matrix(queries + panel * shape::query_panel + bytes, 0, EIGHT_ROWS, SWIZZLE_128),
        describe_matrix(keys + panel * shape::panel + bytes, 0, EIGHT_ROWS, SWIZZLE_128), d > 0);
  }
  commit_products();
  wait_for_products<0>(scores);
}

/* Of the weights of a warp and the values of a tile, whose columns lie side by side. */
template <class shape>
__device__ __forceinline__ void multiply_values_of(float (&output)[shape::width / 8][4],
                                                   const uint32_t (&weights)[shape::eights / 2][4],
                                                   const unsigned char *values) {
  hold(output);
  fence_products();
  ATTN_UNROLL
  for (int n = 0; n < shape::keys / 16; n++)
    multiply_group<shape::type, true>(
        output, weights[n],
        describe_matrix(values + n * 16 * PANEL_ROW_BYTES, shape::panel, EIGHT_ROWS, SWIZZLE_128), true);
  commit_products();
  wait_for_products<0>(output);
}

/* ---- a block ---- */

template <class shape> class hopper_passage : public softmax_rows<shape> {
public:
  __device__ __forceinline__ hopper_passage(const attn_problem &problem, const attn_tensors &tensors,
                                            const row_stack &stack, int block_row, unsigned char *shared)
      : rows(problem, tensors, stack, block_row, {0, (int)problem.key_length}), queries(shared),
        queries_full(reinterpret_cast<mbarrier *>(shared + shape::barriers_at)),
        keys{shared + shape::keys_at, shape::tile_bytes, queries_full + 1, queries_full + 1 + STAGES},
        values{shared + shape::values_at, shape::tile_bytes, keys.empty + STAGES, keys.empty + 2 * STAGES},
        votes(reinterpret_cast<int *>(shared + shape::votes_at)), first_tile(any.first / shape::keys),
        tile_count(any.first < any.end ? (any.end + shape::keys - 1) / shape::keys - first_tile : 0) {}

  __device__ __forceinline__ void prepare() const {
    if (threadIdx.x == 0) {
      make_mbarrier(queries_full, 1);
      keys.prepare();
      values.prepare();
      fence_async_proxy();
    }
    __syncthreads();
  }

  /* By one thread. */
  __device__ __forceinline__ void produce(const tensor_maps &maps, bool again) const {
    const int kv_head = (int)kv_head_of(problem, stack.first_head), b = (int)stack.b;
    if (!again && tile_count > 0) {
      arrive_expecting(queries_full, shape::query_bytes);
      for (int p = 0; p < shape::panels; p++)
        copy_box(queries + p * shape::query_panel, &maps.query, p * PANEL_WIDTH, block_row,
                 (int)stack.first_head, b, queries_full);
    }
    ATTN_KEEP_LOOP
    for (int n = 0; n < tile_count; n++) {
      const int turn = again * tile_count + n, row = (first_tile + n) * shape::keys;
      keys.template fill<shape>(turn, &maps.key, row, kv_head, b);
      values.template fill<shape>(turn, &maps.value, row, kv_head, b);
    }
  }

  /* By the groups that multiply. A group that sees nothing of a tile only says that it has left it. */
  __device__ __forceinline__ void consume(row_state<shape> &state, bool again) const {
    state.clear();
    if (tile_count > 0) wait_at_mbarrier(queries_full, 0);
    ATTN_KEEP_LOOP
    for (int n = 0; n < tile_count; n++) {
      const int turn = again * tile_count + n, first_key = (first_tile + n) * shape::keys,
                end_key = first_key + shape::keys;
      const bool is_seen = first_key < together_any.end && end_key > together_any.first;
      tile_weights weights;

      keys.wait(turn);
      if (is_seen) {
        tile_scores scores;
        const bool all_visible = first_key >= warp_all.first && end_key <= warp_all.end;
        multiply_keys_of<shape>(scores[0], queries + shape::first_together() * PANEL_ROW_BYTES,
                                keys.tile(turn));
        keys.leave(turn);
        if (is_scaled) rows::scale(scores);
        if (problem.bias.type) rows::add_bias(scores, first_key);
        if (!all_visible) rows::hide(scores, first_key);
        rows::weigh(scores, weights, state);
      } else
        keys.leave(turn);

      values.wait(turn);
      if (again) remove_nonfinite_values(values.tile(turn));
      if (is_seen) multiply_values_of<shape>(state.output[0], weights[0], values.tile(turn));
      values.leave(turn);
    }
  }

  /* By the whole block. Who has no rows that could be otherwise votes for what is. */
  __device__ __forceinline__ bool is_to_be_repeated(bool is_finite) const {
    const bool finite = __all_sync(0xffffffffu, is_finite);
    if (lane_number() == 0 && group_of_warps() != PRODUCER) votes[warp_number()] = !finite;
    wait_at_barrier(WHOLE_BLOCK, BLOCK_THREADS);
    bool repeated = false;
    for (int warp = 0; warp < CONSUMER_WARPS; warp++) repeated = repeated || votes[warp];
    return repeated;
  }

  /* Whether a warp that multiplies has done so without what is not finite, which is to be added to its
   * outputs. */
  __device__ __forceinline__ bool lacks_values() const { return votes[warp_number()]; }

private:
  typedef softmax_rows<shape> rows;
  using rows::is_scaled;
  using rows::problem, rows::stack, rows::block_row, rows::any, rows::together_any, rows::warp_all;
  using typename rows::tile_scores, typename rows::tile_weights;

  unsigned char *const queries;
  mbarrier *const queries_full;
  const stages keys, values;
  int *const votes;
  const int first_tile, tile_count;

  __device__ __forceinline__ void remove_nonfinite_values(unsigned char *tile) const {
    uint16_t *const elements = reinterpret_cast<uint16_t *>(tile);
    remove_nonfinite<shape::type, shape::tile_bytes / 2, CONSUMERS * GROUP_THREADS>(elements,
                                                                                    (int)threadIdx.x);
    fence_async_proxy();
    wait_at_barrier(ALL_CONSUMERS, CONSUMERS * GROUP_THREADS);
  }
};

/* A block for each tile of rows of each head of each batch entry; the last rows first, which see most keys
 * below a causal diagonal. */
template <class shape>
__global__ void __launch_bounds__(BLOCK_THREADS, 1)
    solve_rows(attn_problem problem, attn_tensors tensors, const __grid_constant__ tensor_maps maps,
               int tiles) {
  ATTN_DYNAMIC_SHARED(shared);
  const int tile = tiles - 1 - (int)(blockIdx.x % tiles), heads = (int)problem.query_heads;
  const int at = (int)(blockIdx.x / tiles);
  const row_stack stack = {at / heads, at % heads, 1, (int)problem.query_length};
  const hopper_passage<shape> keys(problem, tensors, stack, tile * shape::rows, shared);
  keys.prepare();
  if (group_of_warps() == PRODUCER) {
    const bool is_asking = threadIdx.x == PRODUCER * GROUP_THREADS;
    give_registers_back<24>();
    if (is_asking) keys.produce(maps, false);
    __syncwarp();
    if (keys.is_to_be_repeated(true) && is_asking) keys.produce(maps, true);
  } else {
    row_state<shape> state;
    take_registers<240>();
    bool again = false;
    do { /* a loop, for twice the text would take more registers than there are */
      keys.consume(state, again);
      again = !again && keys.is_to_be_repeated(state.is_finite());
    } while (again);
    store_rows(problem, tensors, stack, keys, state);
    if (keys.lacks_values()) add_nonfinite_values(problem, tensors, stack, keys);
  }
}

/* ---- host ---- */

/* Of a tensor whose rows make_tensor_map takes. */
bool map_panels(tensor_map *map, const void *first, const attn_layout &layout, int64_t batch, int64_t heads,
                int64_t length, int64_t features, uint32_t rows) {
  const uint64_t sizes[4] = {(uint64_t)features, (uint64_t)length, (uint64_t)heads, (uint64_t)batch};
  const uint32_t box[4] = {PANEL_WIDTH, rows, 1, 1};
  /* Of an axis of one the stride says nothing. */
  const uint64_t strides[3] = {length > 1 ? 2 * (uint64_t)layout.position : 16,
                               heads > 1 ? 2 * (uint64_t)layout.head : 16,
                               batch > 1 ? 2 * (uint64_t)layout.batch : 16};
  return make_tensor_map(map, layout.type, first, sizes, strides, box, SWIZZLE_128);
}

bool map_tensors(tensor_maps *maps, const attn_call *call, int rows, int keys) {
  const attn_problem *p = call->problem;
  if (!map_panels(&maps->query, call->tensors.query, p->query, p->batch, p->query_heads, p->query_length,
                  p->head_dim, (uint32_t)rows))
    return false;
  /* Of what has no element nothing is read. */
  maps->key = maps->value = maps->query;
  if (p->key_length == 0) return true;
  return map_panels(&maps->key, call->tensors.key, p->key, p->batch, p->kv_heads, p->key_length, p->head_dim,
                    (uint32_t)keys) &&
         (p->value_dim == 0 || map_panels(&maps->value, call->tensors.value, p->value, p->batch, p->kv_heads,
                                          p->key_length, p->value_dim, (uint32_t)keys));
}

/* Nothing is launched where a tensor cannot be mapped, which is one that does not begin at a multiple of 16
 * bytes. */
template <attn_type type, int width> void launch(const attn_call *call) {
  typedef hopper_shape<type, width> shape;
  const attn_problem *p = call->problem;
  const int64_t tiles = (p->query_length + shape::rows - 1) / shape::rows;
  const int64_t blocks = p->batch * p->query_heads * tiles;
  tensor_maps maps;
  if (blocks > 0 && map_tensors(&maps, call, shape::rows, shape::keys))
    attn_launch(solve_rows<shape>, dim3((unsigned)blocks), dim3(BLOCK_THREADS), shape::shared_bytes,
                call->stream, *p, call->tensors, maps, (int)tiles);
}

template <attn_type type> void launch_width(const attn_call *call) {
  if (call->problem->head_dim > 64 || call->problem->value_dim > 64)
    launch<type, 128>(call);
  else
    launch<type, 64>(call);
}

void run(const attn_call *call) {
  if (call->problem->query.type == ATTN_BFLOAT16)
    launch_width<ATTN_BFLOAT16>(call);
  else
    launch_width<ATTN_FLOAT16>(call);
}

bool is_hopper() {
#ifdef __CUDACC__
  int device = 0, major = 0, minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         major == 9 && minor == 0;
#else
  return true;
#endif
}

bool is_mappable(int64_t size, int64_t stride) { return size <= 1 || (stride > 0 && stride % CHUNK == 0); }

bool has_mappable_rows(const attn_layout &layout, int64_t batch, int64_t heads, int64_t length) {
  return length == 0 || (is_mappable(batch, layout.batch) && is_mappable(heads, layout.head) &&
                         is_mappable(length, layout.position));
}

const char *refuse(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (const char *why = cuda_narrow_refusal(p, 128)) return why;
  if (!is_hopper()) return "needs a Hopper GPU (compute capability 9.0)";
  if (!has_mappable_rows(p->query, p->batch, p->query_heads, p->query_length) ||
      !has_mappable_rows(p->key, p->batch, p->kv_heads, p->key_length) ||
      !has_mappable_rows(p->value, p->batch, p->kv_heads, p->key_length))
    return "takes rows of queries, keys and values at multiples of 16 bytes, none of them broadcast";
  return nullptr;
}

} // namespace

const attn_variant cuda_fused_hopper = {
    "cuda_fused_hopper",
    "cuda_fused for Hopper: tiles by TMA, products of four warps",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT,
    2,
    0,
    "full bf16",
    refuse,
    nullptr,
    run,
};
