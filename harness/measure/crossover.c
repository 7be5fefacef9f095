/* See crossover.h. In each pass the two were timed near each other, so that the ratio of their times is what
 * the passes tell: at each length its mean logarithm with Student's interval. Between lengths mean
 * and both ends are taken to be straight in log T, as they are for powers of T. The crossover is where the
 * mean passes 0; its interval ends where the ends of the ratio's do: outside of it, one of the two is
 * surely ahead. Nothing is extended beyond the lengths that were measured. */
#include "crossover.h"

#include <math.h>
#include <stdlib.h>

/* One length: how far the challenger is behind, as log(its time / the champion's). */
typedef struct lag {
  int64_t length;
  interval lag;
} lag;

static const result *find(const report *report, int family, int64_t length) {
  for (size_t n = 0; n < report->result_count; n++) {
    const result *result = &report->results[n];
    if (result->family_index == family && result_length(result) == length &&
        result->state == RESULT_MEASURED && result->repetitions > 0)
      return result;
  }
  return NULL;
}

static bool measure_lag(const result *challenger, const result *champion, interval *lag) {
  const size_t passes =
      challenger->repetitions < champion->repetitions ? challenger->repetitions : champion->repetitions;
  double *ratios = calloc(passes, sizeof *ratios);
  if (!ratios) return false;
  for (size_t n = 0; n < passes; n++) ratios[n] = log(challenger->seconds[n] / champion->seconds[n]);
  *lag = statistics_mean_interval(ratios, passes, 0.95);
  free(ratios);
  return true;
}

static int by_length(const void *left, const void *right) {
  const int64_t a = ((const lag *)left)->length, b = ((const lag *)right)->length;
  return (a > b) - (a < b);
}

/* The lengths at which both were measured, ascending. */
static size_t measure_lags(const report *report, int challenger, int champion, lag *lags) {
  size_t count = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    const result *one = &report->results[n];
    const int64_t length = result_length(one);
    if (one->family_index != challenger || find(report, challenger, length) != one) continue;
    const result *other = find(report, champion, length);
    if (!other || !measure_lag(one, other, &lags[count].lag)) continue;
    lags[count++].length = length;
  }
  qsort(lags, count, sizeof *lags, by_length);
  return count;
}

/* Where the line through two points, of which one lies above 0 and the other does not, passes it. */
static double zero_between(const lag *before, double above, const lag *after, double below) {
  const double octaves = log((double)after->length / (double)before->length);
  if (isinf(above)) return (double)after->length; /* straight down, just before */
  if (isinf(below)) return (double)before->length;
  return (double)before->length * exp(octaves * above / (above - below));
}

static interval locate(const lag *lags, size_t count, size_t behind) {
  const lag *before = &lags[behind], *after = &lags[behind + 1];
  interval at = {zero_between(before, before->lag.estimate, after, after->lag.estimate), -INFINITY, INFINITY};
  for (size_t n = behind + 1; n-- > 0;)
    if (lags[n].lag.low > 0) {
      at.low = zero_between(&lags[n], lags[n].lag.low, &lags[n + 1], lags[n + 1].lag.low);
      break;
    }
  for (size_t n = behind + 1; n < count; n++)
    if (lags[n].lag.high < 0) {
      at.high = zero_between(&lags[n - 1], lags[n - 1].lag.high, &lags[n], lags[n].lag.high);
      break;
    }
  return at;
}

crossover crossover_find(const report *report, int challenger, int champion) {
  crossover found = {.kind = CROSSOVER_UNKNOWN};
  lag *lags = calloc(report->result_count + 1, sizeof *lags);
  const size_t count = lags ? measure_lags(report, challenger, champion, lags) : 0;
  if (count > 0) {
    found.first = lags[0].length;
    found.last = lags[count - 1].length;
  }
  if (count > 1) {
    size_t ahead = count; /* the challenger is ahead from here on */
    while (ahead > 0 && lags[ahead - 1].lag.estimate < 0) ahead--;
    found.kind = ahead == count ? CROSSOVER_NEVER : ahead == 0 ? CROSSOVER_ALWAYS : CROSSOVER_OVERTAKES;
    if (found.kind == CROSSOVER_OVERTAKES) {
      found.behind = lags[ahead - 1].length;
      found.ahead = lags[ahead].length;
      found.at = locate(lags, count, ahead - 1);
    }
  }
  free(lags);
  return found;
}
