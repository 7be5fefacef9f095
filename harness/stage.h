/* The two halves of a sweep: stage.c takes up the points of one length, passes.c times all that were taken
 * up. What they share with bench.c. */
#ifndef ATTN_HARNESS_STAGE_H
#define ATTN_HARNESS_STAGE_H

#include "bench.h"
#include "footprint.h"
#include "progress.h"
#include "trial.h"

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
  size_t *order; /* points by ascending length */
  trial *trials; /* the points that are to be timed, by ascending length */
  size_t trial_count;
  progress progress;
  footprint_source footprints;
  size_t settled; /* points that are timed, skipped or failed */
  uint64_t shuffles;
} bench;

/* Takes up the points of order[first] and the count - 1 after it, which have the same length: each is
 * verified and warmed up, and becomes a trial if time and memory allow. Ends early when interrupted. */
void stage_run(bench *bench, size_t first, size_t count);

/* Repeats all trials in passes, until each has what it wants or an interruption. False when memory
 * for the bookkeeping is short. */
bool passes_run(bench *bench);

/* What bench.c does between passes: the peaks, measured once more. */
void bench_measure_machine_again(const bench *bench);

/* What a point that is not taken up yet will probably cost, in seconds. */
double stage_expected_seconds(const bench *bench, size_t point);

/* Settles a point as skipped, with the reason. */
__attribute__((format(printf, 3, 4))) void stage_skip(bench *bench, result *result, const char *format, ...);

/* One buffer for the workspaces of many variants, of the same address for each, whose pages are there
 * before the clock runs; NULL when it cannot be had. */
unsigned char *stage_acquire_workspace(size_t bytes);

#endif
