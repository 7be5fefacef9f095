/* What elements of 16 bits add to the bounds of float32 arithmetic (README.md, "Narrow types"). Inputs are exact as they
 * are given. A kernel sums in float32, and may round the weights to the type of the values before they meet these, as
 * FlashAttention does; the output rounds once. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "narrow.h"
#include "roundings.h"
#include "rows.h"

enum { FEATURES = 64 };  /* that are summed at a time */
enum { MANTISSAS = 32 }; /* that are told apart in the spacing of rounded weights */

#define EQUAL                                                                                                \
  0x1p-18 /* weights as near as this to each other may be one number, computed alike in every row */

static int by_weight(const void *left, const void *right, void *weights) {
  const double a = ((const double *)weights)[*(const int64_t *)left],
               b = ((const double *)weights)[*(const int64_t *)right];
  return (a > b) - (a < b);
}

/* Visible keys, those of equal weight together; returns how many. */
static int64_t sort_keys(const attn_problem *problem, reference_row *row) {
  int64_t count = 0;
  for (int64_t j = 0; j < problem->key_length; j++)
    /* The smallest number stands for a weight of 0 (bound.c). */
    if (row->visible[j] && row->weights[j] > DBL_TRUE_MIN) row->order[count++] = j;
  qsort_r(row->order, (size_t)count, sizeof *row->order, by_weight, row->weights);
  return count;
}

/* What rounding the weights adds to features [first, first + count). */
typedef struct rounded_weights {
  double worst[FEATURES], absolute[FEATURES], flushed[FEATURES], squares[FEATURES], group[FEATURES];
  double expected[FEATURES];                      /* of the squares, as a share of u^2 */
  double signed_group[FEATURES], apart[FEATURES]; /* of the group: sums of p v, and of its squares */
  double spacing;                                 /* of what is expected of a weight */
  int64_t members;                                /* of the group */
  bool has_equal;                                 /* two of them */
} rounded_weights;

static double kept_factor(const attn_problem *problem) {
  return problem->keep.type ? 1 / (1 - problem->dropout_p) : 1;
}

/* Of a group of weights that round alike in every row nothing is left to chance; of another the members may still round
 * apart. */
static void add_group(rounded_weights *sums, int64_t count) {
  const double chance = sums->has_equal ? 1 : sums->spacing;
  for (int64_t e = 0; e < count; e++) {
    const double together = sums->signed_group[e] * sums->signed_group[e];
    sums->squares[e] += sums->group[e] * sums->group[e];
    sums->expected[e] += chance * (together + (sums->members > 1 ? sums->apart[e] : 0));
    sums->group[e] = sums->signed_group[e] = sums->apart[e] = 0;
  }
  sums->members = 0;
  sums->has_equal = false;
}

/* What the square of a weight's rounding is expected to be, as a share of u^2 p^2: a third where it lies just above a power of
 * two, a quarter of that just below. A kernel may have scaled all weights by a power of its own (a running maximum, or their
 * sum): by the one that is worst for these. */
static double expected_spacing(const reference_row *row, int64_t keys) {
  double at[MANTISSAS] = {0}, shares[MANTISSAS], all = 0, most = 0;
  for (int64_t n = 0; n < keys; n++) {
    const double weight = row->weights[row->order[n]];
    int exponent;
    const double place = MANTISSAS * log2(2 * frexp(weight, &exponent));
    const double square = weight * weight;
    at[(int)fmin(place, MANTISSAS - 1)] += square;
    all += square;
  }
  for (int n = 0; n < MANTISSAS; n++) shares[n] = exp2(-2.0 * n / MANTISSAS);
  for (int moved = 0; moved < MANTISSAS; moved++) {
    double sum = 0;
    for (int n = 0; n < MANTISSAS; n++) sum += at[n] * shares[(n + moved) % MANTISSAS];
    most = fmax(most, sum);
  }
  return all > 0 ? most / all / 3 : 0;
}

/* Those that are equal round alike wherever they stand, and so do those that lie closer to each other than an eighth of
 * u: their values add up before the squares do. */
static void sum_values(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t kv_head,
                       const reference_row *row, int64_t keys, reference_rounding to, double spacing,
                       int64_t first, int64_t count, rounded_weights *sums) {
  double smallest = 0, previous = 0;
  *sums = (rounded_weights){.spacing = spacing};
  for (int64_t n = 0; n < keys; n++) {
    const int64_t j = row->order[n];
    const double weight = row->weights[j];
    const float *value = reference_vector(tensors->value, problem->value, b, kv_head, j) + first;
    if (weight > smallest * (1 + to.unit / 8)) {
      add_group(sums, count);
      smallest = weight;
    }
    sums->members++;
    sums->has_equal |= weight - previous <= EQUAL * weight;
    previous = weight;
    for (int64_t e = 0; e < count; e++) {
      const double size = fabs((double)value[e]), part = weight * value[e];
      sums->signed_group[e] += part;
      sums->apart[e] += part * part;
      sums->worst[e] += weight * size;
      sums->group[e] += weight * size;
      sums->absolute[e] += size;
      if (size < to.flushed) sums->flushed[e] += weight * size;
    }
  }
  add_group(sums, count);
}

/* What has the size of 1 where a kernel sums: the largest weight, of a key that dropout leaves out too, or of the sink. */
static double largest_weight(const attn_problem *problem, double sink, const reference_row *row) {
  double largest = sink;
  for (int64_t j = 0; j < problem->key_length; j++)
    if (row->visible[j]) largest = fmax(largest, row->scores[j]);
  return exp(largest - row->lse) * kept_factor(problem);
}

/* Weights round by at most u each. */
static void add_rounded_weights(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                int64_t h, int64_t i, reference_row *row, reference_rounding to) {
  const int64_t kv_head = reference_kv_head(problem, h), keys = sort_keys(problem, row);
  const double largest = largest_weight(problem, reference_sink(problem, tensors, b, h, i), row);
  const double spacing = expected_spacing(row, keys);
  rounded_weights sums;
  for (int64_t first = 0; first < problem->value_dim; first += FEATURES) {
    const int64_t left = problem->value_dim - first, count = left < FEATURES ? left : FEATURES;
    sum_values(problem, tensors, b, kv_head, row, keys, to, spacing, first, count, &sums);
    for (int64_t e = 0; e < count; e++) {
      double *worst = &row->output_bound[first + e], *probable = &row->output_bound_probabilistic[first + e];
      const double below =
          to.absolute * largest * sums.absolute[e] + sums.flushed[e] + to.flushed * largest * (double)keys;
      const double linear = row->output_deviation[first + e] + below;
      const double likely = fmin(sums.worst[e], LAMBDA * sqrt(sums.squares[e]));
      *worst = copysign(fabs(*worst) + to.unit * sums.worst[e] + below, *worst);
      *probable = copysign(fabs(*probable) + to.unit * likely + below, *probable);
      row->output_deviation[first + e] = sqrt(linear * linear + to.unit * to.unit * sums.expected[e]);
    }
  }
}

/* The probability that a standard normal number lies below x. */
static double below_normal(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

/* The root mean square of what is left when a number that is normally distributed about the truth is rounded to a multiple of
 * the spacing there. Where it hardly varies, that is the truth's own rounding: nothing is left to chance. */
static double rounded_deviation(double deviation, double expected, reference_rounding to) {
  enum { SIDE = 6 };
  int exponent;
  if (expected == 0) return deviation;
  frexp(expected, &exponent);
  const double spacing = fmax(ldexp(to.unit, exponent), 2 * to.absolute);
  const double least = 0.1 * spacing; /* or a row of few elements may turn on one that lies at its number */
  if (deviation > 0.6 * spacing) return sqrt(deviation * deviation + spacing * spacing / 12);
  const double first = floor(expected / spacing) - SIDE, scale = spacing / fmax(deviation, 1e-9 * spacing);
  double squares = 0, before = 0;
  for (int n = 0; n <= 2 * SIDE; n++) {
    const double off = first + n - expected / spacing;
    const double until = n == 2 * SIDE ? 1 : below_normal((off + 0.5) * scale);
    squares += (until - before) * off * off;
    before = until;
  }
  return fmax(least, spacing * sqrt(squares));
}

/* The output's reference_rounding to its own type. */
static void round_output(const attn_problem *problem, const reference_row *row, reference_rounding to,
                         reference_bounds *bounds) {
  for (int64_t e = 0; e < problem->value_dim; e++) {
    const double output = row->output[e];
    double *worst = &bounds->worst[e], *probabilistic = &bounds->probabilistic[e];
    /* Float32's own roundings are another below its normal range. */
    if (output != 0 && fabs(output) < FLT_MIN) bounds->deviation[e] = INFINITY;
    if (to.unit == 0 || !isfinite(output)) continue;
    *worst = reference_rounded(*worst, output, to);
    *probabilistic = reference_rounded(*probabilistic, output, to);
    /* What is flushed, or may overflow, says nothing. */
    const bool ordinary = fabs(output) >= 0x1p10 * to.flushed && isfinite(*worst);
    bounds->deviation[e] = ordinary ? rounded_deviation(bounds->deviation[e], output, to) : INFINITY;
  }
}

static void copy_bounds(const attn_problem *problem, const reference_bounds *from, reference_bounds *to) {
  const size_t bytes = (size_t)problem->value_dim * sizeof(double);
  memcpy(to->worst, from->worst, bytes);
  memcpy(to->probabilistic, from->probabilistic, bytes);
  memcpy(to->deviation, from->deviation, bytes);
}

void reference_narrow_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row) {
  const reference_rounding weights = reference_rounding_of(problem->value.type),
                           output = reference_rounding_of(problem->output.type);
  const reference_rounding shown = reference_rounding_of(problem->weights.type);
  reference_bounds model = {row->output_bound, row->output_bound_probabilistic, row->output_deviation};
  if (row->float32_weights.worst) {
    copy_bounds(problem, &model, &row->float32_weights);
    round_output(problem, row, output, &row->float32_weights);
  }
  if (weights.unit > 0 && problem->function == ATTN_SOFTMAX && !row->exact && isfinite(row->lse))
    add_rounded_weights(problem, tensors, b, h, i, row, weights);
  round_output(problem, row, output, &model);
  /* Nobody flushes float16, which ends early. What dropout leaves may have been flushed before it was made larger. */
  const double least = FLT_MIN * kept_factor(problem);
  row->weights_vanish = problem->weights.type == ATTN_FLOAT16 ? fmax(0x1p-24, least) : least;
  if (shown.unit > 0) {
    row->weights_bound =
        copysign(fabs(row->weights_bound) * (1 + shown.unit) + shown.unit, row->weights_bound);
    row->weights_bound_probabilistic =
        copysign(fabs(row->weights_bound_probabilistic) * (1 + shown.unit) + shown.unit,
                 row->weights_bound_probabilistic);
  }
}
