/* What the gate concludes from numbers: synthetic processes with known changes go through screening,
 * confirmation and the verdict. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/gate.h"
#include "base/random.h"

enum { SCREENS = 5, BENCHMARKS = 42, CONTROLS = 3 };

static const double smallest = 0.02;
static const gate_options options = {.base_name = "main", .smallest = 0.02};
static uint64_t place;

static double uniform(void) { return ((double)(random_bits(11, place++) >> 12) + 0.5) * 0x1p-52; }

/* Student's t with four degrees of freedom, scaled to the deviation: the outliers of a shared machine. */
static double noise(double deviation) {
  double squares = 0;
  for (int n = 0; n < 4; n++) {
    const double normal = sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
    squares += normal * normal;
  }
  const double normal = sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
  return deviation * normal / sqrt(squares / 4) / sqrt(2);
}

/* Benchmarks of fused, the last ones being the base against itself, all unchanged. */
static gate_times *new_times(double *changes) {
  gate_times *times = calloc(1, sizeof *times);
  assert_non_null(times);
  times->set.count = BENCHMARKS;
  times->links = 4;
  times->measured = true;
  for (size_t n = 0; n < BENCHMARKS; n++) {
    gate_benchmark *benchmark = &times->set.benchmarks[n];
    benchmark->against_itself = n >= BENCHMARKS - CONTROLS;
    strcpy(benchmark->variant, "fused");
    strcpy(benchmark->isa, "-");
    snprintf(benchmark->name, sizeof benchmark->name, "fused/T:%zu", n);
    changes[n] = 0;
  }
  return times;
}

static void confirm(gate_benchmark *benchmark, double change, double deviation) {
  benchmark->confirmation_count = GATE_CONFIRMATIONS;
  for (size_t n = 0; n < GATE_CONFIRMATIONS; n++)
    benchmark->confirmations[n] = log1p(change) + noise(deviation);
}

static void screen(gate_times *times, const double *changes, double deviation) {
  for (size_t n = 0; n < times->set.count; n++) {
    gate_benchmark *benchmark = &times->set.benchmarks[n];
    benchmark->screen_count = SCREENS;
    benchmark->confirmation_count = 0;
    benchmark->verdict = GATE_SCREENED;
    for (size_t i = 0; i < SCREENS; i++) benchmark->screens[i] = log1p(changes[n]) + noise(deviation);
  }
  gate_screen(times, smallest);
}

/* A whole run: every process differs from the truth by the deviation. */
static gate_status run(gate_times *times, const double *changes, double deviation) {
  gate_findings findings = {0};
  screen(times, changes, deviation);
  for (size_t n = 0; n < times->set.count; n++)
    if (times->set.benchmarks[n].suspect || times->set.benchmarks[n].against_itself)
      confirm(&times->set.benchmarks[n], changes[n], deviation);
  assert_true(gate_judge(times, smallest));
  assert_true(gate_find_slower(times, &options, &findings));
  const gate_status status = gate_decide(&findings, times, false);
  gate_findings_destroy(&findings);
  return status;
}

static int count_runs(double change, double deviation, int runs, gate_status wanted) {
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  changes[7] = change;
  int count = 0;
  for (int n = 0; n < runs; n++) count += run(times, changes, deviation) == wanted;
  free(times);
  return count;
}

/* ---- screening ---- */

static void what_got_slower_is_suspect_and_nothing_else(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  changes[7] = 0.05;
  changes[8] = -0.05;
  screen(times, changes, 0.001);
  for (size_t n = 0; n < BENCHMARKS; n++) assert_int_equal(times->set.benchmarks[n].suspect, n == 7);
  free(times);
}

static void a_control_is_suspect_either_way(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  changes[3] = 0.05;
  times->set.benchmarks[4].identical = true;
  changes[4] = changes[BENCHMARKS - 1] = -0.05;
  screen(times, changes, 0.001);
  for (size_t n = 0; n < BENCHMARKS; n++)
    assert_int_equal(times->set.benchmarks[n].suspect, n == 3 || n == 4 || n == BENCHMARKS - 1);
  free(times);
}

static void noise_raises_the_threshold_so_far_that_five_percent_stand_out(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  screen(times, changes, 1e-6);
  const double quiet = times->threshold;
  screen(times, changes, 0.015);
  const double busy = times->threshold;
  screen(times, changes, 0.5);
  assert_true(fabs(quiet - 0.6 * log1p(smallest)) < 1e-12);
  assert_true(busy > quiet && busy < times->threshold);
  assert_true(fabs(times->threshold - 1.5 * log1p(smallest)) < 1e-12);
  free(times);
}

/* A change of all benchmarks is no noise, and no reason to move the zero. */
static void what_hits_all_is_suspect_everywhere(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  for (size_t n = 0; n < BENCHMARKS - CONTROLS; n++) changes[n] = 0.04;
  assert_int_equal(run(times, changes, 0.003), GATE_REGRESSION);
  for (size_t n = 0; n < BENCHMARKS; n++)
    assert_int_equal(times->set.benchmarks[n].verdict,
                     n < BENCHMARKS - CONTROLS ? GATE_SLOWER : GATE_UNCONFIRMED);
  free(times);
}

/* As seen beside nine other processes: a team's 15 % were waiting, one thread's 12 % were not. */
static void sure_suspects_are_confirmed_before_large_ones(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  gate_benchmark *list = times->set.benchmarks;
  const double screens[][SCREENS] = {
      {-0.05, 0.07, 0.15, 0.30, 0.55}, {0.10, 0.11, 0.12, 0.13, 0.14}, {-0.14, -0.13, -0.12, -0.11, -0.10}};
  for (size_t n = 0; n < 4; n++) {
    memcpy(list[n].screens, screens[n < 3 ? n : 2], sizeof *screens);
    list[n].screen_count = SCREENS;
  }
  strcpy(list[3].isa, "avx2");
  gate_screen(times, smallest);
  assert_true(list[0].screen > list[1].screen);
  assert_true(gate_urgency(&list[1]) > gate_urgency(&list[0]));
  assert_true(gate_urgency(&list[0]) > gate_urgency(&list[2]));
  assert_true(gate_urgency(&list[3]) >= gate_urgency(&list[1]));
  assert_true(gate_urgency(&list[BENCHMARKS - 1]) > gate_urgency(&list[1]));
  free(times);
}

/* ---- confirmation ---- */

/* Never in these 3000 runs; 1 % of the runs is what the test's significance allows. */
static void unchanged_code_passes_on_quiet_and_on_noisy_machines(void **state) {
  (void)state;
  const double deviations[] = {0.003, 0.01, 0.05};
  for (size_t n = 0; n < 3; n++)
    if (count_runs(0, deviations[n], 1000, GATE_PASS) < 990)
      fail_msg("more than 1 %% of the runs are not green where processes differ by %g", deviations[n]);
}

static void five_percent_are_called_nearly_always_and_ten_always(void **state) {
  (void)state;
  assert_true(count_runs(0.05, 0.01, 500, GATE_REGRESSION) >= 490);
  assert_true(count_runs(0.05, 0.02, 500, GATE_REGRESSION) >= 450);
  assert_int_equal(count_runs(0.10, 0.01, 500, GATE_REGRESSION), 500);
  assert_true(count_runs(0.10, 0.03, 500, GATE_REGRESSION) >= 490);
}

static void what_is_certain_but_small_is_not_called(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  confirm(&times->set.benchmarks[0], 0.018, 0.001);
  assert_true(gate_judge(times, smallest));
  assert_true(times->set.benchmarks[0].p < 0.01);
  assert_int_equal(times->set.benchmarks[0].verdict, GATE_UNCONFIRMED);
  free(times);
}

/* Distances in steps, of which the 4th, 6th and 9th point the other way: a rank sum of 19 below the smallest effect
 * has the chance 0.0046 (Hollander, Wolfe and Chicken, table of the signed-rank test, n = 16), enough for one
 * hypothesis and not for ten. */
static void the_more_are_confirmed_the_surer_each_must_be(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  for (size_t confirmed = 1; confirmed <= 10; confirmed += 9) {
    gate_times *times = new_times(changes);
    for (size_t n = 0; n < confirmed; n++) confirm(&times->set.benchmarks[n], 0, 0.001);
    for (int n = 1; n <= GATE_CONFIRMATIONS; n++)
      times->set.benchmarks[0].confirmations[n - 1] =
          log1p(smallest / 2) + (n == 4 || n == 6 || n == 9 ? -0.01 : 0.01) * n;
    assert_true(gate_judge(times, smallest));
    const double alone = times->set.benchmarks[0].p / (double)confirmed;
    assert_true(alone > 0.004 && alone < 0.005);
    assert_int_equal(times->set.benchmarks[0].verdict, confirmed == 1 ? GATE_SLOWER : GATE_UNCONFIRMED);
    free(times);
  }
}

static void all_sixteen_processes_are_enough_among_the_most_that_can_be_confirmed(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  times->set.count = GATE_MAX_BENCHMARKS;
  for (size_t n = 0; n < GATE_MAX_BENCHMARKS; n++)
    confirm(&times->set.benchmarks[n], n == 5 ? 0.05 : 0, 0.001);
  assert_true(gate_judge(times, smallest));
  for (size_t n = 0; n < GATE_MAX_BENCHMARKS; n++)
    assert_int_equal(times->set.benchmarks[n].verdict == GATE_SLOWER, n == 5);
  free(times);
}

/* ---- the verdict ---- */

static void a_control_that_moved_contaminates_and_fails_nothing(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  for (int faster = 0; faster < 2; faster++) {
    gate_times *times = new_times(changes);
    times->set.benchmarks[3].identical = true;
    changes[3] = faster ? -0.05 : 0.05;
    changes[7] = 0.1;
    assert_int_equal(run(times, changes, 0.003), GATE_CONTAMINATED);
    changes[3] = 0;
    assert_int_equal(run(times, changes, 0.003), GATE_REGRESSION);
    free(times);
  }
}

static void a_control_alone_is_no_finding(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  gate_findings findings = {0};
  times->set.benchmarks[3].identical = true;
  confirm(&times->set.benchmarks[3], 0.05, 0.001);
  assert_true(gate_judge(times, smallest));
  assert_true(gate_find_slower(times, &options, &findings));
  assert_int_equal(findings.count, 0);
  gate_findings_destroy(&findings);
  free(times);
}

static void what_got_faster_passes(void **state) {
  (void)state;
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  confirm(&times->set.benchmarks[0], -0.05, 0.003);
  gate_findings findings = {0};
  assert_true(gate_judge(times, smallest));
  assert_int_equal(times->set.benchmarks[0].verdict, GATE_FASTER);
  assert_true(gate_find_slower(times, &options, &findings));
  assert_int_equal(gate_decide(&findings, times, false), GATE_PASS);
  free(times);
}

static void exact_findings_decide_before_times_do(void **state) {
  (void)state;
  gate_times *times = calloc(1, sizeof *times);
  assert_non_null(times);
  gate_findings times_only = {0}, both = {0};
  assert_true(gate_find(&times_only, &options, GATE_TIME, "fused", "fused/T:1", "slower"));
  assert_true(gate_find(&both, &options, GATE_TIME, "fused", "fused/T:1", "slower"));
  assert_true(gate_find(&both, &options, GATE_WORKSPACE, "fused", "fused/T:1", "bigger"));
  assert_int_equal(gate_decide(&times_only, times, false), GATE_REGRESSION);
  assert_int_equal(gate_decide(&times_only, times, true), GATE_PASS);
  assert_int_equal(gate_decide(&both, times, true), GATE_REGRESSION);
  times->contaminated = true;
  assert_int_equal(gate_decide(&times_only, times, false), GATE_CONTAMINATED);
  assert_int_equal(gate_decide(&times_only, times, true), GATE_PASS);
  assert_int_equal(gate_decide(&both, times, false), GATE_REGRESSION);
  gate_findings_destroy(&times_only);
  gate_findings_destroy(&both);
  free(times);
}

/* ---- more instructions ---- */

/* Two benchmarks of fused on AVX2 and one on the fastest set got so much slower. */
static bool is_excused(double first, double second, double fastest, double control) {
  double changes[BENCHMARKS];
  gate_times *times = new_times(changes);
  gate_findings findings = {0};
  assert_true(gate_find(&findings, &options, GATE_INSTRUCTIONS, "fused", "fused/T:256", "more"));
  strcpy(findings.items[0].isa, "avx2");
  strcpy(times->set.benchmarks[0].isa, "avx2");
  strcpy(times->set.benchmarks[1].isa, "avx2");
  confirm(&times->set.benchmarks[0], first, 0.002);
  confirm(&times->set.benchmarks[1], second, 0.002);
  confirm(&times->set.benchmarks[2], fastest, 0.002);
  confirm(&times->set.benchmarks[BENCHMARKS - 1], control, 0.002);
  assert_true(gate_judge(times, smallest));
  assert_true(gate_find_slower(times, &options, &findings));
  gate_excuse(times, &findings);
  const bool waived = findings.items[0].waived;
  const gate_status status = gate_decide(&findings, times, false);
  assert_int_equal(status, waived ? GATE_PASS : GATE_REGRESSION);
  gate_findings_destroy(&findings);
  free(times);
  return waived;
}

static void more_instructions_pass_only_where_time_got_shorter(void **state) {
  (void)state;
  assert_true(is_excused(-0.05, 0, 0, 0));
  assert_false(is_excused(0, 0, 0, 0));
  assert_false(is_excused(0, 0, -0.05, 0));
  assert_false(is_excused(-0.05, 0.05, 0, 0));
  assert_false(is_excused(-0.05, 0, 0, 0.05));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_got_slower_is_suspect_and_nothing_else),
      cmocka_unit_test(a_control_is_suspect_either_way),
      cmocka_unit_test(noise_raises_the_threshold_so_far_that_five_percent_stand_out),
      cmocka_unit_test(what_hits_all_is_suspect_everywhere),
      cmocka_unit_test(sure_suspects_are_confirmed_before_large_ones),
      cmocka_unit_test(unchanged_code_passes_on_quiet_and_on_noisy_machines),
      cmocka_unit_test(five_percent_are_called_nearly_always_and_ten_always),
      cmocka_unit_test(what_is_certain_but_small_is_not_called),
      cmocka_unit_test(the_more_are_confirmed_the_surer_each_must_be),
      cmocka_unit_test(all_sixteen_processes_are_enough_among_the_most_that_can_be_confirmed),
      cmocka_unit_test(a_control_that_moved_contaminates_and_fails_nothing),
      cmocka_unit_test(a_control_alone_is_no_finding),
      cmocka_unit_test(what_got_faster_passes),
      cmocka_unit_test(exact_findings_decide_before_times_do),
      cmocka_unit_test(more_instructions_pass_only_where_time_got_shorter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
