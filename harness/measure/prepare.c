/* The points of one length are taken up: inputs of equal workloads are shared, each point is verified once
 * and warmed up. What a run will cost is predicted from the lengths before. */
#define _GNU_SOURCE
#include "prepare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/interrupt.h"
#include "cold.h"
#include "limits.h"
#include "shared_inputs.h"
#include "problem/check.h"
#include "problem/types.h"
#include "run/predict.h"
#include "run/supervisor.h"
#include "base/format.h"
#include "verify/verify.h"

/* The points of one length. */
typedef struct length_group {
  size_t first, count; /* in bench.order */
  shared_inputs shared_inputs;
  size_t measurements_before;
  unsigned char *workspace;
} length_group;

/* ---- what a point would cost ---- */

static void show(bench *bench, const length_group *length_group, size_t taken, const char *what) {
  if (!bench->progress.shown) return;
  double left = 0;
  for (size_t n = 0; n < bench->measurement_count; n++)
    left += measurement_seconds_left(&bench->measurements[n]);
  for (size_t place = length_group->first + taken; place < bench->count; place++)
    left += bench_expected_seconds(bench, bench->order[place]);
  left += bench_peaks_seconds_left(bench, 0);
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

static run_setup setup_of(const bench *bench, size_t n) {
  const bench_point *point = &bench->points[n];
  const result *result = &bench->report->results[n];
  return (run_setup){.variant = point->variant,
                     .origin = point->origin,
                     .isa = point_isa(point, bench->options->isa),
                     .threads = bench->options->threads,
                     .problem = result->name + strlen(result->variant) + 1};
}

static bool fits_time(bench *bench, size_t n) {
  const bench_point *point = &bench->points[n];
  const run_setup setup = setup_of(bench, n);
  result *result = &bench->report->results[n];
  const double limit = bench->options->point_limit;
  const double seconds = bench->families[result->family_index].seconds > 0
                             ? bench_expected_run_seconds(bench, n)
                             : predict_seconds(&setup, &point->workload, limit);
  if (seconds <= limit) return true;
  char predicted[32], allowed[32];
  format_duration(predicted, seconds);
  format_duration(allowed, limit);
  bench_skip(bench, result, "one run would take about %s, over the limit of %s", predicted, allowed);
  return false;
}

static bool fits_memory(bench *bench, const length_group *length_group, size_t n) {
  const workload *workload = &bench->points[n].workload;
  result *result = &bench->report->results[n];
  double bytes = (double)result->workspace_bytes;
  if (!shared_inputs_find(&length_group->shared_inputs, workload)) bytes += workload_tensor_bytes(workload);
  const double available = (double)memory_available_bytes();
  if (bytes <= available) return true;
  char needed[FORMAT_BYTES], had[FORMAT_BYTES];
  format_bytes(needed, bytes);
  format_bytes(had, available);
  bench_skip(bench, result, "would need %s of memory, and %s are available", needed, had);
  return false;
}

/* ---- one length ---- */

/* Rows that the reference solves in a tenth of a second on two processors: all up to some 256 keys, 47 with 8192. The
 * projection looks at the others. Linear attention takes exponentials of all features. */
static int64_t rows_to_check(const workload *w) {
  const double times = w->function == ATTN_LAYER                        ? 24 * (double)w->query_heads
                       : reference_function_of(w->function)->has_scores ? 1
                                                                        : 5;
  const double cost = 2 * (double)w->key_length * (double)(w->head_dim + w->value_dim) * times;
  return (int64_t)fmax(4, 1e8 / fmax(1, cost));
}

static projection *make_projection(bench *bench, const inputs *inputs) {
  projection *made = calloc(1, sizeof *made);
  if (made && projection_create(made, inputs)) return bench->projections[bench->projection_count++] = made;
  free(made);
  return NULL;
}

static shared_entry *acquire_solved(bench *bench, length_group *length_group, const workload *workload,
                                    char *why, size_t why_size) {
  shared_entry *shared = shared_inputs_acquire(&length_group->shared_inputs, workload, why, why_size);
  if (!shared || shared->solved) return shared;
  shared->solved = expected_solve(&shared->expected, &shared->inputs, rows_to_check(workload), why, why_size);
  if (shared->solved && !shared->expected.gradients)
    shared->projection = make_projection(bench, &shared->inputs);
  return shared->solved ? shared : NULL;
}

/* Rows of the probe that are looked at: the first, the last, and some between. */
enum { PROBED_ROWS = 8 };

/* The point's lengths and its band with exact sums, in which one key too many or too few shows, however many there are.
 * One entry and one key/value head of it, with its query heads. */
static workload exact_probe_of(const workload *w) {
  workload probe = *w;
  probe.batch = probe.kv_heads = 1;
  probe.query_heads = w->query_heads / w->kv_heads;
  probe.fill = FILL_EXACT;
  probe.scale = NAN; /* what the fill needs */
  probe.softcap = 0;
  return probe;
}

/* Once before it is timed; the result is RESULT_FAILED where it fails. False, with the reason in words, when memory cannot be
 * had. */
static bool run_exact_probe(bench *bench, length_group *length_group, size_t n, char *why, size_t why_size) {
  const workload probe = exact_probe_of(&bench->points[n].workload);
  result *result = &bench->report->results[n];
  shared_entry *shared = shared_inputs_acquire(&length_group->shared_inputs, &probe, why, why_size);
  run_setup setup = setup_of(bench, n);
  verdict verdict;
  if (!shared) return false;
  if (!shared->solved)
    shared->solved = expected_solve(&shared->expected, &shared->inputs, PROBED_ROWS, why, why_size);
  setup.property = "the exact probe";
  if (!shared->solved ||
      !verify_run_against(&setup, &shared->inputs, &shared->expected, false, &verdict, why, why_size))
    return false;
  if (verdict.passed) return true;
  result->state = RESULT_FAILED;
  snprintf(result->reason, sizeof result->reason, "fails the exact probe: %.200s", verdict.problem);
  return true;
}

static void learn(bench *bench, const result *result, double run_seconds) {
  family *family = &bench->families[result->family_index];
  family->measured = result->workload;
  family->seconds = run_seconds;
}

/* What ended an earlier process is not run again: the point that did so has failed, the variant's others are skipped. */
static bool left_out(bench *bench, size_t n) {
  const ended_run *end = supervisor_ended(bench->points[n].variant->name);
  result *result = &bench->report->results[n];
  if (!end) return false;
  if (strcmp(setup_of(bench, n).problem, end->problem) == 0) {
    result->state = RESULT_FAILED;
    snprintf(result->reason, sizeof result->reason, "%s", end->how);
    bench->settled++;
  } else {
    bench_skip(bench, result, "it %s on %.100s", end->how, end->problem);
  }
  return true;
}

/* On a device all is cold; on the host what is copied. */
static bool is_cold(bench *bench, size_t n, const attn_problem *problem) {
  const double most_left_hot = 0.02;
  if (!bench->options->cold || bench->points[n].variant->place != ATTN_HOST) return true;
  const double left = cold_left_hot(problem);
  if (left <= most_left_hot) return true;
  bench_skip(bench, &bench->report->results[n], "with --cold %.0f %% of its bytes would stay in the caches",
             100 * left);
  return false;
}

/* Whether the variant can solve this, in the time and memory there are; the result says why not. */
static bool is_feasible(bench *bench, const length_group *length_group, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  const attn_problem problem = workload_problem(&point->workload);
  char why[sizeof result->reason];
  const bool sound = check_problem(&problem, why, sizeof why);
  if (left_out(bench, n)) return false;
  const char *reason = sound ? runner_refusal(point->variant, &problem) : why;
  if (reason) {
    bench_skip(bench, result, "%s", reason);
    return false;
  }
  const run_setup setup = setup_of(bench, n);
  result->workspace_bytes = runner_workspace_bytes(&setup, &problem);
  if (!runner_workspace_is_sensible(result->workspace_bytes, &problem, result->reason,
                                    sizeof result->reason)) {
    result->state = RESULT_FAILED;
    bench->settled++;
    return false;
  }
  if (point->memory_only) {
    result->memory_only = true;
    result->memory_bytes = result->workspace_bytes;
    char bytes[FORMAT_BYTES];
    format_bytes(bytes, (double)result->workspace_bytes);
    bench_skip(bench, result, "not to be run; it asks for %s of workspace", bytes);
    return false;
  }
  return is_cold(bench, n, &problem) && fits_memory(bench, length_group, n) && fits_time(bench, n);
}

/* Fills the memory that the point takes; the result is RESULT_FAILED when it takes some behind the interface's
 * back. */
static bool measure_memory(bench *bench, size_t n, char *why, size_t why_size) {
  result *result = &bench->report->results[n];
  footprint footprint = {.workspace_touched_bytes = result->workspace_touched_bytes};
  if (result->state == RESULT_FAILED) return true;
  run_setup setup = setup_of(bench, n);
  setup.property = "measuring its memory";
  run_enter(&setup, &bench->points[n].workload);
  const bool measured = setup.variant->place != ATTN_HOST || !footprint_is_measured() ||
                        footprint_measure(&bench->footprints, n, &footprint, why, why_size);
  supervisor_leave();
  if (!measured) return false;
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

/* What was predicted may be wrong; the run that verified it is known. */
static bool kept_time(bench *bench, result *result, double seconds) {
  const double limit = bench->options->point_limit;
  if (seconds <= limit || result->state == RESULT_FAILED) return true;
  char taken[32], allowed[32];
  format_duration(taken, seconds);
  format_duration(allowed, limit);
  bench_skip(bench, result, "one run took %s, over the limit of %s", taken, allowed);
  return false;
}

/* Verifies a point; it becomes a measurement when it is to be timed. */
static void prepare_point(bench *bench, length_group *length_group, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  char why[sizeof result->reason] = "out of memory";
  if (!is_feasible(bench, length_group, n)) return;
  shared_entry *shared = acquire_solved(bench, length_group, &point->workload, why, sizeof why);
  measurement measurement = {.setup = setup_of(bench, n),
                             .options = bench->options,
                             .inputs = shared ? &shared->inputs : NULL,
                             .expected = shared ? &shared->expected : NULL,
                             .projection = shared ? shared->projection : NULL,
                             .result = result};
  const bool verified = shared && measurement_verify(&measurement, why, sizeof why);
  if (verified) learn(bench, result, measurement.run_seconds);
  if (verified && !kept_time(bench, result, measurement.run_seconds)) return;
  const bool has_probe = verified && !shared->expected.gradients;
  if (has_probe && result->state != RESULT_FAILED &&
      !run_exact_probe(bench, length_group, n, why, sizeof why)) {
    if (!interrupt_wanted()) bench_skip(bench, result, "%s", why);
    return;
  }
  if (!verified || !measure_memory(bench, n, why, sizeof why) ||
      !measurement_make_room(&measurement, why, sizeof why)) {
    if (interrupt_wanted()) return; /* as if it had not been reached */
    bench_skip(bench, result, "%s", why);
    return;
  }
  /* The peaks of devices have been measured on one GPU only: what is above them is not called impossible. */
  if (point->variant->place == ATTN_HOST) limits_find(result, measurement.inputs, &bench->report->machine);
  if (result->state == RESULT_FAILED)
    bench->settled++;
  else
    bench->measurements[bench->measurement_count++] = measurement;
}

/* Measurements whose workspace is too large for what is left are skipped, the largest first. */
static void acquire_workspace(bench *bench, length_group *length_group) {
  while (bench->measurement_count > length_group->measurements_before) {
    size_t largest = length_group->measurements_before;
    for (size_t n = largest + 1; n < bench->measurement_count; n++)
      if (bench->measurements[n].result->workspace_bytes >
          bench->measurements[largest].result->workspace_bytes)
        largest = n;
    result *result = bench->measurements[largest].result;
    length_group->workspace = bench_acquire_workspace(result->workspace_bytes);
    if (length_group->workspace) return;
    char needed[FORMAT_BYTES];
    format_bytes(needed, (double)result->workspace_bytes);
    bench_skip(bench, result, "its workspace of %s cannot be had", needed);
    bench->measurement_count--;
    memmove(&bench->measurements[largest], &bench->measurements[largest + 1],
            (bench->measurement_count - largest) * sizeof *bench->measurements);
  }
}

static void warm_up(bench *bench, length_group *length_group) {
  acquire_workspace(bench, length_group);
  for (size_t n = length_group->measurements_before; n < bench->measurement_count; n++) {
    measurement *measurement = &bench->measurements[n];
    show(bench, length_group, length_group->count, measurement->result->name);
    if (interrupt_wanted() || !measurement_calibrate(measurement, length_group->workspace)) return;
    learn(bench, measurement->result, measurement->run_seconds);
  }
}

void prepare_length(bench *bench, size_t first, size_t count) {
  length_group length_group = {
      .first = first, .count = count, .measurements_before = bench->measurement_count};
  for (size_t n = 0; n < count && !interrupt_wanted(); n++) {
    const size_t point = bench->order[first + n];
    show(bench, &length_group, n, bench->report->results[point].name);
    prepare_point(bench, &length_group, point);
  }
  warm_up(bench, &length_group);
  for (size_t n = length_group.measurements_before; n < bench->measurement_count; n++) {
    bench->measurements[n].inputs = NULL; /* passes.c gives it others with the same contents */
    bench->measurements[n].expected = NULL;
  }
  shared_inputs_destroy(&length_group.shared_inputs);
  free(length_group.workspace);
}
