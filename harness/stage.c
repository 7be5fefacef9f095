/* See stage.h. Inputs of equal workloads are shared, every point is verified once, all use one workspace,
 * and their repetitions take turns, so that what slows the machine for a second slows all of them alike.
 * What a run will cost is predicted from the lengths before. */
#define _GNU_SOURCE
#include "stage.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "interrupt.h"
#include "predict.h"
#include "random.h"
#include "report_format.h"
#include "trial.h"

/* Inputs of one workload, with the rows that hold their outputs. */
typedef struct shared {
  char name[WORKLOAD_NAME_BYTES];
  inputs inputs;
  truth truth;
} shared;

/* The points of one length. */
typedef struct stage {
  size_t first, count; /* in bench.order */
  shared **shared;
  size_t shared_count;
  trial *trials;
  trial **turns; /* the trials in the order of this round */
  size_t trial_count;
  unsigned char *workspace;
} stage;

/* ---- what a point would cost ---- */

__attribute__((format(printf, 3, 4))) static void skip(bench *bench, result *result, const char *format,
                                                       ...) {
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

/* Verification, warm-up and repetitions of what no trial stands for yet, and what is left of the trials. */
static double seconds_left(const bench *bench, const stage *stage) {
  const bench_options *options = bench->options;
  double left = 0;
  for (size_t n = 0; n < stage->trial_count; n++) left += trial_seconds_left(&stage->trials[n]);
  for (size_t place = stage->first + stage->count; place < bench->count; place++) {
    const double run = expected_run_seconds(bench, bench->order[place]);
    if (run > options->point_limit) continue;
    left += run +
            fmax(run, fmin(options->point_budget, (options->repetitions + 1) * fmax(options->min_time, run)));
  }
  return left;
}

static void show(bench *bench, const stage *stage, const char *what) {
  if (!bench->progress.shown) return;
  progress_show(&bench->progress, bench->settled, bench->count, seconds_left(bench, stage), what);
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
  skip(bench, result, "one run would take about %s, over the limit of %s", predicted, allowed);
  return false;
}

static shared *find_shared(const stage *stage, const workload *workload) {
  char name[WORKLOAD_NAME_BYTES];
  workload_name(workload, name);
  for (size_t n = 0; n < stage->shared_count; n++)
    if (strcmp(stage->shared[n]->name, name) == 0) return stage->shared[n];
  return NULL;
}

static bool fits_memory(bench *bench, const stage *stage, size_t n) {
  const workload *workload = &bench->points[n].workload;
  result *result = &bench->report->results[n];
  double bytes = (double)result->workspace_bytes;
  if (!find_shared(stage, workload)) bytes += workload_tensor_bytes(workload);
  const double available = (double)memory_available_bytes();
  if (bytes <= available) return true;
  char needed[FORMAT_BYTES], had[FORMAT_BYTES];
  format_bytes(needed, bytes);
  format_bytes(had, available);
  skip(bench, result, "would need %s of memory, and %s are available", needed, had);
  return false;
}

/* ---- one length ---- */

/* Rows that the reference solves well below a second. */
static int64_t rows_to_check(const workload *w) {
  const double cost = 2 * (double)w->key_length * (double)(w->head_dim + w->value_dim);
  return (int64_t)fmax(4, fmin(64, 2e8 / fmax(1, cost)));
}

static shared *acquire_shared(stage *stage, const workload *workload, char *why, size_t why_size) {
  shared *shared = find_shared(stage, workload);
  if (shared) return shared;
  shared = calloc(1, sizeof *shared);
  if (!shared) return NULL;
  workload_name(workload, shared->name);
  if (!inputs_create(&shared->inputs, workload, true, why, why_size)) {
    free(shared);
    return NULL;
  }
  if (!truth_solve(&shared->truth, &shared->inputs, rows_to_check(workload), why, why_size)) {
    inputs_destroy(&shared->inputs);
    free(shared);
    return NULL;
  }
  stage->shared[stage->shared_count++] = shared;
  return shared;
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
    skip(bench, result, "%s", reason);
    return false;
  }
  if (point->variant->workspace_size)
    result->workspace_bytes = point->variant->workspace_size(&problem, bench->options->threads);
  return fits_memory(bench, stage, n) && fits_time(bench, n);
}

/* Verifies a point; it becomes a trial when it is to be timed. */
static void admit(bench *bench, stage *stage, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  char why[sizeof result->reason] = "out of memory";
  if (!is_feasible(bench, stage, n)) return;
  shared *shared = acquire_shared(stage, &point->workload, why, sizeof why);
  const size_t repetitions = (size_t)bench->options->repetitions;
  result->seconds = calloc(repetitions, sizeof *result->seconds);
  result->cpu_seconds = calloc(repetitions, sizeof *result->cpu_seconds);
  if (!shared || !result->seconds || !result->cpu_seconds) {
    skip(bench, result, "%s", why);
    return;
  }
  trial trial = {.variant = point->variant,
                 .origin = point->origin,
                 .options = bench->options,
                 .inputs = &shared->inputs,
                 .truth = &shared->truth,
                 .problem = shared->name,
                 .result = result};
  if (!trial_verify(&trial, why, sizeof why)) {
    skip(bench, result, "%s", why);
    return;
  }
  learn(bench, result, trial.run_seconds);
  if (result->state == RESULT_FAILED)
    bench->settled++;
  else
    stage->trials[stage->trial_count++] = trial;
}

/* One buffer for all, as large as the largest needs: the same addresses for every variant, and its pages
 * are there before the clock runs. NULL when it cannot be had. */
static unsigned char *acquire_workspace(size_t bytes) {
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
static void acquire_stage_workspace(bench *bench, stage *stage) {
  while (stage->trial_count > 0) {
    size_t largest = 0;
    for (size_t n = 1; n < stage->trial_count; n++)
      if (stage->trials[n].result->workspace_bytes > stage->trials[largest].result->workspace_bytes)
        largest = n;
    result *result = stage->trials[largest].result;
    stage->workspace = acquire_workspace(result->workspace_bytes);
    if (stage->workspace) return;
    char needed[FORMAT_BYTES];
    format_bytes(needed, (double)result->workspace_bytes);
    skip(bench, result, "its workspace of %s cannot be had", needed);
    stage->trials[largest] = stage->trials[--stage->trial_count];
  }
}

static void shuffle(bench *bench, trial **order, size_t count) {
  for (size_t n = count; n > 1; n--) {
    const size_t other = (size_t)(random_bits(bench->options->seed, bench->shuffles++) % n);
    trial *swapped = order[n - 1];
    order[n - 1] = order[other];
    order[other] = swapped;
  }
}

/* Rounds in which every trial that wants more has one repetition, or each trial's repetitions in a row;
 * an interruption ends them. */
static void take_turns(bench *bench, stage *stage) {
  trial **const order = stage->turns;
  const bool interleaved = bench->options->random_interleaving;
  for (bool more = true; more;) {
    more = false;
    if (interleaved) shuffle(bench, order, stage->trial_count);
    for (size_t n = 0; n < stage->trial_count; n++)
      while (trial_wants_more(order[n])) {
        if (interrupt_wanted() || !trial_repeat(order[n], stage->workspace)) return;
        show(bench, stage, order[n]->result->name);
        more = true;
        if (interleaved) break;
      }
  }
}

static void time_trials(bench *bench, stage *stage) {
  acquire_stage_workspace(bench, stage);
  bool whole = true;
  for (size_t n = 0; whole && n < stage->trial_count; n++) {
    stage->turns[n] = &stage->trials[n];
    show(bench, stage, stage->trials[n].result->name);
    whole = !interrupt_wanted() && trial_calibrate(&stage->trials[n], stage->workspace);
  }
  if (whole) take_turns(bench, stage);
  for (size_t n = 0; n < stage->trial_count; n++) {
    trial *trial = &stage->trials[n];
    trial_finish(trial);
    if (trial->result->repetitions > 0) learn(bench, trial->result, trial->result->seconds_median.estimate);
    bench->settled++;
  }
}

static void destroy_stage(stage *stage) {
  for (size_t n = 0; n < stage->shared_count; n++) {
    truth_destroy(&stage->shared[n]->truth);
    inputs_destroy(&stage->shared[n]->inputs);
    free(stage->shared[n]);
  }
  free(stage->shared);
  free(stage->trials);
  free(stage->turns);
  free(stage->workspace);
}

bool stage_run(bench *bench, size_t first, size_t count) {
  stage stage = {.first = first, .count = count};
  stage.shared = calloc(count, sizeof *stage.shared);
  stage.trials = calloc(count, sizeof *stage.trials);
  stage.turns = calloc(count, sizeof *stage.turns);
  const bool sound = stage.shared && stage.trials && stage.turns;
  for (size_t n = 0; sound && n < count && !interrupt_wanted(); n++) {
    const size_t point = bench->order[first + n];
    show(bench, &stage, bench->report->results[point].name);
    admit(bench, &stage, point);
  }
  if (sound) time_trials(bench, &stage);
  destroy_stage(&stage);
  return sound;
}
