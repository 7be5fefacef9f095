/* See measurement.h. */
#include "measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/crash.h"
#include "base/interrupt.h"
#include "base/timer.h"

static const double confidence = 0.95;

/* ---- verification ---- */

static void fail(measurement *measurement, const char *reason) {
  measurement->result->state = RESULT_FAILED;
  snprintf(measurement->result->reason, sizeof measurement->result->reason, "%s", reason);
}

static void judge(measurement *measurement, const guarded *workspace) {
  result *result = measurement->result;
  verdict verdict;
  expected_compare(measurement->expected, &verdict);
  result->error_bound_fraction = verdict.bound_share;
  result->rows_checked = verdict.rows_checked;
  result->rows_total = verdict.rows_total;
  if (!verdict.passed)
    fail(measurement, verdict.problem);
  else if (!guarded_intact(workspace))
    fail(measurement, "writes beyond its workspace");
  else if (!guarded_intact(&measurement->inputs->output))
    fail(measurement, "writes beyond the output");
  else if (inputs_checksum(measurement->inputs) != measurement->expected->inputs_checksum)
    fail(measurement, "changes its inputs");
}

bool measurement_verify(measurement *measurement, char *why, size_t why_size) {
  inputs *in = measurement->inputs;
  guarded workspace;
  if (!guarded_create(&workspace, measurement->result->workspace_bytes, 64, why, why_size)) return false;
  guarded_reset(&workspace);
  inputs_poison_outputs(in);
  crash_context(measurement->variant->name, measurement->problem, measurement->origin,
                measurement->options->isa, measurement->options->threads);
  const double start = wall_seconds();
  measurement->variant->run(&in->problem, &in->tensors, workspace.data, measurement->options->threads);
  measurement->run_seconds = wall_seconds() - start;
  crash_context(NULL, NULL, NULL, NULL, 0);
  measurement->result->workspace_touched_bytes = guarded_touched_bytes(&workspace);
  judge(measurement, &workspace);
  guarded_destroy(&workspace);
  return true;
}

/* ---- timing ---- */

typedef struct elapsed {
  double wall, cpu;
} elapsed;

/* Runs the variant so many times; false when interrupted in between. */
static bool run_batch(const measurement *measurement, void *workspace, int64_t iterations, elapsed *elapsed) {
  const attn_problem *problem = &measurement->inputs->problem;
  const attn_tensors *tensors = measurement->copy_count ? measurement->copies : &measurement->inputs->tensors;
  const size_t copies = measurement->copy_count ? measurement->copy_count : 1;
  void (*const run)(const attn_problem *, const attn_tensors *, void *, int) = measurement->variant->run;
  const int threads = measurement->options->threads;
  crash_context(measurement->variant->name, measurement->problem, measurement->origin,
                measurement->options->isa, measurement->options->threads);
  const double cpu_start = cpu_seconds(), start = wall_seconds();
  bool whole = true;
  for (int64_t n = 0; n < iterations && whole; n++) {
    run(problem, tensors + (size_t)n % copies, workspace, threads);
    whole = n + 1 == iterations || !interrupt_wanted();
  }
  elapsed->wall = wall_seconds() - start;
  elapsed->cpu = cpu_seconds() - cpu_start;
  crash_context(NULL, NULL, NULL, NULL, 0);
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
    elapsed elapsed;
    if (!run_batch(measurement, workspace, iterations, &elapsed)) return false;
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
  elapsed elapsed;
  /* Another point ran before, and took the caches: one run brings them back where it costs little. */
  if (result->iterations >= CHEAP_BESIDE && !measurement->options->cold &&
      !run_batch(measurement, workspace, 1, &elapsed))
    return false;
  if (!run_batch(measurement, workspace, result->iterations, &elapsed)) return false;
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
  if (measurement->result->seconds && measurement->result->cpu_seconds) return true;
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
