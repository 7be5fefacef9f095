/* What bench.c, prepare.c and passes.c share: how far a sweep is. */
#ifndef ATTN_HARNESS_SWEEP_STATE_H
#define ATTN_HARNESS_SWEEP_STATE_H

#include "base/progress.h"
#include "bench_options.h"
#include "measurement.h"
#include "run/footprint.h"

/* Points of one variant that differ in T only. */
typedef struct family {
  const char *name;
  int points;
  workload measured; /* the longest that was run */
  double seconds;    /* of one run of it; 0: none yet */
} family;

/* The whole sweep. */
typedef struct bench {
  const bench_point *points;
  size_t count;
  const bench_options *options;
  report *report;
  family *families;
  int family_count;
  size_t *order;             /* points by ascending length */
  measurement *measurements; /* the points that are to be timed, by ascending length */
  size_t measurement_count;
  projection **projections; /* one for each workload, until the end: repetitions are held to them too */
  size_t projection_count;
  progress progress;
  footprint_source footprints;
  size_t settled; /* points that are timed, skipped or failed */
  uint64_t shuffles;
} bench;

/* Settles a point as skipped, with the reason. */
__attribute__((format(printf, 3, 4))) void bench_skip(bench *bench, result *result, const char *format, ...);

/* Seconds of one run of a point, and all that a point that is not taken up yet will probably cost. */
double bench_expected_run_seconds(const bench *bench, size_t point);
double bench_expected_seconds(const bench *bench, size_t point);

/* The machine's peaks are measured at first, for no longer than half of what the points will take, and in a run that is not
 * short again between the first passes. Seconds of the first time; of each other, 0: none; and of all from this pass on. */
enum { BENCH_PASSES_WITH_PEAKS = 8 };
double bench_machine_seconds(const bench *bench);
double bench_peak_seconds(const bench *bench);
double bench_peaks_seconds_left(const bench *bench, int pass);

/* The peak that shares of a point are taken of; NULL: none was measured where it computes. */
const machine_rate *bench_peak_of(const bench *bench, const attn_variant *variant, const workload *workload);

/* One buffer for the workspaces of many variants, of the same address for each, whose pages are there
 * before the clock runs; NULL when it cannot be had. */
unsigned char *bench_acquire_workspace(size_t bytes);

#endif
