/* Tests that look at ranks only, so that no outlier and no shape of the noise matters: signed-rank and
 * U test, and Holm's correction for many of them. Distributions are the exact ones given the ranks
 * that were met, ties included, built by adding one value after the other. Ranks are kept doubled, so
 * that the mean of tied ranks is whole. Hollander, Wolfe and Chicken, Nonparametric Statistical
 * Methods, 3rd edition, sections 3.1 and 4.1. */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_EXACT = 100 };

typedef struct ranked {
  double value;
  bool marked;  /* above the shift, or of the left sample */
  size_t twice; /* the rank, doubled */
} ranked;

static int by_value(const void *left, const void *right) {
  const double a = ((const ranked *)left)->value, b = ((const ranked *)right)->value;
  return (a > b) - (a < b);
}

/* Sorts, gives each value its rank, and returns the sum of t^3 - t over groups of t equal values. */
static double rank(ranked *items, size_t count) {
  double ties = 0;
  qsort(items, count, sizeof *items, by_value);
  for (size_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && items[end].value == items[first].value;) end++;
    for (size_t n = first; n < end; n++) items[n].twice = first + 1 + end;
    const double tied = (double)(end - first);
    ties += tied * tied * tied - tied;
  }
  return ties;
}

static size_t marked_sum(const ranked *items, size_t count) {
  size_t sum = 0;
  for (size_t n = 0; n < count; n++) sum += items[n].marked ? items[n].twice : 0;
  return sum;
}

/* ---- signed ranks ---- */

/* P(sum of the ranks whose signs, fair coins all, are positive >= sum). */
static double upper_tail_of_signs(const ranked *items, size_t count, size_t sum) {
  size_t total = 0;
  double *probability = calloc(count * (count + 1) + 1, sizeof *probability);
  if (!probability) return NAN;
  probability[0] = 1;
  for (size_t n = 0; n < count; n++) {
    const size_t step = items[n].twice;
    total += step;
    for (size_t at = total + 1; at-- > 0;)
      probability[at] = 0.5 * (probability[at] + (at >= step ? probability[at - step] : 0));
  }
  double tail = 0; /* smallest terms first */
  for (size_t at = total + 1; at-- > sum;) tail += probability[at];
  free(probability);
  return fmin(tail, 1);
}

double statistics_signed_rank(const double *values, size_t count, double shift) {
  ranked *items = calloc(count + 1, sizeof *items);
  if (!items) return NAN;
  size_t kept = 0;
  for (size_t n = 0; n < count; n++)
    if (values[n] != shift)
      items[kept++] = (ranked){.value = fabs(values[n] - shift), .marked = values[n] > shift};
  rank(items, kept);
  const double tail = upper_tail_of_signs(items, kept, marked_sum(items, kept));
  free(items);
  return tail;
}

/* How many of the sorted means may be dropped at either end so that the rest still spans the centre with the
 * confidence: the centre lies below the k-th smallest when fewer than k means do, which is the chance of a
 * rank sum below k, or, the same by symmetry, of one above all ranks less k. */
static size_t means_beyond(size_t count, double confidence) {
  ranked *untied = calloc(count, sizeof *untied);
  if (!untied) return 0;
  for (size_t n = 0; n < count; n++) untied[n].twice = 2 * (n + 1);
  const size_t all = count * (count + 1);
  size_t beyond = 0;
  while (2 * (beyond + 1) <= all / 2 &&
         upper_tail_of_signs(untied, count, all - 2 * (beyond + 1)) <= 0.5 * (1 - confidence))
    beyond++;
  free(untied);
  return beyond;
}

static int by_size(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

interval statistics_centre_interval(const double *values, size_t count, double confidence) {
  const size_t pairs = count * (count + 1) / 2;
  double *means = calloc(pairs + 1, sizeof *means);
  interval centre = {NAN, NAN, NAN};
  if (!means || count == 0) return free(means), centre;
  size_t made = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t j = i; j < count; j++) means[made++] = 0.5 * (values[i] + values[j]);
  qsort(means, pairs, sizeof *means, by_size);
  const size_t beyond = means_beyond(count, confidence);
  centre =
      (interval){0.5 * (means[(pairs - 1) / 2] + means[pairs / 2]), means[beyond], means[pairs - 1 - beyond]};
  free(means);
  return centre;
}

/* ---- two samples ---- */

/* Twice the smaller of P(rank sum of `chosen` values drawn of all <= sum) and P(>= sum). ways[k][s] counts
 * the subsets of k values with the doubled rank sum s; up to C(100, 50) = 1e29 of them, of which a double
 * keeps sixteen digits. */
static double both_tails_of_draws(const ranked *items, size_t count, size_t chosen, size_t sum) {
  const size_t sums = count * (count + 1) + 1;
  double *ways = calloc((chosen + 1) * sums, sizeof *ways);
  if (!ways) return NAN;
  ways[0] = 1;
  for (size_t n = 0; n < count; n++)
    for (size_t k = n + 1 < chosen ? n + 1 : chosen; k > 0; k--)
      for (size_t at = items[n].twice; at < sums; at++)
        ways[k * sums + at] += ways[(k - 1) * sums + at - items[n].twice];
  double below = 0, above = 0, all = 0;
  for (size_t at = 0; at < sums; at++) {
    const double here = ways[chosen * sums + at];
    all += here;
    if (at <= sum) below += here;
    if (at >= sum) above += here;
  }
  free(ways);
  return fmin(1, 2 * fmin(below, above) / all);
}

/* With the variance lowered by the ties, and a continuity correction. */
static double both_tails_of_normal(double u, double left, double right, double ties) {
  const double all = left + right;
  const double variance = left * right / 12 * (all + 1 - ties / (all * (all - 1)));
  const double distance = fabs(u - 0.5 * left * right) - 0.5;
  if (!(variance > 0) || distance < 0) return 1;
  return erfc(distance / sqrt(2 * variance));
}

double statistics_rank_sum(const double *left, size_t left_count, const double *right, size_t right_count) {
  const size_t count = left_count + right_count;
  if (left_count == 0 || right_count == 0) return 1;
  ranked *items = calloc(count, sizeof *items);
  if (!items) return NAN;
  for (size_t n = 0; n < count; n++)
    items[n] = (ranked){.value = n < left_count ? left[n] : right[n - left_count], .marked = n < left_count};
  const double ties = rank(items, count);
  const size_t sum = marked_sum(items, count);
  const double m = (double)left_count, u = 0.5 * (double)sum - 0.5 * m * (m + 1);
  const double tails = count <= MOST_EXACT ? both_tails_of_draws(items, count, left_count, sum)
                                           : both_tails_of_normal(u, m, (double)right_count, ties);
  free(items);
  return tails;
}

/* ---- many hypotheses ---- */

/* Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6
 * (1979): the k-th smallest of n counts n - k + 1 times, and never less than those before it. */
bool statistics_holm(const double *p, size_t count, double *adjusted) {
  ranked *items = calloc(count + 1, sizeof *items);
  if (!items) return false;
  for (size_t n = 0; n < count; n++) items[n] = (ranked){.value = p[n], .twice = n};
  qsort(items, count, sizeof *items, by_value);
  double largest = 0;
  for (size_t n = 0; n < count; n++) {
    largest = fmin(1, fmax(largest, (double)(count - n) * items[n].value));
    adjusted[items[n].twice] = largest;
  }
  free(items);
  return true;
}
