/* See sweep_state.h. */
#define _GNU_SOURCE
#include "sweep_state.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "run/predict.h"

void bench_skip(bench *bench, result *result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->reason, sizeof result->reason, format, arguments);
  va_end(arguments);
  result->state = RESULT_SKIPPED;
  bench->settled++;
}

double bench_expected_run_seconds(const bench *bench, size_t n) {
  const attn_variant *variant = bench->points[n].variant;
  const workload *workload = &bench->points[n].workload;
  const family *family = &bench->families[bench->report->results[n].family_index];
  if (family->seconds > 0)
    return family->seconds * predict_growth(&family->measured, workload, variant->time_exponent);
  return bench->report->results[n].flops * 1e-10; /* a good kernel's pace, for the time left */
}

double bench_expected_seconds(const bench *bench, size_t point) {
  const bench_options *options = bench->options;
  const double run = bench_expected_run_seconds(bench, point), repetition = fmax(options->min_time, run);
  if (run > options->point_limit) return 0;
  if (options->repetitions) return run + (options->repetitions + 1) * repetition;
  return run + fmax(BENCH_LEAST_REPETITIONS * repetition, options->point_budget);
}

double bench_machine_seconds(const bench *bench) {
  const bench_options *options = bench->options;
  const double least = 0.4; /* two milliseconds for each repetition of each peak */
  const int repetitions = options->repetitions > 0 ? options->repetitions + 1 : BENCH_LEAST_REPETITIONS;
  const double repeated = repetitions * options->min_time;
  const double point = options->repetitions > 0 ? repeated : fmax(repeated, options->point_budget);
  return fmin(options->machine_seconds, fmax(least, (double)bench->count * point / 2));
}

double bench_peak_seconds(const bench *bench) {
  const double seconds = bench_machine_seconds(bench) / 8;
  return seconds < MACHINE_HURRY_SECONDS ? 0 : seconds;
}

double bench_peaks_seconds_left(const bench *bench, int pass) {
  const double passes =
      bench->options->repetitions > 0 ? bench->options->repetitions : BENCH_LEAST_REPETITIONS;
  const double left = fmin(passes, BENCH_PASSES_WITH_PEAKS) - fmax(pass, 1);
  return fmax(0, left) * bench_peak_seconds(bench);
}

const machine_rate *bench_peak_of(const bench *bench, const attn_variant *variant, const workload *workload) {
  if (variant->place != ATTN_HOST && !bench->report->machine.measured_on) return NULL;
  return report_peak(bench->report, workload->type ? workload->type : ATTN_FLOAT32);
}

/* From half a MiB on a huge page is asked for: small ones lie anywhere, and crowd some sets of a cache that would hold them all
 * (fused in bfloat16, D = 128, on a Granite Rapids: 1.05 times as long). */
unsigned char *bench_acquire_workspace(size_t bytes) {
  const size_t huge = (size_t)2 << 20, alignment = bytes >= huge / 4 ? huge : 64;
  if (bytes > memory_available_bytes()) return NULL;
  const size_t rounded = (bytes + alignment) / alignment * alignment;
  unsigned char *workspace = aligned_alloc(alignment, rounded);
  if (!workspace) return NULL;
  if (alignment == huge) (void)madvise(workspace, rounded, MADV_HUGEPAGE);
  memset(workspace, 0, rounded);
  return workspace;
}
