/* How somebody's own kernels compare with the fastest variant that was measured on the same points: what their author
 * wants to know in the end. */
#include "ratios.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "measure/paired.h"

/* Points of a kernel, and beside each the same point of another variant. */
typedef struct pairing {
  const result **own, **other; /* [count] */
  size_t count;
  double mean; /* of the logarithms of the other's medians */
} pairing;

static const result *find(const report *report, const char *variant, const char *problem) {
  for (size_t n = 0; n < report->result_count; n++) {
    const result *result = &report->results[n];
    if (result_is_measured(result) && strcmp(result->variant, variant) == 0 &&
        strcmp(result_problem(result->name), problem) == 0)
      return result;
  }
  return NULL;
}

static bool is_of_family(const result *result, int family) {
  return result->family_index == family && result_is_measured(result);
}

/* Pairs the points of a family with those of a variant that was measured on the same. */
static void pair_with(const report *report, int family, const char *variant, pairing *found) {
  found->count = 0;
  found->mean = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    const result *own = &report->results[n];
    if (!is_of_family(own, family)) continue;
    const result *other = find(report, variant, result_problem(own->name));
    if (!other) continue;
    found->own[found->count] = own;
    found->other[found->count++] = other;
    found->mean += log(other->seconds_median.estimate);
  }
  if (found->count > 0) found->mean /= (double)found->count;
}

static bool make(const report *report, pairing *pairing) {
  pairing->own = calloc(report->result_count + 1, sizeof(result *));
  pairing->other = calloc(report->result_count + 1, sizeof(result *));
  return pairing->own && pairing->other;
}

static void destroy(pairing *pairing) {
  free(pairing->own);
  free(pairing->other);
}

/* The variant that solves most of the points, and of those the fastest. */
static void find_fastest(const report *report, const result *first, pairing *best, pairing *tried) {
  best->count = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    const result *other = &report->results[n];
    if (!result_is_measured(other) || strcmp(other->variant, first->variant) == 0) continue;
    pair_with(report, first->family_index, other->variant, tried);
    if (tried->count < best->count || tried->count == 0) continue;
    if (tried->count == best->count && tried->mean >= best->mean) continue;
    const pairing was = *best;
    *best = *tried;
    *tried = was;
  }
}

/* The mean of the points' ratios, each from the passes that both variants were in. */
static interval mean_lag(const pairing *of, double confidence) {
  double sum = 0, squares = 0;
  for (size_t n = 0; n < of->count; n++) {
    const interval lag = paired_lag(of->own[n], of->other[n], confidence);
    const double half = format_half_width(lag);
    sum += lag.estimate;
    squares += half * half;
  }
  const double mean = sum / (double)of->count, half = sqrt(squares) / (double)of->count;
  return (interval){mean, mean - half, mean + half};
}

static void print_ratio(interval lag, FILE *out) {
  char text[FORMAT_RATIO_BYTES];
  format_ratio(text, lag);
  fputs(text, out);
}

static void print_pairing(const pairing *of, FILE *out) {
  const double confidence = 0.95;
  const result *first = of->own[0], *last = of->own[of->count - 1];
  const long long shortest = (long long)result_length(first), longest = (long long)result_length(last);
  fprintf(out, "%s takes ", first->variant);
  print_ratio(mean_lag(of, confidence), out);
  fprintf(out, " times as long as %s, the fastest other variant on the same %s (%s", of->other[0]->variant,
          of->count > 1 ? "points" : "point", result_problem(of->count > 1 ? first->family : first->name));
  if (of->count == 1) {
    fputs(")\n", out);
    return;
  }
  fprintf(out, ", mean of %zu): ", of->count);
  print_ratio(paired_lag(first, of->other[0], confidence), out);
  fprintf(out, " at %s = %lld, ", sweep_axis_name(first->swept), shortest);
  print_ratio(paired_lag(last, of->other[of->count - 1], confidence), out);
  fprintf(out, " at %s = %lld\n", sweep_axis_name(first->swept), longest);
}

static const result *first_own_of(const report *report, int family) {
  for (size_t n = 0; n < report->result_count; n++)
    if (is_of_family(&report->results[n], family) && report->results[n].from_plugin)
      return &report->results[n];
  return NULL;
}

void report_ratios(const report *report, FILE *out) {
  pairing best = {0}, tried = {0};
  const bool made = make(report, &best) && make(report, &tried);
  for (int family = 0; made && family < report_family_count(report); family++) {
    const result *first = first_own_of(report, family);
    if (!first) continue;
    find_fastest(report, first, &best, &tried);
    if (best.count > 0)
      print_pairing(&best, out);
    else
      fprintf(
          out,
          "%s has no ratio: no other variant was measured on %s; name one beside it: --variant %s,fused\n",
          first->variant, result_problem(first->family), first->variant);
  }
  destroy(&best);
  destroy(&tried);
}
