/* See paired.h. */
#include "paired.h"

#include <math.h>
#include <stdlib.h>

interval paired_lag(const result *one, const result *other, double confidence) {
  interval lag = {NAN, -INFINITY, INFINITY};
  const size_t passes = one->repetitions < other->repetitions ? one->repetitions : other->repetitions;
  double *ratios = calloc(passes + 1, sizeof *ratios);
  if (!ratios || passes == 0) {
    free(ratios);
    return lag;
  }
  for (size_t n = 0; n < passes; n++) ratios[n] = log(one->seconds[n] / other->seconds[n]);
  lag = statistics_mean_interval(ratios, passes, confidence);
  free(ratios);
  return lag;
}

lead paired_lead(const result *one, const result *other, size_t questions) {
  const interval lag = paired_lag(one, other, 1 - 0.05 / (double)questions);
  return lag.high < 0 ? LEAD_AHEAD : lag.low > 0 ? LEAD_BEHIND : LEAD_UNDECIDED;
}

static void swap(const result **rivals, size_t one, size_t other) {
  const result *swapped = rivals[one];
  rivals[one] = rivals[other];
  rivals[other] = swapped;
}

size_t paired_fastest(const result **rivals, size_t count) {
  size_t tied = 1;
  if (count == 0) return 0;
  for (size_t n = 1; n < count; n++)
    if (rivals[n]->seconds_median.estimate < rivals[0]->seconds_median.estimate) swap(rivals, 0, n);
  for (size_t n = 1; n < count; n++)
    if (paired_lead(rivals[0], rivals[n], count * (count - 1) / 2) != LEAD_AHEAD) swap(rivals, tied++, n);
  return tied;
}
