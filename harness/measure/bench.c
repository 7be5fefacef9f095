/* The sweep: names and order of the points, length by length, and the report. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "complexity.h"
#include "families.h"
#include "kept.h"
#include "base/interrupt.h"
#include "base/statistics.h"

#include "limits.h"
#include "passes.h"
#include "prepare.h"
#include "sweep.h"
#include "instruction_growth.h"
#include "run/device.h"
#include "run/supervisor.h"

/* ---- names and order ---- */

static void name_result(bench *bench, size_t n) {
  const bench_point *point = &bench->points[n];
  result *result = &bench->report->results[n];
  sweep_point_name(point, result->name);
  snprintf(result->variant, sizeof result->variant, "%s", point->variant->name);
  result->from_plugin = point->origin != NULL;
  result->workload = point->workload;
  result->threads = bench->options->threads;
  const char *isa = point_isa(point, bench->options->isa);
  snprintf(result->isa, sizeof result->isa, "%s", isa ? isa : "");
  result->flops = workload_flops(&point->workload);
  result->bytes = workload_moved_bytes(&point->workload);
}

static void join_family(bench *bench, size_t n) {
  result *result = &bench->report->results[n];
  int index = 0;
  while (index < bench->family_count && strcmp(bench->families[index].name, result->family) != 0) index++;
  if (index == bench->family_count) bench->families[bench->family_count++] = (family){.name = result->family};
  result->family_index = index;
  result->instance_index = bench->families[index].points++;
}

static int64_t length_at(const bench *bench, size_t place) {
  return result_length(&bench->report->results[bench->order[place]]);
}

/* By insertion, which leaves points of one length in the order that was asked for. */
static void sort_points(bench *bench) {
  for (size_t n = 0; n < bench->count; n++) {
    size_t place = n;
    const int64_t length = result_length(&bench->report->results[n]);
    for (; place > 0 && length_at(bench, place - 1) > length; place--)
      bench->order[place] = bench->order[place - 1];
    bench->order[place] = n;
  }
}

/* ---- the machine ---- */

/* That all points compute on; NULL: they do not on the same one, or some on the host. */
static const attn_device *device_of_all(const bench_point *points, size_t count) {
  const attn_device *device = count ? device_of(points[0].variant) : NULL;
  for (size_t n = 1; n < count && device; n++)
    if (device_of(points[n].variant) != device) device = NULL;
  return device;
}

/* What an earlier process has measured, which a variant ended, is kept. */
static void measure_machine(machine *now, int threads, double seconds) {
  bench_kept *before = bench_kept_find();
  if (before && before->machine) {
    const attn_device *device = now->measured_on; /* where it was loaded this time */
    *now = *before->machine;
    now->measured_on = device;
    return;
  }
  machine_measure(now, threads, seconds);
  machine *kept = before ? supervisor_keep(sizeof *kept) : NULL;
  if (!kept) return;
  *kept = *now;
  before->machine = kept;
}

/* Of the rate of the first level that holds all it has to move, as reads find it there, or of the memory's. */
static void fill_read_fraction(result *result, const report *report, bool elsewhere) {
  const machine_rate *read =
      elsewhere ? NULL : machine_read(&report->machine, report->cold ? INFINITY : result->bytes);
  const bool known = read && result->bytes > 0 && result->flops_per_second > 0;
  result->bytes_per_second = result->bytes / result->seconds_median.estimate;
  result->read_fraction = known ? result->bytes_per_second / read->median : NAN;
  snprintf(result->read_level, sizeof result->read_level, "%s", known ? read->name : "");
}

/* The median of those of the repetitions; NaN where one has none. */
static double median_share(const result *result) {
  for (size_t n = 0; n < result->repetitions; n++)
    if (!result->shares || !(result->shares[n] > 0)) return NAN;
  return result->repetitions > 0 ? statistics_median(result->shares, result->repetitions) : NAN;
}

/* Each of its own type's peak, on what it computes on. */
static void fill_fractions(const bench *bench) {
  report *report = bench->report;
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    const attn_variant *variant = bench->points[n].variant;
    const machine_rate *peak = bench_peak_of(bench, variant, &bench->points[n].workload);
    result->peak_fraction = median_share(result);
    if (isnan(result->peak_fraction) && peak && peak->median > 0)
      result->peak_fraction = result->flops_per_second / peak->median;
    fill_read_fraction(result, report, variant->place != ATTN_HOST && !report->machine.measured_on);
  }
}

static void measure_again(machine *machine, void *context) {
  const bench *bench = context;
  if (!interrupt_wanted())
    machine_measure_again(machine, bench->options->threads, bench_machine_seconds(bench));
}

/* ---- the report ---- */

static void find_declared(const char *variant, int *time_exponent, int *workspace_exponent, void *context) {
  const bench *bench = context;
  for (size_t n = 0; n < bench->count; n++)
    if (strcmp(bench->points[n].variant->name, variant) == 0) {
      *time_exponent = bench->points[n].variant->time_exponent;
      *workspace_exponent = bench->points[n].variant->workspace_exponent;
    }
}

void bench_describe(report *report, const bench_options *options) {
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc))
    strftime(report->started, sizeof report->started, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  snprintf(report->executable, sizeof report->executable, "%s", program_invocation_name);
  snprintf(report->isa, sizeof report->isa, "%s", options->isa ? options->isa : "");
  report->seed = options->seed;
  report->cold = options->cold;
  machine_describe(&report->machine);
  environment_describe(&report->environment);
}

/* Leaves out the points that an interruption kept from any repetition. */
static void drop_unreached(report *report) {
  size_t kept = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    if (result->state == RESULT_MEASURED && result->repetitions == 0) {
      result_destroy(result);
    } else {
      report->results[kept++] = *result;
    }
  }
  report->result_count = kept;
}

static bool start(bench *bench, char *why, size_t why_size) {
  report *report = bench->report;
  report->results = calloc(bench->count + 1, sizeof *report->results);
  bench->families = calloc(bench->count + 1, sizeof *bench->families);
  bench->order = calloc(bench->count + 1, sizeof *bench->order);
  bench->measurements = calloc(bench->count + 1, sizeof *bench->measurements);
  bench->projections = calloc(bench->count + 1, sizeof *bench->projections);
  if (!bench->projections || !report->results || !bench->families || !bench->order || !bench->measurements) {
    snprintf(why, why_size, "out of memory for %zu points", bench->count);
    return false;
  }
  report->result_count = bench->count;
  bench->family_count = 0;
  for (size_t n = 0; n < bench->count; n++) name_result(bench, n);
  families_find(report->results, bench->count);
  for (size_t n = 0; n < bench->count; n++) join_family(bench, n);
  sort_points(bench);
  return true;
}

static bool run_lengths(bench *bench, char *why, size_t why_size) {
  for (size_t first = 0, count; first < bench->count && !interrupt_wanted(); first += count) {
    for (count = 1; first + count < bench->count;) {
      if (length_at(bench, first + count) != length_at(bench, first)) break;
      count++;
    }
    prepare_length(bench, first, count);
  }
  if (!interrupt_wanted() && !passes_run(bench)) {
    snprintf(why, why_size, "out of memory for %zu points", bench->count);
    return false;
  }
  bench->report->interrupted = interrupt_wanted();
  drop_unreached(bench->report);
  if (bench->report->result_count > 0) return true;
  snprintf(why, why_size, "ended before anything was measured");
  return false;
}

bool bench_run(const bench_point *points, size_t count, const bench_options *options, report *report,
               char *why, size_t why_size) {
  memset(report, 0, sizeof *report);
  bench bench = {.points = points, .count = count, .options = options, .report = report};
  bench_describe(report, options);
  report->machine.threads = options->threads;
  if (count == 0) return true;
  interrupt_catch();
  bench.progress = progress_begin(options->quiet);
  bool good = footprint_begin(&bench.footprints, points, options->threads, options->isa, why, why_size) &&
              start(&bench, why, why_size);
  if (good) {
    const attn_device *device = device_of_all(points, count);
    if (device && device_open(device)) machine_take_device(&report->machine, device);
    const double seconds = bench_machine_seconds(&bench);
    progress_show(&bench.progress, 0, count, seconds, "measuring the machine");
    measure_machine(&report->machine, options->threads, seconds);
    good = run_lengths(&bench, why, why_size);
  }
  footprint_end(&bench.footprints);
  *supervisor_root() = NULL;
  if (good) {
    /* At the end, when the peaks are known as well as they will be. */
    limits_fail(report, measure_again, &bench);
    fill_fractions(&bench);
    complexity_fit(report, find_declared, &bench);
    progress_show(&bench.progress, count, count, 0, "counting instructions");
    if (options->instructions && !report->interrupted) instruction_growth_fit(report, points, bench.count);
  }
  progress_end(&bench.progress);
  interrupt_release();
  report->peak_memory_bytes = memory_peak_bytes();
  free(bench.families);
  free(bench.order);
  free(bench.measurements);
  for (size_t n = 0; n < bench.projection_count; n++) {
    projection_destroy(bench.projections[n]);
    free(bench.projections[n]);
  }
  free(bench.projections);
  return good;
}
