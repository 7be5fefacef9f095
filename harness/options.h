/* The command line: one table of options (options.c) that parsing, the help text and the error messages
 * all come from. Whether a variant, a preset or a shape exists is not looked at here. */
#ifndef ATTN_HARNESS_OPTIONS_H
#define ATTN_HARNESS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

typedef enum command {
  COMMAND_BENCH,
  COMMAND_VERIFY,
  COMMAND_FUZZ,
  COMMAND_LIST,
  COMMAND_MACHINE,
  COMMAND_PLOTS,
  COMMAND_HELP,
  COMMAND_VERSION
} command;

enum { OPTIONS_UNSAID = -1, OPTIONS_MAX_LENGTHS = 1000 };

typedef struct options {
  command command;
  const char *file; /* what plots reads */

  text_list variants; /* empty: all */
  text_list plugins, presets, problems;
  text_list context; /* key=value, for the record */

  /* The shape; OPTIONS_UNSAID where the command line says nothing. */
  int64_t batch, heads, kv_heads, head_dim, value_dim, window;
  bool causal;
  int64_t *lengths; /* ascending, each once */
  size_t length_count;

  int64_t threads; /* never unsaid: the processors this process may use by default */
  const char *isa; /* NULL: the fastest when measuring, each when verifying */
  uint64_t seed;
  const char *out;     /* a folder, or NULL */
  const char *scripts; /* the folder of the gnuplot files, or NULL: the one this was built from */
  bool quiet;

  double min_time, min_warmup_time, point_limit, point_budget; /* seconds */
  double precision;                                            /* percent */
  int64_t iterations;                                          /* in each repetition; 0: by min_time */
  int64_t repetitions;                                         /* 0: by precision */

  int64_t count;     /* of random problems, verify only */
  double seconds;    /* of searching and of shrinking, fuzz only */
  const char *cases; /* a folder, or NULL */
  bool fail_fast;    /* verify only */

  /* As in Google Benchmark. */
  const char *filter; /* NULL: everything */
  bool list_tests, dry_run, report_aggregates_only, display_aggregates_only, counters_tabular, brief;
  bool random_interleaving, instructions, cold;
  const char *format;   /* console, json, csv */
  const char *out_file; /* or NULL */
  const char *out_format;
  const char *time_unit; /* or NULL */
  const char *color;     /* auto, true, false */
} options;

/* Fills *options, which options_destroy empties also after a failure. False, with the reason in words,
 * when the command line is wrong. Texts in *options point into argv, which must stay. */
bool options_parse(options *options, int argc, char **argv, char *why, size_t why_size);
void options_destroy(options *options);

/* Every command and every option with its default. */
void options_help(FILE *out);

#endif
