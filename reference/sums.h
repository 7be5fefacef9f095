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

/* repeated: terms that repeat their predecessor; equal: that are equal to any before them. */
chain_errors bound_chains(double roundings, double repeated, double equal);

/* Keys whose weight is that of one before, wherever that stands. */
double bound_count_equal(const attn_problem *problem, const reference_row *row);

/* Adds a key's part of the output bound. */
void bound_add_key(const attn_problem *problem, reference_row *row, const float *value, double kept,
                   double weight, const double error[FORMS], const chain_errors *chains, double absolute);

/* Whether a term of so many rounds as the one before it does. */
bool bound_repeats(double term, double previous, double count);
void bound_add_repeated(const attn_problem *problem, reference_row *row, const float *value,
                        const float *previous, double count, double largest_value);

/* Divides by the smallest denominator, and adds what comes after that. */
void bound_finish(const attn_problem *problem, reference_row *row, const chain_errors *chains,
                  const weight_sums *sums, double extra, double underflow);

#endif
