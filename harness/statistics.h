/* Order statistics, intervals and fits. Sources stand at each function. */
#ifndef ATTN_HARNESS_STATISTICS_H
#define ATTN_HARNESS_STATISTICS_H

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

#endif
