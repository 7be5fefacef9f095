/* The formula, one thread for each query row: its scores lie in the workspace, B H Tq Tk floats of it.
 * Everything that a problem may ask is here in plain sight; nothing is fast. Neighbouring threads read
 * far-apart rows, each key is read from memory by each query, and the scores are written and read three times. */
#include "tiles.h"
#include "variants.h"

namespace {

__device__ float product_of(const attn_problem &problem, const attn_tensors &tensors, int64_t query,
                            int64_t key) {
  float product = 0;
  for (int64_t d = 0; d < problem.head_dim; d++)
    product += attn_load(tensors.query, problem.query.type, query + d) *
               attn_load(tensors.key, problem.key.type, key + d);
  return product;
}

/* Scores of the keys become their weights relative to the largest; returns what is left to do for the row. */
__device__ finished_row softmax(float *scores, int64_t count, float sink) {
  float max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < count; j++) max = fmaxf(max, scores[j]); /* of what is not NaN */
  for (int64_t j = 0; j < count; j++) {
    scores[j] = scores[j] == -INFINITY ? 0 : expf(scores[j] - max);
    sum += scores[j];
  }
  return finish_row(max, sum, sink);
}

__global__ void solve_rows(attn_problem problem, attn_tensors tensors, float *workspace) {
  const int64_t Tq = problem.query_length, Tk = problem.key_length;
  const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (number >= problem.batch * problem.query_heads * Tq) return;
  const int64_t i = number % Tq, h = number / Tq % problem.query_heads, b = number / Tq / problem.query_heads;
  const int64_t kv_head = kv_head_of(problem, h), query = row_begin(problem.query, b, h, i);
  const query_row row = place_row(problem, tensors, b, h, i);
  float *const weights = workspace + number * Tk;

  for (int64_t j = 0; j < Tk; j++) {
    weights[j] = -INFINITY;
    if (sees(row, j))
      weights[j] = score_of(problem, tensors, row, j,
                            product_of(problem, tensors, query, row_begin(problem.key, b, kv_head, j)));
  }
  const finished_row finished = softmax(weights, Tk, sink_of(problem, tensors, h));
  if (problem.lse.type) tensors.lse[row_begin(problem.lse, b, h, i)] = finished.lse;
  for (int64_t j = 0; j < Tk && problem.weights.type; j++)
    attn_store(tensors.weights, problem.weights.type, row_begin(problem.weights, b, h, i) + j,
               finished.saw_nothing || !sees(row, j) ? 0 : weights[j] * finished.factor);

  for (int64_t e = 0; e < problem.value_dim; e++) {
    float sum = 0;
    for (int64_t j = 0; j < Tk; j++) /* 0 times what a row does not see may be NaN */
      if (sees(row, j))
        sum += weights[j] *
               attn_load(tensors.value, problem.value.type, row_begin(problem.value, b, kv_head, j) + e);
    attn_store(tensors.output, problem.output.type, row_begin(problem.output, b, h, i) + e,
               finished.saw_nothing ? 0 : sum * finished.factor);
  }
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
