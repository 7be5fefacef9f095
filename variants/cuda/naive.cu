/* The formula, one thread for each query row: its scores lie in the workspace, B H Tq Tk floats of it. Everything that a problem
 * may ask is here in plain sight; nothing is fast. Neighbouring threads read far-apart rows, each key is read from memory by
 * each query, and the scores are written and read three times. */
#include "variants.h"

namespace {

__device__ float score_of(const attn_problem &problem, const attn_tensors &tensors, int64_t b, int64_t h,
                          int64_t i, int64_t j) {
  const int64_t kv_head = h / (problem.query_heads / problem.kv_heads);
  const int64_t query = b * problem.query.batch + h * problem.query.head + i * problem.query.position;
  const int64_t key = b * problem.key.batch + kv_head * problem.key.head + j * problem.key.position;
  float score = 0;
  for (int64_t d = 0; d < problem.head_dim; d++)
    score += attn_load(tensors.query, problem.query.type, query + d) *
             attn_load(tensors.key, problem.key.type, key + d);
  score *= (float)problem.scale;
  if (problem.softcap > 0) score = (float)problem.softcap * tanhf(score / (float)problem.softcap);
  if (problem.bias.type)
    score += attn_load(tensors.bias, problem.bias.type,
                       b * problem.bias.batch + h * problem.bias.head + i * problem.bias.position + j);
  return score;
}

__global__ void solve_rows(attn_problem problem, attn_tensors tensors, float *workspace) {
  const int64_t Tk = problem.key_length, row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= problem.batch * problem.query_heads * problem.query_length) return;
  const int64_t i = row % problem.query_length, h = row / problem.query_length % problem.query_heads;
  const int64_t b = row / problem.query_length / problem.query_heads;
  const int64_t kv_head = h / (problem.query_heads / problem.kv_heads);
  float *const weights = workspace + row * Tk;

  const float sink = tensors.sink ? tensors.sink[h] : -INFINITY;
  float row_max = sink, row_sum = 0;
  for (int64_t j = 0; j < Tk; j++) {
    uint8_t visible;
    attn_visible_row(&problem, &tensors, b, h, i, j, j + 1, &visible);
    weights[j] = visible ? score_of(problem, tensors, b, h, i, j) : -INFINITY;
    row_max = weights[j] > row_max || isnan(weights[j]) ? weights[j] : row_max;
  }
  const bool sees_nothing = row_max == -INFINITY;
  for (int64_t j = 0; j < Tk; j++) {
    weights[j] = sees_nothing || weights[j] == -INFINITY ? 0 : expf(weights[j] - row_max);
    row_sum += weights[j];
  }
  if (tensors.sink && !sees_nothing) row_sum += expf(sink - row_max);
  const float factor = row_sum == 0 ? 0 : 1 / row_sum;

  for (int64_t e = 0; e < problem.value_dim; e++) {
    const int64_t value = b * problem.value.batch + kv_head * problem.value.head + e;
    float sum = 0;
    for (int64_t j = 0; j < Tk; j++) /* 0 times what a row does not see may be NaN */
      if (weights[j] != 0)
        sum += weights[j] * attn_load(tensors.value, problem.value.type, value + j * problem.value.position);
    attn_store(tensors.output, problem.output.type,
               b * problem.output.batch + h * problem.output.head + i * problem.output.position + e,
               sum * factor);
  }
  if (problem.lse.type)
    tensors.lse[b * problem.lse.batch + h * problem.lse.head + i * problem.lse.position] =
        sees_nothing ? -INFINITY : row_max + logf(row_sum);
  if (problem.weights.type)
    for (int64_t j = 0; j < Tk; j++)
      attn_store(tensors.weights, problem.weights.type,
                 b * problem.weights.batch + h * problem.weights.head + i * problem.weights.position + j,
                 weights[j] * factor);
}

size_t workspace_size(const attn_call *call) {
  const attn_problem *p = call->problem;
  return (size_t)(p->batch * p->query_heads * p->query_length * p->key_length) * sizeof(float);
}

void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  const unsigned threads = 128;
  if (rows > 0)
    attn_launch(solve_rows, dim3((unsigned)((rows + threads - 1) / threads)), dim3(threads), 0, call->stream,
                *p, call->tensors, static_cast<float *>(call->workspace));
}

} // namespace

const attn_variant cuda_naive = {
    "cuda_naive",
    "the formula on a GPU, one thread for each row",
    ATTN_SOFTMAX,
    CUDA_SOFTMAX_FEATURES | ATTN_WEIGHTS,
    CUDA_ALL_TYPES,
    ATTN_CUDA,
    ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT | ATTN_FLOAT32_WEIGHTS,
    2,
    2,
    nullptr,
    nullptr,
    workspace_size,
    run,
};
