/* What the bounds of all functions are made of (bound.c, linear_bound.c); symbols are those of README.md. */
#ifndef ATTN_REFERENCE_SUMS_H
#define ATTN_REFERENCE_SUMS_H

#include "reference.h"
#include "roundings.h"

/* The chains of additions in numerator and denominator: their relative errors. */
typedef struct chain_errors {
  double numerator[FORMS], denominator[FORMS];
} chain_errors;

/* What the loop over keys sums beside the output bound. */
typedef struct weight_sums {
  double grown[FORMS]; /* sum_j p_j r_j */
  double kept[FORMS];  /* the least that rounding leaves of sum_j p_j = 1 */
  double sizes;        /* sum_j |p_j|: 1 where no weight is negative */
} weight_sums;

/* A row's bounds of one form. */
double *bound_of_output(const reference_row *row, int form);

/* The same for all elements of the output that are finite, 0 for the others. */
void bound_outputs(const attn_problem *problem, reference_row *row, double bound);

/* The largest |v| that is finite. */
double bound_largest(const float *vector, int64_t count);

/* alike: what roundings of the weights' sum have in common, bound_alike_weights. */
chain_errors bound_chains(double roundings, double alike);

/* By how much the sum of a row's weights, count of them, and of something else of this size may be off beyond the probabilistic
 * form, in u of it all (alike.h). */
double bound_alike_weights(const attn_problem *problem, const reference_row *row, double count, double size);

/* Adds a key's part of the output bound. */
void bound_add_key(const attn_problem *problem, reference_row *row, const float *value, double kept,
                   double weight, const double error[FORMS], const chain_errors *chains, double absolute);

/* The terms of a row's numerators, count of them for each feature: weights times values over the divisor. size: of what is added
 * beside them; alike: the weights are, or something is. */
typedef struct numerator_terms {
  int64_t b, h, i;
  double count, divisor, size;
  bool alike;
} numerator_terms;

/* Adds to the probabilistic form and to what is expected how much farther these may be off, feature by feature. */
void bound_add_alike(const attn_problem *problem, const attn_tensors *tensors, const numerator_terms *of,
                     reference_row *row);

/* Divides by the smallest denominator, and adds what comes after that. */
void bound_finish(const attn_problem *problem, reference_row *row, const chain_errors *chains,
                  const weight_sums *sums, double extra, double underflow);

#endif
