/* See sums.h. */
#include "sums.h"

#include <float.h>
#include <math.h>
#include <string.h>

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

chain_errors bound_chains(double roundings, double repeated, double equal) {
  chain_errors chains;
  for (int form = WORST; form < FORMS; form++)
    chains.numerator[form] = chains.denominator[form] = reference_chain_error(form, roundings);
  const double worst = chains.denominator[WORST], expected = chains.denominator[EXPECTED];
  chains.denominator[PROBABLE] = fmin(worst, chains.denominator[PROBABLE] + repeated * UNIT);
  chains.denominator[EXPECTED] = fmin(worst, expected + fmax(repeated, equal) * UNIT);
  chains.numerator[EXPECTED] = fmin(worst, expected + equal * UNIT);
  return chains;
}

/* Keys whose weight is that of one before, wherever that stands: a few keys again and again, or a query of zeros. What is
 * added again and again is rounded alike as long as the sum keeps its exponent. */
double bound_count_equal(const attn_problem *problem, const reference_row *row) {
  enum { REMEMBERED = 1024 };
  double known[REMEMBERED] = {0}, equal = 0;
  for (int64_t j = 0; j < problem->key_length; j++) {
    uint64_t bits;
    if (!row->visible[j] || row->weights[j] == 0) continue;
    memcpy(&bits, &row->weights[j], sizeof bits);
    double *slot = &known[bits * UINT64_C(0x9e3779b97f4a7c15) >> 54];
    equal += *slot == row->weights[j];
    *slot = row->weights[j];
  }
  return equal;
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

/* Terms that repeat their predecessor round the same way each time, so their roundings add up even in
 * the probabilistic form. Near: closer than the last place of the sum that they are added to. */
bool bound_repeats(double term, double previous, double count) {
  return fabs(term - previous) <= count * UNIT * fabs(term);
}

void bound_add_repeated(const attn_problem *problem, reference_row *row, const float *value,
                        const float *previous, double count, double largest_value) {
  for (int64_t e = 0; e < problem->value_dim; e++)
    if (value[e] != 0 && bound_repeats(value[e], previous[e], count)) {
      row->output_bound_probabilistic[e] += UNIT * largest_value;
      row->output_deviation[e] += UNIT * largest_value;
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
