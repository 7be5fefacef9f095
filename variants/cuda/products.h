/* Products of tiles in shared memory, in float32. A block is 16 x 16 threads: thread (y, x) has rows y + 16 m
 * of a product; of one along features (a row with a row) columns x + 16 c, of one along keys (weights with
 * rows of values) the four columns from 4 x + 64 c on. So each number that is read from shared memory serves
 * four products or more, and what a row has in common lies in 16 neighbouring lanes. */
#ifndef ATTN_CUDA_PRODUCTS_H
#define ATTN_CUDA_PRODUCTS_H

#include "cuda.h"

constexpr int SIDE = 16, PRODUCT_THREADS = SIDE * SIDE;

__device__ __forceinline__ int thread_row() { return (int)threadIdx.x / SIDE; }
__device__ __forceinline__ int thread_column() { return (int)threadIdx.x % SIDE; }

/* Whether a lane of the thread's warp has one of the first `count` rows: a warp without has nothing to compute. */
__device__ __forceinline__ bool warp_has_rows(int64_t count) { return thread_row() / 2 * 2 < count; }

/* Of the 16 lanes that share a row; each of them gets the same bits. */
__device__ __forceinline__ float max_of_row(float x) {
  ATTN_UNROLL
  for (int lanes = SIDE / 2; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, lanes));
  return x;
}
__device__ __forceinline__ float sum_of_row(float x) {
  ATTN_UNROLL
  for (int lanes = SIDE / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
  return x;
}

/* From row to row of a tile in shared memory: so far apart that 8 rows' float4s lie in different banks. */
__host__ __device__ constexpr int padded(int columns) { return columns + 4; }

/* product[m][c] += row of a . row of b, over `depth` features, a multiple of 4. */
template <int ROWS, int COLUMNS, int PITCH>
__device__ __forceinline__ void add_dots(float (&product)[ROWS / SIDE][COLUMNS / SIDE], const float *a,
                                         const float *b, int depth) {
  a += thread_row() * PITCH;
  b += thread_column() * PITCH;
  for (int d = 0; d < depth; d += 4) {
    float4 left[ROWS / SIDE];
    for (int m = 0; m < ROWS / SIDE; m++)
      left[m] = *reinterpret_cast<const float4 *>(a + m * SIDE * PITCH + d);
    for (int c = 0; c < COLUMNS / SIDE; c++) {
      const float4 right = *reinterpret_cast<const float4 *>(b + c * SIDE * PITCH + d);
      for (int m = 0; m < ROWS / SIDE; m++) {
        product[m][c] += left[m].x * right.x;
        product[m][c] += left[m].y * right.y;
        product[m][c] += left[m].z * right.z;
        product[m][c] += left[m].w * right.w;
      }
    }
  }
}

/* In the place of the weight of a hidden key, whose value must not even be multiplied by 0: it may be NaN. */
constexpr float LEFT_OUT = -1;

template <int ROWS, int COLUMNS> struct weighted_sums {
  float of[ROWS / SIDE][COLUMNS / 64][4];

  __device__ __forceinline__ void clear() {
    for (int m = 0; m < ROWS / SIDE; m++)
      for (int c = 0; c < COLUMNS / 64; c++)
        for (int x = 0; x < 4; x++) of[m][c][x] = 0;
  }
  __device__ __forceinline__ void scale_row(int m, float factor) {
    for (int c = 0; c < COLUMNS / 64; c++)
      for (int x = 0; x < 4; x++) of[m][c][x] *= factor;
  }
};

/* sums += weights [ROWS, KEYS] times values [KEYS, COLUMNS]; `hides`: some weights may be LEFT_OUT. */
template <bool hides, int KEYS, int ROWS, int COLUMNS>
__device__ __forceinline__ void add_weighted(weighted_sums<ROWS, COLUMNS> &sums, const float *weights,
                                             const float *values) {
  constexpr int WEIGHTS_PITCH = padded(KEYS), VALUES_PITCH = padded(COLUMNS);
  weights += thread_row() * WEIGHTS_PITCH;
  values += 4 * thread_column();
  for (int j = 0; j < KEYS; j += 4) {
    float weight[ROWS / SIDE][4];
    for (int m = 0; m < ROWS / SIDE; m++) {
      const float4 four = *reinterpret_cast<const float4 *>(weights + m * SIDE * WEIGHTS_PITCH + j);
      weight[m][0] = four.x, weight[m][1] = four.y, weight[m][2] = four.z, weight[m][3] = four.w;
    }
    for (int n = 0; n < 4; n++)
      for (int c = 0; c < COLUMNS / 64; c++) {
        const float4 value = *reinterpret_cast<const float4 *>(values + (j + n) * VALUES_PITCH + 64 * c);
        for (int m = 0; m < ROWS / SIDE; m++) {
          if (hides && weight[m][n] < 0) continue;
          sums.of[m][c][0] += weight[m][n] * value.x;
          sums.of[m][c][1] += weight[m][n] * value.y;
          sums.of[m][c][2] += weight[m][n] * value.z;
          sums.of[m][c][3] += weight[m][n] * value.w;
        }
      }
  }
}

#endif
