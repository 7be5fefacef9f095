/* The points of one length are taken up: inputs of equal workloads are shared, each point is verified once
 * and warmed up. What a run will cost is predicted from the lengths before. */
#define _GNU_SOURCE
#include "stage.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "interrupt.h"
#include "pool.h"
#include "predict.h"
#include "report_format.h"

/* The points of one length. */
typedef struct stage {
  size_t first, count; /* in bench.order */
  pool pool;
  size_t trials_before;
  unsigned char *workspace;
} stage;

/* ---- what a point would cost ---- */

void stage_skip(bench *bench, result *result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->reason, sizeof result->reason, format, arguments);
  va_end(arguments);
  result->state = RESULT_SKIPPED;
  bench->settled++;
}

static double expected_run_seconds(const bench *bench, size_t n) {
  const attn_variant *variant = bench->points[n].variant;
  const workload *workload = &bench->points[n].workload;
  const family *family = &bench->families[bench->report->results[n].family_index];
  if (family->seconds > 0)
    return family->seconds * predict_growth(&family->measured, workload, variant->time_exponent);
  return bench->report->results[n].flops * 1e-10; /* a good kernel's pace, for the time left */
}

double stage_expected_seconds(const bench *bench, size_t point) {
  const bench_options *options = bench->options;
  const double run = expected_run_seconds(bench, point), repetition = fmax(options->min_time, run);
  if (run > options->point_limit) return 0;
  if (options->repetitions) return run + (options->repetitions + 1) * repetition;
  return run + fmax(BENCH_LEAST_REPETITIONS * repetition, options->point_budget);
}

static void show(bench *bench, const stage *stage, size_t taken, const char *what) {
  if (!bench->progress.shown) return;
  double left = 0;
  for (size_t n = 0; n < bench->trial_count; n++) left += trial_seconds_left(&bench->trials[n]);
  for (size_t place = stage->first + taken; place < bench->count; place++)
    left += stage_expected_seconds(bench, bench->order[place]);
  progress_show(&bench->progress, bench->settled, bench->count, left, what);
}

/* "1.5 s", "34 s", "8 minutes", "3 hours": two digits are all that a prediction is worth. */
static void format_duration(char text[32], double seconds) {
  if (seconds < 10)
    snprintf(text, 32, "%.2g s", seconds);
  else if (seconds < 120)
    snprintf(text, 32, "%.0f s", seconds);
  else if (seconds < 7200)
    snprintf(text, 32, "%.0f minutes", seconds / 60);
  else
    snprintf(text, 32, "%.0f hours", fmin(seconds / 3600, 1e9));
}

static bool fits_time(bench *bench, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  const double limit = bench->options->point_limit;
  const double seconds =
      bench->families[result->family_index].seconds > 0
          ? expected_run_seconds(bench, n)
          : predict_seconds(point->variant, &point->workload, bench->options->threads, limit);
  if (seconds <= limit) return true;
  char predicted[32], allowed[32];
  format_duration(predicted, seconds);
  format_duration(allowed, limit);
  stage_skip(bench, result, "one run would take about %s, over the limit of %s", predicted, allowed);
  return false;
}

static bool fits_memory(bench *bench, const stage *stage, size_t n) {
  const workload *workload = &bench->points[n].workload;
  result *result = &bench->report->results[n];
  double bytes = (double)result->workspace_bytes;
  if (!pool_find(&stage->pool, workload)) bytes += workload_tensor_bytes(workload);
  const double available = (double)memory_available_bytes();
  if (bytes <= available) return true;
  char needed[FORMAT_BYTES], had[FORMAT_BYTES];
  format_bytes(needed, bytes);
  format_bytes(had, available);
  stage_skip(bench, result, "would need %s of memory, and %s are available", needed, had);
  return false;
}

/* ---- one length ---- */

/* Rows that the reference solves well below a second. */
static int64_t rows_to_check(const workload *w) {
  const double cost = 2 * (double)w->key_length * (double)(w->head_dim + w->value_dim);
  return (int64_t)fmax(4, fmin(64, 2e8 / fmax(1, cost)));
}

static pooled *acquire_solved(stage *stage, const workload *workload, char *why, size_t why_size) {
  pooled *shared = pool_acquire(&stage->pool, workload, why, why_size);
  if (!shared || shared->solved) return shared;
  shared->solved = truth_solve(&shared->truth, &shared->inputs, rows_to_check(workload), why, why_size);
  return shared->solved ? shared : NULL;
}

static void learn(bench *bench, const result *result, double run_seconds) {
  family *family = &bench->families[result->family_index];
  family->measured = result->workload;
  family->seconds = run_seconds;
}

/* Whether the variant can solve this, in the time and memory there are; the result says why not. */
static bool is_feasible(bench *bench, const stage *stage, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  const attn_problem problem = workload_problem(&point->workload);
  char why[sizeof result->reason];
  const bool sound = attn_check_problem(&problem, why, sizeof why);
  const char *reason = sound ? attn_unsupported(point->variant, &problem) : why;
  if (reason) {
    stage_skip(bench, result, "%s", reason);
    return false;
  }
  if (point->variant->workspace_size)
    result->workspace_bytes = point->variant->workspace_size(&problem, bench->options->threads);
  return fits_memory(bench, stage, n) && fits_time(bench, n);
}

/* Fills the memory that the point takes; the result is RESULT_FAILED when it takes some behind the interface's
 * back. */
static bool measure_memory(bench *bench, size_t n, char *why, size_t why_size) {
  result *result = &bench->report->results[n];
  footprint footprint = {.workspace_touched_bytes = result->workspace_touched_bytes};
  if (result->state == RESULT_FAILED) return true;
  if (footprint_is_measured() && !footprint_measure(&bench->footprints, n, &footprint, why, why_size))
    return false;
  result->workspace_touched_bytes = footprint.workspace_touched_bytes;
  result->stack_bytes = footprint.stack_bytes;
  result->static_bytes = footprint.static_bytes;
  result->hidden_bytes = footprint.hidden_bytes;
  result->heap_calls = footprint.heap_calls;
  result->memory_bytes = footprint.workspace_touched_bytes + footprint.stack_bytes + footprint.static_bytes +
                         footprint.hidden_bytes;
  if (footprint.heap_calls == 0) return true;
  result->state = RESULT_FAILED;
  snprintf(result->reason, sizeof result->reason,
           "calls %s inside run, %zu time%s in all: memory is asked for in "
           "workspace_size",
           footprint.heap_function, footprint.heap_calls, footprint.heap_calls == 1 ? "" : "s");
  return true;
}

/* Verifies a point; it becomes a trial when it is to be timed. */
static void admit(bench *bench, stage *stage, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  char why[sizeof result->reason] = "out of memory";
  if (!is_feasible(bench, stage, n)) return;
  pooled *shared = acquire_solved(stage, &point->workload, why, sizeof why);
  trial trial = {.variant = point->variant,
                 .origin = point->origin,
                 .options = bench->options,
                 .inputs = shared ? &shared->inputs : NULL,
                 .truth = shared ? &shared->truth : NULL,
                 .problem = result->name + strlen(result->variant) + 1,
                 .result = result};
  if (!shared || !trial_verify(&trial, why, sizeof why) || !measure_memory(bench, n, why, sizeof why) ||
      !trial_make_room(&trial, why, sizeof why)) {
    if (interrupt_wanted()) return; /* as if it had not been reached */
    stage_skip(bench, result, "%s", why);
    return;
  }
  learn(bench, result, trial.run_seconds);
  if (result->state == RESULT_FAILED)
    bench->settled++;
  else
    bench->trials[bench->trial_count++] = trial;
}

unsigned char *stage_acquire_workspace(size_t bytes) {
  const size_t huge = (size_t)2 << 20, alignment = bytes >= huge ? huge : 64;
  if (bytes > memory_available_bytes()) return NULL;
  const size_t rounded = (bytes + alignment) / alignment * alignment;
  unsigned char *workspace = aligned_alloc(alignment, rounded);
  if (!workspace) return NULL;
  if (alignment == huge) (void)madvise(workspace, rounded, MADV_HUGEPAGE);
  memset(workspace, 0, rounded);
  return workspace;
}

/* Trials whose workspace is too large for what is left are skipped, the largest first. */
static void acquire_workspace(bench *bench, stage *stage) {
  while (bench->trial_count > stage->trials_before) {
    size_t largest = stage->trials_before;
    for (size_t n = largest + 1; n < bench->trial_count; n++)
      if (bench->trials[n].result->workspace_bytes > bench->trials[largest].result->workspace_bytes)
        largest = n;
    result *result = bench->trials[largest].result;
    stage->workspace = stage_acquire_workspace(result->workspace_bytes);
    if (stage->workspace) return;
    char needed[FORMAT_BYTES];
    format_bytes(needed, (double)result->workspace_bytes);
    stage_skip(bench, result, "its workspace of %s cannot be had", needed);
    bench->trial_count--;
    memmove(&bench->trials[largest], &bench->trials[largest + 1],
            (bench->trial_count - largest) * sizeof *bench->trials);
  }
}

static void warm_up(bench *bench, stage *stage) {
  acquire_workspace(bench, stage);
  for (size_t n = stage->trials_before; n < bench->trial_count; n++) {
    trial *trial = &bench->trials[n];
    show(bench, stage, stage->count, trial->result->name);
    if (interrupt_wanted() || !trial_calibrate(trial, stage->workspace)) return;
    learn(bench, trial->result, trial->run_seconds);
  }
}

void stage_run(bench *bench, size_t first, size_t count) {
  stage stage = {.first = first, .count = count, .trials_before = bench->trial_count};
  for (size_t n = 0; n < count && !interrupt_wanted(); n++) {
    const size_t point = bench->order[first + n];
    show(bench, &stage, n, bench->report->results[point].name);
    admit(bench, &stage, point);
  }
  warm_up(bench, &stage);
  for (size_t n = stage.trials_before; n < bench->trial_count; n++) {
    bench->trials[n].inputs = NULL; /* passes.c gives it others with the same contents */
    bench->trials[n].truth = NULL;
  }
  pool_destroy(&stage.pool);
  free(stage.workspace);
}
