/* See shard.h. The longest group of points goes first, each to the shard that has least to do (Graham 1969): no shard then
 * has more than 4/3 of what the best split would give the fullest one. */
#define _GNU_SOURCE
#include "shard.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "kept.h"

/* ---- which shard this is ---- */

static bool parse_count(const char *text, int64_t minimum, int64_t maximum, int *number) {
  const char *end;
  int64_t value;
  if (!text || !text_integer(text, minimum, maximum, &end, &value) || *end) return false;
  *number = (int)value;
  return true;
}

/* What says rank and size, in the order in which it is believed: mpirun inside a Slurm job starts the ranks, not srun. */
static const struct launcher {
  const char *rank, *size, *only_with;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
                 {"PMI_RANK", "PMI_SIZE", NULL},
                 /* A batch script has the first two as well, and is one process whatever they say. */
                 {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"}};

static bool is_by(const struct launcher *by) {
  return getenv(by->rank) && getenv(by->size) && (!by->only_with || getenv(by->only_with));
}

bool shard_is_first(void) {
  for (size_t n = 0; n < sizeof launchers / sizeof *launchers; n++)
    if (is_by(&launchers[n])) {
      const char *rank = getenv(launchers[n].rank);
      return rank && strcmp(rank, "0") == 0;
    }
  return true;
}

static bool find_rank(shard *shard, char *why, size_t why_size) {
  for (size_t n = 0; n < sizeof launchers / sizeof *launchers; n++) {
    const struct launcher *by = &launchers[n];
    if (!is_by(by)) continue;
    const char *rank = getenv(by->rank), *size = getenv(by->size);
    int index = 0, count = 0;
    if (!parse_count(size, 1, SHARDS_MOST, &count) || !parse_count(rank, 0, count - 1, &index)) {
      snprintf(why, why_size, "--shard auto: %s=%s and %s=%s are no rank and size; give --shard K/N",
               by->rank, rank, by->size, size);
      return false;
    }
    const char *task = getenv("SLURM_ARRAY_TASK_ID");
    if (count == 1 && task) {
      snprintf(why, why_size,
               "--shard auto: this is task %s of a Slurm array, which does not say how many shards there are "
               "when one runs again; give --shard %s/N",
               task, task);
      return false;
    }
    *shard = (struct shard){index + 1, count};
    return true;
  }
  snprintf(why, why_size, "--shard auto: neither mpirun nor srun started this process; give --shard K/N");
  return false;
}

bool shard_parse(const char *text, shard *shard, char *why, size_t why_size) {
  char index[16];
  const char *slash = strchr(text, '/');
  if (strcmp(text, "auto") == 0) return find_rank(shard, why, why_size);
  snprintf(index, sizeof index, "%.*s", slash ? (int)(slash - text) : 0, text);
  if (slash && slash - text < (int)sizeof index && parse_count(slash + 1, 1, SHARDS_MOST, &shard->count) &&
      parse_count(index, 1, shard->count, &shard->index))
    return true;
  snprintf(why, why_size,
           "--shard takes K/N with K from 1 to N and N up to %d, such as 3/8, or auto, not '%s'", SHARDS_MOST,
           text);
  return false;
}

int shard_neighbours(void) {
  static const char *const keys[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
  int count = 1;
  for (size_t n = 0; n < sizeof keys / sizeof *keys; n++)
    if (parse_count(getenv(keys[n]), 1, SHARDS_MOST, &count)) return count;
  /* "4", or "4(x2),3" where nodes differ: the first is near enough to warn of. */
  const char *nodes = getenv("SLURM_STEP_TASKS_PER_NODE"), *end;
  int64_t first;
  return nodes && text_integer(nodes, 1, SHARDS_MOST, &end, &first) ? (int)first : 1;
}

/* ---- who measures what ---- */

/* Points that are compared with each other: in ratios those of one problem, in crossovers those of the same sizes. */
typedef struct group {
  size_t first; /* of its points */
  uint64_t milliseconds;
} group;

static bool same_sizes(const workload *a, const workload *b) {
  return a->batch == b->batch && a->query_heads == b->query_heads && a->kv_heads == b->kv_heads &&
         a->head_dim == b->head_dim && a->value_dim == b->value_dim && a->query_length == b->query_length &&
         a->key_length == b->key_length;
}

static uint64_t milliseconds(double seconds) { return (uint64_t)fmin(fmax(1000 * seconds, 0), 1e12); }

/* Of preparing, verifying and repeating a point, at the rate of a middling kernel. predict.h asks the machine, and two
 * machines would answer differently. In whole numbers, whose sums are the same everywhere and in any order. */
static uint64_t predict(const bench_point *point, const bench_options *options) {
  enum { PREPARING = 200, RUNS = 9 }; /* milliseconds; six repetitions, and what warms up */
  const double usual_flops_per_second = 2e10;
  const double one = fmin(workload_flops(&point->workload) / usual_flops_per_second, options->point_limit);
  const uint64_t runs = RUNS * milliseconds(one), least = milliseconds(options->least_time);
  return PREPARING + (runs > least ? runs : least);
}

static int by_time(const void *left, const void *right) {
  const group *a = left, *b = right;
  if (a->milliseconds != b->milliseconds) return a->milliseconds < b->milliseconds ? 1 : -1;
  return (a->first > b->first) - (a->first < b->first);
}

static size_t find_groups(const bench_point *points, size_t count, const bench_options *options,
                          group *groups) {
  size_t found = 0;
  for (size_t n = 0; n < count; n++) {
    size_t g = 0;
    while (g < found && !same_sizes(&points[groups[g].first].workload, &points[n].workload)) g++;
    if (g == found) groups[found++] = (group){n, 0};
    groups[g].milliseconds += predict(&points[n], options);
  }
  return found;
}

bool shard_assign(const bench_point *points, size_t count, const bench_options *options, int shards,
                  int *of_point) {
  group *groups = calloc(count + 1, sizeof *groups);
  uint64_t *load = calloc((size_t)shards, sizeof *load);
  const bool good = groups && load;
  const size_t found = good ? find_groups(points, count, options, groups) : 0;
  if (good) qsort(groups, found, sizeof *groups, by_time);
  for (size_t g = 0; g < found; g++) {
    int least = 0;
    for (int k = 1; k < shards; k++)
      if (load[k] < load[least]) least = k;
    load[least] += groups[g].milliseconds;
    for (size_t n = 0; n < count; n++)
      if (same_sizes(&points[groups[g].first].workload, &points[n].workload)) of_point[n] = least + 1;
  }
  free(groups);
  free(load);
  return good;
}

/* ---- the plan ---- */

static void describe_options(const bench_options *options, const sweep *sweep,
                             char text[PLAN_OPTIONS_BYTES]) {
  const attn_variant *said = NULL;
  int used = snprintf(text, PLAN_OPTIONS_BYTES,
                      "min_time %g, iterations %" PRId64
                      ", warmup %g, repetitions %d, precision %g, least_time %g, budget %g, limit %g%s%s",
                      options->min_time, options->iterations, options->min_warmup_time, options->repetitions,
                      options->precision, options->least_time, options->point_budget, options->point_limit,
                      options->cold ? ", cold" : "", options->random_interleaving ? "" : ", in order");
  for (size_t n = 0; n < sweep->count && used < PLAN_OPTIONS_BYTES; n++) {
    const attn_variant *variant = sweep->points[n].variant;
    if (!sweep->points[n].memory_only || variant == said) continue;
    used += snprintf(text + used, (size_t)(PLAN_OPTIONS_BYTES - used), ", memory only %s", variant->name);
    said = variant;
  }
}

static bool note_declared(sweep_plan *plan, const bench_point *points, size_t count) {
  plan->declared = calloc(count + 1, sizeof *plan->declared);
  for (size_t n = 0; plan->declared && n < count; n++) {
    const attn_variant *variant = points[n].variant;
    size_t d = 0;
    while (d < plan->declared_count && strcmp(plan->declared[d].variant, variant->name) != 0) d++;
    if (d < plan->declared_count) continue;
    declared_exponents *new = &plan->declared[plan->declared_count++];
    snprintf(new->variant, sizeof new->variant, "%s", variant->name);
    new->time_exponent = variant->time_exponent;
    new->workspace_exponent = variant->workspace_exponent;
  }
  return plan->declared != NULL;
}

static bool decide(const sweep *sweep, const bench_options *options, sweep_plan *plan) {
  int *of_point = calloc(sweep->count + 1, sizeof *of_point);
  plan->points = calloc(sweep->count + 1, sizeof *plan->points);
  const bool good =
      of_point && plan->points && shard_assign(sweep->points, sweep->count, options, plan->shards, of_point);
  for (size_t n = 0; good && n < sweep->count; n++) {
    sweep_point_name(&sweep->points[n], plan->points[n].name);
    plan->points[n].shard = of_point[n];
  }
  plan->point_count = sweep->count;
  free(of_point);
  return good;
}

/* Decided once, and kept in memory that outlives this process: where a variant ends it, what the next one finds in the sweep
 * may differ, for that variant is no longer asked what it refuses. */
static bool decide_once(const sweep *sweep, const bench_options *options, sweep_plan *plan) {
  bench_kept *kept = bench_kept_find();
  if (!kept || !kept->planned) {
    if (!decide(sweep, options, plan)) return false;
    const size_t bytes = (plan->point_count + 1) * sizeof *plan->points;
    planned_point *planned = kept ? supervisor_keep(bytes) : NULL; /* NULL: nobody goes on */
    if (!planned) return true;
    kept->planned = memcpy(planned, plan->points, bytes);
    kept->planned_count = plan->point_count;
    return true;
  }
  plan->points = calloc(kept->planned_count + 1, sizeof *plan->points);
  if (!plan->points) return false;
  plan->point_count = kept->planned_count;
  memcpy(plan->points, kept->planned, kept->planned_count * sizeof *plan->points);
  return true;
}

static bool is_mine(const sweep_plan *plan, const bench_point *point) {
  char name[WORKLOAD_NAME_BYTES];
  sweep_point_name(point, name);
  for (size_t n = 0; n < plan->point_count; n++)
    if (strcmp(plan->points[n].name, name) == 0) return plan->points[n].shard == plan->shard;
  return false;
}

bool shard_take(sweep *sweep, shard shard, const bench_options *options, sweep_plan *plan, char *why,
                size_t why_size) {
  *plan = (sweep_plan){.shard = shard.index, .shards = shard.count, .interface = ATTN_INTERFACE_VERSION};
  snprintf(plan->version, sizeof plan->version, "%s (commit %s)", ATTNBENCH_VERSION, version_commit());
  describe_options(options, sweep, plan->options);
  if (!decide_once(sweep, options, plan) || !note_declared(plan, sweep->points, sweep->count)) {
    snprintf(why, why_size, "out of memory for a sweep of %zu points", sweep->count);
    return false;
  }
  size_t left = 0;
  for (size_t n = 0; n < sweep->count; n++)
    if (is_mine(plan, &sweep->points[n])) sweep->points[left++] = sweep->points[n];
  sweep->count = left;
  return true;
}

void sweep_plan_destroy(sweep_plan *plan) {
  free(plan->points);
  free(plan->declared);
  *plan = (sweep_plan){0};
}

/* ---- names of its files ---- */

char *shard_file(const char *path, shard shard) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const char *name = slash ? slash + 1 : path;
  const int stem = dot && dot > name ? (int)(dot - path) : (int)strlen(path);
  char *named;
  return asprintf(&named, "%.*s.%d-of-%d%s", stem, path, shard.index, shard.count, path + stem) < 0 ? NULL
                                                                                                    : named;
}

char *shard_folder(const char *folder, shard shard) {
  char *named;
  return asprintf(&named, "%s/shard-%d-of-%d", folder, shard.index, shard.count) < 0 ? NULL : named;
}
