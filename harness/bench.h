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

/* With fewer there is no interval of the median at 95 %. */
enum { BENCH_LEAST_REPETITIONS = 6 };

typedef struct bench_options {
  int threads;
  const char *isa;        /* name of the instruction set in force, for the record */
  double min_time;        /* seconds of one repetition, at least one iteration */
  int64_t iterations;     /* of one repetition; 0: as many as min_time takes */
  double min_warmup_time; /* seconds; each point is warmed up until its time settles in any case */
  int repetitions;        /* exactly so many; 0: by the three rules below */
  double precision;       /* repeat until half the interval of the median is this share of it, */
  double least_time;      /* but for no fewer seconds than this, */
  double point_budget;    /* and no more than these; BENCH_LEAST_REPETITIONS are always made */
  double point_limit;     /* seconds: a point whose single run is predicted to take longer is skipped */
  double machine_seconds; /* spent on measuring peaks */
  bool random_interleaving;
  bool cold;         /* give each iteration inputs that lie in no cache */
  bool instructions; /* count them, where valgrind is there */
  uint64_t seed;
  bool quiet; /* no progress */
} bench_options;

/* Verifies all points in order of growing T, then measures them in passes: each pass goes over all points of
 * all lengths in random order and repeats each once. Fills the report, machine and growths included. Ctrl-C ends it early and sets interrupted. False,
 * with the reason in words, only when nothing could be measured. */
bool bench_run(const bench_point *points, size_t count, const bench_options *options, report *report,
               char *why, size_t why_size);

#endif
