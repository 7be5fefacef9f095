/* See measurement.h. */
#include "measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/interrupt.h"
#include "base/random.h"
#include "base/timer.h"
#include "verify/verify.h"

static const double confidence = 0.95;

/* Of the time in repetitions, for holding what they wrote to the reference. */
static const double checked_share = 0.05;

/* ---- verification ---- */

static void fail(measurement *measurement, const char *reason) {
  measurement->result->state = RESULT_FAILED;
  snprintf(measurement->result->reason, sizeof measurement->result->reason, "%s", reason);
}

static bool no_memory(char *why, size_t why_size) {
  snprintf(why, why_size, "out of memory for reference rows");
  return false;
}

bool measurement_verify(measurement *measurement, char *why, size_t why_size) {
  /* On a device touched is what differs from before: from what no kernel writes. */
  enum { UNLIKELY_BYTE = 0x5a };
  const bool on_host = measurement->setup.variant->place == ATTN_HOST;
  const run_watch watch = {.workspace = on_host ? RUN_FRESH : UNLIKELY_BYTE,
                           .inputs_checksum = measurement->expected->inputs_checksum};
  result *result = measurement->result;
  run_outcome outcome;
  verdict verdict;
  if (!runner_run(&measurement->setup, measurement->inputs, &watch, &outcome, why, why_size)) return false;
  measurement->run_seconds = outcome.seconds;
  measurement->inputs_checksum = watch.inputs_checksum;
  result->workspace_touched_bytes = outcome.workspace_touched_bytes;
  expected_compare(measurement->expected, measurement->setup.variant->traits, &verdict);
  if (measurement->projection) {
    if (!verify_projected(measurement->inputs, measurement->projection, measurement->setup.variant->traits,
                          &verdict))
      return no_memory(why, why_size);
    result->rows_projected = measurement->projection->rows;
  }
  result->error_bound_fraction = verdict.bound_share;
  result->rows_checked = verdict.rows_checked;
  result->rows_total = verdict.rows_total;
  if (!verdict.passed && outcome.ran && !outcome.device_failed)
    fail(measurement, verdict.problem);
  else if (outcome.violation[0])
    fail(measurement, outcome.violation);
  return true;
}

/* ---- timing ---- */

static void fail_while_timed(measurement *measurement, const char *problem) {
  char sentence[sizeof measurement->result->reason];
  snprintf(sentence, sizeof sentence, "right at first, but wrong while it is timed: %.200s", problem);
  fail(measurement, sentence);
}

/* Holds what the last run of a batch wrote to the reference. */
static void check_batch(measurement *measurement, const run_batch *batch) {
  const double start = wall_seconds();
  verdict verdict;
  if (verify_batch(batch, measurement->projection, measurement->setup.variant->traits, &verdict) &&
      !verdict.passed)
    fail_while_timed(measurement, verdict.problem);
  measurement->checked += wall_seconds() - start;
}

/* What is done with a batch: those that are timed are all alike to a kernel, which finds the outputs poisoned. */
typedef enum batch_kind { BATCH_WARMING, BATCH_TIMED, BATCH_CHECKED } batch_kind;

/* Other measurements have the same inputs, and nobody looked at what they did since their last check. */
static void prepare_check(measurement *measurement) {
  const double start = wall_seconds();
  if (!inputs_are_whole(measurement->inputs, measurement->inputs_checksum))
    inputs_restore(measurement->inputs);
  measurement->checked += wall_seconds() - start;
}

/* Runs the variant so many times; false when interrupted in between. */
static bool run_batch_of(measurement *measurement, void *workspace, int64_t iterations, batch_kind kind,
                         run_elapsed *elapsed) {
  const bool checked = kind == BATCH_CHECKED;
  run_batch batch = {.inputs = measurement->inputs,
                     .copies = measurement->copies,
                     .copy_count = measurement->copy_count,
                     .cold = measurement->options->cold,
                     .workspace = workspace,
                     .iterations = iterations,
                     .seed =
                         random_mixed(measurement->options->seed + UINT64_C(0x71ed)) + measurement->batches++,
                     .ends = interrupt_wanted};
  const uint64_t checksum = checked ? measurement->inputs_checksum : 0;
  if (checked) prepare_check(measurement);
  if (kind != BATCH_WARMING) inputs_poison_outputs(measurement->inputs);
  const bool whole = runner_time(&measurement->setup, &batch, elapsed);
  const bool good = batch.violation[0] == '\0';
  if (whole && checked && good) check_batch(measurement, &batch);
  if (!runner_restore(&batch, checksum) || !good) fail_while_timed(measurement, batch.violation);
  return whole;
}

/* Iterations that take the time, by what a batch took; at most ten times as many as before, since short
 * batches tell little. */
static int64_t next_iterations(int64_t iterations, double taken, double wanted) {
  const double growth = fmin(10, 1.2 * wanted / fmax(taken, 1e-9));
  const int64_t next = (int64_t)ceil((double)iterations * growth);
  return next > iterations ? next : iterations + 1;
}

/* Runs until the time of an iteration has settled: two batches in a row that are no faster than the fastest
 * before them, by more than noise. A batch is a fifth of a repetition. What never settles within ten
 * repetitions has something else the matter with it. False when interrupted. */
static bool settle(measurement *measurement, void *workspace) {
  const double settled_within = 0.02;
  const double batch = measurement->options->min_time / 5, warmup = measurement->options->min_warmup_time;
  int64_t iterations = 1;
  double fastest = INFINITY, warmed = 0;
  for (int steady = 0; steady < 2 || warmed < warmup;) {
    run_elapsed elapsed;
    if (!run_batch_of(measurement, workspace, iterations, BATCH_WARMING, &elapsed)) return false;
    const double seconds = elapsed.wall / (double)iterations;
    warmed += elapsed.wall;
    steady = seconds >= (1 - settled_within) * fastest ? steady + 1 : 0;
    fastest = fmin(fastest, seconds);
    if (warmed > 10 * measurement->options->min_time + warmup) break;
    if (elapsed.wall < batch) {
      iterations = next_iterations(iterations, elapsed.wall, batch);
      steady = 0; /* too short to tell */
    }
  }
  measurement->run_seconds = fastest;
  if (inputs_are_whole(measurement->inputs, measurement->inputs_checksum)) return true;
  fail_while_timed(measurement, "changes its inputs, or writes beyond them or its outputs");
  inputs_restore(measurement->inputs);
  return true;
}

bool measurement_calibrate(measurement *measurement, void *workspace) {
  const bench_options *options = measurement->options;
  const double wanted = options->min_time;
  /* The verification was a run too; one that was so long leaves nothing cold and nothing to find out. */
  if (measurement->run_seconds < 4 * wanted || measurement->run_seconds < options->min_warmup_time)
    if (!settle(measurement, workspace)) return false;
  const double most = (double)(INT64_C(1) << 40);
  const double iterations = fmin(most, fmax(1, ceil(wanted / fmax(measurement->run_seconds, 1e-12))));
  measurement->result->iterations = options->iterations ? options->iterations : (int64_t)iterations;
  return true;
}

bool measurement_repeat(measurement *measurement, void *workspace) {
  enum { CHEAP_BESIDE = 10 };
  result *result = measurement->result;
  run_elapsed elapsed;
  /* Another point ran before, and took the caches: one run brings them back where it costs little. */
  if (result->iterations >= CHEAP_BESIDE && !measurement->options->cold &&
      !run_batch_of(measurement, workspace, 1, BATCH_WARMING, &elapsed))
    return false;
  /* The first, another one early, and as many as are cheap. */
  const bool chosen = result->repetitions == 0 || result->repetitions == 1 + measurement->options->seed % 5;
  const bool checked = chosen || measurement->checked < checked_share * measurement->spent;
  const batch_kind kind = checked ? BATCH_CHECKED : BATCH_TIMED;
  if (!run_batch_of(measurement, workspace, result->iterations, kind, &elapsed)) return false;
  const double iterations = (double)result->iterations;
  result->seconds[result->repetitions] = elapsed.wall / iterations;
  result->cpu_seconds[result->repetitions] = elapsed.cpu / iterations;
  result->repetitions++;
  measurement->spent += elapsed.wall;
  measurement->run_seconds = measurement->spent / (double)result->repetitions / iterations;
  result->seconds_median = statistics_median_interval(result->seconds, result->repetitions, confidence);
  return true;
}

/* ---- how many repetitions ---- */

/* No more than the budget holds, if repetitions are as long as they should be; iterations that were found
 * while the machine was slow make them shorter. */
bool measurement_make_room(measurement *measurement, char *why, size_t why_size) {
  const bench_options *options = measurement->options;
  const double most = 10000, filled = 2 * options->point_budget / fmax(options->min_time, 1e-9);
  measurement->most = options->repetitions > 0 ? (size_t)options->repetitions
                                               : BENCH_LEAST_REPETITIONS + (size_t)fmin(most, filled);
  measurement->result->seconds = calloc(measurement->most, sizeof *measurement->result->seconds);
  measurement->result->cpu_seconds = calloc(measurement->most, sizeof *measurement->result->cpu_seconds);
  measurement->result->shares = calloc(measurement->most, sizeof *measurement->result->shares);
  if (measurement->result->seconds && measurement->result->cpu_seconds && measurement->result->shares)
    return true;
  snprintf(why, why_size, "out of memory for %zu repetitions", measurement->most);
  return false;
}

static bool is_precise(const measurement *measurement) {
  const interval median = measurement->result->seconds_median;
  return 0.5 * (median.high - median.low) <= measurement->options->precision * median.estimate;
}

bool measurement_wants_more(const measurement *measurement) {
  const bench_options *options = measurement->options;
  const size_t made = measurement->result->repetitions;
  if (measurement->result->state == RESULT_FAILED) return false;
  if (options->repetitions > 0 || made >= measurement->most) return made < measurement->most;
  if (made < BENCH_LEAST_REPETITIONS || measurement->spent < options->least_time) return true;
  return measurement->spent < options->point_budget && !is_precise(measurement);
}

double measurement_seconds_left(const measurement *measurement) {
  const bench_options *options = measurement->options;
  const size_t made = measurement->result->repetitions;
  if (!measurement_wants_more(measurement)) return 0;
  const double iterations = fmax(1, (double)measurement->result->iterations);
  const double repetition = fmax(options->min_time, measurement->run_seconds * iterations);
  if (options->repetitions > 0) return (double)(measurement->most - made) * repetition;
  const double least = made < BENCH_LEAST_REPETITIONS ? (double)(BENCH_LEAST_REPETITIONS - made) : 0;
  return fmax(least * repetition, options->point_budget - measurement->spent);
}

void measurement_finish(measurement *measurement) {
  result *result = measurement->result;
  if (result->repetitions > 0) result->flops_per_second = result->flops / result->seconds_median.estimate;
}
