/* What a run found, and the forms in which it is given: console, JSON (Google Benchmark's schema), CSV. */
#ifndef ATTN_HARNESS_REPORT_H
#define ATTN_HARNESS_REPORT_H

#include <stdio.h>

#include "disturbance.h"
#include "machine.h"
#include "statistics.h"
#include "workload.h"

#define ATTNBENCH_VERSION "0.1.0"

typedef enum result_state { RESULT_MEASURED, RESULT_SKIPPED, RESULT_FAILED } result_state;

/* One point: a variant on a workload. */
typedef struct result {
  char name[WORKLOAD_NAME_BYTES];   /* fused/causal/B:1/H:8/Hkv:8/D:64/T:4096 */
  char family[WORKLOAD_NAME_BYTES]; /* the same without T: points of one growth curve */
  char variant[64];
  workload workload;
  int family_index, instance_index; /* as in Google Benchmark */
  int threads;

  result_state state;
  char reason[256]; /* why it was skipped, or how it failed */

  size_t repetitions;
  int64_t iterations;  /* in each repetition */
  double *seconds;     /* [repetitions] wall time of one iteration */
  double *cpu_seconds; /* [repetitions] processor time, all threads, of one iteration */
  interval seconds_median;
  double flops; /* operations of one iteration */
  double flops_per_second, peak_fraction;
  size_t workspace_bytes;                                                              /* asked for */
  size_t workspace_touched_bytes, stack_bytes, static_bytes, hidden_bytes, heap_calls; /* as in footprint.h */
  size_t memory_bytes; /* touched workspace, stack, static and hidden */
  double error_bound_fraction;
  int64_t rows_checked, rows_total;
} result;

/* The growth of one family in T. */
typedef struct growth {
  char family[WORKLOAD_NAME_BYTES], variant[64];
  int family_index;
  bool has_time, has_workspace;               /* false: too few points */
  interval time, workspace;                   /* exponents, with 95 % intervals */
  double time_coefficient, time_rms;          /* seconds = coefficient T^declared, and its relative RMS */
  double time_intercept, workspace_intercept; /* natural log of the fitted line at T = 1 */
  int time_declared, workspace_declared;
  double from_length, to_length; /* range of T of the fit */
  size_t blocks;                 /* passes over these lengths that the exponent of time is from */
  double time_varying;           /* half its interval, as far as it comes from what varies between passes */
  bool has_instructions;
  interval instructions; /* exponent of the instructions counted on small problems of this kind */
} growth;

typedef struct report {
  machine machine;
  char started[32]; /* 2026-11-21T03:30:17+00:00 */
  char executable[256];
  char isa[32]; /* that the variants ran with */
  uint64_t seed;
  disturbance disturbance; /* while repetitions were made; seconds 0: not watched */
  bool cold;               /* each iteration had inputs that lay in no cache */
  bool interrupted;        /* Ctrl-C: what follows is what was measured until then */
  result *results;
  size_t result_count;
  growth *growths;
  size_t growth_count;
  char instructions_isa[32];   /* that instructions were counted with, "" for none */
  char instructions_note[256]; /* why some could not be counted, or "" */
  size_t peak_memory_bytes;
  const char *const *context; /* key=value, from the command line, and its owner's */
  size_t context_count;
} report;

void report_destroy(report *report);

typedef struct report_options {
  bool repetitions, aggregates; /* which rows are given */
  bool brief;                   /* on the console instead of these: one row a point, its median */
  bool color;
  const char *time_unit; /* "ns", "us", "ms", "s"; NULL: what suits each */
  const char *pictures;  /* for the summary: the folder they lie in, or NULL */
} report_options;

void report_console(const report *report, const report_options *options, FILE *out);
/* Whether the report's context has a key of this name in any case. */
bool report_json_has_context(const char *key);

bool report_json(const report *report, const report_options *options, FILE *out);
void report_csv(const report *report, const report_options *options, FILE *out);

/* Writes beside, then renames: path holds the old file or the whole new one. format: "json", "csv",
 * "console", "summary". False, with the reason in words. */
bool report_write(const report *report, const report_options *options, const char *format, const char *path,
                  char *why, size_t why_size);

/* Reads a JSON report back, ours only; false, with the reason in words. */
bool report_read(report *report, const char *path, char *why, size_t why_size);

/* A dozen lines that a person understands. pictures: the folder they lie in, or NULL. */
void report_summary(const report *report, const char *pictures, FILE *out);

/* Draws all plots of a report into a folder, PNG and SVG, with gnuplot and the scripts in script_folder.
 * False, with the reason in words (gnuplot is missing, ...). */
bool report_plot(const report *report, const char *script_folder, const char *folder, char *why,
                 size_t why_size);

#endif
