/* The sweep: every variant at every length, verified, measured in random interleaved order, reported. */
#ifndef ATTN_HARNESS_BENCH_H
#define ATTN_HARNESS_BENCH_H

#include "bench_options.h"
#include "results.h"
#include "run/point.h"

/* Verifies all points in order of growing T, then measures them in passes: each pass goes over all points of all
 * lengths in random order and repeats each once. Fills the report, machine and growths included. Ctrl-C ends it early
 * and sets interrupted. Of no points, as in an empty shard, it only describes the machine. False, with the reason in
 * words, only when nothing could be measured. */
bool bench_run(const bench_point *points, size_t count, const bench_options *options, report *report,
               char *why, size_t why_size);

/* Of the context of a report that is otherwise made elsewhere: when, where and of what build. */
void bench_describe(report *report, const bench_options *options);

#endif
