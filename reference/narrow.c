/* What elements of 16 bits add to the bounds of float32 arithmetic (README.md, "Narrow types"). Inputs are exact as they
 * are given. A kernel sums in float32, and may round the weights to the type of the values before they meet these, as
 * FlashAttention does; the output rounds once. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "roundings.h"
#include "rows.h"

enum { FEATURES = 64 }; /* that are summed at a time */

/* A type's unit roundoff, the error of what lies below its normal range, and its largest number. */
typedef struct rounding {
  double unit, absolute, largest;
  double flushed; /* what is smaller counts as 0, and so do sums that are */
} rounding;

/* The units that multiply bfloat16 flush what is below the normal range; those of float16 do not. */
static rounding rounding_of(attn_type type) {
  switch (type) {
    case ATTN_BFLOAT16: return (rounding){0x1p-8, 0x1p-126, 0x1.fep127, 0x1p-126};
    case ATTN_FLOAT16: return (rounding){0x1p-11, 0x1p-25, 65504, 0};
    default: return (rounding){0, 0, INFINITY, 0};
  }
}

static int by_weight(const void *left, const void *right, void *weights) {
  const double a = ((const double *)weights)[*(const int64_t *)left],
               b = ((const double *)weights)[*(const int64_t *)right];
  return (a > b) - (a < b);
}

/* Visible keys, those of equal weight together; returns how many. */
static int64_t sort_keys(const attn_problem *problem, reference_row *row) {
  int64_t count = 0;
  for (int64_t j = 0; j < problem->key_length; j++)
    if (row->visible[j] && row->weights[j] > 0) row->order[count++] = j;
  qsort_r(row->order, (size_t)count, sizeof *row->order, by_weight, row->weights);
  return count;
}

/* What rounding the weights adds to features [first, first + count). */
typedef struct rounded_weights {
  double worst[FEATURES], absolute[FEATURES], flushed[FEATURES], squares[FEATURES], group[FEATURES];
} rounded_weights;

static void add_group(rounded_weights *sums, int64_t count) {
  for (int64_t e = 0; e < count; e++) {
    sums->squares[e] += sums->group[e] * sums->group[e];
    sums->group[e] = 0;
  }
}

/* Those that are equal round alike wherever they stand, and so do those that lie closer to each other than an eighth of
 * u: their values add up before the squares do. */
static void sum_values(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t kv_head,
                       const reference_row *row, int64_t keys, rounding to, int64_t first, int64_t count,
                       rounded_weights *sums) {
  double smallest = 0;
  *sums = (rounded_weights){{0}, {0}, {0}, {0}, {0}};
  for (int64_t n = 0; n < keys; n++) {
    const int64_t j = row->order[n];
    const double weight = row->weights[j];
    const float *value = reference_vector(tensors->value, problem->value, b, kv_head, j) + first;
    if (weight > smallest * (1 + to.unit / 8)) {
      add_group(sums, count);
      smallest = weight;
    }
    for (int64_t e = 0; e < count; e++) {
      const double size = fabs((double)value[e]);
      sums->worst[e] += weight * size;
      sums->group[e] += weight * size;
      sums->absolute[e] += size;
      if (size < to.flushed) sums->flushed[e] += weight * size;
    }
  }
  add_group(sums, count);
}

/* Weights round by at most u each. */
static void add_rounded_weights(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                int64_t h, reference_row *row, rounding to) {
  const int64_t kv_head = reference_kv_head(problem, h), keys = sort_keys(problem, row);
  const double largest = keys > 0 ? row->weights[row->order[keys - 1]] : 0;
  rounded_weights sums;
  for (int64_t first = 0; first < problem->value_dim; first += FEATURES) {
    const int64_t left = problem->value_dim - first, count = left < FEATURES ? left : FEATURES;
    sum_values(problem, tensors, b, kv_head, row, keys, to, first, count, &sums);
    for (int64_t e = 0; e < count; e++) {
      double *worst = &row->output_bound[first + e], *probable = &row->output_bound_probabilistic[first + e];
      const double below =
          to.absolute * largest * sums.absolute[e] + sums.flushed[e] + to.flushed * largest * (double)keys;
      const double likely = fmin(sums.worst[e], LAMBDA * sqrt(sums.squares[e]));
      *worst = copysign(fabs(*worst) + to.unit * sums.worst[e] + below, *worst);
      *probable = copysign(fabs(*probable) + to.unit * likely + below, *probable);
    }
  }
}

/* One rounding of what was computed. */
static double rounded(double bound, double truth, rounding to) {
  const double more = fabs(bound) * (1 + to.unit) + to.unit * fabs(truth) + to.absolute;
  return copysign(fabs(truth) + more > to.largest ? INFINITY : more, bound);
}

void reference_narrow_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row) {
  const rounding weights = rounding_of(problem->value.type), output = rounding_of(problem->output.type);
  const rounding shown = rounding_of(problem->weights.type);
  (void)i;
  if (weights.unit > 0 && problem->function == ATTN_SOFTMAX && !row->exact && isfinite(row->lse))
    add_rounded_weights(problem, tensors, b, h, row, weights);
  for (int64_t e = 0; e < problem->value_dim && output.unit > 0; e++) {
    if (!isfinite(row->output[e])) continue;
    row->output_bound[e] = rounded(row->output_bound[e], row->output[e], output);
    row->output_bound_probabilistic[e] = rounded(row->output_bound_probabilistic[e], row->output[e], output);
  }
  /* Nobody flushes float16, which ends early. */
  row->weights_vanish = problem->weights.type == ATTN_FLOAT16 ? 0x1p-24 : (double)FLT_MIN;
  if (shown.unit > 0) {
    row->weights_bound =
        copysign(fabs(row->weights_bound) * (1 + shown.unit) + shown.unit, row->weights_bound);
    row->weights_bound_probabilistic =
        copysign(fabs(row->weights_bound_probabilistic) * (1 + shown.unit) + shown.unit,
                 row->weights_bound_probabilistic);
  }
}
