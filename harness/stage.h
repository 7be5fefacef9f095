/* The points of one length, measured together. What bench.c and stage.c share. */
#ifndef ATTN_HARNESS_STAGE_H
#define ATTN_HARNESS_STAGE_H

#include "bench.h"
#include "progress.h"

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
  progress progress;
  size_t settled; /* points that are measured, skipped or failed */
  uint64_t shuffles;
} bench;

/* Measures the points of order[first] and the count - 1 after it, which have the same length, as far as time
 * and memory allow; or until an interruption. False when memory for the bookkeeping is short. */
bool stage_run(bench *bench, size_t first, size_t count);

#endif
