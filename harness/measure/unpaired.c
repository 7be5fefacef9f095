/* See unpaired.h. B. L. Welch, The generalization of "Student's" problem when several different population variances
 * are involved, Biometrika 34 (1947); G. Y. Zou and A. Donner, Construction of confidence limits about effect
 * measures, Statistics in Medicine 27 (2008), for the interval of a difference from those of its two sides. */
#include "unpaired.h"

#include <math.h>

typedef struct moments {
  double mean, variance; /* of the logarithms; the variance is that of their mean */
  double degrees;
} moments;

static moments moments_of(const result *result) {
  const double count = (double)result->repetitions;
  double sum = 0, squares = 0;
  for (size_t n = 0; n < result->repetitions; n++) sum += log(result->seconds[n]);
  const double mean = sum / count;
  for (size_t n = 0; n < result->repetitions; n++) squares += pow(log(result->seconds[n]) - mean, 2);
  return (moments){mean, squares / (count - 1) / count, count - 1};
}

static interval welch(const result *one, const result *other, double confidence) {
  const moments a = moments_of(one), b = moments_of(other);
  const double lag = a.mean - b.mean, variance = a.variance + b.variance;
  if (!(variance > 0)) return (interval){lag, lag, lag};
  const double degrees =
      variance * variance / (a.variance * a.variance / a.degrees + b.variance * b.variance / b.degrees);
  const double half = statistics_t_quantile((1 + confidence) / 2, degrees) * sqrt(variance);
  return (interval){lag, lag - half, lag + half};
}

static bool is_known(interval median) {
  return median.low > 0 && median.high > median.low && isfinite(median.high);
}

interval unpaired_lag(const result *one, const result *other) {
  const interval a = one->seconds_median, b = other->seconds_median;
  const double lag = log(a.estimate / b.estimate);
  if (!is_known(a) || !is_known(b)) return (interval){lag, -INFINITY, INFINITY};
  const double below = hypot(log(a.estimate / a.low), log(b.high / b.estimate));
  const double above = hypot(log(a.high / a.estimate), log(b.estimate / b.low));
  return (interval){lag, lag - below, lag + above};
}

lead unpaired_lead(const result *one, const result *other, size_t questions) {
  if (one->repetitions < 2 || other->repetitions < 2) return LEAD_UNDECIDED;
  const interval medians = unpaired_lag(one, other), means = welch(one, other, 1 - 0.05 / (double)questions);
  if (means.high < 0 && medians.high < 0) return LEAD_AHEAD;
  return means.low > 0 && medians.low > 0 ? LEAD_BEHIND : LEAD_UNDECIDED;
}
