/* The exponent of the length T that is swept. Cost is c0 + c T^p: at short lengths what does not grow (starting threads,
 * dispatch) hides the work, and where the data outgrow a cache the curve bends. power_law.h fits that to the longest
 * lengths. The speed of a machine wanders, so that each pass over all lengths gives an exponent of its own. */
#include "complexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_POINTS = 3 };

/* The points of a family that were measured, or not to be run, by ascending length. */
typedef struct curve {
  const result **points;
  size_t count;
} curve;

static double length_of(const result *point) { return (double)result_length(point); }

static int by_length(const void *left, const void *right) {
  const double a = length_of(*(const result *const *)left), b = length_of(*(const result *const *)right);
  return (a > b) - (a < b);
}

static curve curve_of(const report *report, int family) {
  curve curve = {calloc(report->result_count + 1, sizeof *curve.points), 0};
  for (size_t n = 0; curve.points && n < report->result_count; n++) {
    const result *point = &report->results[n];
    const bool is_known = point->memory_only || (point->state == RESULT_MEASURED && point->repetitions > 0);
    if (point->family_index == family && is_known && result_length(point) > 0)
      curve.points[curve.count++] = point;
  }
  if (curve.points) qsort(curve.points, curve.count, sizeof *curve.points, by_length);
  return curve;
}

static size_t distinct_lengths(const curve *curve) {
  size_t distinct = curve->count > 0;
  for (size_t n = 1; n < curve->count; n++)
    distinct += result_length(curve->points[n]) != result_length(curve->points[n - 1]);
  return distinct;
}

/* Least squares of seconds on T^declared, and the root mean square of what is left as a share of the mean
 * time: what Google Benchmark reports as BigO and RMS (its complexity.cc, MinimalLeastSq). */
static void fit_coefficient(const curve *curve, growth *growth) {
  double product = 0, square = 0, residual = 0, total = 0;
  for (size_t n = 0; n < curve->count; n++) {
    const double power = pow(length_of(curve->points[n]), growth->time_declared);
    product += power * curve->points[n]->seconds_median.estimate;
    square += power * power;
    total += curve->points[n]->seconds_median.estimate;
  }
  growth->time_coefficient = product / square;
  for (size_t n = 0; n < curve->count; n++) {
    const double expected =
        growth->time_coefficient * pow(length_of(curve->points[n]), growth->time_declared);
    const double difference = curve->points[n]->seconds_median.estimate - expected;
    residual += difference * difference;
  }
  const double points = (double)curve->count;
  growth->time_rms = sqrt(residual / points) / (total / points);
}

/* What grows is too small a part of the time for its growth to be read, though it is seen to be there. */
static bool hides_work(const power_fit *fit, double longest) {
  const double half = fit->exponent.high - fit->exponent.estimate;
  return fit->law.constant > 0.5 * power_law_at(fit->law, longest) && !(half < 0.5);
}

/* Returns what of the curve was fitted. */
static curve fit_time(const curve *curve, growth *growth) {
  struct curve top = *curve;
  size_t blocks = curve->points[0]->repetitions;
  for (size_t n = 1; n < curve->count; n++)
    if (curve->points[n]->repetitions < blocks) blocks = curve->points[n]->repetitions;
  double *x = calloc(curve->count, sizeof *x), *y = calloc(blocks, curve->count * sizeof *y);
  if (x && y) {
    for (size_t n = 0; n < curve->count; n++) {
      x[n] = length_of(curve->points[n]);
      for (size_t block = 0; block < blocks; block++)
        y[block * curve->count + n] = curve->points[n]->seconds[block];
    }
    const power_fit fit = power_law_fit(x, curve->count, y, blocks);
    growth->time = fit.exponent;
    growth->time_law = fit.law;
    growth->time_varying = fit.varying;
    growth->is_hidden = hides_work(&fit, x[curve->count - 1]);
    growth->has_time = isfinite(fit.exponent.estimate) && !growth->is_hidden;
    growth->blocks = blocks;
    top = (struct curve){curve->points + fit.first, curve->count - fit.first};
    fit_coefficient(&top, growth);
  }
  free(x);
  free(y);
  return top;
}

/* Bytes are exact and the same in every repetition: a polynomial of T is known by its degree, and what is none has the
 * exponent of a power, as far as it follows one. Nothing at all is a constant; what only some lengths need has none. */
static void fit_workspace(const curve *curve, growth *growth) {
  double *x = calloc(curve->count + 1, sizeof *x), *y = calloc(curve->count + 1, sizeof *y);
  bool nothing = true, positive = true;
  for (size_t n = 0; x && y && n < curve->count; n++) {
    x[n] = length_of(curve->points[n]);
    y[n] = (double)curve->points[n]->workspace_bytes;
    nothing = nothing && y[n] == 0;
    positive = positive && y[n] > 0;
  }
  if (x && y && (nothing || positive)) {
    const int degree = nothing ? 0 : power_law_degree(x, y, curve->count);
    growth->workspace =
        degree >= 0 ? (interval){degree, degree, degree} : power_law_fit(x, curve->count, y, 1).exponent;
    growth->has_workspace = isfinite(growth->workspace.estimate);
  }
  free(x);
  free(y);
}

static void fit_family(const curve *measured, growth *growth) {
  growth->memory_only = measured->points[0]->memory_only;
  const curve top = growth->memory_only ? *measured : fit_time(measured, growth);
  fit_workspace(measured, growth);
  growth->from_length = length_of(top.points[0]);
  growth->to_length = length_of(top.points[top.count - 1]);
}

int complexity_declared_along(sweep_axis swept, attn_function function, int exponent) {
  if (swept == SWEPT_BOTH) return exponent;
  if (swept == SWEPT_KEYS && function == ATTN_SOFTMAX) return exponent > 1 ? exponent - 1 : 0;
  return exponent > 1 ? 1 : exponent;
}

/* Where longer keys are hidden, as those behind the band of the only query, there is no more to do. */
static bool has_more_to_do(const curve *curve) {
  return curve->points[curve->count - 1]->flops > curve->points[0]->flops;
}

/* How what has to be computed grows. Counted, and the same on every machine: two digits say it. */
static double growth_of_work(const curve *curve) {
  double *x = calloc(curve->count, sizeof *x), *y = calloc(curve->count, sizeof *y);
  double exponent = 0;
  for (size_t n = 0; x && y && n < curve->count; n++) {
    x[n] = length_of(curve->points[n]);
    y[n] = curve->points[n]->flops;
  }
  if (x && y) exponent = power_law_fit(x, curve->count, y, 1).exponent.estimate;
  free(x);
  free(y);
  return isfinite(exponent) ? round(exponent * 10) / 10 : 0;
}

static void declare(growth *growth, int time_exponent, const curve *curve) {
  const attn_function function = curve->points[0]->workload.function;
  growth->swept = curve->points[0]->swept;
  growth->time_declared = complexity_declared_along(growth->swept, function, time_exponent);
  if (growth->swept != SWEPT_BOTH && !has_more_to_do(curve)) growth->time_declared = 0;
  /* A variant declares for queries that see a share of all keys, or a band; a pattern is part of the problem. */
  const bool along_size =
      growth->swept >= SWEPT_BATCH; /* of which variants say nothing: what is counted does */
  if (along_size || result_has_pattern(curve->points[0])) growth->time_declared = growth_of_work(curve);
  /* Of one panel of scores, either length may be that of its rows: nothing is declared. */
  if (growth->swept != SWEPT_BOTH) growth->workspace_declared = GROWTH_UNDECLARED;
}

void complexity_fit(report *report, complexity_declared *declared, void *context) {
  const int families = report_family_count(report);
  report->growths = calloc((size_t)families + 1, sizeof *report->growths);
  report->growth_count = 0;
  for (int family = 0; report->growths && family < families; family++) {
    curve measured = curve_of(report, family);
    if (measured.points && distinct_lengths(&measured) >= LEAST_POINTS) {
      growth *growth = &report->growths[report->growth_count++];
      memcpy(growth->family, measured.points[0]->family, sizeof growth->family);
      memcpy(growth->variant, measured.points[0]->variant, sizeof growth->variant);
      growth->family_index = family;
      int time_exponent = 0;
      declared(growth->variant, &time_exponent, &growth->workspace_declared, context);
      declare(growth, time_exponent, &measured);
      fit_family(&measured, growth);
    }
    free(measured.points);
  }
}
