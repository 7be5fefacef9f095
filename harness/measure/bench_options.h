/* How a sweep is measured. */
#ifndef ATTN_HARNESS_BENCH_OPTIONS_H
#define ATTN_HARNESS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

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
  double machine_seconds; /* spent on measuring peaks at first, at most */
  bool random_interleaving;
  bool cold;         /* give each iteration inputs that lie in no cache */
  bool instructions; /* count them, where valgrind is there */
  uint64_t seed;
  bool quiet; /* no progress */
} bench_options;

#endif
