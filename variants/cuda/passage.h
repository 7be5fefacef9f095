/* A block's query rows on their way past the keys, of 16 bits: what cuda_fused and cuda_decode have in common.
 * Online softmax as in ../fused.c; the structure is FlashAttention-2's (Dao 2023, section 3): a warp keeps 16
 * or 32 rows, their scores are weights in the registers in which they arise, and are multiplied from there.
 * Keys and values come in tiles, two of each in shared memory, of which one is copied while the other is
 * multiplied.
 *
 * Hiding is by select, and a score of -inf weighs 0. That is not enough for values, since 0 times NaN is NaN
 * in a matrix unit. A NaN stays in an output once it is there: so nothing looks for them on the way, and a
 * block that ends with an output which is not finite goes past its keys once more, with zeros in their place.
 * Rows that did not see the value get then the bits that they would have got without it; those in which it
 * counts get it when their outputs are stored (add_nonfinite_values).
 *
 * A row's result, to the last bit, follows from itself: key tiles lie at multiples of their length, and a key
 * tile that it does not see changes nothing. */
#ifndef ATTN_CUDA_PASSAGE_H
#define ATTN_CUDA_PASSAGE_H

#include "softmax_rows.h"

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
  /* A warp multiplies alone. */
  static constexpr int together_rows = warp_rows;
  __device__ static int first_together() { return first_row(); }
};

template <class shape> class passage : public softmax_rows<shape> {
public:
  /* Rows [block_row, block_row + shape::rows) of the stack, and of all keys those of `part`. */
  __device__ __forceinline__ passage(const attn_problem &problem, const attn_tensors &tensors,
                                     const row_stack &stack, int block_row, key_span part,
                                     unsigned char *shared)
      : softmax_rows<shape>(problem, tensors, stack, block_row, part),
        queries(reinterpret_cast<uint16_t *>(shared)), key_tiles(queries + shape::query_elements),
        value_tiles(key_tiles + 2 * shape::tile_elements),
        votes(reinterpret_cast<int *>(shared + shape::votes_at)) {
    const int64_t kv_head = kv_head_of(problem, stack.first_head);
    const int64_t length = problem.key_lengths ? problem.key_lengths[stack.b] : problem.key_length;
    keys = narrow_rows_of(tensors.key, problem.key, stack.b, kv_head, length, problem.head_dim);
    values = narrow_rows_of(tensors.value, problem.value, stack.b, kv_head, length, problem.value_dim);
  }

  __device__ __forceinline__ void go(row_state<shape> &state) {
    pass(state, false);
    if (is_to_be_repeated(state)) pass(state, true);
  }

  /* Whether the warp, or the block, has multiplied values without what is not finite, which is to be added to
   * its outputs. Asked of shared memory, so that no register remembers it. */
  __device__ __forceinline__ bool lacks_values() const { return votes[warp_number()]; }
  __device__ __forceinline__ bool block_lacks_values() const {
    bool lacks = false;
    for (int warp = 0; warp < TILE_WARPS; warp++) lacks = lacks || votes[warp];
    return lacks;
  }

private:
  typedef softmax_rows<shape> rows;
  using rows::is_scaled;
  using rows::problem, rows::tensors, rows::stack, rows::block_row, rows::any, rows::together_any,
      rows::warp_all;
  using typename rows::tile_scores, typename rows::tile_weights;

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

  /* ---- key tiles ---- */

  __device__ __forceinline__ void remove_nonfinite_values(uint16_t *tile) const {
    remove_nonfinite<shape::type, shape::tile_elements, TILE_THREADS>(tile, (int)threadIdx.x);
    __syncthreads();
  }

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
      const bool is_seen = first_key < together_any.end && end_key > together_any.first;
      tile_weights weights;

      load(key_tiles, keys, tile + 1, end);
      wait_for_copies<2>();
      __syncthreads();
      if (is_seen) {
        tile_scores scores;
        const bool all_visible = first_key >= warp_all.first && end_key <= warp_all.end;
        multiply_keys<shape::type, shape::width>(scores, queries, shape::first_row(), stage(key_tiles, tile),
                                                 shape::first_key());
        if (is_scaled) rows::scale(scores);
        if (problem.bias.type) rows::add_bias(scores, first_key);
        if (!all_visible) rows::hide(scores, first_key);
        rows::weigh(scores, weights, state);
      }

      load(value_tiles, values, tile + 1, end);
      wait_for_copies<2>();
      __syncthreads();
      if (careful) remove_nonfinite_values(stage(value_tiles, tile));
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
    return block_lacks_values();
  }
};

#endif
