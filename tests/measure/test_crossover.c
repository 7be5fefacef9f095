/* Crossovers on synthetic sweeps whose crossover is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "measure/crossover.h"
#include "base/random.h"

enum { LENGTHS = 7, RESULTS = 2 * LENGTHS, MOST_PASSES = 9 };

static double noise(uint64_t *place) {
  double sum = -6;
  for (int n = 0; n < 12; n++) sum += (double)(random_bits(5, (*place)++) >> 11) * 0x1p-53;
  return sum;
}

/* Family 0 takes T^2, family 1 takes `at` times T, at T from 128 to 8192; both share a speed that wanders by
 * 10 % between passes. */
static void fill(report *report, double at, double deviation, size_t passes, uint64_t *place) {
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    const double length = 128 << n % LENGTHS;
    result->family_index = n < LENGTHS ? 0 : 1;
    result->workload.key_length = (int64_t)length;
    result->repetitions = passes;
    for (size_t pass = 0; pass < passes; pass++) {
      const double speed = 1 + 0.1 * sin(7.0 * (double)pass);
      const double seconds = 1e-9 * length * (result->family_index ? at : length);
      result->seconds[pass] = seconds * speed * exp(deviation * noise(place));
    }
  }
}

static int make(void **state) {
  report *report = calloc(1, sizeof *report);
  *state = report;
  if (!report || !(report->results = calloc(RESULTS, sizeof *report->results))) return -1;
  report->result_count = RESULTS;
  for (size_t n = 0; n < report->result_count; n++)
    if (!(report->results[n].seconds = calloc(MOST_PASSES, sizeof(double)))) return -1;
  return 0;
}

static int destroy(void **state) {
  report_destroy(*state);
  free(*state);
  return 0;
}

static void the_interval_holds_the_crossover_as_often_as_it_says(void **state) {
  enum { DRAWS = 2000 };
  uint64_t place = 0;
  int covered = 0;
  double width = 0;
  for (int draw = 0; draw < DRAWS; draw++) {
    const double expected = 300 * exp2(3 * (double)draw / DRAWS);
    fill(*state, expected, 0.05, 6, &place);
    const crossover found = crossover_find(*state, 1, 0);
    if (found.kind != CROSSOVER_OVERTAKES) fail_msg("no crossover at T = %.0f", expected);
    covered += found.at.low <= expected && expected <= found.at.high;
    width += (found.at.high - found.at.low) / expected;
  }
  if (covered < 0.93 * DRAWS || width > 0.25 * DRAWS)
    fail_msg("%d of %d intervals hold the crossover; their mean width is %.2f of it", covered, DRAWS,
             width / DRAWS);
}

static void without_noise_it_is_exact(void **state) {
  uint64_t place = 0;
  fill(*state, 700, 0, 3, &place);
  const crossover found = crossover_find(*state, 1, 0);
  assert_int_equal(found.behind, 512);
  assert_int_equal(found.ahead, 1024);
  assert_true(fabs(found.at.estimate - 700) < 1e-6 && fabs(found.at.low - 700) < 1e-6 &&
              fabs(found.at.high - 700) < 1e-6);
}

static void nothing_is_extended_beyond_what_was_measured(void **state) {
  uint64_t place = 0;
  fill(*state, 100, 0.01, 6, &place);
  assert_int_equal(crossover_find(*state, 1, 0).kind, CROSSOVER_ALWAYS);
  assert_int_equal(crossover_find(*state, 0, 1).kind, CROSSOVER_NEVER);
  fill(*state, 10000, 0.01, 6, &place);
  assert_int_equal(crossover_find(*state, 1, 0).kind, CROSSOVER_NEVER);

  fill(*state, 131, 0.3, 6, &place); /* in the noise at the shortest length */
  crossover found = crossover_find(*state, 1, 0);
  for (int draw = 0; draw < 100 && found.kind != CROSSOVER_OVERTAKES; draw++) {
    fill(*state, 131, 0.3, 6, &place);
    found = crossover_find(*state, 1, 0);
  }
  assert_int_equal(found.kind, CROSSOVER_OVERTAKES);
  assert_true(isinf(found.at.low) && found.at.estimate >= 128);
}

static void one_pass_has_no_interval_and_one_length_no_crossover(void **state) {
  report *report = *state;
  uint64_t place = 0;
  fill(report, 700, 0, 1, &place);
  crossover found = crossover_find(report, 1, 0);
  assert_int_equal(found.kind, CROSSOVER_OVERTAKES);
  assert_true(isinf(found.at.low) && isinf(found.at.high));
  for (size_t n = 1; n < LENGTHS; n++) report->results[n].state = RESULT_SKIPPED;
  found = crossover_find(report, 1, 0);
  assert_int_equal(found.kind, CROSSOVER_UNKNOWN);
  assert_int_equal(found.first, 128);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_interval_holds_the_crossover_as_often_as_it_says, make, destroy),
      cmocka_unit_test_setup_teardown(without_noise_it_is_exact, make, destroy),
      cmocka_unit_test_setup_teardown(nothing_is_extended_beyond_what_was_measured, make, destroy),
      cmocka_unit_test_setup_teardown(one_pass_has_no_interval_and_one_length_no_crossover, make, destroy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
