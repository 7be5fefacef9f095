/* The sweep: every variant at every length, verified, measured in random interleaved order, reported. */
#ifndef ATTN_HARNESS_BENCH_H
#define ATTN_HARNESS_BENCH_H

#include "plugins.h"
#include "report.h"

/* One point that was asked for. */
typedef struct bench_point {
  const attn_variant *variant;
  workload workload;
  const char *origin; /* the plugin that the variant came from, NULL: our own; for the report of a crash */
} bench_point;

typedef struct bench_options {
  int threads;
  const char *isa;        /* name of the instruction set in force, for the record */
  double min_time;        /* seconds of one repetition, at least one iteration */
  double min_warmup_time; /* seconds */
  int repetitions;        /* at most; a point stops early when its time is spent */
  double point_limit;     /* seconds: a point whose single run is predicted to take longer is skipped */
  double point_budget;    /* seconds that all repetitions of one point may take; one is always made */
  double machine_seconds; /* spent on measuring peaks */
  bool random_interleaving;
  uint64_t seed;
  bool quiet; /* no progress */
} bench_options;

/* Measures the points in order of growing T; within one T, repetitions of all points are interleaved.
 * Fills the report, machine and growths included. Ctrl-C ends it early and sets interrupted. False,
 * with the reason in words, only when nothing could be measured. */
bool bench_run(const bench_point *points, size_t count, const bench_options *options, report *report,
               char *why, size_t why_size);

#endif
