/* The sweep, on small variants that do what a test needs: wait, count, fail, press Ctrl-C. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/statistics.h"
#include "measure/cold.h"
#include "measure/sweep_state.h"
#include "run/footprint.h"
#include "small_bench.h"

/* Before it is timed: on the point's own inputs, and the exact probe. */
enum { VERIFYING_RUNS = 2 };

static struct {
  int runs, interrupt_at; /* the run in which Ctrl-C is pressed; 0: never */
  int64_t longest;        /* T that was run */
  char order[64];         /* the first letter of each variant that was run */
} seen;

static void wait_for(double seconds) {
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += (long)(seconds * 1e9);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec < end.tv_nsec);
}

static void note(char letter) {
  if (seen.runs < (int)sizeof seen.order - 1) seen.order[seen.runs] = letter;
}

/* Another process presses Ctrl-C when it is asked to, for a signal that a kernel raises itself ends it; nor may a kernel start
 * processes. */
static int bell[2];
static pid_t presser;

static int start_presser(void **state) {
  (void)state;
  const pid_t self = getpid();
  char asked;
  if (pipe2(bell, O_CLOEXEC) != 0) return -1;
  presser = fork();
  if (presser != 0) return presser < 0;
  close(bell[1]);
  while (read(bell[0], &asked, 1) == 1) kill(self, SIGINT);
  _exit(0);
}

static int end_presser(void **state) {
  (void)state;
  close(bell[1]);
  return waitpid(presser, NULL, 0) != presser;
}

static void press_ctrl_c(void) {
  if (write(bell[1], "!", 1) != 1) abort();
  for (int n = 0; n < 10000 && !interrupt_wanted(); n++) wait_for(1e-3);
}

static void run_right(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (!seen.order[seen.runs % (int)sizeof seen.order]) note('r');
  seen.runs++;
  if (p->key_length > seen.longest) seen.longest = p->key_length;
  small_bench_solve(call);
  if (seen.runs == seen.interrupt_at) press_ctrl_c();
}

/* 1 ms at T = 32 and then as T^2. */
static void run_slow(const attn_call *call) {
  note('s');
  run_right(call);
  wait_for(1e-3 * pow((double)call->problem->key_length / 32, 2));
}

static void run_wrong(const attn_call *call) {
  run_right(call);
  ((float *)call->tensors.output)[call->problem->value_dim - 1] += 0.01f;
}

static const char *refuse_all(const attn_call *call) {
  (void)call;
  return "needs the moon to be full";
}

static size_t ask_for_a_mebibyte(const attn_call *call) {
  (void)call;
  return (size_t)1 << 20;
}

/* More than is left, and not more than there is. */
static size_t ask_for_too_much(const attn_call *call) {
  (void)call;
  return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t ask_for_the_absurd(const attn_call *call) {
  (void)call;
  return (size_t)-8;
}

static void run_touching_a_tenth(const attn_call *call) {
  note('t');
  run_right(call);
  memset(call->workspace, 1, 100000);
}

static void run_allocating(const attn_call *call) {
  void *volatile own = malloc(100);
  run_right(call);
  free(own);
}

SMALL_BENCH_VARIANT(right, run_right, .unsupported = NULL);
SMALL_BENCH_VARIANT(slow, run_slow, .unsupported = NULL);
SMALL_BENCH_VARIANT(wrong, run_wrong, .unsupported = NULL);
SMALL_BENCH_VARIANT(refusing, run_right, .unsupported = refuse_all);
SMALL_BENCH_VARIANT(greedy, run_right, .workspace_size = ask_for_too_much);
SMALL_BENCH_VARIANT(absurd, run_right, .workspace_size = ask_for_the_absurd);
SMALL_BENCH_VARIANT(allocating, run_allocating, .unsupported = NULL);
SMALL_BENCH_VARIANT(touching, run_touching_a_tenth, .workspace_size = ask_for_a_mebibyte);

static void run(const bench_point *points, size_t count, bench_options options, int interrupt_at,
                report *report) {
  memset(&seen, 0, sizeof seen);
  seen.interrupt_at = interrupt_at;
  small_bench_run(points, count, &options, report);
}

static void every_point_is_verified_timed_and_named(void **state) {
  (void)state;
  bench_point points[8];
  report report;
  const size_t count = small_bench_add(points, small_bench_add(points, 0, &right, 3), &slow, 3);
  bench_options options = small_bench_options;
  options.machine_seconds = 0.01;
  run(points, count, options, 0, &report);
  assert_int_equal(report.result_count, 6);
  for (size_t n = 0; n < 6; n++) {
    const result *result = &report.results[n];
    assert_int_equal(result->state, RESULT_MEASURED);
    assert_int_equal(result->family_index, n / 3);
    assert_int_equal(result->instance_index, n % 3);
    assert_true(result->repetitions >= 1 && result->repetitions <= 5 && result->iterations >= 1);
    assert_true(result->seconds_median.low > 0 && result->seconds_median.low <= result->seconds_median.high);
    assert_true(result->flops == 2.0 * 8 * pow((double)result->workload.key_length, 2));
    assert_true(result->flops_per_second == result->flops / result->seconds_median.estimate);
    for (size_t r = 0; r < result->repetitions; r++) assert_true(result->shares[r] > 0);
    assert_true(result->peak_fraction == statistics_median(result->shares, result->repetitions));
    assert_true(result->rows_checked > 0 && result->error_bound_fraction < 1);
  }
  assert_string_equal(report.results[1].name, "right/full/B:1/H:1/Hkv:1/D:4/T:64");
  assert_string_equal(report.results[1].family, "right/full/B:1/H:1/Hkv:1/D:4");
  assert_true(report.results[5].seconds_median.estimate >= 16e-3);
  assert_int_equal(report.growth_count, 2);
  assert_string_equal(report.growths[1].variant, "slow");
  assert_int_equal(report.growths[1].time_declared, 2);
  assert_false(report.interrupted);
  assert_true(report.peak_memory_bytes > 0 && report.machine.peak_count > 0 && report.started[0]);
  report_destroy(&report);
}

static void short_runs_are_repeated_within_one_repetition(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = small_bench_options;
  options.min_time = 50e-3;
  small_bench_add(points, 0, &right, 1);
  run(points, 1, options, 0, &report);
  const result *result = &report.results[0];
  assert_true(result->iterations > 1);
  assert_true(result->seconds_median.estimate * (double)result->iterations >
              0.1 * options.min_time); /* on a busy machine */
  report_destroy(&report);
}

static void a_point_over_the_limit_is_skipped_with_its_predicted_cost(void **state) {
  (void)state;
  bench_point points[5];
  report report;
  bench_options options = small_bench_options;
  options.point_limit =
      60e-3; /* T = 128 takes 16 ms, and on a busy machine more; 256 would take 64 or more */
  small_bench_add(points, 0, &slow, 5);
  run(points, 5, options, 0, &report);
  assert_int_equal(report.result_count, 5);
  assert_int_equal(report.results[0].state, RESULT_MEASURED);
  for (size_t n = 3; n < 5; n++) {
    assert_int_equal(report.results[n].state, RESULT_SKIPPED);
    assert_non_null(strstr(report.results[n].reason, "one run would take about"));
    assert_non_null(strstr(report.results[n].reason, "over the limit of 0.06 s"));
  }
  assert_true(seen.longest <= 128);
  report_destroy(&report);
}

/* No prediction knows of it. */
static void run_slow_at_last(const attn_call *call) {
  run_right(call);
  if (call->problem->key_length == 64) wait_for(1);
}
SMALL_BENCH_VARIANT(surprising, run_slow_at_last, .unsupported = NULL);

static void a_point_ends_after_a_verification_run_over_the_limit(void **state) {
  (void)state;
  bench_point points[2];
  report report;
  bench_options options = small_bench_options;
  options.point_limit =
      0.5; /* what is predicted of a run that takes microseconds, however busy the machine is */
  options.repetitions = 1;
  options.iterations = 1;
  options.min_time = options.min_warmup_time = 0;
  small_bench_add(points, 0, &surprising, 2);
  run(points, 2, options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_MEASURED);
  assert_int_equal(report.results[1].state, RESULT_SKIPPED);
  static const char says[] = "one run took ";
  assert_memory_equal(report.results[1].reason, says, sizeof says - 1);
  char *end;
  assert_true(strtod(report.results[1].reason + sizeof says - 1, &end) >= 1);
  assert_string_equal(end, " s, over the limit of 0.5 s");
  /* Of T = 32: to predict its time, to verify it, one timed. Of 64: one. No more to warm up. */
  assert_true(seen.runs <= 8);
  report_destroy(&report);
}

static void the_time_that_is_left_includes_the_peaks(void **state) {
  (void)state;
  static const struct {
    int repetitions, pass;
    double seconds;
  } cases[] = {{0, 0, (BENCH_LEAST_REPETITIONS - 1) * 0.5},
               {3, 0, 1},
               {3, 2, 0.5},
               {1, 0, 0},
               {100, 1, 3.5},
               {100, 50, 0}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const bench_options options = {
        .machine_seconds = 4, .repetitions = cases[n].repetitions, .min_time = 1, .point_budget = 1};
    const bench bench = {.options = &options, .count = 8};
    assert_true(bench_peaks_seconds_left(&bench, cases[n].pass) == cases[n].seconds);
  }
}

/* Of a short run half, once, and no less than tells something. */
static void the_peaks_take_no_longer_than_the_points(void **state) {
  (void)state;
  static const struct {
    size_t count;
    int repetitions;
    double budget, first, again;
  } cases[] = {
      {1, 2, 1, 0.4, 0}, {1, 0, 2, 1, 0}, {2, 0, 2, 2, 0.25}, {4, 19, 1, 3, 0.375}, {100, 0, 1, 3, 0.375}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const bench_options options = {.machine_seconds = 3,
                                   .repetitions = cases[n].repetitions,
                                   .min_time = 0.1,
                                   .point_budget = cases[n].budget};
    const bench bench = {.options = &options, .count = cases[n].count};
    assert_true(bench_machine_seconds(&bench) == cases[n].first);
    assert_true(bench_peak_seconds(&bench) == cases[n].again);
  }
}

/* Without a shorter length to judge by, parts of the problem are run, and no more. */
static void a_first_point_over_the_limit_is_never_run(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = small_bench_options;
  options.point_limit = 0.02;
  small_bench_add(points, 0, &slow, 1);
  points[0].workload.query_length = points[0].workload.key_length = 1024; /* 1 s */
  run(points, 1, options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_SKIPPED);
  assert_true(seen.longest > 0 && seen.longest < 1024);
  report_destroy(&report);
}

static void a_point_over_the_memory_is_skipped(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  small_bench_add(points, 0, &greedy, 1);
  run(points, 1, small_bench_options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_SKIPPED);
  assert_non_null(strstr(report.results[0].reason, "of memory"));
  assert_int_equal(seen.runs, 0);
  report_destroy(&report);
}

static void a_workspace_without_sense_is_a_failure_of_its_variant(void **state) {
  (void)state;
  bench_point points[2];
  report report;
  small_bench_add(points, small_bench_add(points, 0, &absurd, 1), &right, 1);
  run(points, 2, small_bench_options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_FAILED);
  assert_non_null(strstr(report.results[0].reason, "asks for 18446744073709551608 bytes (-8) of workspace"));
  assert_int_equal(report.results[1].state, RESULT_MEASURED);
  report_destroy(&report);
}

static void an_unsupported_point_is_skipped_in_the_variants_words(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  small_bench_add(points, 0, &refusing, 1);
  run(points, 1, small_bench_options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_SKIPPED);
  assert_string_equal(report.results[0].reason, "needs the moon to be full");
  report_destroy(&report);
}

static void a_wrong_kernel_is_recorded_and_not_timed(void **state) {
  (void)state;
  bench_point points[2];
  report report;
  small_bench_add(points, small_bench_add(points, 0, &wrong, 1), &right, 1);
  run(points, 2, small_bench_options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_FAILED);
  assert_non_null(strstr(report.results[0].reason, "output"));
  assert_true(report.results[0].error_bound_fraction > 1);
  assert_int_equal(report.results[0].repetitions, 0);
  assert_int_equal(report.results[1].state, RESULT_MEASURED);
  report_destroy(&report);
}

static void touched_bytes_are_real_and_not_declared(void **state) {
  (void)state;
  if (!footprint_is_measured()) skip();
  bench_point points[2];
  report report;
  small_bench_add(points, small_bench_add(points, 0, &touching, 1), &right, 1);
  run(points, 2, small_bench_options, 0, &report);
  const result *result = &report.results[0];
  assert_int_equal(result->workspace_bytes, 1 << 20);
  assert_int_equal(result->workspace_touched_bytes, 100000);
  assert_int_equal(report.results[1].workspace_touched_bytes, 0);
  report_destroy(&report);
}

static void a_kernel_that_allocates_fails(void **state) {
  (void)state;
  if (!footprint_is_measured()) skip();
  bench_point points[1];
  report report;
  small_bench_add(points, 0, &allocating, 1);
  run(points, 1, small_bench_options, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_FAILED);
  assert_non_null(strstr(report.results[0].reason, "calls malloc inside run, 1 time in all"));
  report_destroy(&report);
}

static void memory_is_the_sum_of_its_parts(void **state) {
  (void)state;
  if (!footprint_is_measured()) skip();
  bench_point points[1];
  report report;
  small_bench_add(points, 0, &touching, 1);
  run(points, 1, small_bench_options, 0, &report);
  const result *result = &report.results[0];
  assert_true(result->stack_bytes > 0 && result->static_bytes > 0);
  assert_int_equal(result->memory_bytes, 100000 + result->stack_bytes + result->static_bytes);
  report_destroy(&report);
}

static void an_interruption_keeps_what_was_measured(void **state) {
  (void)state;
  bench_point points[3];
  report report;
  bench_options options = small_bench_options;
  options.min_time = options.min_warmup_time = 0; /* each point runs to be verified and 5 times in turns */
  small_bench_add(points, 0, &right, 3);
  run(points, 3, options, 3 * VERIFYING_RUNS + 2, &report); /* in the second run of the first pass */
  assert_true(report.interrupted);
  assert_int_equal(report.result_count, 2); /* that run was whole, so it counts */
  for (size_t n = 0; n < report.result_count; n++) {
    assert_int_equal(report.results[n].state, RESULT_MEASURED);
    assert_int_equal(report.results[n].repetitions, 1);
    assert_true(report.results[n].seconds_median.estimate > 0);
  }
  report_destroy(&report);
}

static void an_interruption_before_any_result_says_so(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  char why[256] = "";
  small_bench_add(points, 0, &right, 1);
  memset(&seen, 0, sizeof seen);
  seen.interrupt_at = 1;
  assert_false(bench_run(points, 1, &small_bench_options, &report, why, sizeof why));
  assert_non_null(strstr(why, "before anything was measured"));
  report_destroy(&report);
}

/* Runs three variants five times and tells in which order; the first six runs are the verification. */
static void order_of_turns(bool interleaved, uint64_t seed, char order[64]) {
  bench_point points[3];
  report report;
  bench_options options = small_bench_options;
  options.min_time = options.min_warmup_time = 0;
  options.point_budget = 10;
  options.random_interleaving = interleaved;
  options.seed = seed;
  small_bench_add(points, small_bench_add(points, small_bench_add(points, 0, &right, 1), &slow, 1), &touching,
                  1);
  run(points, 3, options, 0, &report);
  memcpy(order, seen.order, sizeof seen.order);
  report_destroy(&report);
}

static void turns_are_taken_in_an_order_that_the_seed_decides(void **state) {
  (void)state;
  char first[64], again[64], other[64];
  order_of_turns(false, 1, first);
  assert_string_equal(first, "rrsstt" /* to be verified */
                             "rrrrrsssssttttt");
  order_of_turns(true, 1, first);
  order_of_turns(true, 1, again);
  order_of_turns(true, 2, other);
  assert_string_equal(first, again);
  assert_string_not_equal(first, other);
  for (size_t n = 6; n < 21; n += 3) { /* each round has all three */
    assert_non_null(memchr(first + n, 'r', 3));
    assert_non_null(memchr(first + n, 's', 3));
    assert_non_null(memchr(first + n, 't', 3));
  }
}

/* What run_looking saw: whether an iteration had the same queries as the one before, or others, and
 * whether they were equal. */
static struct {
  const float *query;
  int same, others;
  bool equal;
} looked;

/* But for the signs of a query, which each run finds in another way. */
static bool same_sizes(const float *a, const float *b, int64_t count) {
  for (int64_t n = 0; n < count; n++)
    if (fabsf(a[n]) != fabsf(b[n])) return false;
  return true;
}

static void run_looking(const attn_call *call) {
  const float *query = call->tensors.query;
  const bool had_before = seen.runs > VERIFYING_RUNS; /* whose inputs are gone then */
  looked.same += had_before && looked.query == query;
  if (had_before && looked.query != query) {
    looked.others++;
    looked.equal = looked.equal && same_sizes(looked.query, query, call->problem->query_length * 4);
  }
  looked.query = query;
  run_right(call);
}
SMALL_BENCH_VARIANT(looking, run_looking, .unsupported = NULL);

static void cold_inputs_are_others_each_time_with_the_same_contents(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = small_bench_options;
  options.iterations = 9;
  options.repetitions = 1;
  options.min_time = options.min_warmup_time = 0;
  small_bench_add(points, 0, &looking, 1);
  for (int cold = 0; cold <= 1; cold++) {
    memset(&looked, 0, sizeof looked);
    looked.equal = true;
    options.cold = cold;
    run(points, 1, options, 0, &report);
    assert_int_equal(looked.same, cold ? 0 : 8);
    assert_int_equal(looked.others, cold ? 8 : 0);
    assert_true(looked.equal);
    report_destroy(&report);
  }
}

static double left_hot(const char *text) {
  workload w;
  char why[512];
  if (!workload_parse_sound(text, &w, why, sizeof why)) fail_msg("%s: %s", text, why);
  const attn_problem problem = workload_problem(&w);
  return cold_left_hot(&problem);
}

/* What lies in the problem is the same for each iteration. */
static void what_stays_in_the_caches_is_known(void **state) {
  (void)state;
  assert_true(left_hot("causal/H:4/D:64/T:512/sink/bias:q/mask:q") == 0);
  assert_true(left_hot("causal/H:4/D:64/T:512/docs:64") < 0.01);
  const double state_bytes = 64 * 64 + 64, token_bytes = 4 * 64;
  assert_true(fabs(left_hot("linear/causal/H:4/D:64/T:1/state") - state_bytes / (state_bytes + token_bytes)) <
              1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_point_is_verified_timed_and_named),
      cmocka_unit_test(short_runs_are_repeated_within_one_repetition),
      cmocka_unit_test(a_point_over_the_limit_is_skipped_with_its_predicted_cost),
      cmocka_unit_test(a_point_ends_after_a_verification_run_over_the_limit),
      cmocka_unit_test(the_time_that_is_left_includes_the_peaks),
      cmocka_unit_test(the_peaks_take_no_longer_than_the_points),
      cmocka_unit_test(a_first_point_over_the_limit_is_never_run),
      cmocka_unit_test(a_point_over_the_memory_is_skipped),
      cmocka_unit_test(a_workspace_without_sense_is_a_failure_of_its_variant),
      cmocka_unit_test(an_unsupported_point_is_skipped_in_the_variants_words),
      cmocka_unit_test(a_wrong_kernel_is_recorded_and_not_timed),
      cmocka_unit_test(touched_bytes_are_real_and_not_declared),
      cmocka_unit_test(a_kernel_that_allocates_fails),
      cmocka_unit_test(memory_is_the_sum_of_its_parts),
      cmocka_unit_test(an_interruption_keeps_what_was_measured),
      cmocka_unit_test(an_interruption_before_any_result_says_so),
      cmocka_unit_test(cold_inputs_are_others_each_time_with_the_same_contents),
      cmocka_unit_test(what_stays_in_the_caches_is_known),
      cmocka_unit_test(turns_are_taken_in_an_order_that_the_seed_decides),
  };
  return cmocka_run_group_tests(tests, start_presser, end_presser);
}
