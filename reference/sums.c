/* See sums.h. */
#include "sums.h"

#include <float.h>
#include <math.h>

#include "alike.h"
#include "rows.h"

double reference_chain_error(int form, double roundings) {
  if (roundings * UNIT >= 1) return INFINITY;
  double worst = roundings * UNIT / (1 - roundings * UNIT);
  if (form == WORST) return worst;
  if (form == EXPECTED) return fmin(worst, UNIT * sqrt(roundings / 3)); /* each within u, anywhere */
  return fmin(worst, bound_grown(LAMBDA * sqrt(roundings) * UNIT + roundings * UNIT * UNIT));
}

double *bound_of_output(const reference_row *row, int form) {
  if (form == EXPECTED) return row->output_deviation;
  return form == WORST ? row->output_bound : row->output_bound_probabilistic;
}

void bound_outputs(const attn_problem *problem, reference_row *row, double bound) {
  for (int form = WORST; form < FORMS; form++)
    for (int64_t e = 0; e < problem->value_dim; e++)
      bound_of_output(row, form)[e] = isfinite(row->output[e]) ? bound : 0;
}

double bound_largest(const float *vector, int64_t count) {
  float each[4] = {0}; /* side by side: one alone waits for itself */
  for (int64_t e = 0; e < count; e++) {
    const float size = fabsf(vector[e]);
    if (size <= FLT_MAX) each[e % 4] = size > each[e % 4] ? size : each[e % 4];
  }
  return fmaxf(fmaxf(each[0], each[1]), fmaxf(each[2], each[3]));
}

chain_errors bound_chains(double roundings, double alike) {
  chain_errors chains;
  for (int form = WORST; form < FORMS; form++) {
    chains.numerator[form] = chains.denominator[form] = reference_chain_error(form, roundings);
    if (form != WORST)
      chains.denominator[form] = fmin(chains.denominator[WORST], chains.denominator[form] + alike * UNIT);
  }
  return chains;
}

double bound_alike_weights(const attn_problem *problem, const reference_row *row, double count, double size) {
  alike_terms terms;
  for (int64_t j = 0; j < problem->key_length; j++)
    if (row->visible[j]) size += fabs(row->weights[j]);
  alike_begin(&terms, count, size);
  for (int64_t j = 0; j < problem->key_length; j++)
    if (row->visible[j]) alike_add(&terms, row->weights[j]);
  return alike_excess(&terms);
}

/* The output bound is summed over keys in the place where it is returned:
 *
 *     sum_j p_j r_j |v_j - o| + (c p_j (1 + r_j) + a) |v_j|
 *
 * with p_j the weight, v_j the value times what dropout leaves of it (kept), r_j the relative error of it that
 * numerator and denominator share (error is their product), a the absolute error that underflow leaves in a weight, c
 * the error of the numerator's chain. */
void bound_add_key(const attn_problem *problem, reference_row *row, const float *value, double kept,
                   double weight, const double error[FORMS], const chain_errors *chains, double absolute) {
  double *restrict worst = row->output_bound, *restrict probable = row->output_bound_probabilistic;
  double *restrict expected = row->output_deviation, own[FORMS];
  const double *restrict output = row->output;
  for (int form = WORST; form < FORMS; form++)
    own[form] = chains->numerator[form] * (weight + error[form]) + absolute;
#pragma omp simd
  for (int64_t e = 0; e < problem->value_dim; e++) {
    const double met = kept * value[e], size = fabs(met), off = fabs(met - output[e]);
    worst[e] += error[WORST] * off + own[WORST] * size;
    probable[e] += error[PROBABLE] * off + own[PROBABLE] * size;
    expected[e] += error[EXPECTED] * off + own[EXPECTED] * size;
  }
}

enum { TOGETHER = 8 }; /* features whose values lie in a line of the cache */

/* Where weights are not alike, values make their products so only where a few exceed the others by far: whether one of features
 * [first, first + count) has such. */
static bool has_outliers(const attn_problem *problem, const attn_tensors *tensors, const numerator_terms *of,
                         int64_t first, int64_t count, const reference_row *row) {
  const int64_t kv_head = reference_kv_head(problem, of->h);
  double largest[TOGETHER] = {0}, sizes[TOGETHER] = {0};
  bool found = false;
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (!row->visible[j]) continue;
    const float *value = reference_vector(tensors->value, problem->value, of->b, kv_head, j) + first;
#pragma omp simd
    for (int64_t e = 0; e < count; e++) {
      const double size = fabsf(value[e]);
      largest[e] = size > largest[e] ? size : largest[e];
      sizes[e] += size;
    }
  }
  for (int64_t e = 0; e < count; e++) found = found || largest[e] * of->count > 8 * sizes[e];
  return found;
}

/* Of features [first, first + count). */
static void add_alike(const attn_problem *problem, const attn_tensors *tensors, const numerator_terms *of,
                      int64_t first, int64_t count, reference_row *row) {
  alike_terms terms[TOGETHER];
  double sizes[TOGETHER];
  for (int64_t e = 0; e < count; e++) sizes[e] = of->size;
  for (int adds = 0; adds < 2; adds++) {
    for (int64_t j = 0; j < problem->key_length; j++) {
      const double weight = row->weights[j] / of->divisor * reference_kept(problem, of->b, of->h, of->i, j);
      if (!row->visible[j] || weight == 0) continue;
      const float *value =
          reference_vector(tensors->value, problem->value, of->b, reference_kv_head(problem, of->h), j) +
          first;
      for (int64_t e = 0; e < count; e++)
        if (adds)
          alike_add(&terms[e], weight * value[e]);
        else
          sizes[e] += fabs(weight * value[e]);
    }
    for (int64_t e = 0; e < count && !adds; e++) alike_begin(&terms[e], of->count, sizes[e]);
  }
  for (int64_t e = 0; e < count; e++) {
    const double off = fmin(alike_excess(&terms[e]), of->count) * UNIT * sizes[e];
    row->output_bound_probabilistic[first + e] += off;
    row->output_deviation[first + e] += off;
  }
}

void bound_add_alike(const attn_problem *problem, const attn_tensors *tensors, const numerator_terms *of,
                     reference_row *row) {
  if (!of->alike && of->count <= LAMBDA * LAMBDA) return; /* where lambda allows all roundings to conspire */
  for (int64_t first = 0; first < problem->value_dim; first += TOGETHER) {
    const int64_t left = problem->value_dim - first, count = left < TOGETHER ? left : TOGETHER;
    if (of->alike || has_outliers(problem, tensors, of, first, count, row))
      add_alike(problem, tensors, of, first, count, row);
  }
}

/* Adds the denominator's chain, divides by the smallest denominator, adds the roundings after that, and
 * clears what has no bound. extra: relative error of |o| from elsewhere. */
void bound_finish(const attn_problem *problem, reference_row *row, const chain_errors *chains,
                  const weight_sums *sums, double extra, double underflow) {
  for (int form = WORST; form < FORMS; form++) {
    double *bounds = bound_of_output(row, form);
    const double chain = chains->denominator[form];
    /* What rounds is in proportion to the terms' sizes; of one sign they add up to no more than their sum. */
    const bool one_sign = sums->sizes <= 1;
    const double sizes = fmax(1, sums->sizes) + sums->grown[form];
    const double smallest = sums->kept[form] - chain * (one_sign ? sums->kept[form] : sizes);
    for (int64_t e = 0; e < problem->value_dim; e++) {
      const double o = fabs(row->output[e]);
      double bound = bounds[e] + o * (chain * sizes + extra);
      bound = smallest > 0 ? bound / smallest : INFINITY;
      bound += 4 * UNIT * (o + bound) + underflow;
      if (o > LARGEST || isnan(bound)) bound = INFINITY;
      bounds[e] = isfinite(row->output[e]) ? bound : 0;
    }
  }
}
