/* Two products by NVIDIA's library around a softmax of ours: what one gets without a kernel for attention. All Tq x Tk
 * scores of all heads lie in memory, in float32, and become weights in their own place, in the values' type; each is
 * written twice and read twice on the way.
 *
 *     scores  = K Q^T     cuBLAS counts columns, so that its matrices are ours transposed
 *     weights = exp(scores - max), not divided by their sum: 16 bits would lose the small ones
 *     sums    = V weights, in float32
 *     output  = sums / sum of weights
 *
 * A product has one stride from matrix to matrix, and heads of a group share keys: so there is one for each batch entry
 * and each place in a group, over the key/value heads. Values that are not finite would reach rows that do not see them
 * as 0 times themselves: V is a copy without them, and who sees them gets them at the end. */
#include <limits.h>

#include "variants.h"

#if !defined(__CUDACC__) || defined(ATTN_HAVE_CUBLAS)

#include "matrix_library.h"
#include "tiles.h"

namespace {

constexpr int THREADS = 128;

/* ---- the workspace ---- */

/* Rows begin at multiples of 32 bytes, in floats and in 16 bits. */
__host__ __device__ constexpr int64_t pitch_of(int64_t width) { return (width + 15) / 16 * 16; }

struct workspace_parts {
  float *scores;         /* [B, H, Tq, pitch]; then weights, in the values' type */
  float *sums;           /* [B, H, Tq, Dv] */
  float *factors;        /* [B, H, Tq] of the sums; negative: the row saw nothing */
  char *values;          /* [B, Hkv, Tk, pitch of Dv] */
  unsigned char *spoilt; /* [B, Hkv, Tk] whether the key's value has an element that is not finite */
  int *any;              /* [B, Hkv] whether one of the head's has */
  char *library;
  size_t bytes;
};

workspace_parts parts_of(const attn_problem *p, void *workspace) {
  const size_t rows = (size_t)(p->batch * p->query_heads * p->query_length);
  const size_t heads = (size_t)(p->batch * p->kv_heads), keys = heads * (size_t)p->key_length;
  size_t at = 0;
  const auto take = [&](size_t bytes) {
    char *const part = static_cast<char *>(workspace) + at;
    at += (bytes + 255) / 256 * 256;
    return part;
  };
  workspace_parts parts;
  parts.scores = reinterpret_cast<float *>(take(rows * (size_t)pitch_of(p->key_length) * sizeof(float)));
  parts.sums = reinterpret_cast<float *>(take(rows * (size_t)p->value_dim * sizeof(float)));
  parts.factors = reinterpret_cast<float *>(take(rows * sizeof(float)));
  parts.values = take(keys * (size_t)pitch_of(p->value_dim) * (size_t)element_bytes(p->value.type));
  parts.spoilt = reinterpret_cast<unsigned char *>(take(keys));
  parts.any = reinterpret_cast<int *>(take(heads * sizeof(int)));
  parts.library = take(LIBRARY_BYTES);
  parts.bytes = at;
  return parts;
}

/* ---- values without what is not finite ---- */

__device__ __forceinline__ bool is_finite(float x) { return fabsf(x) <= 3.402823466e38f; }

__global__ void begin_heads(int64_t heads, workspace_parts to) {
  const int64_t head = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (head < heads) to.any[head] = 0;
}

/* A thread copies a row. */
__global__ void clean_values(attn_problem problem, attn_tensors tensors, workspace_parts to) {
  const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, Tk = problem.key_length;
  if (number >= problem.batch * problem.kv_heads * Tk) return;
  const int64_t head = number / Tk, b = head / problem.kv_heads;
  const int64_t from = row_begin(problem.value, b, head % problem.kv_heads, number % Tk);
  bool spoilt = false;
  for (int64_t e = 0; e < problem.value_dim; e++) {
    const float value = attn_load(tensors.value, problem.value.type, from + e);
    spoilt |= !is_finite(value);
    attn_store(to.values, problem.value.type, number * pitch_of(problem.value_dim) + e,
               is_finite(value) ? value : 0);
  }
  to.spoilt[number] = spoilt;
  if (spoilt) atomicMax(&to.any[head], 1);
}

/* ---- softmax ---- */

/* Of all lanes of the warp, given to each: both of a pair combine the same two numbers. */
template <class Combine> __device__ __forceinline__ float of_lanes(float mine, Combine combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) mine = combine(mine, __shfl_xor_sync(0xffffffffu, mine, lanes));
  return mine;
}

/* A warp for each row. */
__global__ void __launch_bounds__(THREADS, 1)
    weigh_rows(attn_problem problem, attn_tensors tensors, workspace_parts work) {
  const int lane = (int)threadIdx.x % 32;
  const int64_t number = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32,
                i = number % problem.query_length;
  const int64_t h = number / problem.query_length % problem.query_heads;
  const int64_t b = number / problem.query_length / problem.query_heads;
  if (b >= problem.batch) return;
  const query_row row = place_row(problem, tensors, b, h, i);
  float *const scores = work.scores + number * pitch_of(problem.key_length);

  float max = -INFINITY, sum = 0;
  for (int64_t j = lane; j < problem.key_length; j += 32) {
    scores[j] = sees(row, j) ? score_of(problem, tensors, row, j, scores[j]) : -INFINITY;
    max = fmaxf(max, scores[j]);
  }
  max = of_lanes(max, [](float x, float y) { return fmaxf(x, y); });

  /* Weights of 16 bits lie where scores did: of a round of lanes all have read before one writes, and what later rounds
   * read lies behind. */
  for (int64_t first = 0; first < problem.key_length; first += 32) {
    const int64_t j = first + lane;
    const float score = j < problem.key_length ? scores[j] : -INFINITY;
    const float weight = score == -INFINITY ? 0 : expf(score - max);
    sum += weight;
    __syncwarp();
    if (j < problem.key_length) attn_store(scores, problem.value.type, j, weight);
  }
  sum = of_lanes(sum, [](float x, float y) { return x + y; });

  if (lane > 0) return;
  const finished_row finished = finish_row(max, sum, sink_of(problem, tensors, h));
  work.factors[number] = finished.saw_nothing ? -1 : finished.factor;
  if (problem.lse.type) tensors.lse[row_begin(problem.lse, b, h, i)] = finished.lse;
}

/* A thread for each element. */
__global__ void finish_rows(attn_problem problem, attn_tensors tensors, workspace_parts work) {
  const int64_t element = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, Tk = problem.key_length;
  const int64_t number = element / problem.value_dim, e = element % problem.value_dim;
  const int64_t i = number % problem.query_length, h = number / problem.query_length % problem.query_heads;
  const int64_t b = number / problem.query_length / problem.query_heads, kv_head = kv_head_of(problem, h);
  if (b >= problem.batch) return;
  const int64_t head = b * problem.kv_heads + kv_head;
  const query_row row = place_row(problem, tensors, b, h, i);
  float sum = Tk > 0 ? work.sums[element] : 0;
  for (int64_t j = row.keys.first; work.any[head] && j < row.keys.end; j++) {
    if (!work.spoilt[head * Tk + j] || !sees(row, j) ||
        weighs_nothing(problem, tensors, row, row_begin(problem.query, b, h, i),
                       row_begin(problem.key, b, kv_head, j), j))
      continue;
    const float value =
        attn_load(tensors.value, problem.value.type, row_begin(problem.value, b, kv_head, j) + e);
    if (!is_finite(value)) sum += value; /* how much it weighs does not matter */
  }
  const float factor = work.factors[number];
  attn_store(tensors.output, problem.output.type, row_begin(problem.output, b, h, i) + e,
             factor < 0 ? 0 : sum * factor);
}

/* ---- the two products ---- */

/* Of batch entry b, for the heads at place `member` of all groups. */
batched_product scores_of(const attn_call *call, const workspace_parts &work, int64_t b, int64_t member) {
  const attn_problem *p = call->problem;
  const int64_t group = p->query_heads / p->kv_heads, pitch = pitch_of(p->key_length);
  const int64_t first = (b * p->query_heads + member) * p->query_length;
  return {p->query.type,
          true,
          p->key_length,
          p->query_length,
          p->head_dim,
          p->kv_heads,
          element_at(call->tensors.key, p->key.type, b * p->key.batch),
          p->key.position,
          p->key.head,
          element_at(call->tensors.query, p->query.type, b * p->query.batch + member * p->query.head),
          p->query.position,
          group * p->query.head,
          work.scores + first * pitch,
          pitch,
          group * p->query_length * pitch};
}

batched_product sums_of(const attn_call *call, const workspace_parts &work, int64_t b, int64_t member) {
  const attn_problem *p = call->problem;
  const attn_type type = p->value.type;
  const int64_t group = p->query_heads / p->kv_heads, pitch = pitch_of(p->value_dim);
  const int64_t weight_pitch = pitch_of(p->key_length) * (int64_t)sizeof(float) / element_bytes(type);
  const int64_t first = (b * p->query_heads + member) * p->query_length;
  return {type,
          false,
          p->value_dim,
          p->query_length,
          p->key_length,
          p->kv_heads,
          element_at(work.values, type, b * p->kv_heads * p->key_length * pitch),
          pitch,
          p->key_length * pitch,
          element_at(work.scores, type, first * weight_pitch),
          weight_pitch,
          group * p->query_length * weight_pitch,
          work.sums + first * p->value_dim,
          p->value_dim,
          group * p->query_length * p->value_dim};
}

bool multiply_all(const attn_call *call, const workspace_parts &work,
                  batched_product (*product_of)(const attn_call *, const workspace_parts &, int64_t,
                                                int64_t)) {
  const attn_problem *p = call->problem;
  bool good = true;
  for (int64_t b = 0; b < p->batch && good; b++)
    for (int64_t member = 0; member < p->query_heads / p->kv_heads && good; member++)
      good = multiply(product_of(call, work, b, member), call->stream, work.library);
  return good;
}

/* ---- the variant ---- */

bool is_leading(const attn_layout &layout, int64_t width) {
  return layout.position >= width && layout.position <= INT_MAX;
}

const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (!is_leading(p->query, p->head_dim) || !is_leading(p->key, p->head_dim))
    return "cuBLAS needs position strides from the row's width to INT_MAX";
  if (p->query.type != p->key.type) return "cuBLAS needs queries and keys of one type";
  if (p->key_length > INT_MAX / 4 || p->batch * p->query_heads * p->query_length > INT_MAX)
    return "takes keys up to a quarter of INT_MAX, and rows up to it";
  return nullptr;
}

size_t workspace_size(const attn_call *call) { return parts_of(call->problem, nullptr).bytes; }

dim3 blocks_for(int64_t threads) { return dim3((unsigned)((threads + THREADS - 1) / THREADS)); }

/* A product that the library refuses leaves outputs unwritten, which is seen. */
void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const workspace_parts work = parts_of(p, call->workspace);
  const int64_t rows = p->batch * p->query_heads * p->query_length, heads = p->batch * p->kv_heads;
  const bool has_keys = p->key_length > 0, has_values = p->value_dim > 0;
  if (rows == 0) return;
  attn_launch(begin_heads, blocks_for(heads), dim3(THREADS), 0, call->stream, heads, work);
  if (has_keys && has_values)
    attn_launch(clean_values, blocks_for(heads * p->key_length), dim3(THREADS), 0, call->stream, *p,
                call->tensors, work);
  if (has_keys && !multiply_all(call, work, scores_of)) return;
  attn_launch(weigh_rows, blocks_for(rows * 32), dim3(THREADS), 0, call->stream, *p, call->tensors, work);
  if (has_keys && has_values && !multiply_all(call, work, sums_of)) return;
  if (has_values)
    attn_launch(finish_rows, blocks_for(rows * p->value_dim), dim3(THREADS), 0, call->stream, *p,
                call->tensors, work);
}

} // namespace

const attn_variant cuda_cublas = {
    "cuda_cublas",
    "cuBLAS, softmax, cuBLAS; all T x T scores of all heads",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES,
    CUDA_ALL_TYPES,
    ATTN_CUDA,
    0,
    2,
    2,
    nullptr,
    unsupported,
    workspace_size,
    run,
};

#endif
