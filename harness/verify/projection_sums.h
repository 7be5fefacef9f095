/* What all rows of an output are along a few random directions: the sums. projection.h says what it is for. */
#ifndef ATTN_HARNESS_PROJECTION_SUMS_H
#define ATTN_HARNESS_PROJECTION_SUMS_H

#include "problem/inputs.h"

enum { PROJECTION_DIRECTIONS = 2 };

typedef struct projected_row {
  double along[PROJECTION_DIRECTIONS]; /* of the true output */
  /* The log-sum-exp, or the sum of the weights and epsilon, or 1 of what is unnormalised; of a row that sees no key -inf,
   * or 0. */
  double normaliser;
  double size;   /* of what was summed, which rounding is in proportion to */
  double scores; /* 1 and what the scores may be, which it is in proportion to too; NaN: nothing is known */
} projected_row;

typedef struct projection {
  int64_t rows;
  projected_row *of;  /* [rows] by position, as in expected; NULL: it was not made */
  double *directions; /* [PROJECTION_DIRECTIONS, Dv] */
} projection;

/* Fills the rows. False when memory is short. */
typedef bool projection_sums(const projection *projection, const inputs *inputs);

projection_sums projection_sums_softmax, projection_sums_linear;

/* A value along each direction, and the mean size of its elements. */
typedef struct projected_value {
  double along[PROJECTION_DIRECTIONS], size;
} projected_value;

projected_value projection_of(const projection *projection, const float *row, int64_t value_dim);

/* The keys that the band and the lengths let query i of entry b see: first <= j < end. From the words of
 * variants/attention.h, and not from its helper, which variants use. */
attn_range projection_range(const attn_problem *problem, int64_t b, int64_t i);

#endif
