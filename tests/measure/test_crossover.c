/* Who is ahead where, on simulated sweeps of which that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "measure/crossover.h"
#include "tests/measure/simulated_sweeps.h"

enum { DRAWS = 1000, PASSES = 6, LENGTHS = 7 };

static const int64_t lengths[LENGTHS] = {128, 256, 512, 1024, 2048, 4096, 8192};

/* Family 0 is the challenger. */
static void create(report *report, const simulated_family families[2]) {
  simulated_create(report, families, 2, lengths, LENGTHS, PASSES);
}

static void equal_variants_overtake_nobody(void **state) {
  (void)state;
  const simulated_family families[] = {{.name = "one", .power = 2, .drift = 0.1, .slow = 0.02},
                                       {.name = "other", .power = 2, .drift = 0.1, .slow = 0.02}};
  report report;
  uint64_t place = 0;
  int overtakes = 0, ahead = 0;
  create(&report, families);
  for (int n = 0; n < DRAWS; n++) {
    simulated_draw(&report, families, PASSES, 0.03, &place);
    const contest found = contest_judge(&report, 0, 1);
    overtakes += found.crossover_count > 0;
    ahead += found.ahead + found.behind > 0;
  }
  if (overtakes > 0.01 * DRAWS || ahead > 0.06 * DRAWS)
    fail_msg("of %d contests of equals %d have a crossover, in %d one is ahead somewhere", DRAWS, overtakes,
             ahead);
  report_destroy(&report);
}

static void one_of_equals_is_rarely_named_the_fastest(void **state) {
  (void)state;
  enum { RIVALS = 3 };
  const simulated_family families[RIVALS] = {
      {.power = 2, .drift = 0.05}, {.power = 2, .drift = 0.05}, {.power = 2, .drift = 0.05}};
  const simulated_family ahead[RIVALS] = {{.power = 2}, {.power = 2, .factor = 0.8}, {.power = 2}};
  const result *rivals[RIVALS];
  report report;
  uint64_t place = 0;
  int alone = 0, found = 0;
  simulated_create(&report, families, RIVALS, &lengths[5], 1, PASSES);
  for (int n = 0; n < 2 * DRAWS; n++) {
    simulated_draw(&report, n % 2 ? ahead : families, PASSES, 0.03, &place);
    for (int r = 0; r < RIVALS; r++) rivals[r] = &report.results[r];
    const bool is_alone = paired_fastest(rivals, RIVALS) == 1;
    alone += n % 2 == 0 && is_alone;
    found += n % 2 == 1 && is_alone && rivals[0] == &report.results[1];
  }
  if (alone > 0.05 * DRAWS || found < 0.9 * DRAWS)
    fail_msg("of %d times one of equals is named %d times, and the one ahead %d times", DRAWS, alone, found);
  report_destroy(&report);
}

static void a_crossover_lies_between_the_lengths_that_are_said(void **state) {
  (void)state;
  int held = 0;
  uint64_t place = 0;
  for (int n = 0; n < DRAWS; n++) {
    const double truth = 300 * exp2(3 * (double)n / DRAWS);
    const simulated_family families[] = {{.name = "line", .power = 1, .factor = truth, .drift = 0.1},
                                         {.name = "square", .power = 2, .drift = 0.1}};
    report report;
    create(&report, families);
    simulated_draw(&report, families, PASSES, 0.05, &place);
    const contest found = contest_judge(&report, 0, 1);
    const crossover *one = &found.crossovers[0];
    held += found.crossover_count == 1 && one->now == LEAD_AHEAD && (double)one->after <= truth &&
            truth <= (double)one->before;
    report_destroy(&report);
  }
  if (held < 0.98 * DRAWS) fail_msg("%d of %d crossovers lie where they are said to", held, DRAWS);
}

/* Half as slow again from 1024 on: the smooth guess between 512 and 2048 is not where it happens, the lengths hold. */
static void a_sharp_change_is_not_said_to_be_elsewhere(void **state) {
  (void)state;
  const simulated_family families[] = {
      {.name = "one", .power = 1, .factor = 0.8, .step = 0.5, .step_at = 2048},
      {.name = "other", .power = 1}};
  report report;
  uint64_t place = 0;
  create(&report, families);
  simulated_draw(&report, families, PASSES, 0.01, &place);
  const contest found = contest_judge(&report, 0, 1);
  assert_int_equal(found.crossover_count, 1);
  assert_int_equal(found.crossovers[0].after, 1024);
  assert_int_equal(found.crossovers[0].before, 2048);
  assert_int_equal(found.crossovers[0].now, LEAD_BEHIND);
  report_destroy(&report);
}

static void every_change_is_found_in_order(void **state) {
  (void)state;
  /* Ahead at 128, behind at 256 to 1024, ahead from 2048 on. */
  const simulated_family families[] = {{.name = "one", .power = 1}, {.name = "other", .power = 1}};
  static const double ratios[LENGTHS] = {0.8, 1.2, 1.2, 1.2, 0.8, 0.8, 0.8};
  report report;
  uint64_t place = 0;
  create(&report, families);
  simulated_draw(&report, families, PASSES, 0.01, &place);
  for (size_t n = 0; n < LENGTHS; n++)
    for (size_t pass = 0; pass < PASSES; pass++) report.results[n].seconds[pass] *= ratios[n];
  const contest found = contest_judge(&report, 0, 1);
  assert_int_equal(found.crossover_count, 2);
  assert_int_equal(found.crossovers[0].after, 128);
  assert_int_equal(found.crossovers[0].before, 256);
  assert_int_equal(found.crossovers[0].now, LEAD_BEHIND);
  assert_int_equal(found.crossovers[1].after, 1024);
  assert_int_equal(found.crossovers[1].before, 2048);
  assert_int_equal(found.crossovers[1].now, LEAD_AHEAD);
  report_destroy(&report);
}

static void without_noise_the_smooth_place_is_exact(void **state) {
  (void)state;
  const simulated_family families[] = {{.name = "line", .power = 1, .factor = 700},
                                       {.name = "square", .power = 2}};
  report report;
  uint64_t place = 0;
  create(&report, families);
  simulated_draw(&report, families, PASSES, 1e-9, &place);
  const contest found = contest_judge(&report, 0, 1);
  assert_int_equal(found.crossover_count, 1);
  assert_int_equal(found.crossovers[0].after, 512);
  assert_int_equal(found.crossovers[0].before, 1024);
  assert_true(fabs(found.crossovers[0].smooth.estimate - 700) < 1e-3);
  report_destroy(&report);
}

/* Of a ratio that is straight in log T, whichever of the two is the challenger; and it tells more than the lengths do. */
static void the_interval_of_the_smooth_place_holds_it(void **state) {
  (void)state;
  int held = 0, narrower = 0, turned_alike = 0;
  uint64_t place = 0;
  for (int n = 0; n < DRAWS; n++) {
    const double truth = 300 * exp2(3 * (double)n / DRAWS);
    const simulated_family families[] = {{.name = "line", .power = 1, .factor = truth, .drift = 0.05},
                                         {.name = "square", .power = 2, .drift = 0.05}};
    report report;
    create(&report, families);
    simulated_draw(&report, families, PASSES, 0.03, &place);
    const contest found = contest_judge(&report, 0, 1), turned = contest_judge(&report, 1, 0);
    const interval at = found.crossovers[0].smooth, back = turned.crossovers[0].smooth;
    held += at.low <= truth && truth <= at.high && at.low <= at.estimate && at.estimate <= at.high;
    narrower += at.high / at.low < 1.5;
    turned_alike += fabs(at.low / back.low - 1) + fabs(at.high / back.high - 1) < 1e-9;
    report_destroy(&report);
  }
  if (held < 0.95 * DRAWS || narrower < 0.9 * DRAWS || turned_alike < DRAWS)
    fail_msg("of %d places %d lie in their intervals, %d of which are narrower than the lengths, %d the same "
             "turned round",
             DRAWS, held, narrower, turned_alike);
}

static void nothing_is_extended_beyond_what_was_measured(void **state) {
  (void)state;
  const simulated_family families[] = {{.name = "line", .power = 1, .factor = 60},
                                       {.name = "square", .power = 2}};
  report report;
  uint64_t place = 0;
  create(&report, families);
  simulated_draw(&report, families, PASSES, 0.01, &place);
  const contest found = contest_judge(&report, 0, 1), other = contest_judge(&report, 1, 0);
  assert_int_equal(found.crossover_count, 0);
  assert_int_equal(found.ahead, LENGTHS);
  assert_true(found.first == 128 && found.last == 8192);
  assert_int_equal(other.behind, LENGTHS);
  report_destroy(&report);
}

/* Lengths that only one of the two was measured at, or that one pass is known of. */
static void what_was_not_measured_twice_does_not_count(void **state) {
  (void)state;
  const simulated_family families[] = {{.name = "line", .power = 1, .factor = 700},
                                       {.name = "square", .power = 2}};
  report report;
  uint64_t place = 0;
  create(&report, families);
  simulated_draw(&report, families, PASSES, 0.01, &place);
  report.results[0].state = RESULT_FAILED;
  report.results[LENGTHS + 6].state = RESULT_SKIPPED;
  report.results[1].repetitions = 1;
  const contest found = contest_judge(&report, 0, 1);
  assert_int_equal(found.lengths, LENGTHS - 2);
  assert_int_equal(found.ahead + found.behind, LENGTHS - 3);
  assert_true(found.first == 256 && found.last == 4096);
  assert_int_equal(contest_judge(&report, 0, 5).lengths, 0);
  report_destroy(&report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_variants_overtake_nobody),
      cmocka_unit_test(one_of_equals_is_rarely_named_the_fastest),
      cmocka_unit_test(a_crossover_lies_between_the_lengths_that_are_said),
      cmocka_unit_test(a_sharp_change_is_not_said_to_be_elsewhere),
      cmocka_unit_test(every_change_is_found_in_order),
      cmocka_unit_test(without_noise_the_smooth_place_is_exact),
      cmocka_unit_test(the_interval_of_the_smooth_place_holds_it),
      cmocka_unit_test(nothing_is_extended_beyond_what_was_measured),
      cmocka_unit_test(what_was_not_measured_twice_does_not_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
