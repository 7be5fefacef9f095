/* Naive: the formula as written. For each query, the scores of all keys, then their softmax, then the
 * weighted sum of the values: three plain loops that anyone can check by eye. The Tq x Tk scores of a head
 * are kept whole; time and workspace both grow with T squared. */
#include <math.h>

#include "widen.h"

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static float additive_score(const attn_problem *problem, int64_t h, const float *query, const float *key) {
  const float *weight = problem->additive_data + at(&problem->additive, 0, h, 0);
  float sum = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) sum += weight[d] * tanhf(query[d] + key[d]);
  return sum;
}

/* query: what a key meets, which of general scores is not the query itself. */
static float score(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                   int64_t j, const float *query) {
  const int64_t kv_head = h / (problem->query_heads / problem->kv_heads);
  const float *key = (const float *)tensors->key + at(&problem->key, b, kv_head, j);
  float dot = 0;
  if (attn_uses(problem, ATTN_ADDITIVE))
    dot = additive_score(problem, h, query, key);
  else
    for (int64_t d = 0; d < problem->head_dim; d++) dot += query[d] * key[d];
  float result = (float)problem->scale * dot;
  if (problem->softcap > 0) result = (float)problem->softcap * tanhf(result / (float)problem->softcap);
  if (problem->bias.type) result += ((const float *)tensors->bias)[at(&problem->bias, b, h, i) + j];
  return result;
}

/* general: [D], of this query. */
static void transform(const attn_problem *problem, int64_t h, const float *query, float *general) {
  for (int64_t e = 0; e < problem->head_dim; e++) {
    general[e] = 0;
    for (int64_t d = 0; d < problem->head_dim; d++)
      general[e] += query[d] * problem->general_data[at(&problem->general, 0, h, d) + e];
  }
}

/* A row as the loops below look at it. */
typedef struct query_row {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, h, i;
  attn_range range;
  const uint8_t *mask;
} query_row;

static bool is_visible(const query_row *of, int64_t j) {
  return j >= of->range.first && j < of->range.end && (!of->mask || of->mask[j]) &&
         (!attn_has_pattern(of->problem) || attn_sees(of->problem, of->tensors, of->b, of->h, of->i, j));
}

/* A row at a time: asked of each pair it would cost the others instructions too. */
static void add_position(const query_row *of, float *row) {
  for (int64_t j = 0; j < of->problem->key_length; j++)
    if (is_visible(of, j))
      row[j] += attn_position_bias(of->problem, of->h, attn_distance(of->problem, of->b, of->i, j));
}

/* Scores of a row become weights, of which the sink takes its share; returns the log-sum-exp. */
static float softmax(float *row, int64_t length, float sink) {
  float max = sink, sum = 0;
  for (int64_t j = 0; j < length; j++) max = fmaxf(max, row[j]);
  for (int64_t j = 0; j < length; j++) {
    row[j] = row[j] == -INFINITY ? 0 : expf(row[j] - max);
    sum += row[j];
  }
  if (sink != -INFINITY) sum += expf(sink - max);
  if (sum == 0) return -INFINITY;
  for (int64_t j = 0; j < length; j++) row[j] /= sum;
  return max + logf(sum);
}

static void drop(const query_row *of, float *row) {
  const uint8_t *keep = attn_keep_row(of->problem, of->b, of->h, of->i);
  const float factor = attn_kept_factor(of->problem);
  for (int64_t j = 0; keep && j < of->problem->key_length; j++) row[j] *= keep[j] ? factor : 0;
}

/* row: [Tk], this query's row of the scores, which become the weights. What a query is turned to, where there are general
 * scores, lies behind all of them, [Tq, D]. */
static void solve_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                      int64_t i, float *row) {
  const query_row of = {problem,
                        tensors,
                        b,
                        h,
                        i,
                        attn_visible_keys(problem, b, i),
                        problem->mask.type ? tensors->mask + at(&problem->mask, b, h, i) : NULL};
  const float *query = (const float *)tensors->query + at(&problem->query, b, h, i);
  float *general = attn_uses(problem, ATTN_GENERAL)
                       ? row + (problem->query_length - i) * problem->key_length + i * problem->head_dim
                       : NULL;
  if (general) transform(problem, h, query, general);
  for (int64_t j = 0; j < problem->key_length; j++)
    row[j] = is_visible(&of, j) ? score(problem, tensors, b, h, i, j, general ? general : query) : -INFINITY;
  if (attn_has_position_bias(problem)) add_position(&of, row);

  const bool has_sink = problem->sink.type && i < attn_query_count(problem, b);
  const float sink = has_sink ? tensors->sink[h * problem->sink.head] : -INFINITY;
  const float lse = softmax(row, problem->key_length, sink);
  drop(&of, row);
  if (problem->lse.type) tensors->lse[at(&problem->lse, b, h, i)] = lse;
  if (problem->weights.type) {
    float *weights = (float *)tensors->weights + at(&problem->weights, b, h, i);
    for (int64_t j = 0; j < problem->key_length; j++) weights[j] = is_visible(&of, j) ? row[j] : 0;
  }

  const int64_t kv_head = h / (problem->query_heads / problem->kv_heads);
  float *output = (float *)tensors->output + at(&problem->output, b, h, i);
  for (int64_t d = 0; d < problem->value_dim; d++) output[d] = 0;
  if (lse == -INFINITY) return;
  for (int64_t j = 0; j < problem->key_length; j++) {
    /* Left out, not multiplied by 0: a NaN that the row cannot see must not reach it. */
    if (!is_visible(&of, j)) continue;
    const float *value = (const float *)tensors->value + at(&problem->value, b, kv_head, j);
    for (int64_t d = 0; d < problem->value_dim; d++) output[d] += row[j] * value[d];
  }
}

static size_t float32_workspace(const attn_call *call) {
  const int64_t general = attn_uses(call->problem, ATTN_GENERAL) ? call->problem->head_dim : 0;
  return (size_t)(call->problem->query_length * call->problem->key_length) * sizeof(float) +
         (size_t)(call->problem->query_length * general) * sizeof(float);
}

static void run_float32(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const attn_tensors *tensors = &call->tensors;
  void *workspace = call->workspace;
  float *weights = workspace;
  /* A thread has the same rows of every head, and so the same part of the workspace: heads need not wait for each other. */
#pragma omp parallel num_threads(call->threads)
  for (int64_t b = 0; b < problem->batch; b++)
    for (int64_t h = 0; h < problem->query_heads; h++)
#pragma omp for schedule(static) nowait
      for (int64_t i = 0; i < problem->query_length; i++)
        solve_row(problem, tensors, b, h, i, weights + i * problem->key_length);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, float32_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_float32); }

const attn_variant attn_naive = {
    .name = "naive",
    .summary = "the formula as written: three plain loops, all T x T scores of a head",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_WEIGHTS | ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK |
                ATTN_QUERY_LENGTHS | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_DROPOUT |
                ATTN_GENERAL | ATTN_ADDITIVE,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT | ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 2,
    .unsupported = attn_portable_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
