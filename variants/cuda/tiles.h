/* Device code that variants share: what a query row sees, what becomes of its scores, where its elements lie,
 * and rows of a tensor as a tile of floats in shared memory. */
#ifndef ATTN_CUDA_TILES_H
#define ATTN_CUDA_TILES_H

#include "cuda.h"

/* ---- where elements lie ---- */

/* The first element of row (b, h, i). */
__device__ __forceinline__ int64_t row_begin(const attn_layout &layout, int64_t b, int64_t h, int64_t i) {
  return b * layout.batch + h * layout.head + i * layout.position;
}

__device__ __forceinline__ int64_t kv_head_of(const attn_problem &problem, int64_t h) {
  return h / (problem.query_heads / problem.kv_heads);
}

__host__ __device__ __forceinline__ int element_bytes(attn_type type) { return type == ATTN_FLOAT32 ? 4 : 2; }

__host__ __device__ __forceinline__ const void *element_at(const void *tensor, attn_type type, int64_t n) {
  return static_cast<const char *>(tensor) + n * element_bytes(type);
}

/* The sink of a head; -inf, which adds nothing, where there is none. */
__device__ __forceinline__ float sink_of(const attn_problem &problem, const attn_tensors &tensors,
                                         int64_t h) {
  return problem.sink.type ? tensors.sink[h * problem.sink.head] : -INFINITY;
}

/* ---- who sees whom ---- */

/* What one query row sees, and where its bias stands. One beyond the last query sees nothing; its bias is that of
 * some other one, so that it may be read all the same. */
struct query_row {
  attn_range keys;     /* by band and key lengths */
  const uint8_t *mask; /* of key 0; NULL: none */
  int64_t bias;        /* of key 0 */
};

__device__ __forceinline__ query_row place_row(const attn_problem &problem, const attn_tensors &tensors,
                                               int64_t b, int64_t h, int64_t i) {
  query_row row = {{0, 0}, nullptr, 0};
  if (i >= problem.query_length) return row;
  row.keys = attn_visible_keys(&problem, b, i);
  if (problem.mask.type) row.mask = tensors.mask + row_begin(problem.mask, b, h, i);
  if (problem.bias.type) row.bias = row_begin(problem.bias, b, h, i);
  return row;
}

/* Of any j, also behind the last key. */
__device__ __forceinline__ bool sees(const query_row &row, int64_t j) {
  return j >= row.keys.first && j < row.keys.end && (!row.mask || row.mask[j] != 0);
}

/* The keys that one query of [i0, i1) or another sees; none between is seen by no query, masks aside. */
__device__ __forceinline__ attn_range keys_of_rows(const attn_problem &problem, int64_t b, int64_t i0,
                                                   int64_t i1) {
  const int64_t offset = problem.offsets ? problem.offsets[b] : problem.offset;
  attn_range keys = {0, problem.key_lengths ? problem.key_lengths[b] : problem.key_length};
  if (problem.left != ATTN_UNLIMITED && i0 + offset - problem.left > 0)
    keys.first = i0 + offset - problem.left;
  if (problem.right != ATTN_UNLIMITED && i1 + offset + problem.right < keys.end)
    keys.end = i1 + offset + problem.right;
  if (keys.first >= keys.end) keys.first = keys.end = 0;
  return keys;
}

/* ---- scores ---- */

/* The score of a visible key, from its product with the query. */
__device__ __forceinline__ float score_of(const attn_problem &problem, const attn_tensors &tensors,
                                          const query_row &row, int64_t j, float product) {
  float score = (float)problem.scale * product;
  if (problem.softcap > 0) score = (float)problem.softcap * tanhf(score / (float)problem.softcap);
  if (problem.bias.type) score += attn_load(tensors.bias, problem.bias.type, row.bias + j);
  return score;
}

/* Whether a key that the row sees weighs nothing all the same: its score is -inf, by the bias or by what is
 * infinite in the query or the key, which begin there, so that not even an infinite value counts. Computed
 * anew: a weight of 0 may be one that was too small. */
__device__ __forceinline__ bool weighs_nothing(const attn_problem &problem, const attn_tensors &tensors,
                                               const query_row &row, int64_t query, int64_t key, int64_t j) {
  float product = 0;
  for (int64_t d = 0; d < problem.head_dim; d++)
    product += attn_load(tensors.query, problem.query.type, query + d) *
               attn_load(tensors.key, problem.key.type, key + d);
  return score_of(problem, tensors, row, j, product) == -INFINITY;
}

/* What is left to do for a row when all its keys are summed: exp(score - max) summed to `sum`, 0 where it saw
 * no key. */
struct finished_row {
  float factor; /* of the weighted sum of values; 0 where nothing was seen, and nothing is to be multiplied */
  float lse;
  bool saw_nothing;
};

/* The sink comes last: far above the scores it would let all weights vanish before they were summed. */
__device__ __forceinline__ finished_row finish_row(float max, float sum, float sink) {
  if (sum == 0) return {0, sink, true};
  const float largest = fmaxf(max, sink), left = expf(max - largest);
  const float total = sum * left + expf(sink - largest);
  return {left / total, largest + logf(total), false};
}

/* ---- tiles ---- */

/* Rows of a tensor that follow one another. */
struct tensor_rows {
  const void *elements;
  attn_type type;
  int64_t stride, width; /* from row to row, and of a row */
};

/* Row `position` of head h and those behind it. */
__device__ __forceinline__ tensor_rows rows_from(const void *tensor, const attn_layout &layout, int64_t b,
                                                 int64_t h, int64_t position, int64_t width) {
  return {element_at(tensor, layout.type, row_begin(layout, b, h, position)), layout.type, layout.position,
          width};
}

__device__ __forceinline__ tensor_rows from_column(const tensor_rows &rows, int64_t column) {
  return {element_at(rows.elements, rows.type, column), rows.type, rows.stride, rows.width - column};
}

/* Whether four neighbours can be read at once, in each row at each fourth feature. */
__device__ __forceinline__ bool is_aligned_to_four(const tensor_rows &rows) {
  return (uintptr_t)rows.elements % (4 * (unsigned)element_bytes(rows.type)) == 0 && rows.stride % 4 == 0;
}

__device__ __forceinline__ float4 load_aligned_four(const void *elements, attn_type type) {
  if (type == ATTN_FLOAT32) return *static_cast<const float4 *>(elements);
  const uint2 pairs = *static_cast<const uint2 *>(elements);
  const uint16_t halves[4] = {(uint16_t)pairs.x, (uint16_t)(pairs.x >> 16), (uint16_t)pairs.y,
                              (uint16_t)(pairs.y >> 16)};
  return {attn_load(halves, type, 0), attn_load(halves, type, 1), attn_load(halves, type, 2),
          attn_load(halves, type, 3)};
}

/* What becomes of elements on their way into shared memory. */
struct as_they_are {
  __device__ float operator()(float x) const { return x; }
};

/* Features [column, column + 4) of a row through a function; 0 beyond its width. */
template <class Function>
__device__ __forceinline__ float4 load_four(const tensor_rows &rows, int64_t r, int column, bool is_aligned,
                                            Function function) {
  const int64_t first = r * rows.stride + column, left = rows.width - column;
  if (is_aligned && left >= 4) {
    const float4 four = load_aligned_four(element_at(rows.elements, rows.type, first), rows.type);
    return {function(four.x), function(four.y), function(four.z), function(four.w)};
  }
  return {left > 0 ? function(attn_load(rows.elements, rows.type, first)) : 0,
          left > 1 ? function(attn_load(rows.elements, rows.type, first + 1)) : 0,
          left > 2 ? function(attn_load(rows.elements, rows.type, first + 2)) : 0,
          left > 3 ? function(attn_load(rows.elements, rows.type, first + 3)) : 0};
}

/* By the whole block: ROWS rows of COLUMNS floats, PITCH apart, of which `count` rows and the tensor's width
 * are read and the rest is 0. Transposed, a feature is a row of the tile. The caller waits before and after. */
template <int ROWS, int COLUMNS, int PITCH, bool transposed = false, class Function = as_they_are>
__device__ __forceinline__ void load_tile(float *to, const tensor_rows &rows, int64_t count,
                                          Function function = Function()) {
  constexpr int FOURS = COLUMNS / 4;
  const bool is_aligned = is_aligned_to_four(rows);
  for (int n = (int)threadIdx.x; n < ROWS * FOURS; n += (int)blockDim.x) {
    const int r = n / FOURS, column = n % FOURS * 4;
    const float4 four =
        r < count ? load_four(rows, r, column, is_aligned, function) : make_float4(0, 0, 0, 0);
    if (transposed) {
      float *const at = to + column * PITCH + r;
      at[0] = four.x, at[PITCH] = four.y, at[2 * PITCH] = four.z, at[3 * PITCH] = four.w;
    } else
      *reinterpret_cast<float4 *>(to + r * PITCH + column) = four;
  }
}

#endif
