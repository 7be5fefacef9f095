/* Order statistics, intervals and fits, on plain arrays of double. Everything here is exact or computed to
 * nearly full precision; none of it is tuned. What too few values cannot say is NaN (an estimate) or
 * infinite (the end of an interval). */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double statistics_mean(const double *values, size_t count) {
  double sum = 0;
  for (size_t n = 0; n < count; n++) sum += values[n];
  return count ? sum / (double)count : NAN;
}

/* Two passes: differences from the mean do not cancel as a difference of squares would. */
double statistics_stddev(const double *values, size_t count) {
  if (count < 2) return 0;
  const double mean = statistics_mean(values, count);
  double squares = 0;
  for (size_t n = 0; n < count; n++) squares += (values[n] - mean) * (values[n] - mean);
  return sqrt(squares / (double)(count - 1));
}

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* An ascending copy, for the caller to free; NULL without values or without memory. */
static double *sorted_copy(const double *values, size_t count) {
  double *copy = count ? calloc(count, sizeof *copy) : NULL;
  if (!copy) return NULL;
  memcpy(copy, values, count * sizeof *copy);
  qsort(copy, count, sizeof *copy, compare);
  return copy;
}

static double median_of_sorted(const double *sorted, size_t count) {
  return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

double statistics_median(const double *values, size_t count) {
  double *sorted = sorted_copy(values, count);
  if (!sorted) return NAN;
  const double median = median_of_sorted(sorted, count);
  free(sorted);
  return median;
}

/* How many values may be dropped at either end of the sorted ones while those that are left still span the
 * median with the confidence: with k dropped, the median lies below them with the probability
 * P(Binomial(count, 1/2) <= k), and above with the same. David and Nagaraja, Order Statistics, 3rd
 * edition, section 7.1. */
static size_t values_beyond(size_t count, double confidence) {
  const double tail = 0.5 * (1 - confidence);
  double below = 0; /* P(Binomial <= k) */
  for (size_t k = 0; k < count; k++) {
    const double n = (double)count, i = (double)k;
    below += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2));
    if (below > tail) return k > 0 ? k - 1 : 0;
  }
  return 0;
}

interval statistics_median_interval(const double *values, size_t count, double confidence) {
  double *sorted = sorted_copy(values, count);
  if (!sorted) return (interval){NAN, NAN, NAN};
  const size_t beyond = values_beyond(count, confidence);
  const interval median = {median_of_sorted(sorted, count), sorted[beyond], sorted[count - 1 - beyond]};
  free(sorted);
  return median;
}

/* The continued fraction of the incomplete beta function, by Lentz's method; it converges fast for
 * x < (a + 1) / (a + b + 2). NIST Digital Library of Mathematical Functions, 8.17.22. */
static double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < tiny ? tiny : d);
  double fraction = d;
  for (int n = 1; n < 1000; n++) {
    const double m = n;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double step = 1;
    for (int half = 0; half < 2; half++) {
      const double term = half ? odd : even;
      d = 1 + term * d;
      c = 1 + term / c;
      d = 1 / (fabs(d) < tiny ? tiny : d);
      c = fabs(c) < tiny ? tiny : c;
      step = c * d;
      fraction *= step;
    }
    if (fabs(step - 1) < 1e-15) break;
  }
  return fraction;
}

/* The regularised incomplete beta function I_x(a, b); y is 1 - x, which the caller may know better. */
static double regularised_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

/* P(T > t) for t >= 0: half of I_x(nu/2, 1/2) at x = nu / (nu + t^2). DLMF 8.17 and Abramowitz and
 * Stegun 26.7.1. */
static double t_upper_tail(double t, double degrees_of_freedom) {
  const double squares = degrees_of_freedom + t * t;
  return 0.5 * regularised_beta(0.5 * degrees_of_freedom, 0.5, degrees_of_freedom / squares, t * t / squares);
}

/* The tail falls steadily in t, so that bisection finds it to the last bits and cannot go astray. */
double statistics_t_quantile(double p, double degrees_of_freedom) {
  if (!(p >= 0 && p <= 1) || !(degrees_of_freedom > 0)) return NAN;
  if (p == 0.5) return 0;
  if (p < 0.5) return -statistics_t_quantile(1 - p, degrees_of_freedom);
  if (p == 1) return INFINITY;
  double low = 0, high = 1;
  while (t_upper_tail(high, degrees_of_freedom) > 1 - p && high < 1e150) high *= 2;
  for (int n = 0; n < 200; n++) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    if (t_upper_tail(middle, degrees_of_freedom) > 1 - p)
      low = middle;
    else
      high = middle;
  }
  return 0.5 * (low + high);
}

static interval around(double estimate, double half_width) {
  return (interval){estimate, estimate - half_width, estimate + half_width};
}

interval statistics_mean_interval(const double *values, size_t count, double confidence) {
  const double mean = statistics_mean(values, count);
  if (count < 2) return around(mean, INFINITY);
  const double n = (double)count;
  return around(mean, statistics_t_quantile(0.5 + 0.5 * confidence, n - 1) *
                          statistics_stddev(values, count) / sqrt(n));
}

/* Montgomery, Peck and Vining, Introduction to Linear Regression Analysis, sections 2.2 and 2.4.1. */
interval statistics_slope(const double *x, const double *y, size_t count, double confidence,
                          double *intercept) {
  const double x_mean = statistics_mean(x, count), y_mean = statistics_mean(y, count), n = (double)count;
  double xx = 0, xy = 0;
  for (size_t i = 0; i < count; i++) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
  }
  const double slope = xx > 0 ? xy / xx : NAN;
  if (intercept) *intercept = y_mean - slope * x_mean;
  if (count < 3) return around(slope, INFINITY);
  double residuals = 0;
  for (size_t i = 0; i < count; i++) {
    const double residual = y[i] - y_mean - slope * (x[i] - x_mean);
    residuals += residual * residual;
  }
  return around(slope, statistics_t_quantile(0.5 + 0.5 * confidence, n - 2) * sqrt(residuals / (n - 2) / xx));
}
