/* A block's query rows on their way past the keys, of 16 bits: what cuda_fused and cuda_decode have in common.
 * Online softmax as in ../fused.c; the structure is FlashAttention-2's (Dao 2023, section 3): a warp keeps 16
 * or 32 rows, their scores are weights in the registers in which they arise, and are multiplied from there.
 * Keys and values come in tiles, two of each in shared memory, of which one is copied while the other is
 * multiplied.
 *
 * Hiding is by select, and a score of -inf weighs 0. That is not enough for values, since 0 times NaN is NaN
 * in a matrix unit. A NaN stays in an output once it is there: so nothing looks for them on the way, and a
 * block that ends with an output which is not finite goes past its keys once more, carefully (fragments.h).
 * Rows that did not see the value get then the bits that they would have got without it.
 *
 * A row's result, to the last bit, follows from itself: key tiles lie at multiples of their length, and a key
 * tile that it does not see changes nothing. */
#ifndef ATTN_CUDA_PASSAGE_H
#define ATTN_CUDA_PASSAGE_H

#include <float.h>

#include "fragments.h"

constexpr double LOG2E = 1.4426950408889634, LN2 = 0.6931471805599453;

/* Warps share the keys and have rows of their own (fused); or share the rows, and each has its part of a key
 * tile. */
template <attn_type element_type, int padded_width, int tiles_of_rows, bool shares_rows>
struct passage_shape {
  static constexpr attn_type type = element_type;
  static constexpr int width = padded_width, row_tiles = tiles_of_rows;
  /* Of a tile: as many as leave room in registers for the rest. */
  static constexpr int keys = width > 64 && !shares_rows ? 32 : 64;
  static constexpr int warp_rows = 16 * row_tiles, rows = shares_rows ? warp_rows : warp_rows * TILE_WARPS;
  static constexpr int warp_keys = shares_rows ? keys / TILE_WARPS : keys, eights = warp_keys / 8;
  static constexpr size_t query_elements = (size_t)rows * width, tile_elements = (size_t)keys * width;
  static constexpr size_t votes_at = 2 * (query_elements + 4 * tile_elements);
  static constexpr size_t shared_bytes = votes_at + TILE_WARPS * sizeof(int);

  __device__ static int first_row() { return shares_rows ? 0 : warp_number() * warp_rows; }
  __device__ static int first_key() { return shares_rows ? warp_number() * warp_keys : 0; }
};

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

template <class shape> class passage {
public:
  /* Rows [block_row, block_row + shape::rows) of the stack, and of all keys those of `part`. */
  __device__ __forceinline__ passage(const attn_problem &problem, const attn_tensors &tensors,
                                     const row_stack &stack, int block_row, key_span part,
                                     unsigned char *shared)
      : problem(problem), tensors(tensors), stack(stack), block_row(block_row),
        queries(reinterpret_cast<uint16_t *>(shared)), key_tiles(queries + shape::query_elements),
        value_tiles(key_tiles + 2 * shape::tile_elements),
        votes(reinterpret_cast<int *>(shared + shape::votes_at)) {
    const int left = stack.rows - block_row,
              block_end = block_row + (left < shape::rows ? left : shape::rows);
    const int64_t kv_head = kv_head_of(problem, stack.first_head);
    any = keys_of_any(problem, stack, block_row, block_end);
    any = {any.first > part.first ? any.first : part.first, any.end < part.end ? any.end : part.end};
    const int64_t length = problem.key_lengths ? problem.key_lengths[stack.b] : problem.key_length;
    keys = narrow_rows_of(tensors.key, problem.key, stack.b, kv_head, length, problem.head_dim);
    values = narrow_rows_of(tensors.value, problem.value, stack.b, kv_head, length, problem.value_dim);
    const float scale_log2e = (float)(problem.scale * LOG2E);
    /* What does no more to a product than to scale it up is left to the exponential. */
    is_scaled = problem.softcap > 0 || problem.bias.type || !(scale_log2e >= FLT_MIN);
    factor = is_scaled ? 1 : scale_log2e;

    first_row = block_row + shape::first_row();
    warp_any = warp_all = {0, 0};
    if (first_row >= block_end) return;
    const int warp_end = first_row + shape::warp_rows < block_end ? first_row + shape::warp_rows : block_end;
    warp_any = keys_of_any(problem, stack, first_row, warp_end);
    if (!problem.mask.type) warp_all = keys_of_all(problem, stack, first_row, warp_end);
  }

  __device__ __forceinline__ void go(row_state<shape> &state) {
    pass(state, false);
    if (is_to_be_repeated(state)) pass(state, true);
  }

  /* The lane's row, of the warp's m-th 16. The stack may have ended before: then it is not to be written. */
  __device__ __forceinline__ int row_of(int m, int half) const {
    return first_row + 16 * m + 8 * half + group_number();
  }

  /* The largest score, natural. */
  __device__ __forceinline__ float natural_max(float max) const { return max * factor * (float)LN2; }

  float factor; /* of the scores, so that they are exponents of 2 */

private:
  const attn_problem &problem;
  const attn_tensors &tensors;
  const row_stack &stack;
  const int block_row;
  int first_row;
  bool is_scaled; /* before the exponential */
  key_span any, warp_any, warp_all;
  narrow_rows keys, values;
  uint16_t *const queries, *const key_tiles, *const value_tiles;
  int *const votes;

  /* ---- loading ---- */

  __device__ __forceinline__ void load_queries() const {
    const uint16_t *const begin = static_cast<const uint16_t *>(tensors.query);
    const attn_layout &layout = problem.query;
    const bool is_aligned = (uintptr_t)begin % 16 == 0 && layout.batch % CHUNK == 0 &&
                            layout.head % CHUNK == 0 && layout.position % CHUNK == 0;
    typedef own_chunks<shape::width, shape::rows> own;
    const int filled = own::filled((int)problem.head_dim);
    ATTN_KEEP_LOOP
    for (int n = 0; n < own::COUNT; n++) {
      const int r = block_row + own::row() + n * own::STEP, there = r < stack.rows ? filled : 0;
      const uint16_t *const from = begin + (there > 0 ? stack.begin(layout, r) + own::chunk() * CHUNK : 0);
      if (is_aligned)
        copy_async(queries + own::place(n), from, 2 * (unsigned)there);
      else
        load_elements(queries + own::place(n), from, there);
    }
  }

  __device__ __forceinline__ uint16_t *stage(uint16_t *tiles, int tile) const {
    return tiles + (tile % 2 ? shape::tile_elements : 0);
  }
  __device__ __forceinline__ void load(uint16_t *tiles, const narrow_rows &from, int tile, int end) const {
    if (tile < end) load_rows<shape::width, shape::keys>(stage(tiles, tile), from, tile * shape::keys);
    commit_copies();
  }

  /* ---- one key tile ---- */

  typedef float tile_scores[shape::row_tiles][shape::eights][4];
  typedef uint32_t tile_weights[shape::row_tiles][shape::eights / 2][4];

  /* Each of them is a step of its own over all scores, so that no two need their registers at once. */

  /* tanh(x) = 1 - 2 / (1 + exp(2x)) is as accurate as its size relative to 1 asks for, and has no branch. */
  __device__ __forceinline__ void scale(tile_scores &scores) const {
    const float scale = (float)(problem.scale * LOG2E), cap = (float)(problem.softcap * LOG2E);
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
        score += (float)LOG2E * attn_load(tensors.bias, problem.bias.type, row.bias + j);
    });
  }

  __device__ __forceinline__ void hide(tile_scores &scores, int first_key) const {
    for_each_score(scores, first_key, [](const query_row &row, int j, float &score) {
      if (!sees(row, j)) score = -INFINITY;
    });
  }

  __device__ __forceinline__ bool is_hidden_by_bias(const query_row &row, int64_t j) const {
    return problem.bias.type && attn_load(tensors.bias, problem.bias.type, row.bias + j) == -INFINITY;
  }

  /* Values that are not finite reach the rows that see them, and leave the tile. */
  __device__ __forceinline__ void part_values(uint16_t *tile, int first_key, row_state<shape> &state) const {
    ATTN_UNROLL
    for (int m = 0; m < shape::row_tiles; m++) ATTN_UNROLL
    for (int half = 0; half < 2; half++) {
      const query_row row = place_row_of(m, half);
      ATTN_KEEP_LOOP
      for (int n = 0; n < shape::warp_keys; n++) {
        if (!sees(row, first_key + n) || is_hidden_by_bias(row, first_key + n)) continue;
        ATTN_UNROLL
        for (int e = 0; e < shape::width / 8; e++) {
          const int place =
              place_from<shape::width>(place_of<shape::width>(shape::first_key() + n, e % 2), 0, e & ~1);
          add_nonfinite<shape::type>(state.output[m][e] + 2 * half, tile + place + 2 * member_number());
        }
      }
    }
    __syncthreads();
    remove_nonfinite<shape::type, shape::tile_elements>(tile);
    __syncthreads();
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

  /* ---- all of them ---- */

  /* At its first barrier copies have landed of keys that are multiplied before the second, and at that of
   * values that are multiplied before the first. What is loaded before a barrier takes the place of what was
   * multiplied before the last. */
  __device__ __forceinline__ void pass(row_state<shape> &state, bool careful) const {
    const int first_tile = any.first / shape::keys, end = (any.end + shape::keys - 1) / shape::keys;
    state.clear();
    if (any.first >= any.end) return;
    if (!careful) load_queries();
    load(key_tiles, keys, first_tile, end);
    load(value_tiles, values, first_tile, end);
    for (int tile = first_tile; tile < end; tile++) {
      const int first_key = tile * shape::keys + shape::first_key(), end_key = first_key + shape::warp_keys;
      const bool is_seen = first_key < warp_any.end && end_key > warp_any.first;
      tile_weights weights;

      load(key_tiles, keys, tile + 1, end);
      wait_for_copies<2>();
      __syncthreads();
      if (is_seen) {
        tile_scores scores;
        const bool all_visible = first_key >= warp_all.first && end_key <= warp_all.end;
        multiply_keys<shape::type, shape::width>(scores, queries, shape::first_row(), stage(key_tiles, tile),
                                                 shape::first_key());
        if (is_scaled) scale(scores);
        if (problem.bias.type) add_bias(scores, first_key);
        if (!all_visible) hide(scores, first_key);
        weigh(scores, weights, state);
      }

      load(value_tiles, values, tile + 1, end);
      wait_for_copies<2>();
      __syncthreads();
      if (careful) part_values(stage(value_tiles, tile), first_key, state);
      if (is_seen)
        multiply_values<shape::type, shape::width>(state.output, weights, stage(value_tiles, tile),
                                                   shape::first_key());
    }
  }

  /* By the whole block, since all of it loads. */
  __device__ __forceinline__ bool is_to_be_repeated(const row_state<shape> &state) const {
    const bool finite = __all_sync(0xffffffffu, state.is_finite());
    if (lane_number() == 0) votes[warp_number()] = !finite;
    __syncthreads();
    bool repeated = false;
    for (int warp = 0; warp < TILE_WARPS; warp++) repeated = repeated || votes[warp];
    return repeated;
  }
};

#endif
