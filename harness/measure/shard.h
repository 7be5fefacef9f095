/* One sweep in parts: which points a machine measures, so that several can share the work and one report be merged from
 * theirs. */
#ifndef ATTN_HARNESS_SHARD_H
#define ATTN_HARNESS_SHARD_H

#include "bench_options.h"
#include "results.h"
#include "sweep.h"

enum { SHARDS_MOST = 100000 };

/* Counted from 1, as in K/N and in Slurm's --array=1-N. */
typedef struct shard {
  int index, count;
} shard;

/* "K/N", or "auto": the rank of this process among those that mpirun or srun started. False, with the reason in words. */
bool shard_parse(const char *text, shard *shard, char *why, size_t why_size);

/* Whether this process is the first of those that mpirun or srun started, or the only one. */
bool shard_is_first(void);

/* How many of these processes measure on this host at the same time, as mpirun and srun say; 1 where they do not. */
int shard_neighbours(void);

/* Fills of_point, from 1 on. Points of the same sizes, whose times are compared with each other, are never parted; how long
 * they take is predicted from their operations alone, so that every machine parts a sweep alike. False without memory. */
bool shard_assign(const bench_point *points, size_t count, const bench_options *options, int shards,
                  int *of_point);

/* Notes the whole sweep in the plan, and leaves in it the points of this shard. What was decided before a variant ended
 * the process stays decided. False, with the reason in words. */
bool shard_take(sweep *sweep, shard shard, const bench_options *options, sweep_plan *plan, char *why,
                size_t why_size);

void sweep_plan_destroy(sweep_plan *plan);

/* "results.json" of shard 3 of 8 is "results.3-of-8.json"; a path without an ending gets it at its end. The caller frees
 * it; NULL without memory. */
char *shard_file(const char *path, shard shard);

/* "shard-3-of-8" in this folder, likewise. */
char *shard_folder(const char *folder, shard shard);

#endif
