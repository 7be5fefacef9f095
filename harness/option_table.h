/* The one table of commands and options, and the struct that the options fill. An option is a row: its name,
 * the commands that take it, what kind of value it has, where in `options` the value goes, within which
 * limits, and what the help says. Parsing and the sentences about what is wrong (options.c) and the help
 * (options_help.c) all come from here; a new option is a field here and a row in option_table.c. */
#ifndef ATTN_HARNESS_OPTION_TABLE_H
#define ATTN_HARNESS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef enum command {
  COMMAND_BENCH,
  COMMAND_VERIFY,
  COMMAND_FUZZ,
  COMMAND_DUMP,
  COMMAND_JUDGE,
  COMMAND_LIST,
  COMMAND_MACHINE,
  COMMAND_PLOTS,
  COMMAND_REPORT,
  COMMAND_MERGE,
  COMMAND_SHOW,
  COMMAND_GATE,
  COMMAND_PROBLEM,
  COMMAND_HELP,
  COMMAND_VERSION,
  COMMAND_GATE_MEASURE,
  COMMAND_COUNT_INSTRUCTIONS,
  COMMAND_COUNT
} command;

enum { OPTIONS_UNSAID = -1, OPTIONS_MAX_LENGTHS = 1000 };

/* ---- what the command line said ---- */

/* Ascending, each once. */
typedef struct size_list {
  int64_t *sizes;
  size_t count;
} size_list;

typedef struct options {
  command command;
  command about; /* whose options help prints; COMMAND_HELP: everyone's */
  /* What stands beside options: the files of plots and report, the problem of dump and show, benchmarks of gate-measure. */
  text_list words;

  text_list variants; /* empty: all */
  const char *device;
  text_list plugins, presets, problems, memory_only;
  bool own;          /* the program's own variants too, verify and fuzz only */
  text_list context; /* key=value, for the record */

  /* The shape; OPTIONS_UNSAID where the command line says nothing. */
  int64_t batch, heads, kv_heads, head_dim, value_dim, window, query_length;
  text_list parts; /* of a problem line */
  bool causal;
  size_list lengths, batches, head_dims;

  bool pin;
  int64_t threads; /* never unsaid: the processors this process may use by default */
  const char *isa; /* NULL: the fastest when measuring, each when verifying */
  uint64_t seed;
  const char *shard; /* K/N or auto, or NULL: all of it */
  const char *out;   /* a folder, or NULL; of merge, or a file */
  const char *html;  /* the file of the page, or NULL: index.html beside the report */
  const char *raw;   /* a file for single repetitions, or NULL */
  const char *title; /* of the pictures, or NULL */
  int64_t font_size; /* points; 0: the usual one */
  text_list formats; /* of the pictures; empty: the usual ones */
  /* The folder of the gnuplot files, or NULL: the program's own. */
  const char *scripts;
  bool quiet;

  double min_time, min_warmup_time, point_limit, point_budget; /* seconds */
  double precision;                                            /* percent */
  int64_t iterations;                                          /* in each repetition; 0: by min_time */
  int64_t repetitions;                                         /* 0: by precision */

  int64_t count;        /* of random problems, verify only */
  int64_t every;        /* verify only */
  double seconds;       /* of searching and of shrinking, fuzz only */
  const char *cases;    /* a folder, or NULL */
  bool fail_fast;       /* verify only */
  text_list properties; /* of verify; empty: all */
  bool isolate;         /* run kernels in a process of their own */
  double run_limit;     /* seconds; 0: by the problem */

  /* As in Google Benchmark. */
  const char *filter; /* NULL: everything */
  bool list_tests, dry_run, report_aggregates_only, display_aggregates_only, counters_tabular, brief;
  bool random_interleaving, instructions, cold;
  const char *format;   /* console, json, csv */
  const char *out_file; /* or NULL */
  const char *out_format;
  const char *time_unit; /* or NULL */
  const char *color;     /* auto, true, false */

  const char *as; /* text, man, bash: help only */

  /* judge: files, or NULL; how the verdict is printed. */
  const char *output, *lse, *weights, *gradients, *states;
  bool json;

  /* show: of what. */
  struct {
    int64_t batch, head;
    const char *tile; /* queries x keys */
    bool weights;
  } show;

  /* gate and gate-measure; gate.h says what they mean. Texts are NULL where nothing is said. */
  struct {
    text_list heads, bases, accepted;
    const char *why_no_base, *base_name, *identical, *only, *again;
    const char *baseline, *write_facts, *head_facts, *base_facts;
    const char *head_code, *base_code, *why_no_code;
    const char *head_team, *base_team;
    const char *itself;
    bool facts, times, shadow; /* as they were said: neither of the first two means both */
    double budget, smallest;   /* seconds; percent */
    int64_t cases, quads;
  } gate;
} options;

/* ---- the table ---- */

/* Where the help has a command and its options. */
typedef enum visibility {
  SHOWN,       /* in everyone's help */
  SHOWN_APART, /* the options in its own help only */
  HIDDEN       /* in its own help only: what the program runs of itself */
} visibility;

typedef struct command_row {
  const char *name;
  visibility visibility;
  size_t most_words;  /* that it takes beside options */
  const char *usage;  /* as it is written behind the program's name */
  const char *help;   /* a line in the list of commands */
  const char *about;  /* what its own help begins with; NULL: usage and help */
  const char *status; /* what its exit statuses mean; NULL: what they mean everywhere */
} command_row;

typedef enum option_kind {
  KIND_FLAG,    /* bool: alone, or =true, =false */
  KIND_INTEGER, /* int64_t within minimum..maximum */
  KIND_SEED,    /* uint64_t */
  KIND_SECONDS, /* double, not below minimum; a trailing s is allowed */
  KIND_PERCENT, /* double, not negative; with a maximum: above minimum, up to maximum. A trailing % is allowed */
  KIND_MIN_TIME, /* seconds, or iterations as 100x */
  KIND_TEXT, /* const char *, one line, not empty, of at most `maximum` bytes; one of `choices` where there are some. It stands in
               * lines that are printed, and in strings of gnuplot's, which end with their line */
  KIND_NOTE, /* const char *, may be empty */
  KIND_WORDS, /* text_list, repeatable, split at commas */
  KIND_PAIRS, /* text_list, key=value split at commas, repeatable */
  KIND_PART,  /* text_list, a part of a problem line: what `choices` says, with the value behind it */
  KIND_WORD, /* text_list, parts of a problem line: one of `choices`, with its value where it ends in a colon */
  KIND_ITEM,   /* text_list, repeatable, taken whole, not empty */
  KIND_LENGTHS /* size_list, within minimum..maximum; numbers and ranges split at commas */
} option_kind;

typedef struct option_row {
  const char *name, *value; /* value: what the help calls it */
  unsigned
      commands; /* those that take it, 1 << COMMAND_... each; in another command the name may mean another */
  option_kind kind;
  size_t offset;            /* in options */
  int64_t minimum, maximum; /* a maximum of 0: none */
  const char *choices;      /* a|b|c; of words, for each */
  const char *help;         /* with at most one line break */
} option_row;

const option_row *option_rows(size_t *count);
const command_row *option_command(command command);

/* The commands that the help lists or lists apart, 1 << COMMAND_... each. */
unsigned option_public_commands(void);

/* "bench, verify and fuzz". */
void option_name_commands(unsigned commands, char *text, size_t size);

#endif
