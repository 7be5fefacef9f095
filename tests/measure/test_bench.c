/* The sweep, on small variants that do what a test needs: wait, count, fail, press Ctrl-C. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "measure/bench.h"
#include "run/footprint.h"

static struct {
  int runs, interrupt_at; /* the run in which Ctrl-C is pressed; 0: never */
  int64_t longest;        /* T that was run */
  char order[64];         /* the first letter of each variant that was run */
} seen;

/* The formula, for one thread; small problems only. */
static void solve(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const float *q = t->query, *k = t->key, *v = t->value;
  float *o = t->output;
  for (int64_t row = 0; row < p->query_heads * p->query_length; row++) {
    const int64_t head = row / p->query_length;
    float sum = 0;
    memset(o + row * p->value_dim, 0, (size_t)p->value_dim * sizeof *o);
    for (int64_t j = 0; j < p->key_length; j++) {
      float score = 0;
      for (int64_t d = 0; d < p->head_dim; d++)
        score += q[row * p->head_dim + d] * k[(head * p->key_length + j) * p->head_dim + d];
      const float weight = expf(score * (float)p->scale);
      sum += weight;
      for (int64_t d = 0; d < p->value_dim; d++)
        o[row * p->value_dim + d] += weight * v[(head * p->key_length + j) * p->value_dim + d];
    }
    for (int64_t d = 0; d < p->value_dim; d++) o[row * p->value_dim + d] /= sum;
  }
}

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

static void run_right(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (!seen.order[seen.runs % (int)sizeof seen.order]) note('r');
  seen.runs++;
  if (p->key_length > seen.longest) seen.longest = p->key_length;
  solve(call);
  if (seen.runs == seen.interrupt_at) raise(SIGINT);
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

#define VARIANT(called, with, ...)                                                                           \
  static const attn_variant called = {.name = #called,                                                       \
                                      .summary = "of a test",                                                \
                                      .types = 1u << ATTN_FLOAT32,                                           \
                                      .time_exponent = 2,                                                    \
                                      .run = with,                                                           \
                                      __VA_ARGS__}
VARIANT(right, run_right, .unsupported = NULL);
VARIANT(slow, run_slow, .unsupported = NULL);
VARIANT(wrong, run_wrong, .unsupported = NULL);
VARIANT(refusing, run_right, .unsupported = refuse_all);
VARIANT(greedy, run_right, .workspace_size = ask_for_too_much);
VARIANT(absurd, run_right, .workspace_size = ask_for_the_absurd);
VARIANT(allocating, run_allocating, .unsupported = NULL);
VARIANT(touching, run_touching_a_tenth, .workspace_size = ask_for_a_mebibyte);

static const bench_options quick = {.threads = 1,
                                    .isa = "portable",
                                    .min_time = 1e-4,
                                    .min_warmup_time = 1e-4,
                                    .repetitions = 5,
                                    .precision = 0.01,
                                    .point_limit = 10,
                                    .point_budget = 0.05,
                                    .random_interleaving = true,
                                    .seed = 1,
                                    .quiet = true};

/* Adds the variant at so many lengths, from 32 in doublings, to the points. */
static size_t add_points(bench_point *points, size_t count, const attn_variant *variant, int lengths) {
  for (int n = 0; n < lengths; n++) {
    bench_point *point = &points[count++];
    *point = (bench_point){.variant = variant, .workload = workload_default()};
    point->workload.query_heads = point->workload.kv_heads = 1;
    point->workload.head_dim = point->workload.value_dim = 4;
    point->workload.query_length = point->workload.key_length = 32 << n;
  }
  return count;
}

static void run(const bench_point *points, size_t count, bench_options options, int interrupt_at,
                report *report) {
  char why[256] = "";
  memset(&seen, 0, sizeof seen);
  seen.interrupt_at = interrupt_at;
  if (!bench_run(points, count, &options, report, why, sizeof why)) fail_msg("nothing was measured: %s", why);
}

static void every_point_is_verified_timed_and_named(void **state) {
  (void)state;
  bench_point points[8];
  report report;
  const size_t count = add_points(points, add_points(points, 0, &right, 3), &slow, 3);
  bench_options options = quick;
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
  bench_options options = quick;
  options.min_time = 5e-3;
  add_points(points, 0, &right, 1);
  run(points, 1, options, 0, &report);
  const result *result = &report.results[0];
  assert_true(result->iterations > 1);
  assert_true(result->seconds_median.estimate * (double)result->iterations >
              0.1 * options.min_time); /* on a busy machine */
  report_destroy(&report);
}

static void a_point_over_the_limit_is_skipped_with_its_predicted_cost(void **state) {
  (void)state;
  bench_point points[4];
  report report;
  bench_options options = quick;
  options.point_limit = 15e-3; /* T = 64 takes 4 ms, and on a busy machine more; 128 would take 16 or more */
  add_points(points, 0, &slow, 4);
  run(points, 4, options, 0, &report);
  assert_int_equal(report.result_count, 4);
  assert_int_equal(report.results[0].state, RESULT_MEASURED);
  for (size_t n = 2; n < 4; n++) {
    assert_int_equal(report.results[n].state, RESULT_SKIPPED);
    assert_non_null(strstr(report.results[n].reason, "one run would take about"));
    assert_non_null(strstr(report.results[n].reason, "over the limit of 0.015 s"));
  }
  assert_true(seen.longest <= 64);
  report_destroy(&report);
}

/* Without a shorter length to judge by, parts of the problem are run, and no more. */
static void a_first_point_over_the_limit_is_never_run(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = quick;
  options.point_limit = 0.02;
  add_points(points, 0, &slow, 1);
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
  add_points(points, 0, &greedy, 1);
  run(points, 1, quick, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_SKIPPED);
  assert_non_null(strstr(report.results[0].reason, "of memory"));
  assert_int_equal(seen.runs, 0);
  report_destroy(&report);
}

static void a_workspace_without_sense_is_a_failure_of_its_variant(void **state) {
  (void)state;
  bench_point points[2];
  report report;
  add_points(points, add_points(points, 0, &absurd, 1), &right, 1);
  run(points, 2, quick, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_FAILED);
  assert_non_null(strstr(report.results[0].reason, "asks for 18446744073709551608 bytes (-8) of workspace"));
  assert_int_equal(report.results[1].state, RESULT_MEASURED);
  report_destroy(&report);
}

static void an_unsupported_point_is_skipped_in_the_variants_words(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  add_points(points, 0, &refusing, 1);
  run(points, 1, quick, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_SKIPPED);
  assert_string_equal(report.results[0].reason, "needs the moon to be full");
  report_destroy(&report);
}

static void a_wrong_kernel_is_recorded_and_not_timed(void **state) {
  (void)state;
  bench_point points[2];
  report report;
  add_points(points, add_points(points, 0, &wrong, 1), &right, 1);
  run(points, 2, quick, 0, &report);
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
  add_points(points, add_points(points, 0, &touching, 1), &right, 1);
  run(points, 2, quick, 0, &report);
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
  add_points(points, 0, &allocating, 1);
  run(points, 1, quick, 0, &report);
  assert_int_equal(report.results[0].state, RESULT_FAILED);
  assert_non_null(strstr(report.results[0].reason, "calls malloc inside run, 1 time in all"));
  report_destroy(&report);
}

static void memory_is_the_sum_of_its_parts(void **state) {
  (void)state;
  if (!footprint_is_measured()) skip();
  bench_point points[1];
  report report;
  add_points(points, 0, &touching, 1);
  run(points, 1, quick, 0, &report);
  const result *result = &report.results[0];
  assert_true(result->stack_bytes > 0 && result->static_bytes > 0);
  assert_int_equal(result->memory_bytes, 100000 + result->stack_bytes + result->static_bytes);
  report_destroy(&report);
}

static void an_interruption_keeps_what_was_measured(void **state) {
  (void)state;
  bench_point points[3];
  report report;
  bench_options options = quick;
  options.min_time = options.min_warmup_time =
      0; /* each point runs once to be verified and 5 times in turns */
  add_points(points, 0, &right, 3);
  run(points, 3, options, 3 + 2, &report); /* in the second run of the first pass */
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
  add_points(points, 0, &right, 1);
  memset(&seen, 0, sizeof seen);
  seen.interrupt_at = 1;
  assert_false(bench_run(points, 1, &quick, &report, why, sizeof why));
  assert_non_null(strstr(why, "before anything was measured"));
  report_destroy(&report);
}

/* Runs three variants five times and tells in which order; the first three runs are the verification. */
static void order_of_turns(bool interleaved, uint64_t seed, char order[64]) {
  bench_point points[3];
  report report;
  bench_options options = quick;
  options.min_time = options.min_warmup_time = 0;
  options.point_budget = 10;
  options.random_interleaving = interleaved;
  options.seed = seed;
  add_points(points, add_points(points, add_points(points, 0, &right, 1), &slow, 1), &touching, 1);
  run(points, 3, options, 0, &report);
  memcpy(order, seen.order, sizeof seen.order);
  report_destroy(&report);
}

static void turns_are_taken_in_an_order_that_the_seed_decides(void **state) {
  (void)state;
  char first[64], again[64], other[64];
  order_of_turns(false, 1, first);
  assert_string_equal(first, "rst" /* to be verified */
                             "rrrrrsssssttttt");
  order_of_turns(true, 1, first);
  order_of_turns(true, 1, again);
  order_of_turns(true, 2, other);
  assert_string_equal(first, again);
  assert_string_not_equal(first, other);
  for (size_t n = 0; n < 18; n += 3) { /* each round has all three */
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
  const bool had_before = seen.runs > 1; /* the first run is the verification, whose inputs are gone then */
  looked.same += had_before && looked.query == query;
  if (had_before && looked.query != query) {
    looked.others++;
    looked.equal = looked.equal && same_sizes(looked.query, query, call->problem->query_length * 4);
  }
  looked.query = query;
  run_right(call);
}
VARIANT(looking, run_looking, .unsupported = NULL);

static void cold_inputs_are_others_each_time_with_the_same_contents(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = quick;
  options.iterations = 9;
  options.repetitions = 1;
  options.min_time = options.min_warmup_time = 0;
  add_points(points, 0, &looking, 1);
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

/* ---- kernels that are right when they are verified, and then save themselves the work ---- */

static void run_unless_written(const attn_call *call) {
  uint32_t first;
  memcpy(&first, call->tensors.output, sizeof first);
  if (first == GUARDED_POISON) run_right(call);
}

static void run_where_the_pointers_are_new(const attn_call *call) {
  static attn_tensors last;
  const attn_tensors *now = &call->tensors;
  if (now->query == last.query && now->key == last.key && now->value == last.value) return;
  last = *now;
  run_right(call);
}

static void run_from_memory(const attn_call *call) {
  static float remembered[32 * 4];
  static bool verified;
  const size_t bytes = (size_t)(call->problem->query_length * call->problem->value_dim) * sizeof(float);
  assert_true(bytes <= sizeof remembered);
  if (!verified) {
    run_right(call);
    memcpy(remembered, call->tensors.output, bytes);
    verified = true;
  } else {
    memcpy(call->tensors.output, remembered, bytes);
  }
}

VARIANT(unless_written, run_unless_written, .unsupported = NULL);
VARIANT(new_pointers, run_where_the_pointers_are_new, .unsupported = NULL);
VARIANT(from_memory, run_from_memory, .unsupported = NULL);

/* Right each time for what the inputs then are. */
static void run_and_change(const attn_call *call) {
  static int calls;
  if (calls++ > 3) ((float *)(uintptr_t)call->tensors.query)[1] = 0;
  run_right(call);
}
VARIANT(changing, run_and_change, .unsupported = NULL);

static void assert_caught(const result *cheat) {
  if (cheat->state != RESULT_FAILED || !strstr(cheat->reason, "while it is timed"))
    fail_msg("%s: state %d, '%s'", cheat->name, (int)cheat->state, cheat->reason);
}

static void what_is_timed_is_verified(void **state) {
  (void)state;
  const attn_variant *const variants[] = {&unless_written, &new_pointers, &from_memory, &changing, &right};
  bench_point points[5];
  report report;
  size_t count = 0;
  for (size_t n = 0; n < 5; n++) count = add_points(points, count, variants[n], 1);
  run(points, count, quick, 0, &report);
  for (size_t n = 0; n < 4; n++) assert_caught(&report.results[n]);
  assert_int_equal(report.results[4].state, RESULT_MEASURED);
  report_destroy(&report);
}

/* Of repetitions of one run, few are held to the reference: those before which all of the output is poisoned. */
static void a_single_run_that_leaves_early_is_seen_too(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = quick;
  options.iterations = 1;
  options.repetitions = 30;
  add_points(points, 0, &unless_written, 1);
  run(points, 1, options, 0, &report);
  assert_caught(&report.results[0]);
  report_destroy(&report);
}

/* ---- one wrong row of thousands ---- */

enum { ONE_ROW = 1234 };

/* As a kernel whose last tile forgets a key; one that hits a single element; and the same of runs that are timed. */
static struct {
  int64_t dropped_key;
  bool only_later;
  float error; /* instead, of an element */
  int calls;
} slip;

static void run_with_a_slip(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const int64_t head = ONE_ROW / p->query_length, Dv = p->value_dim;
  run_right(call);
  if (slip.only_later && slip.calls++ == 0) return;
  float *row = (float *)t->output + ONE_ROW * Dv, score = 0, sum = 0;
  row[1] += slip.error;
  if (slip.error != 0) return;
  const float *q = (const float *)t->query + ONE_ROW * p->head_dim;
  const float *keys = (const float *)t->key + head * p->key_length * p->head_dim;
  const float *value = (const float *)t->value + (head * p->key_length + slip.dropped_key) * Dv;
  for (int64_t j = 0; j < p->key_length; j++) {
    score = 0;
    for (int64_t d = 0; d < p->head_dim; d++) score += q[d] * keys[j * p->head_dim + d];
    sum += expf(score * (float)p->scale);
  }
  score = 0;
  for (int64_t d = 0; d < p->head_dim; d++) score += q[d] * keys[slip.dropped_key * p->head_dim + d];
  const float weight = expf(score * (float)p->scale) / sum;
  for (int64_t d = 0; d < Dv; d++) row[d] = (row[d] - weight * value[d]) / (1 - weight);
}
VARIANT(slipping, run_with_a_slip, .unsupported = NULL);

static void one_wrong_row_of_thousands_fails_the_point(void **state) {
  (void)state;
  const struct {
    int64_t dropped_key;
    bool only_later;
    float error;
  } slips[] = {{77, false, 0}, {1023, true, 0}, {0, false, 2e-4f}, {0, true, 2e-4f}, {0, true, NAN}};
  for (size_t n = 0; n < sizeof slips / sizeof *slips; n++) {
    bench_point points[1];
    report report;
    bench_options options = quick;
    options.min_time = options.min_warmup_time = 0;
    options.iterations = 1;
    options.repetitions = 1;
    add_points(points, 0, &slipping, 1);
    points[0].workload.query_length = points[0].workload.key_length = 1024;
    points[0].workload.query_heads = points[0].workload.kv_heads = 2;
    slip.dropped_key = slips[n].dropped_key;
    slip.only_later = slips[n].only_later;
    slip.error = slips[n].error;
    slip.calls = 0;
    run(points, 1, options, 0, &report);
    const result *result = &report.results[0];
    if (result->state != RESULT_FAILED || !strstr(result->reason, "h 1, i 210") ||
        !strstr(result->reason, "while it is timed") != !slips[n].only_later)
      fail_msg("slip %zu: state %d, '%s'", n, (int)result->state, result->reason);
    assert_int_equal(result->rows_total, 2048);
    assert_int_equal(result->rows_projected, 2048);
    report_destroy(&report);
  }
}

/* ---- more than the machine can do ---- */

enum { PRETENDED = 5000 };

/* Right where it is looked at: in the first run on poisoned outputs, and in the last of a batch, whose length it knows. */
static void run_in_the_last(const attn_call *call) {
  static int runs;
  const uint32_t poison = GUARDED_POISON;
  const char *output = call->tensors.output;
  if (memcmp(output, &poison, sizeof poison) == 0 && memcmp(output + 20, &poison, sizeof poison) == 0)
    runs = 0;
  if (runs == 0 || runs == PRETENDED - 1) run_right(call);
  for (int n = 0; n < 128 * 4 && runs > 0 && runs < PRETENDED - 1; n++) {
    float *element = (float *)call->tensors.output + n;
    if (memcmp((const char *)element, &poison, sizeof poison) == 0)
      *element = 0; /* the one that would show */
  }
  runs++;
}
VARIANT(last_only, run_in_the_last, .unsupported = NULL);

static void a_rate_above_what_the_machine_can_do_fails(void **state) {
  (void)state;
  bench_point points[1];
  report report;
  bench_options options = quick;
  options.min_time = options.min_warmup_time = 0;
  options.iterations = PRETENDED;
  options.machine_seconds = 0.01;
  options.repetitions = 1;
  add_points(points, 0, &last_only, 1);
  points[0].workload.query_length = 128;
  points[0].workload.key_length = 4096; /* also instrumented, where to do nothing takes longer */
  run(points, 1, options, 0, &report);
  const result *cheat = &report.results[0];
  if (cheat->state != RESULT_FAILED ||
      !strstr(cheat->reason, "GFLOP/s cannot be: the most for this machine with 1 thread is "))
    fail_msg("state %d, '%s', %g GFLOP/s", (int)cheat->state, cheat->reason, cheat->flops_per_second * 1e-9);
  report_destroy(&report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_point_is_verified_timed_and_named),
      cmocka_unit_test(short_runs_are_repeated_within_one_repetition),
      cmocka_unit_test(a_point_over_the_limit_is_skipped_with_its_predicted_cost),
      cmocka_unit_test(a_first_point_over_the_limit_is_never_run),
      cmocka_unit_test(a_point_over_the_memory_is_skipped),
      cmocka_unit_test(a_workspace_without_sense_is_a_failure_of_its_variant),
      cmocka_unit_test(an_unsupported_point_is_skipped_in_the_variants_words),
      cmocka_unit_test(a_wrong_kernel_is_recorded_and_not_timed),
      cmocka_unit_test(what_is_timed_is_verified),
      cmocka_unit_test(a_single_run_that_leaves_early_is_seen_too),
      cmocka_unit_test(one_wrong_row_of_thousands_fails_the_point),
      cmocka_unit_test(a_rate_above_what_the_machine_can_do_fails),
      cmocka_unit_test(touched_bytes_are_real_and_not_declared),
      cmocka_unit_test(a_kernel_that_allocates_fails),
      cmocka_unit_test(memory_is_the_sum_of_its_parts),
      cmocka_unit_test(an_interruption_keeps_what_was_measured),
      cmocka_unit_test(an_interruption_before_any_result_says_so),
      cmocka_unit_test(cold_inputs_are_others_each_time_with_the_same_contents),
      cmocka_unit_test(turns_are_taken_in_an_order_that_the_seed_decides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
