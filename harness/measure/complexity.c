/* The exponent of T. Cost is a T^p in the end, but at short lengths a constant overhead (starting
 * threads, dispatch) hides the work, and where the data outgrow a cache the slope bends. Two rules pick
 * what is fitted:
 *   - the top three octaves, x >= x_max / 8, of what was measured;
 *   - of these, only points where overhead is less than a twentieth of the time, where the overhead is what
 *     the two shortest lengths have in common if time is overhead + a T^declared.
 * Each pass over all lengths gives a slope of its own. Two things make their mean uncertain, and as they
 * have nothing to do with each other, their intervals add as squares: what varies from pass to pass
 * (Student's interval over the slopes), and what bends the curve in all passes alike, a cache or what is left
 * of the overhead (the interval of the line through the mean logarithms). The test of this file draws
 * curves with both and counts how often the interval holds the truth. */
#include "complexity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_POINTS = 3 };

static const double octaves_span = 8, overhead_share = 0.05, confidence = 0.95;

/* One slope for each block, and its line's value at x = 1; the arrays are the caller's. */
static void fit_blocks(const double *log_x, const double *y, size_t first, size_t points, size_t blocks,
                       double *log_y, double *slopes, double *intercepts) {
  const size_t count = points - first;
  for (size_t block = 0; block < blocks; block++) {
    for (size_t n = 0; n < count; n++) log_y[n] = log(y[block * points + first + n]);
    slopes[block] = statistics_slope(log_x + first, log_y, count, confidence, &intercepts[block]).estimate;
  }
}

/* The slope of the mean logarithms, with the interval that their distance from a line gives. */
static interval fit_means(const double *log_x, const double *y, size_t first, size_t points, size_t blocks,
                          double *log_y, double confidence_wanted) {
  const size_t count = points - first;
  for (size_t n = 0; n < count; n++) {
    log_y[n] = 0;
    for (size_t block = 0; block < blocks; block++)
      log_y[n] += log(y[block * points + first + n]) / (double)blocks;
  }
  return statistics_slope(log_x + first, log_y, count, confidence_wanted, NULL);
}

interval complexity_exponent(const double *x, size_t points, const double *y, size_t blocks,
                             double confidence_wanted, double *log_intercept, size_t *first_point,
                             double *varying) {
  interval exponent = {NAN, -INFINITY, INFINITY};
  size_t first = 0;
  while (first < points && x[first] * octaves_span < x[points - 1]) first++;
  if (first_point) *first_point = first;
  if (log_intercept) *log_intercept = NAN;
  double *log_x = calloc(points + 1, sizeof *log_x), *log_y = calloc(points + 1, sizeof *log_y);
  double *slopes = calloc(blocks + 1, sizeof *slopes), *intercepts = calloc(blocks + 1, sizeof *intercepts);
  if (log_x && log_y && slopes && intercepts && points - first >= 2 && blocks > 0) {
    for (size_t n = 0; n < points; n++) log_x[n] = log(x[n]);
    fit_blocks(log_x, y, first, points, blocks, log_y, slopes, intercepts);
    exponent = fit_means(log_x, y, first, points, blocks, log_y, confidence_wanted);
    if (blocks > 1) {
      const interval mean = statistics_mean_interval(slopes, blocks, confidence_wanted);
      const double half = hypot(mean.high - mean.estimate, exponent.high - exponent.estimate);
      exponent = (interval){mean.estimate, mean.estimate - half, mean.estimate + half};
      if (varying) *varying = mean.high - mean.estimate;
    }
    if (log_intercept) *log_intercept = statistics_mean(intercepts, blocks);
  }
  free(log_x);
  free(log_y);
  free(slopes);
  free(intercepts);
  return exponent;
}

/* ---- families ---- */

/* The measured points of a family, by ascending length. */
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
    if (point->family_index == family && point->state == RESULT_MEASURED && point->repetitions > 0 &&
        result_length(point) > 0)
      curve.points[curve.count++] = point;
  }
  if (curve.points) qsort(curve.points, curve.count, sizeof *curve.points, by_length);
  return curve;
}

/* The curve from its top three octaves on. */
static curve top_of(const curve *whole) {
  curve top = *whole;
  while (top.count > 1 && length_of(top.points[0]) * octaves_span < length_of(top.points[top.count - 1])) {
    top.points++;
    top.count--;
  }
  return top;
}

static size_t distinct_lengths(const curve *curve) {
  size_t distinct = curve->count > 0;
  for (size_t n = 1; n < curve->count; n++)
    distinct += result_length(curve->points[n]) != result_length(curve->points[n - 1]);
  return distinct;
}

/* Other load only ever adds to a time, so that the fastest repetition says most of what is always there. */
static double fastest_of(const result *point) {
  double fastest = INFINITY;
  for (size_t n = 0; n < point->repetitions; n++) fastest = fmin(fastest, point->seconds[n]);
  return fastest;
}

/* Seconds that do not grow, from the two shortest lengths; see the top of this file. */
static double overhead_of(const curve *curve, int declared) {
  const result *shortest = curve->points[0], *next = shortest;
  for (size_t n = 1; n < curve->count && next == shortest; n++)
    if (result_length(curve->points[n]) > result_length(shortest)) next = curve->points[n];
  const double growth = pow(length_of(next) / length_of(shortest), declared);
  if (!(growth > 1)) return 0;
  const double overhead = (growth * fastest_of(shortest) - fastest_of(next)) / (growth - 1);
  return overhead > 0 ? overhead : 0;
}

/* The curve from the first point on where the work dominates. */
static curve worked_part(const curve *curve, double overhead) {
  struct curve part = *curve;
  while (part.count > 0 && fastest_of(part.points[0]) * overhead_share < overhead) {
    part.points++;
    part.count--;
  }
  return part;
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

static void fit_time(const curve *curve, growth *growth) {
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
    growth->time = complexity_exponent(x, curve->count, y, blocks, confidence, &growth->time_intercept, NULL,
                                       &growth->time_varying);
    growth->has_time = isfinite(growth->time.estimate);
    growth->blocks = blocks;
    fit_coefficient(curve, growth);
  }
  free(x);
  free(y);
}

/* Bytes are exact and the same in every repetition. A workspace that does not grow has exponent 0,
 * nothing at all included; one that only some lengths need has none. */
static void fit_workspace(const curve *curve, growth *growth) {
  double *x = calloc(curve->count + 1, sizeof *x), *y = calloc(curve->count + 1, sizeof *y);
  bool constant = true, positive = true;
  for (size_t n = 0; x && y && n < curve->count; n++) {
    x[n] = length_of(curve->points[n]);
    y[n] = (double)curve->points[n]->workspace_bytes;
    constant = constant && y[n] == y[0];
    positive = positive && y[n] > 0;
  }
  if (x && y && constant) {
    growth->workspace = (interval){0, 0, 0};
    growth->workspace_intercept = log(y[0]);
    growth->has_workspace = true;
  } else if (x && y && positive) {
    growth->workspace =
        complexity_exponent(x, curve->count, y, 1, confidence, &growth->workspace_intercept, NULL, NULL);
    growth->has_workspace = isfinite(growth->workspace.estimate);
  }
  free(x);
  free(y);
}

static void fit_family(const curve *measured, growth *growth) {
  curve top = top_of(measured);
  curve worked = worked_part(&top, overhead_of(measured, growth->time_declared));
  if (distinct_lengths(&worked) >= LEAST_POINTS) {
    fit_time(&worked, growth);
    top = worked; /* both exponents are of one range */
  }
  if (distinct_lengths(&top) >= LEAST_POINTS) fit_workspace(&top, growth);
  growth->from_length = length_of(top.points[0]);
  growth->to_length = length_of(top.points[top.count - 1]);
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
      declared(growth->variant, &growth->time_declared, &growth->workspace_declared, context);
      fit_family(&measured, growth);
    }
    free(measured.points);
  }
}
