/* The fitted exponent on synthetic data whose exponent is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/complexity.h"
#include "base/random.h"

enum { LENGTHS = 7, REPETITIONS = 9, MOST_REPETITIONS = 15 };

/* A multiple of the deviation, from the sum of twelve uniforms. */
static double noise(uint64_t *place) {
  double sum = -6;
  for (int n = 0; n < 12; n++) sum += (double)(random_bits(20261121, (*place)++) >> 11) * 0x1p-53;
  return sum;
}

static void intervals_cover_known_exponents_as_often_as_they_say(void **state) {
  (void)state;
  enum { DRAWS = 2000 };
  uint64_t place = 0;
  for (int exponent = 1; exponent <= 2; exponent++)
    for (size_t blocks = 1; blocks <= REPETITIONS; blocks += 4) {
      int covered = 0;
      for (int draw = 0; draw < DRAWS; draw++) {
        double x[LENGTHS], y[REPETITIONS * LENGTHS];
        for (size_t n = 0; n < LENGTHS; n++) x[n] = 128 << n;
        for (size_t n = 0; n < blocks * LENGTHS; n++)
          y[n] = 3e-9 * pow(x[n % LENGTHS], exponent) * exp(0.05 * noise(&place));
        interval fitted = complexity_exponent(x, LENGTHS, y, blocks, 0.95, NULL, NULL, NULL);
        covered += fitted.low <= exponent && exponent <= fitted.high;
      }
      if (covered < 0.94 * DRAWS)
        fail_msg("exponent %d, %zu blocks: %d of %d intervals hold it", exponent, blocks, covered, DRAWS);
    }
}

static void only_the_top_three_octaves_are_fitted(void **state) {
  (void)state;
  const double x[] = {128, 256, 512, 1024, 2048, 4096};
  double y[6], intercept;
  for (size_t n = 0; n < 6; n++) y[n] = n < 2 ? 1e6 : 5 * x[n] * x[n];
  size_t first;
  interval fitted = complexity_exponent(x, 6, y, 1, 0.95, &intercept, &first, NULL);
  assert_int_equal(first, 2);
  assert_true(fabs(fitted.estimate - 2) < 1e-9 && fabs(fitted.high - 2) < 1e-6);
  assert_true(fabs(intercept - log(5)) < 1e-8);
}

/* ---- whole reports ---- */

static void declare(const char *variant, int *time_exponent, int *workspace_exponent, void *context) {
  (void)context;
  *time_exponent = strcmp(variant, "square") == 0 ? 2 : 1;
  *workspace_exponent = 1;
}

static void append_family(report *report, int index, const char *variant, size_t lengths) {
  for (size_t n = 0; n < lengths; n++) {
    result *result = &report->results[report->result_count++];
    snprintf(result->family, sizeof result->family, "%s/full/B:1/H:4/Hkv:4/D:64", variant);
    snprintf(result->variant, sizeof result->variant, "%s", variant);
    result->workload = workload_default();
    result->workload.query_length = result->workload.key_length = 128 << n;
    result->family_index = index;
    result->repetitions = REPETITIONS;
    result->seconds = calloc(MOST_REPETITIONS, sizeof *result->seconds);
    assert_non_null(result->seconds);
  }
}

/* Times overhead + work T^exponent, with a little noise. */
static void fill_times(report *report, int family, double overhead, double work, double exponent) {
  uint64_t place = 77;
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    if (result->family_index != family) continue;
    const double seconds = overhead + work * pow((double)result->workload.key_length, exponent);
    for (size_t i = 0; i < REPETITIONS; i++) result->seconds[i] = seconds * exp(0.005 * noise(&place));
    result->seconds_median = statistics_median_interval(result->seconds, REPETITIONS, 0.95);
  }
}

static int make_report(void **state) {
  report *report = calloc(1, sizeof *report);
  *state = report;
  return report && (report->results = calloc(32, sizeof *report->results)) ? 0 : -1;
}

static int remove_report(void **state) {
  report_destroy(*state);
  free(*state);
  return 0;
}

static void each_family_gets_its_growth(void **state) {
  report *report = *state;
  append_family(report, 0, "square", LENGTHS);
  append_family(report, 1, "line", 10);
  fill_times(report, 0, 0, 1e-9, 2);
  fill_times(report, 1, 0, 1e-7, 1);
  for (size_t n = 0; n < report->result_count; n++)
    report->results[n].workspace_bytes = n < LENGTHS ? 0 : 4 * (size_t)report->results[n].workload.key_length;
  complexity_fit(report, declare, NULL);
  assert_int_equal(report->growth_count, 2);
  const growth *square = &report->growths[0], *line = &report->growths[1];
  assert_string_equal(square->variant, "square");
  assert_true(square->has_time && fabs(square->time.estimate - 2) < 0.02);
  assert_true(square->from_length == 1024 && square->to_length == 8192);
  assert_true(fabs(square->time_coefficient / 1e-9 - 1) < 0.01 && square->time_rms < 0.01);
  assert_true(square->has_workspace && square->workspace.low == 0 && square->workspace.high == 0);
  assert_true(line->has_time && fabs(line->time.estimate - 1) < 0.02);
  assert_true(line->has_workspace && fabs(line->workspace.estimate - 1) < 1e-9);
}

/* One draw of what spoils the times of a sweep. */
typedef struct spoilt {
  double overhead;                  /* seconds */
  double step, step_at, step_width; /* a cache that costs this share more from this place on, in octaves */
  double drift, drift_keeps;        /* a speed that wanders from repetition to repetition */
} spoilt;

static double uniform(uint64_t *place, double most) {
  return most * (double)(random_bits(20261121, (*place)++) >> 11) * 0x1p-53;
}

/* Up to ten times the work of the shortest length, a fifth more beyond a cache, 3 % of drift. */
static spoilt draw_spoilt(double shortest_seconds, double octaves, uint64_t *place) {
  static const double overheads[] = {0, 1, 10};
  spoilt spoilt = {.drift = 0.03};
  spoilt.overhead = shortest_seconds * uniform(place, 1) * overheads[(int)uniform(place, 3)];
  spoilt.step = uniform(place, 0.2);
  spoilt.step_at = uniform(place, octaves);
  spoilt.step_width = 0.05 + uniform(place, 1);
  spoilt.drift_keeps = exp(-1 / (2 + uniform(place, 98)));
  return spoilt;
}

/* Fills the times in passes over all lengths in random order, as a run measures them, with 2.5 % of noise and
 * now and then an outlier of some 15 or 80 %. */
static void fill_spoilt_times(report *report, double exponent, size_t repetitions, uint64_t *place) {
  const size_t lengths = report->result_count;
  const double shortest = pow(128, exponent);
  const spoilt spoilt = draw_spoilt(shortest, (double)lengths - 1, place);
  double speed = spoilt.drift * noise(place);
  for (size_t pass = 0; pass < repetitions; pass++) {
    size_t order[16];
    for (size_t n = 0; n < lengths; n++) order[n] = n;
    for (size_t n = lengths; n-- > 0;) {
      const size_t other = (size_t)uniform(place, (double)n + 1), chosen = order[other];
      order[other] = order[n];
      const double beyond = ((double)chosen - spoilt.step_at) / spoilt.step_width;
      const double work = pow(128 << chosen, exponent) * (1 + spoilt.step / (1 + exp(-2 * beyond)));
      const double changes = sqrt(1 - spoilt.drift_keeps * spoilt.drift_keeps) * spoilt.drift;
      speed = spoilt.drift_keeps * speed + changes * noise(place);
      double seconds = (spoilt.overhead + work) * exp(speed + 0.025 * noise(place));
      if (uniform(place, 1) < 0.03)
        seconds *= 1 - log(1 - uniform(place, 1)) * (uniform(place, 1) < 0.5 ? 0.15 : 0.8);
      report->results[chosen].seconds[pass] = seconds;
    }
  }
  for (size_t n = 0; n < lengths; n++) {
    result *result = &report->results[n];
    result->repetitions = repetitions;
    result->seconds_median = statistics_median_interval(result->seconds, repetitions, 0.95);
  }
}

/* The interval must hold the truth, and be narrow enough to tell growths apart; ATTN_TEST_FULL draws more
 * and says the figures. */
static void draw_and_count(report *report, int exponent, size_t repetitions) {
  const bool full = getenv("ATTN_TEST_FULL") != NULL;
  const int draws = full ? 20000 : 1500;
  uint64_t place = 0;
  int fitted = 0, covered = 0, narrow = 0;
  for (int draw = 0; draw < draws; draw++) {
    fill_spoilt_times(report, exponent, repetitions, &place);
    complexity_fit(report, declare, NULL);
    const growth *growth = &report->growths[0];
    if (growth->has_time) {
      fitted++;
      covered += growth->time.low <= exponent && exponent <= growth->time.high;
      narrow += growth->time.high - growth->time.low < 2 * 0.25;
    }
    free(report->growths);
    report->growths = NULL;
  }
  if (full)
    print_message("T^%d, %zu passes: %d of %d draws have a fit, %.1f%% of the intervals hold the truth, "
                  "%.1f%% are narrower than +-0.25\n",
                  exponent, repetitions, fitted, draws, 100.0 * covered / fitted, 100.0 * narrow / fitted);
  if (covered < 0.93 * fitted || fitted < 0.8 * draws || narrow < 0.75 * fitted)
    fail_msg("T^%d, %zu passes: %d of %d draws have a fit, %d intervals hold the truth, %d are narrow",
             exponent, repetitions, fitted, draws, covered, narrow);
}

static void intervals_hold_the_truth_under_overhead_caches_drift_and_outliers(void **state) {
  report *report = *state;
  append_family(report, 0, "square", LENGTHS);
  draw_and_count(report, 2, 6);
  draw_and_count(report, 2, 15);
  for (size_t n = 0; n < report->result_count; n++) free(report->results[n].seconds);
  report->result_count = 0;
  append_family(report, 0, "line", 10);
  draw_and_count(report, 1, 6);
  draw_and_count(report, 1, 15);
}

static void points_that_overhead_dominates_are_left_out(void **state) {
  report *report = *state;
  append_family(report, 0, "line", 10);
  fill_times(report, 0, 5e-4, 1e-6, 1); /* as long as the work of T = 500; a twentieth of T = 10000 */
  complexity_fit(report, declare, NULL);
  assert_int_equal(report->growth_count, 1);
  assert_true(report->growths[0].has_time);
  assert_true(report->growths[0].from_length == 16384);
  assert_true(fabs(report->growths[0].time.estimate - 1) < 0.06);
}

static void overhead_alone_has_no_exponent(void **state) {
  report *report = *state;
  append_family(report, 0, "line", LENGTHS);
  fill_times(report, 0, 1e-3, 1e-9, 1);
  complexity_fit(report, declare, NULL);
  assert_int_equal(report->growth_count, 1);
  assert_false(report->growths[0].has_time);
  assert_true(report->growths[0].has_workspace);
}

static void two_lengths_are_too_few(void **state) {
  report *report = *state;
  append_family(report, 0, "line", 4);
  fill_times(report, 0, 0, 1e-7, 1);
  report->results[1].state = RESULT_SKIPPED;
  report->results[3].state = RESULT_FAILED;
  complexity_fit(report, declare, NULL);
  assert_int_equal(report->growth_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(intervals_cover_known_exponents_as_often_as_they_say),
      cmocka_unit_test(only_the_top_three_octaves_are_fitted),
      cmocka_unit_test_setup_teardown(each_family_gets_its_growth, make_report, remove_report),
      cmocka_unit_test_setup_teardown(intervals_hold_the_truth_under_overhead_caches_drift_and_outliers,
                                      make_report, remove_report),
      cmocka_unit_test_setup_teardown(points_that_overhead_dominates_are_left_out, make_report,
                                      remove_report),
      cmocka_unit_test_setup_teardown(overhead_alone_has_no_exponent, make_report, remove_report),
      cmocka_unit_test_setup_teardown(two_lengths_are_too_few, make_report, remove_report),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
