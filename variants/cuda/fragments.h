/* Tiles of 16-bit elements: how they come into shared memory, and products of what a warp reads of them
 * (mma.m16n8k16).
 *
 * A row of a tile has `width` elements in chunks of 8, which is 16 bytes. ldmatrix reads the same chunk of 8
 * rows at once, which would lie in the same banks: so chunk c of row r lies at c ^ (r % 8). */
#ifndef ATTN_CUDA_FRAGMENTS_H
#define ATTN_CUDA_FRAGMENTS_H

#include "tiles.h"

constexpr int CHUNK = 8, TILE_WARPS = 4, TILE_THREADS = TILE_WARPS * 32;

__device__ __forceinline__ int lane_number() { return (int)threadIdx.x % 32; }
__device__ __forceinline__ int warp_number() { return (int)threadIdx.x / 32; }
__device__ __forceinline__ int group_number() { return lane_number() / 4; }
__device__ __forceinline__ int member_number() { return lane_number() % 4; }

template <int width> __device__ __forceinline__ int place_of(int row, int chunk) {
  return row * width + (chunk ^ row % 8) * CHUNK;
}

/* So many rows and chunks on from such a place, a multiple of 8 and an even number (the place's own chunk is 0
 * or 1): numbers that the compiler knows, so that all places of a lane follow from few registers. */
template <int width> __device__ __forceinline__ int place_from(int place, int rows, int chunks) {
  return (place ^ chunks % 8 * CHUNK) + chunks / 8 * (8 * CHUNK) + rows * width;
}

/* ---- into shared memory ---- */

/* The first `filled` of 8 elements, and zeros, where they are not aligned for a copy; and at once. */
__device__ __forceinline__ void load_elements(uint16_t *to, const uint16_t *from, int filled) {
  uint32_t pairs[CHUNK / 2];
  ATTN_UNROLL
  for (int n = 0; n < CHUNK / 2; n++) {
    const uint32_t low = 2 * n < filled ? from[2 * n] : 0, high = 2 * n + 1 < filled ? from[2 * n + 1] : 0;
    pairs[n] = high << 16 | low;
  }
  *reinterpret_cast<uint4 *>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

/* Which chunks of a tile a thread of the block loads: one of each STEP-th row. */
template <int width, int rows> struct own_chunks {
  static constexpr int CHUNKS = width / CHUNK, STEP = TILE_THREADS / CHUNKS, COUNT = rows / STEP;
  static_assert(rows % STEP == 0, "each thread loads as many");
  __device__ static int row() { return (int)threadIdx.x / CHUNKS; }
  __device__ static int chunk() { return (int)threadIdx.x % CHUNKS; }

  /* Where the n-th of them lies. */
  __device__ static int place(int n) {
    return (place_of<width>(row(), chunk()) ^ n * STEP % 8 * CHUNK) + n * STEP * width;
  }

  /* Elements that it has of so many features. */
  __device__ static int filled(int features) {
    const int left = features - chunk() * CHUNK;
    return left > CHUNK ? CHUNK : left < 0 ? 0 : left;
  }
};

/* Rows of one head of a tensor. */
struct narrow_rows {
  const uint16_t *first;
  int64_t stride;
  int count, features;
  bool is_aligned; /* for copies of 16 bytes */
};

__device__ __forceinline__ narrow_rows narrow_rows_of(const void *tensor, const attn_layout &layout,
                                                      int64_t b, int64_t h, int64_t count, int64_t features) {
  const uint16_t *first = static_cast<const uint16_t *>(tensor) + row_begin(layout, b, h, 0);
  return {first, layout.position, (int)count, (int)features,
          (uintptr_t)first % 16 == 0 && layout.position % CHUNK == 0 && features > 0};
}

/* By the whole block: a tile of rows from the first one on; what is behind the last row or feature is 0. */
template <int width, int rows>
__device__ __forceinline__ void load_rows(uint16_t *tile, const narrow_rows &from, int first_row) {
  typedef own_chunks<width, rows> own;
  const int filled = own::filled(from.features), left = from.count - first_row - own::row();
  const uint16_t *row = from.first + (first_row + own::row()) * from.stride + own::chunk() * CHUNK;
  const int64_t step = own::STEP * from.stride;
  if (from.is_aligned) {
    ATTN_UNROLL
    for (int n = 0; n < own::COUNT; n++, row += step) {
      const int there = n * own::STEP < left ? filled : 0;
      copy_async(tile + own::place(n), row,
                 2 * (unsigned)there); /* of 0 bytes nothing is read, wherever it is */
    }
  } else {
    ATTN_KEEP_LOOP
    for (int n = 0; n < own::COUNT; n++, row += step)
      load_elements(tile + own::place(n), row, n * own::STEP < left ? filled : 0);
  }
}

/* ---- products ---- */

/* scores = queries [16 row_tiles, width] times keys [8 eights, width] transposed. Those of 16 rows and 8 keys
 * are four numbers of a lane: rows `group` and `group` + 8, keys 2 member and 2 member + 1 (multiply_add). */
template <attn_type type, int width, int row_tiles, int eights>
__device__ __forceinline__ void multiply_keys(float (&scores)[row_tiles][eights][4], const uint16_t *queries,
                                              int first_row, const uint16_t *keys, int first_key) {
  const int lane = lane_number();
  const int query_place = place_of<width>(first_row + lane % 16, lane / 16);
  const int key_place = place_of<width>(first_key + lane / 16 * 8 + lane % 8, lane / 8 % 2);
  ATTN_UNROLL
  for (int m = 0; m < row_tiles; m++) ATTN_UNROLL
  for (int n = 0; n < eights; n++) ATTN_UNROLL
  for (int c = 0; c < 4; c++) scores[m][n][c] = 0;
  ATTN_UNROLL
  for (int d = 0; d < width / 16; d++) {
    uint32_t query[row_tiles][4], key[4];
    ATTN_UNROLL
    for (int m = 0; m < row_tiles; m++)
      load_matrices<false>(query[m], queries + place_from<width>(query_place, 16 * m, 2 * d));
    ATTN_UNROLL
    for (int n = 0; n < eights; n += 2) {
      load_matrices<false>(key, keys + place_from<width>(key_place, 8 * n, 2 * d));
      ATTN_UNROLL
      for (int m = 0; m < row_tiles; m++) {
        multiply_add<type>(scores[m][n], query[m], key);
        multiply_add<type>(scores[m][n + 1], query[m], key + 2);
      }
    }
  }
}

/* Weights of 16 rows and 16 keys as the left side of a product: of a sum's registers and those of the 8
 * columns beside it. */
template <attn_type type>
__device__ __forceinline__ void pack_weights(uint32_t packed[4], const float (&left)[4],
                                             const float (&right)[4]) {
  packed[0] = pack_pair<type>(left[0], left[1]);
  packed[1] = pack_pair<type>(left[2], left[3]);
  packed[2] = pack_pair<type>(right[0], right[1]);
  packed[3] = pack_pair<type>(right[2], right[3]);
}

/* output += weights [16 row_tiles, 16 sixteens] times values [16 sixteens, width]. */
template <attn_type type, int width, int row_tiles, int sixteens>
__device__ __forceinline__ void multiply_values(float (&output)[row_tiles][width / 8][4],
                                                const uint32_t (&weights)[row_tiles][sixteens][4],
                                                const uint16_t *values, int first_key) {
  const int place = place_of<width>(first_key + lane_number() % 16, lane_number() / 16);
  ATTN_UNROLL
  for (int n = 0; n < sixteens; n++) ATTN_UNROLL
  for (int e = 0; e < width / 16; e++) {
    uint32_t value[4];
    load_matrices<true>(value, values + place_from<width>(place, 16 * n, 2 * e));
    ATTN_UNROLL
    for (int m = 0; m < row_tiles; m++) {
      multiply_add<type>(output[m][2 * e], weights[m][n], value);
      multiply_add<type>(output[m][2 * e + 1], weights[m][n], value + 2);
    }
  }
}

/* ---- values that are not finite ---- */

template <attn_type type> __device__ __forceinline__ bool is_finite(uint16_t half) {
  constexpr int INFINITE = type == ATTN_BFLOAT16 ? 0x7f80 : 0x7c00;
  return (half & INFINITE) != INFINITE;
}

template <attn_type type>
__device__ __forceinline__ bool is_finite_row(const uint16_t *elements, int64_t count) {
  bool finite = true;
  ATTN_KEEP_LOOP
  for (int64_t n = 0; n < count; n++) finite = finite && is_finite<type>(elements[n]);
  return finite;
}

/* By so many threads, of which this is one: 0 in their place. */
template <attn_type type, int elements, int threads>
__device__ __forceinline__ void remove_nonfinite(uint16_t *tile, int thread) {
  for (int n = thread; n < elements; n += threads)
    if (!is_finite<type>(tile[n])) tile[n] = 0;
}

#endif
