/* The fitted exponent on synthetic data whose exponent is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/complexity.h"
#include "../harness/random.h"

enum { LENGTHS = 7, REPETITIONS = 9 };

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
        interval fitted = complexity_exponent(x, LENGTHS, y, blocks, 0.95, NULL, NULL);
        covered += fitted.low <= exponent && exponent <= fitted.high;
      }
      if (covered < 0.93 * DRAWS || covered > 0.97 * DRAWS)
        fail_msg("exponent %d, %zu blocks: %d of %d intervals hold it", exponent, blocks, covered, DRAWS);
    }
}

static void only_the_top_three_octaves_are_fitted(void **state) {
  (void)state;
  const double x[] = {128, 256, 512, 1024, 2048, 4096};
  double y[6], intercept;
  for (size_t n = 0; n < 6; n++) y[n] = n < 2 ? 1e6 : 5 * x[n] * x[n];
  size_t first;
  interval fitted = complexity_exponent(x, 6, y, 1, 0.95, &intercept, &first);
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
    result->seconds = calloc(REPETITIONS, sizeof *result->seconds);
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
  if (!report || !(report->results = calloc(32, sizeof *report->results))) return -1;
  *state = report;
  return 0;
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

static void points_that_overhead_dominates_are_left_out(void **state) {
  report *report = *state;
  append_family(report, 0, "line", 10);
  fill_times(report, 0, 1e-3, 1e-6, 1); /* as long as the work of T = 1000; a tenth of T = 10000 */
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
      cmocka_unit_test_setup_teardown(points_that_overhead_dominates_are_left_out, make_report,
                                      remove_report),
      cmocka_unit_test_setup_teardown(overhead_alone_has_no_exponent, make_report, remove_report),
      cmocka_unit_test_setup_teardown(two_lengths_are_too_few, make_report, remove_report),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
