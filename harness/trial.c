/* See trial.h. */
#include "trial.h"

#include <math.h>
#include <stdlib.h>

#include "crash.h"
#include "interrupt.h"
#include "timer.h"

/* A point whose repetition fits the budget gets so many, so that it has an interval; others one. */
enum { LEAST_REPETITIONS = 3 };

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
  const attn_tensors *tensors = &trial->inputs->tensors;
  void (*const run)(const attn_problem *, const attn_tensors *, void *, int) = trial->variant->run;
  const int threads = trial->options->threads;
  crash_context(trial->variant->name, trial->problem, trial->origin, trial->options->isa,
                trial->options->threads);
  const double cpu_start = cpu_seconds(), start = wall_seconds();
  bool whole = true;
  for (int64_t n = 0; n < iterations && whole; n++) {
    run(problem, tensors, workspace, threads);
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

bool trial_calibrate(trial *trial, void *workspace) {
  const double min_time = trial->options->min_time, warmup = trial->options->min_warmup_time;
  elapsed elapsed = {0, 0};
  int64_t iterations = 1;
  double warmed = 0;
  /* The verification was a run too; one that was so long leaves nothing cold and nothing to find out. */
  bool known = trial->run_seconds >= 4 * fmax(min_time, warmup);
  while (!known) {
    if (!run_batch(trial, workspace, iterations, &elapsed)) return false;
    warmed += elapsed.wall;
    trial->run_seconds = elapsed.wall / (double)iterations;
    if (elapsed.wall < min_time)
      iterations = next_iterations(iterations, elapsed.wall, min_time);
    else
      known = warmed >= warmup;
  }
  trial->result->iterations = iterations;
  return true;
}

bool trial_repeat(trial *trial, void *workspace) {
  result *result = trial->result;
  elapsed elapsed;
  if (!run_batch(trial, workspace, result->iterations, &elapsed)) return false;
  const double iterations = (double)result->iterations;
  result->seconds[result->repetitions] = elapsed.wall / iterations;
  result->cpu_seconds[result->repetitions] = elapsed.cpu / iterations;
  result->repetitions++;
  trial->spent += elapsed.wall;
  trial->run_seconds = trial->spent / (double)result->repetitions / iterations;
  return true;
}

static size_t repetitions_wanted(const trial *trial) {
  const double repetition = trial->run_seconds * (double)trial->result->iterations;
  const double budget = trial->options->point_budget;
  const size_t most = (size_t)trial->options->repetitions;
  size_t wanted = repetition > budget ? 1 : LEAST_REPETITIONS;
  if (repetition > 0 && budget / repetition > (double)wanted)
    wanted = budget / repetition < (double)most ? (size_t)(budget / repetition) : most;
  return wanted < most ? wanted : most;
}

bool trial_wants_more(const trial *trial) {
  return trial->result->repetitions == 0 || trial->result->repetitions < repetitions_wanted(trial);
}

double trial_seconds_left(const trial *trial) {
  const size_t done = trial->result->repetitions, wanted = repetitions_wanted(trial);
  const double iterations = trial->result->iterations ? (double)trial->result->iterations : 1;
  return wanted > done
             ? (double)(wanted - done) * fmax(trial->run_seconds * iterations, trial->options->min_time)
             : 0;
}

void trial_finish(trial *trial) {
  result *result = trial->result;
  if (result->repetitions == 0) return;
  result->seconds_median = statistics_median_interval(result->seconds, result->repetitions, 0.95);
  result->flops_per_second = result->flops / result->seconds_median.estimate;
}
