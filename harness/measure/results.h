/* What a run found. */
#ifndef ATTN_HARNESS_RESULTS_H
#define ATTN_HARNESS_RESULTS_H

#include "machine/disturbance.h"
#include "machine/environment.h"
#include "machine/machine.h"
#include "base/statistics.h"
#include "power_law.h"
#include "problem/workload.h"
#include "run/plugins.h"

/* The length along which a family grows. */
typedef enum sweep_axis {
  SWEPT_BOTH, /* queries and keys together */
  SWEPT_KEYS, /* with as many queries, as in decoding */
  SWEPT_QUERIES,
  SWEPT_BATCH, /* no length, but the batch, or the head dimension of all there is */
  SWEPT_HEAD_DIM
} sweep_axis;

/* "T", "Tk", "Tq", "B", "D". */
const char *sweep_axis_name(sweep_axis axis);

typedef enum result_state { RESULT_MEASURED, RESULT_SKIPPED, RESULT_FAILED } result_state;

enum { HOST_NAME_BYTES = 64, PLAN_OPTIONS_BYTES = 256 };

/* One point: a variant on a workload. */
typedef struct result {
  char name[WORKLOAD_NAME_BYTES];   /* fused/causal/B:1/H:8/Hkv:8/D:64/T:4096 */
  char family[WORKLOAD_NAME_BYTES]; /* without the length that is swept: points of one growth curve */
  sweep_axis swept;
  char variant[VARIANT_NAME_BYTES];
  bool from_plugin;           /* and so somebody's own; not known of a report that was read */
  char host[HOST_NAME_BYTES]; /* that it was measured on, in its name too; "": the only one */
  workload workload;
  int family_index, instance_index; /* as in Google Benchmark */
  int threads;
  char isa[ISA_NAME_BYTES]; /* that the variant was held to; "": its own choice, or not known */

  result_state state;
  char reason[512]; /* why it was skipped, or how it failed */
  bool memory_only; /* skipped, for it was not to be run: its memory is the workspace that it asks for */

  size_t repetitions;
  int64_t iterations;  /* in each repetition */
  double *seconds;     /* [repetitions] wall time of one iteration */
  double *cpu_seconds; /* [repetitions] processor time, all threads, of one iteration */
  double *shares; /* [repetitions] of the peak's rate right behind each; 0, or NULL for all: not measured */
  interval seconds_median;
  double flops;       /* operations of one iteration */
  double bytes;       /* that it has to read and write if each is moved once */
  double least_flops; /* that no right kernel can leave out, as in limits.h; 0: not known */
  double least_bytes; /* that it has to read; 0: not known */
  double flops_per_second, peak_fraction;
  double bytes_per_second,
      read_fraction;      /* of the rate at which the level is read that holds the bytes; NaN: not known */
  char read_level[32];    /* "read L2" */
  size_t workspace_bytes; /* asked for */
  size_t workspace_touched_bytes, stack_bytes, static_bytes, hidden_bytes, heap_calls; /* as in footprint.h */
  size_t memory_bytes; /* touched workspace, stack, static and hidden */
  double error_bound_fraction;
  int64_t rows_checked, rows_total; /* held to the reference, element by element */
  int64_t rows_projected;           /* compared along random directions, as in projection.h */
} result;

enum { GROWTH_UNDECLARED = -1 };

/* The growth of one family in the length that is swept. */
typedef struct growth {
  char family[WORKLOAD_NAME_BYTES], variant[VARIANT_NAME_BYTES];
  int family_index;
  sweep_axis swept;
  bool has_time, has_workspace;      /* false: too few points */
  bool is_hidden;                    /* no exponent of time either: what does not grow hides the rest */
  bool memory_only;                  /* nor here: nothing was run */
  interval time, workspace;          /* exponents, with 95 % intervals */
  double time_coefficient, time_rms; /* seconds = coefficient T^declared, and its relative RMS */
  power_law time_law;                /* the fit that the exponent is from, in seconds */
  double time_declared;              /* by the variant; of a pattern the growth of what it shows */
  int workspace_declared;            /* GROWTH_UNDECLARED: along one of the two lengths */
  double from_length, to_length;     /* range of the fit */
  size_t blocks;                     /* passes over these lengths that the exponent of time is from */
  double time_varying;               /* half its interval, as far as noise explains it */
  bool has_instructions;
  interval instructions; /* exponent of the instructions counted on small problems of this kind */
} growth;

/* A point of the whole sweep, and the shard that measures it, from 1 on. */
typedef struct planned_point {
  char name[WORKLOAD_NAME_BYTES];
  int shard;
} planned_point;

/* What a variant says of its growth, for those who have no variants. */
typedef struct declared_exponents {
  char variant[VARIANT_NAME_BYTES];
  int time_exponent, workspace_exponent;
} declared_exponents;

/* What was to be measured, by all shards together, and how. */
typedef struct sweep_plan {
  int shard, shards; /* 1 of 1: all of it; 0: merged from several */
  int interface;     /* of attention.h */
  char version[96], options[PLAN_OPTIONS_BYTES];
  planned_point *points;
  size_t point_count; /* 0: not known, as in a report of before */
  declared_exponents *declared;
  size_t declared_count;
} sweep_plan;

/* One of the runs that a report was merged from. */
typedef struct merged_run {
  char host[HOST_NAME_BYTES];
  machine machine;
  char isa[ISA_NAME_BYTES];
  disturbance disturbance;
  int shard, shards;
  bool interrupted;
  char *context; /* all that its report said of it, as JSON */
} merged_run;

typedef struct report {
  machine machine;
  environment environment;
  char started[32]; /* 2026-11-21T03:30:17+00:00 */
  char executable[256];
  char isa[ISA_NAME_BYTES]; /* that the variants ran with */
  uint64_t seed;
  disturbance disturbance; /* while repetitions were made; seconds 0: not watched */
  bool cold;               /* each iteration had inputs that lay in no cache */
  bool interrupted;        /* Ctrl-C: what follows is what was measured until then */
  result *results;
  size_t result_count;
  growth *growths;
  size_t growth_count;
  char instructions_isa[ISA_NAME_BYTES]; /* that instructions were counted with, "" for none */
  char instructions_note[256];           /* why some could not be counted, or "" */
  size_t peak_memory_bytes;
  const char *const *context; /* key=value, from the command line, and its owner's */
  size_t context_count;
  sweep_plan plan;
  merged_run *runs; /* [run_count]; with any, machine and isa above say what all have in common */
  size_t run_count;
} report;

void report_destroy(report *report);

/* The size of a result along which its family grows. */
int64_t result_length(const result *result);

/* Frees what it owns. */
void result_destroy(result *result);

/* Whether it has a time. */
bool result_is_measured(const result *result);

/* Whether its memory is known. */
bool result_has_memory(const result *result);

/* Whether it was to be run and could not. */
bool result_is_skipped(const result *result);

/* Whether its queries see keys by a pattern. */
bool result_has_pattern(const result *result);

/* The problem in the name of a point or family, without the variant: two with the same text solve the same one. */
const char *result_problem(const char *name);

/* What limits it, as far as is known: the larger of the two shares. */
typedef enum result_limit { LIMIT_UNKNOWN, LIMIT_MULTIPLY_ADDS, LIMIT_READS } result_limit;
result_limit result_limit_of(const result *result);

/* The growth of a family, or NULL. */
const growth *report_growth(const report *report, int family_index);

/* One more than the largest family index. */
int report_family_count(const report *report);

/* The peak that shares are taken of, as in machine_peak; NULL when none was measured. */
const machine_rate *report_peak(const report *report, attn_type type);

#endif
