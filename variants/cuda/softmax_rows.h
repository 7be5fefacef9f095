/* Rows on their way past the keys, with what becomes of their scores: what kernels on matrix units have in
 * common, however keys and values come to them and whoever multiplies. Online softmax as in ../fused.c. A
 * lane has of each 16 rows and 8 keys what mma and wgmma leave it, which is the same (multiply_add).
 *
 * A kernel's shape says: type, width (of features, padded), row_tiles (16 rows each of a warp), rows (of a
 * block), keys (of a tile), eights (of those that a warp multiplies), warp_rows and first_row() (in the
 * block), together_rows and first_together() (those that are multiplied at once). */
#ifndef ATTN_CUDA_SOFTMAX_ROWS_H
#define ATTN_CUDA_SOFTMAX_ROWS_H

#include <float.h>

#include "fragments.h"

constexpr double LOG2E = 1.4426950408889634, LN2 = 0.6931471805599453;

/* As tile/base2.h has it. */
__device__ __forceinline__ float base2_bias(float bias) {
  const float scaled = (float)LOG2E * bias, least = fminf(bias, -0x1p127f);
  return scaled < least ? least : scaled;
}

/* Query heads that share a key/value head, as one stack of rows: row r is query r / heads of head r % heads.
 * With one head these are its queries. */
struct row_stack {
  int64_t b, first_head;
  int heads, rows;

  __device__ __forceinline__ int64_t head(int r) const { return first_head + r % heads; }
  __device__ __forceinline__ int64_t query(int r) const { return r / heads; }
  __device__ __forceinline__ int64_t begin(const attn_layout &layout, int r) const {
    return row_begin(layout, b, head(r), query(r));
  }
};

/* Keys [first, end). */
struct key_span {
  int first, end;
};

/* Of rows [r0, r1): keys that any of them sees. */
__device__ __forceinline__ key_span keys_of_any(const attn_problem &problem, const row_stack &stack, int r0,
                                                int r1) {
  const attn_range keys = keys_of_rows(problem, stack.b, stack.query(r0), stack.query(r1 - 1) + 1);
  return {(int)keys.first, (int)keys.end};
}

/* Keys that all of them see, masks aside: between the first of the last row and the end of the first row. */
__device__ __forceinline__ key_span keys_of_all(const attn_problem &problem, const row_stack &stack, int r0,
                                                int r1) {
  const attn_range first = attn_visible_keys(&problem, stack.b, stack.query(r0));
  const attn_range last = attn_visible_keys(&problem, stack.b, stack.query(r1 - 1));
  return {(int)last.first, (int)(first.end < last.end ? first.end : last.end)};
}

/* What a lane keeps of its warp's rows: of each 16 rows it has `group` and `group` + 8, and of these the
 * features 8 e + 2 member and the next. */
template <class shape> struct row_state {
  float output[shape::row_tiles][shape::width / 8][4];
  float max[shape::row_tiles][2]; /* of scores times the passage's factor */
  float sum[shape::row_tiles][2]; /* of the weights of the lane's own keys */

  __device__ __forceinline__ void clear() {
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) {
      max[m][0] = max[m][1] = -INFINITY;
      sum[m][0] = sum[m][1] = 0;
      ATTN_UNROLL
      for (int e = 0; e < shape::width / 8; e++) ATTN_UNROLL
      for (int c = 0; c < 4; c++) output[m][e][c] = 0;
    }
  }

  __device__ __forceinline__ bool is_finite() const {
    bool finite = true;
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int e = 0; e < shape::width / 8; e++) ATTN_UNROLL
    for (int c = 0; c < 4; c++) finite = finite && fabsf(output[m][e][c]) <= FLT_MAX;
    return finite;
  }
};

/* The four lanes that share a row. */
__device__ __forceinline__ float max_of_four(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float sum_of_four(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

__device__ __forceinline__ key_span of_part(key_span keys, key_span part) {
  return {keys.first > part.first ? keys.first : part.first, keys.end < part.end ? keys.end : part.end};
}

template <class shape> class softmax_rows {
public:
  /* Rows [block_row, block_row + shape::rows) of the stack, and of all keys those of `part`. */
  __device__ __forceinline__ softmax_rows(const attn_problem &problem, const attn_tensors &tensors,
                                          const row_stack &stack, int block_row, key_span part)
      : problem(problem), tensors(tensors), stack(stack), block_row(block_row) {
    const int left = stack.rows - block_row,
              block_end = block_row + (left < shape::rows ? left : shape::rows);
    any = of_part(keys_of_any(problem, stack, block_row, block_end), part);
    const float scale_log2e = (float)(problem.scale * LOG2E);
    /* What does no more to a product than to scale it up is left to the exponential. */
    is_scaled = problem.softcap > 0 || problem.bias.type || !(scale_log2e >= FLT_MIN);
    factor = is_scaled ? 1 : scale_log2e;

    first_row = block_row + shape::first_row();
    together_any = warp_all = {0, 0};
    const int together = block_row + shape::first_together();
    if (together >= block_end) return;
    together_any =
        of_part(keys_of_any(problem, stack, together, min(together + shape::together_rows, block_end)), part);
    if (!problem.mask.type && first_row < block_end)
      warp_all = keys_of_all(problem, stack, first_row, min(first_row + shape::warp_rows, block_end));
  }

  /* The lane's row, of the warp's m-th 16. The stack may have ended before: then it is not to be written. */
  __device__ __forceinline__ int row_of(int m, int half) const {
    return first_row + 16 * m + 8 * half + group_number();
  }

  /* The warp's rows, one for each lane; who gets none gets one behind the last. */
  __device__ __forceinline__ int row_of_lane() const {
    return lane_number() < shape::warp_rows ? first_row + lane_number() : stack.rows;
  }

  /* Gives each value that is not finite and counts in row r to a function of its feature and itself: by a
   * whole warp, whose lanes each have a row of their own. None counts behind the last row. How much one weighs
   * does not matter, unless that is nothing. Heads are divided in 32 bits, in which they fit: a division in 64
   * is a call, for which the passage before it would take 30 registers more. */
  template <class function>
  __device__ __forceinline__ void for_each_nonfinite_value(int r, function of) const {
    const int64_t h = stack.head(r), i = stack.query(r);
    const query_row row = place_row(problem, tensors, stack.b, h, i);
    const int kv_head = (int)stack.first_head / ((int)problem.query_heads / (int)problem.kv_heads);
    const int64_t query = row_begin(problem.query, stack.b, h, i),
                  key = row_begin(problem.key, stack.b, kv_head, 0);
    const uint16_t *const values =
        static_cast<const uint16_t *>(tensors.value) + row_begin(problem.value, stack.b, kv_head, 0);
    ATTN_KEEP_LOOP
    for (int first = together_any.first; first < together_any.end; first += 32) {
      const int own = first + lane_number();
      const unsigned keys =
          __ballot_sync(0xffffffffu, own < together_any.end &&
                                         !is_finite_row<shape::type>(values + own * problem.value.position,
                                                                     problem.value_dim));
      ATTN_KEEP_LOOP
      for (int j = first; j < first + 32; j++) {
        if (!(keys >> (j - first) & 1) || !sees(row, j) ||
            weighs_nothing(problem, tensors, row, query, key + j * problem.key.position, j))
          continue;
        ATTN_KEEP_LOOP
        for (int64_t e = 0; e < problem.value_dim; e++) {
          const uint16_t *const value = values + j * problem.value.position + e;
          if (!is_finite<shape::type>(*value)) of(e, attn_load(value, shape::type, 0));
        }
      }
    }
  }

  /* The largest score, natural. */
  __device__ __forceinline__ float natural_max(float max) const { return max * factor * (float)LN2; }

  float factor; /* of the scores, so that they are exponents of 2 */

  typedef float tile_scores[shape::row_tiles][shape::eights][4];
  typedef uint32_t tile_weights[shape::row_tiles][shape::eights / 2][4];

protected:
  const attn_problem &problem;
  const attn_tensors &tensors;
  const row_stack &stack;
  const int block_row;
  int first_row;
  bool is_scaled;        /* before the exponential */
  key_span any;          /* that rows of the block see */
  key_span together_any; /* and of those that are multiplied together */
  key_span warp_all;     /* that all rows of the warp see */

  /* Each of them is a step of its own over all scores, so that no two need their registers at once. */

  /* tanh(x) = 1 - 2 / (1 + exp(2x)) is as accurate as its size relative to 1 asks for, and has no branch. */
  __device__ __forceinline__ void scale(tile_scores &scores) const {
    const float scale = (float)(problem.scale * LOG2E),
                cap = fminf((float)(problem.softcap * LOG2E), FLT_MAX);
    const float steepness = problem.softcap > 0 ? (float)(2 * LOG2E * problem.scale / problem.softcap) : 0;
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int n = 0; n < shape::eights; n++) ATTN_UNROLL
    for (int c = 0; c < 4; c++)
      if (cap > 0)
        scores[m][n][c] = cap - cap * __fdividef(2, 1 + exp2_approximate(steepness * scores[m][n][c]));
      else
        scores[m][n][c] *= scale;
  }

  __device__ __forceinline__ query_row place_row_of(int m, int half) const {
    const int r = min(row_of(m, half), stack.rows - 1);
    return place_row(problem, tensors, stack.b, stack.head(r), stack.query(r));
  }

  /* The key of a lane's score. */
  __device__ __forceinline__ static int key_of(int first_key, int n, int c) {
    return first_key + 8 * n + 2 * member_number() + c;
  }

  /* Gives each of the lane's scores to a function of its row, its key and itself. */
  template <class function>
  __device__ __forceinline__ void for_each_score(tile_scores &scores, int first_key, function of) const {
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int half = 0; half < 2; half++) {
      const query_row row = place_row_of(m, half);
      ATTN_UNROLL
      for (int n = 0; n < shape::eights; n++) ATTN_UNROLL
      for (int c = 0; c < 2; c++) of(row, key_of(first_key, n, c), scores[m][n][2 * half + c]);
    }
  }

  __device__ __forceinline__ void add_bias(tile_scores &scores, int first_key) const {
    for_each_score(scores, first_key, [this](const query_row &row, int j, float &score) {
      if (j < problem.key_length)
        score += base2_bias(attn_load(tensors.bias, problem.bias.type, row.bias + j));
    });
  }

  __device__ __forceinline__ void hide(tile_scores &scores, int first_key) const {
    for_each_score(scores, first_key, [](const query_row &row, int j, float &score) {
      if (!sees(row, j)) score = -INFINITY;
    });
  }

  /* Scores become weights, relative to the largest score so far, and what there was is rescaled to that.
   * Weights are summed before they are rounded. */
  __device__ __forceinline__ void weigh(tile_scores &scores, tile_weights &weights,
                                        row_state<shape> &state) const {
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int half = 0; half < 2; half++) {
      const float old_max = state.max[m][half];
      float max = old_max, sum = 0;
      ATTN_UNROLL
      for (int n = 0; n < shape::eights; n++)
        max = fmaxf(max, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      max = max_of_four(max);
      const float shift = max == -INFINITY ? 0 : max * factor;
      ATTN_UNROLL
      for (int n = 0; n < shape::eights; n++) ATTN_UNROLL
      for (int c = 2 * half; c < 2 * half + 2; c++)
        sum += scores[m][n][c] = exp2_approximate(__fmaf_rn(scores[m][n][c], factor, -shift));
      /* Of equal maxima it is 1 and not nearly so. */
      const float rescale = max == old_max ? 1 : exp2_approximate((old_max - max) * factor);
      state.max[m][half] = max;
      state.sum[m][half] = state.sum[m][half] * rescale + sum;
      ATTN_UNROLL
      for (int e = 0; e < shape::width / 8; e++) ATTN_UNROLL
      for (int c = 2 * half; c < 2 * half + 2; c++) state.output[m][e][c] *= rescale;
    }
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int n = 0; n < shape::eights / 2; n++)
      pack_weights<shape::type>(weights[m][n], scores[m][2 * n], scores[m][2 * n + 1]);
  }
};

/* ---- outputs ---- */

template <attn_type type>
__device__ __forceinline__ void store_pair(void *output, attn_type output_type, int64_t at, int count,
                                           float low, float high) {
  if (output_type == ATTN_FLOAT32) {
    float *const to = static_cast<float *>(output) + at;
    if (count > 0) to[0] = low;
    if (count > 1) to[1] = high;
    return;
  }
  uint16_t *const to = static_cast<uint16_t *>(output) + at;
  const uint32_t pair = pack_pair<type>(low, high);
  if (count > 1 && (uintptr_t)to % sizeof pair == 0) {
    *reinterpret_cast<uint32_t *>(to) = pair;
    return;
  }
  if (count > 0) to[0] = (uint16_t)pair;
  if (count > 1) to[1] = (uint16_t)(pair >> 16);
}

template <class shape>
__device__ __forceinline__ void store_rows(const attn_problem &problem, const attn_tensors &tensors,
                                           const row_stack &stack, const softmax_rows<shape> &keys,
                                           const row_state<shape> &state) {
  ATTN_UNROLL
  for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
  for (int half = 0; half < 2; half++) {
    const int r = keys.row_of(m, half);
    const float sum = sum_of_four(state.sum[m][half]);
    if (r >= stack.rows) continue;
    const int64_t h = stack.head(r);
    const finished_row row =
        finish_row(keys.natural_max(state.max[m][half]), sum, sink_of(problem, tensors, h));
    const int64_t begin = stack.begin(problem.output, r);
    ATTN_UNROLL
    for (int e = 0; e < shape::width / 8; e++) {
      const int column = 8 * e + 2 * member_number(), count = (int)problem.value_dim - column;
      const float *const pair = state.output[m][e] + 2 * half;
      store_pair<shape::type>(tensors.output, problem.output.type, begin + column, count,
                              row.saw_nothing ? 0 : pair[0] * row.factor,
                              row.saw_nothing ? 0 : pair[1] * row.factor);
    }
    if (problem.lse.type && member_number() == 0) tensors.lse[stack.begin(problem.lse, r)] = row.lse;
  }
}

/* To the stored outputs of the warp's rows, whose values have been multiplied without what is not finite. On
 * the way past the keys no register is left for who weighs nothing; here all are free. */
template <class shape>
__device__ __forceinline__ void add_nonfinite_values(const attn_problem &problem, const attn_tensors &tensors,
                                                     const row_stack &stack,
                                                     const softmax_rows<shape> &keys) {
  const int r = keys.row_of_lane();
  const int64_t begin = stack.begin(problem.output, r);
  __syncwarp(); /* four lanes have stored a row */
  keys.for_each_nonfinite_value(r, [&](int64_t e, float value) {
    attn_store(tensors.output, problem.output.type, begin + e,
               attn_load(tensors.output, problem.output.type, begin + e) + value);
  });
}

#endif
