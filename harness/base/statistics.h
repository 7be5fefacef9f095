/* Order statistics, intervals and fits (statistics.c), tests by ranks (rank_tests.c). Sources stand at each
 * function. */
#ifndef ATTN_HARNESS_STATISTICS_H
#define ATTN_HARNESS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct interval {
  double estimate, low, high;
} interval;

double statistics_mean(const double *values, size_t count);
double statistics_stddev(const double *values, size_t count); /* sample, n - 1; 0 for fewer than 2 */
double statistics_median(const double *values, size_t count); /* of a copy; values stay as they are */

/* Median with the distribution-free interval from order statistics (binomial), at the given confidence
 * or the widest that so few values give. */
interval statistics_median_interval(const double *values, size_t count, double confidence);

/* Student's t: the quantile at probability p. */
double statistics_t_quantile(double p, double degrees_of_freedom);

/* Mean with its t interval. */
interval statistics_mean_interval(const double *values, size_t count, double confidence);

/* Ordinary least squares of y on x: slope with its t interval; *intercept unless NULL. */
interval statistics_slope(const double *x, const double *y, size_t count, double confidence,
                          double *intercept);

/* Wilcoxon's signed-rank test against one side: the probability of a rank sum as large as this or larger if the
 * values are symmetric about `shift`, so that a small one says that they lie above it. Values equal to
 * shift are left out; equal distances share the mean of their ranks, and the distribution is the exact
 * one given these ranks. 1 when nothing is left. The work grows as count^3: 100 values take a millisecond. */
double statistics_signed_rank(const double *values, size_t count, double shift);

/* The centre of symmetrically scattered values (Hodges and Lehmann: the median of the means of all pairs) with
 * the interval that belongs to the signed-rank test, at the given confidence or the widest that so few
 * values give. Half as wide as the median's, and as little moved by outliers. */
interval statistics_centre_interval(const double *values, size_t count, double confidence);

/* Mann and Whitney's U test, both sides: the probability, if both samples come from one distribution, of
 * ranks that differ as much as these or more. Equal values share the mean of their ranks. Exact given
 * these ranks up to 100 values in all, beyond that by the normal approximation. 1 without values. */
double statistics_rank_sum(const double *left, size_t left_count, const double *right, size_t right_count);

/* Holm's correction for testing so many hypotheses at once: adjusted[i] <= alpha is a rejection of
 * hypothesis i at the family-wise level alpha. adjusted may be p itself. False without memory. */
bool statistics_holm(const double *p, size_t count, double *adjusted);

#endif
