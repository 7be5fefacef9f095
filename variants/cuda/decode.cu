/* Decoding: few queries against many keys, all of it memory traffic. A block of cuda_fused would pass all keys
 * of a head alone, and with few heads most of the GPU would wait. Here keys are split (flash-decoding: Dao,
 * Haziza, Massa and Sizov 2023): a block takes one part of a head's keys, with its queries and those of the
 * heads that share the keys as 16 rows; its warps take 16 of 64 keys each. What a part leaves, for each row
 * the weighted values, the largest score and the sum of the weights, goes to the workspace, and a second
 * kernel merges the parts in their order. That costs 1/16 more traffic at most where 16 rows are full (parts
 * of 256 keys or more), and fills the GPU from B Hkv = 1 on with 16384 keys.
 *
 * How many parts there are follows from Tk alone, so that no bit of a row depends on its company. */
#include "passage.h"
#include "variants.h"

namespace {

constexpr int64_t TILE_KEYS = 64, FEWEST_TILES = 4, MOST_PARTS = 64, MOST_QUERIES = 16;

/* Parts of as many whole key tiles each, but for the last. */
struct split {
  int part_keys, parts;
};
split split_of(int64_t key_length) {
  const int64_t tiles = (key_length + TILE_KEYS - 1) / TILE_KEYS;
  const int64_t share = (tiles + MOST_PARTS - 1) / MOST_PARTS,
                part_tiles = share < FEWEST_TILES ? FEWEST_TILES : share;
  const int64_t parts = (tiles + part_tiles - 1) / part_tiles;
  return {(int)(part_tiles * TILE_KEYS), (int)(parts < 1 ? 1 : parts)};
}

/* What a part leaves of a row: the largest score as an exponent of 2, and the sum of the weights relative to
 * that; sum is 0 where it saw no key, and its output was not written. */
struct part_state {
  float max, sum;
};

/* The workspace: of row (b, h, i) and part p, its state, and Dv numbers of output. */
struct part_results {
  part_state *states;
  float *outputs;
};

__device__ __forceinline__ int64_t row_number(const attn_problem &problem, const row_stack &stack, int r) {
  return (stack.b * problem.query_heads + stack.head(r)) * problem.query_length + stack.query(r);
}

/* ---- one part ---- */

/* What the block's warps leave of its rows, where the key tiles were. */
template <class shape> struct warp_results {
  part_state states[TILE_WARPS][shape::rows];
  float outputs[TILE_WARPS][shape::rows][shape::width];
};

template <class shape>
__device__ __forceinline__ void leave_warp(const passage<shape> &keys, const row_state<shape> &state,
                                           warp_results<shape> *of) {
  const int warp = warp_number();
  for (int half = 0; half < 2; half++) {
    const int row = 8 * half + group_number();
    const float sum = sum_of_four(state.sum[0][half]), max = state.max[0][half];
    if (member_number() == 0) of->states[warp][row] = {max == -INFINITY ? max : max * keys.factor, sum};
    ATTN_UNROLL
    for (int e = 0; e < shape::width / 8; e++)
      *reinterpret_cast<float2 *>(&of->outputs[warp][row][8 * e + 2 * member_number()]) =
          make_float2(state.output[0][e][2 * half], state.output[0][e][2 * half + 1]);
  }
}

/* Several results of one row, `stride` apart. What saw no key counts for nothing, and its output is not looked
 * at. */
struct results_of_row {
  const part_state *states;
  const float *outputs; /* of one feature */
  int count, stride;
  int64_t output_stride;

  __device__ __forceinline__ float factor(int n, float max) const {
    return states[n * stride].max == max ? 1 : exp2_approximate(states[n * stride].max - max);
  }
  __device__ __forceinline__ part_state merge() const {
    part_state merged = {-INFINITY, 0};
    for (int n = 0; n < count; n++) merged.max = fmaxf(merged.max, states[n * stride].max);
    for (int n = 0; n < count; n++)
      if (states[n * stride].sum != 0) merged.sum += states[n * stride].sum * factor(n, merged.max);
    return merged;
  }
  __device__ __forceinline__ float merge_outputs(float max, int64_t e) const {
    float output = 0;
    for (int n = 0; n < count; n++)
      if (states[n * stride].sum != 0) output += outputs[n * output_stride + e] * factor(n, max);
    return output;
  }
};

template <class shape>
__device__ __forceinline__ void merge_warps(const attn_problem &problem, const row_stack &stack,
                                            int block_row, int part, int parts, const warp_results<shape> *of,
                                            const part_results &to) {
  const int left = stack.rows - block_row, rows = left < shape::rows ? left : shape::rows;
  for (int row = warp_number(); row < rows; row += TILE_WARPS) {
    const int64_t at = row_number(problem, stack, block_row + row) * parts + part;
    const results_of_row results = {&of->states[0][row], of->outputs[0][row], TILE_WARPS, shape::rows,
                                    shape::rows * shape::width};
    const part_state merged = results.merge();
    if (lane_number() == 0) to.states[at] = merged;
    for (int64_t e = lane_number(); e < problem.value_dim && merged.sum != 0; e += 32)
      to.outputs[at * problem.value_dim + e] = results.merge_outputs(merged.max, e);
  }
}

/* To the outputs of the rows that this warp has merged. */
template <class shape>
__device__ __forceinline__ void add_nonfinite_values(const attn_problem &problem, const row_stack &stack,
                                                     const passage<shape> &keys, int block_row, int part,
                                                     int parts, const part_results &to) {
  const int row = warp_number() + TILE_WARPS * lane_number(),
            r = row < shape::rows ? block_row + row : stack.rows;
  const int64_t at = row_number(problem, stack, r) * parts + part;
  __syncwarp(); /* all lanes have merged a row */
  keys.for_each_nonfinite_value(
      r, [&](int64_t e, float value) { to.outputs[at * problem.value_dim + e] += value; });
}

/* A block for each part of each 16 rows of each stack. */
template <class shape>
__global__ void __launch_bounds__(TILE_THREADS, 3)
    solve_parts(attn_problem problem, attn_tensors tensors, split of, int heads, int tiles,
                part_results results) {
  ATTN_DYNAMIC_SHARED(shared);
  const int part = (int)(blockIdx.x % of.parts), stacks = (int)(problem.query_heads / heads);
  const int tile = (int)(blockIdx.x / of.parts % tiles), at = (int)(blockIdx.x / of.parts / tiles);
  const row_stack stack = {at / stacks, (int64_t)(at % stacks) * heads, heads,
                           (int)problem.query_length * heads};
  const int block_row = tile * shape::rows, first_key = part * of.part_keys;
  passage<shape> keys(problem, tensors, stack, block_row, {first_key, first_key + of.part_keys}, shared);
  row_state<shape> state;
  keys.go(state);
  /* Queries and keys were multiplied before the last barrier; values may still be. */
  warp_results<shape> *const warps = reinterpret_cast<warp_results<shape> *>(shared);
  static_assert(sizeof *warps <= 2 * (shape::query_elements + 2 * shape::tile_elements),
                "results lie where queries and keys were");
  leave_warp(keys, state, warps);
  __syncthreads();
  merge_warps(problem, stack, block_row, part, of.parts, warps, results);
  if (keys.block_lacks_values())
    add_nonfinite_values(problem, stack, keys, block_row, part, of.parts, results);
}

/* ---- all parts ---- */

/* A block for each row. */
__global__ void __launch_bounds__(TILE_THREADS)
    merge_parts(attn_problem problem, attn_tensors tensors, int parts, part_results results) {
  const int64_t row = blockIdx.x, i = row % problem.query_length, at = row / problem.query_length;
  const int64_t h = at % problem.query_heads, b = at / problem.query_heads, width = problem.value_dim;
  const results_of_row of = {results.states + row * parts, results.outputs + row * parts * width, parts, 1,
                             width};
  const part_state merged = of.merge();
  const finished_row finished = finish_row(merged.max * (float)LN2, merged.sum, sink_of(problem, tensors, h));
  for (int64_t e = threadIdx.x; e < width; e += TILE_THREADS)
    attn_store(tensors.output, problem.output.type, row_begin(problem.output, b, h, i) + e,
               finished.saw_nothing ? 0 : of.merge_outputs(merged.max, e) * finished.factor);
  if (problem.lse.type && threadIdx.x == 0) tensors.lse[row_begin(problem.lse, b, h, i)] = finished.lse;
}

/* ---- host ---- */

int64_t rows_of(const attn_problem *p) { return p->batch * p->query_heads * p->query_length; }

template <attn_type type, int width> void launch_parts(const attn_call *call, const part_results &results) {
  typedef passage_shape<type, width, 1, true> shape;
  const attn_problem *p = call->problem;
  const split of = split_of(p->key_length);
  const int64_t heads = p->query_heads / p->kv_heads;
  const int64_t tiles = (p->query_length * heads + shape::rows - 1) / shape::rows;
  attn_launch(solve_parts<shape>, dim3((unsigned)(p->batch * p->kv_heads * tiles * of.parts)),
              dim3(TILE_THREADS), shape::shared_bytes, call->stream, *p, call->tensors, of, (int)heads,
              (int)tiles, results);
}

template <attn_type type> void launch_width(const attn_call *call, const part_results &results) {
  const attn_problem *p = call->problem;
  if (p->head_dim > 64 || p->value_dim > 64)
    launch_parts<type, 128>(call, results);
  else
    launch_parts<type, 64>(call, results);
}

size_t workspace_size(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(rows_of(p) * split_of(p->key_length).parts) *
         (sizeof(part_state) + (size_t)p->value_dim * sizeof(float));
}

const char *refuse(const attn_call *call) {
  if (call->problem->query_length > MOST_QUERIES) return "is for decoding: takes at most 16 queries";
  return cuda_narrow_refusal(call->problem, 128);
}

void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int parts = split_of(p->key_length).parts;
  part_state *const states = static_cast<part_state *>(call->workspace);
  const part_results results = {states, reinterpret_cast<float *>(states + rows_of(p) * parts)};
  if (rows_of(p) == 0) return;
  if (p->query.type == ATTN_BFLOAT16)
    launch_width<ATTN_BFLOAT16>(call, results);
  else
    launch_width<ATTN_FLOAT16>(call, results);
  attn_launch(merge_parts, dim3((unsigned)rows_of(p)), dim3(TILE_THREADS), 0, call->stream, *p, call->tensors,
              parts, results);
}

} // namespace

const attn_variant cuda_decode = {
    "cuda_decode",
    "few queries, with the keys of a head split over blocks",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_NARROW_TYPES,
    ATTN_CUDA,
    ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT,
    2,
    1,
    "bf16/Tq:1/Hkv:2",
    refuse,
    workspace_size,
    run,
};
