/* See trial.h. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>

#include "crash.h"
#include "interrupt.h"
#include "timer.h"

static const double confidence = 0.95;

/* ---- verification ---- */

static void fail(trial *trial, const char *reason) {
  trial->result->state = RESULT_FAILED;
  snprintf(trial->result->reason, sizeof trial->result->reason, "%s", reason);
}

static void judge(trial *trial, const guarded *workspace) {
  result *result = trial->result;
  verdict verdict;
  truth_compare(trial->truth, &verdict);
  result->error_bound_fraction = verdict.bound_share;
  result->rows_checked = verdict.rows_checked;
  result->rows_total = verdict.rows_total;
  if (!verdict.passed)
    fail(trial, verdict.problem);
  else if (!guarded_intact(workspace))
    fail(trial, "writes beyond its workspace");
  else if (!guarded_intact(&trial->inputs->output))
    fail(trial, "writes beyond the output");
  else if (inputs_checksum(trial->inputs) != trial->truth->inputs_checksum)
    fail(trial, "changes its inputs");
}

bool trial_verify(trial *trial, char *why, size_t why_size) {
  inputs *in = trial->inputs;
  guarded workspace;
  if (!guarded_create(&workspace, trial->result->workspace_bytes, 64, why, why_size)) return false;
  guarded_reset(&workspace);
  inputs_poison_outputs(in);
  crash_context(trial->variant->name, trial->problem, trial->origin, trial->options->isa,
                trial->options->threads);
  const double start = wall_seconds();
  trial->variant->run(&in->problem, &in->tensors, workspace.data, trial->options->threads);
  trial->run_seconds = wall_seconds() - start;
  crash_context(NULL, NULL, NULL, NULL, 0);
  trial->result->workspace_touched_bytes = guarded_touched_bytes(&workspace);
  judge(trial, &workspace);
  guarded_destroy(&workspace);
  return true;
}

/* ---- timing ---- */

typedef struct elapsed {
  double wall, cpu;
} elapsed;

/* Runs the variant so many times; false when interrupted in between. */
static bool run_batch(const trial *trial, void *workspace, int64_t iterations, elapsed *elapsed) {
  const attn_problem *problem = &trial->inputs->problem;
  const attn_tensors *tensors = trial->copy_count ? trial->copies : &trial->inputs->tensors;
  const size_t copies = trial->copy_count ? trial->copy_count : 1;
  void (*const run)(const attn_problem *, const attn_tensors *, void *, int) = trial->variant->run;
  const int threads = trial->options->threads;
  crash_context(trial->variant->name, trial->problem, trial->origin, trial->options->isa,
                trial->options->threads);
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
static bool settle(trial *trial, void *workspace) {
  const double settled_within = 0.02;
  const double batch = trial->options->min_time / 5, warmup = trial->options->min_warmup_time;
  int64_t iterations = 1;
  double fastest = INFINITY, warmed = 0;
  for (int steady = 0; steady < 2 || warmed < warmup;) {
    elapsed elapsed;
    if (!run_batch(trial, workspace, iterations, &elapsed)) return false;
    const double seconds = elapsed.wall / (double)iterations;
    warmed += elapsed.wall;
    steady = seconds >= (1 - settled_within) * fastest ? steady + 1 : 0;
    fastest = fmin(fastest, seconds);
    if (warmed > 10 * trial->options->min_time + warmup) break;
    if (elapsed.wall < batch) {
      iterations = next_iterations(iterations, elapsed.wall, batch);
      steady = 0; /* too short to tell */
    }
  }
  trial->run_seconds = fastest;
  return true;
}

bool trial_calibrate(trial *trial, void *workspace) {
  const bench_options *options = trial->options;
  const double wanted = options->min_time;
  /* The verification was a run too; one that was so long leaves nothing cold and nothing to find out. */
  if (trial->run_seconds < 4 * wanted || trial->run_seconds < options->min_warmup_time)
    if (!settle(trial, workspace)) return false;
  const double most = (double)(INT64_C(1) << 40);
  const double iterations = fmin(most, fmax(1, ceil(wanted / fmax(trial->run_seconds, 1e-12))));
  trial->result->iterations = options->iterations ? options->iterations : (int64_t)iterations;
  return true;
}

bool trial_repeat(trial *trial, void *workspace) {
  enum { CHEAP_BESIDE = 10 };
  result *result = trial->result;
  elapsed elapsed;
  /* Another point ran before, and took the caches: one run brings them back where it costs little. */
  if (result->iterations >= CHEAP_BESIDE && !trial->options->cold &&
      !run_batch(trial, workspace, 1, &elapsed))
    return false;
  if (!run_batch(trial, workspace, result->iterations, &elapsed)) return false;
  const double iterations = (double)result->iterations;
  result->seconds[result->repetitions] = elapsed.wall / iterations;
  result->cpu_seconds[result->repetitions] = elapsed.cpu / iterations;
  result->repetitions++;
  trial->spent += elapsed.wall;
  trial->run_seconds = trial->spent / (double)result->repetitions / iterations;
  result->seconds_median = statistics_median_interval(result->seconds, result->repetitions, confidence);
  return true;
}

/* ---- how many repetitions ---- */

/* No more than the budget holds, if repetitions are as long as they should be; iterations that were found
 * while the machine was slow make them shorter. */
bool trial_make_room(trial *trial, char *why, size_t why_size) {
  const bench_options *options = trial->options;
  const double most = 10000, filled = 2 * options->point_budget / fmax(options->min_time, 1e-9);
  trial->most = options->repetitions > 0 ? (size_t)options->repetitions
                                         : BENCH_LEAST_REPETITIONS + (size_t)fmin(most, filled);
  trial->result->seconds = calloc(trial->most, sizeof *trial->result->seconds);
  trial->result->cpu_seconds = calloc(trial->most, sizeof *trial->result->cpu_seconds);
  if (trial->result->seconds && trial->result->cpu_seconds) return true;
  snprintf(why, why_size, "out of memory for %zu repetitions", trial->most);
  return false;
}

static bool is_precise(const trial *trial) {
  const interval median = trial->result->seconds_median;
  return 0.5 * (median.high - median.low) <= trial->options->precision * median.estimate;
}

bool trial_wants_more(const trial *trial) {
  const bench_options *options = trial->options;
  const size_t made = trial->result->repetitions;
  if (options->repetitions > 0 || made >= trial->most) return made < trial->most;
  if (made < BENCH_LEAST_REPETITIONS || trial->spent < options->least_time) return true;
  return trial->spent < options->point_budget && !is_precise(trial);
}

double trial_seconds_left(const trial *trial) {
  const bench_options *options = trial->options;
  const size_t made = trial->result->repetitions;
  if (!trial_wants_more(trial)) return 0;
  const double iterations = fmax(1, (double)trial->result->iterations);
  const double repetition = fmax(options->min_time, trial->run_seconds * iterations);
  if (options->repetitions > 0) return (double)(trial->most - made) * repetition;
  const double least = made < BENCH_LEAST_REPETITIONS ? (double)(BENCH_LEAST_REPETITIONS - made) : 0;
  return fmax(least * repetition, options->point_budget - trial->spent);
}

void trial_finish(trial *trial) {
  result *result = trial->result;
  if (result->repetitions > 0) result->flops_per_second = result->flops / result->seconds_median.estimate;
}
