/* Softmax attention, one output row in double precision, straight from the formula in
 * variants/attention.h (Vaswani et al. 2017, section 3.2.1).
 *
 * A hidden key is never read: not even multiplied by 0, which would let its NaN through. A visible key
 * follows the formula wherever that leads, so a score of +inf makes the row NaN. One limit is taken by
 * its meaning: a row whose visible scores are all -inf (a bias of -inf is how many write a mask) is a
 * row that sees no key, hence zeros and a log-sum-exp of -inf, or of the sink alone. */
#include <math.h>

#include "additive.h"
#include "general.h"
#include "rows.h"

/* Eight sums side by side: one alone waits for itself at every addition. */
static double dot_of(const float *x, const float *y, int64_t count) {
  double sums[8] = {0}, sum = 0;
  int64_t d = 0;
  for (; d + 8 <= count; d += 8)
    for (int n = 0; n < 8; n++) sums[n] += (double)x[d + n] * y[d + n];
  for (; d < count; d++) sum += (double)x[d] * y[d];
  for (int n = 0; n < 8; n++) sum += sums[n];
  return sum;
}

/* Of a query and a key at their positions. */
static double rotated_dot(const attn_problem *problem, const float *x, int64_t at, const float *y,
                          int64_t j) {
  double sum = 0;
  if (problem->rope_cos.type == ATTN_ABSENT) return dot_of(x, y, problem->head_dim);
  for (int64_t d = 0; d < problem->head_dim; d++)
    sum += reference_rotated(problem, at, x, d).value * reference_rotated(problem, j, y, d).value;
  return sum;
}

static double score(const attn_problem *problem, double dot, const float *bias, double position) {
  double score = problem->scale * dot;
  if (problem->softcap > 0) score = problem->softcap * tanh(score / problem->softcap);
  return (bias ? score + *bias : score) + position;
}

static void solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                  reference_row *row) {
  const int64_t kv_head = reference_kv_head(problem, h);
  const float *query = reference_vector(tensors->query, problem->query, b, h, i);
  const float *bias = problem->bias.type ? reference_vector(tensors->bias, problem->bias, b, h, i) : NULL;

  reference_general general;
  if (problem->general.type) reference_transform(problem, b, h, i, query, &general);

  bool sees_a_key = false;
  for (int64_t j = 0; j < problem->key_length; j++) {
    row->visible[j] = reference_sees(problem, tensors, b, h, i, j);
    row->scores[j] = -INFINITY;
    if (!row->visible[j]) continue;
    const float *key = reference_vector(tensors->key, problem->key, b, kv_head, j);
    const reference_pair_of pair = {query, key, reference_query_position(problem, b, i), j};
    const double dot = problem->general.type    ? reference_general_dot(problem, &general, key, j)
                       : problem->additive.type ? reference_additive(problem, h, pair)
                                                : rotated_dot(problem, query, pair.query_position, key, j);
    row->scores[j] = score(problem, dot, bias ? bias + j : NULL, reference_position(problem, b, h, i, j).sum);
    if (row->scores[j] != -INFINITY) sees_a_key = true; /* NaN too */
  }

  for (int64_t e = 0; e < problem->value_dim; e++) row->output[e] = 0;
  for (int64_t j = 0; j < problem->key_length; j++) row->weights[j] = 0;
  const double sink = reference_sink(problem, tensors, b, h, i);
  row->lse = sink;
  if (!sees_a_key) return;

  reference_weigh(sink, problem->key_length, row);
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (!row->visible[j]) continue;
    const double kept = reference_kept(problem, b, h, i, j);
    row->weights[j] *= kept;
    if (row->scores[j] == -INFINITY || kept == 0) continue; /* the bound says what may come of its value */
    const float *value = reference_vector(tensors->value, problem->value, b, kv_head, j);
    for (int64_t e = 0; e < problem->value_dim; e++) row->output[e] += row->weights[j] * value[e];
  }
}

/* Two products of a query, or weight, and a key, or value, for each pair; the exponential is free, and so is a
 * tanh: an additive score counts as a product. Of general scores also one of a query and its matrix. */
static double operations(const attn_problem *problem, double visible_pairs) {
  const double D = (double)problem->head_dim,
               queries = (double)(problem->batch * problem->query_heads) * (double)problem->query_length;
  return 2 * (D + (double)problem->value_dim) * visible_pairs +
         (problem->general.type ? 2 * D * D * queries : 0);
}

static double largest_weight(const attn_problem *problem) {
  (void)problem;
  return 1;
}

const reference_function reference_softmax = {
    .name = "softmax",
    .computes = "computes softmax attention",
    .solve = solve,
    .bound = reference_softmax_bound,
    .operations = operations,
    .largest_weight = largest_weight,
    .has_scores = true,
    .forward = ATTN_SOFTMAX,
    .backward = ATTN_SOFTMAX_BACKWARD,
};
