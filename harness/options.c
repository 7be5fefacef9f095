/* See options.h. Each option is one row of a table: its name, where it is valid, what kind of value it
 * takes and where in `options` the value goes. */
#define _GNU_SOURCE
#include "options.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef enum kind {
  KIND_FLAG,     /* bool: alone, or =true, =false */
  KIND_INTEGER,  /* int64_t within minimum..maximum */
  KIND_SEED,     /* uint64_t */
  KIND_SECONDS,  /* double, not negative; a trailing s is allowed */
  KIND_PERCENT,  /* double, not negative; a trailing % is allowed */
  KIND_MIN_TIME, /* seconds, or iterations as 100x */
  KIND_TEXT,     /* const char *, not empty; one of `choices` where there are some */
  KIND_WORDS,    /* text_list, repeatable, split at commas */
  KIND_PAIRS,    /* text_list, key=value split at commas, repeatable */
  KIND_ITEM,     /* text_list, repeatable, taken whole */
  KIND_LENGTHS
} kind;

enum {
  IN_BENCH = 1 << COMMAND_BENCH,
  IN_VERIFY = 1 << COMMAND_VERIFY,
  IN_FUZZ = 1 << COMMAND_FUZZ,
  IN_LIST = 1 << COMMAND_LIST,
  IN_MACHINE = 1 << COMMAND_MACHINE,
  IN_PLOTS = 1 << COMMAND_PLOTS
};

/* Far beyond any memory, and small enough that sums of two sizes cannot overflow. */
static const int64_t largest_size = INT64_C(1) << 40;

typedef struct row {
  const char *name, *value; /* value: what the help calls it */
  unsigned commands;
  kind kind;
  size_t offset;
  int64_t minimum, maximum;
  const char *choices; /* a|b|c */
  const char *help;
} row;

#define AT(field) offsetof(options, field)
#define SIZES_FROM(minimum) minimum, largest_size, NULL
#define NO_LIMITS 0, 0, NULL

static const row *option_rows(size_t *count) {
  static const row rows[] = {
      {"--variant", "NAME,...", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_WORDS, AT(variants), NO_LIMITS,
       "only these variants; repeatable (all)"},
      {"--plugin", "FILE.so", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_LIST, KIND_ITEM, AT(plugins), NO_LIMITS,
       "add the variants of a shared object; repeatable"},
      {"--problem", "TEXT", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_ITEM, AT(problems), NO_LIMITS,
       "exactly this problem, such as causal/B:1/H:8/Hkv:2/D:64/T:1024; repeatable in bench, verify;\n"
       "fuzz: shrink it, for the one variant named, which fails it"},
      {"--preset", "NAME,...", IN_BENCH, KIND_WORDS, AT(presets), NO_LIMITS,
       "attention shapes of real models; 'list' names them; repeatable"},
      {"--batch", "B", IN_BENCH, KIND_INTEGER, AT(batch), SIZES_FROM(1), "batch entries (1)"},
      {"--heads", "H", IN_BENCH, KIND_INTEGER, AT(heads), SIZES_FROM(1), "query heads (4)"},
      {"--kv-heads", "HKV", IN_BENCH, KIND_INTEGER, AT(kv_heads), SIZES_FROM(1),
       "key/value heads, a divisor of H (H; multi_query 1, grouped_query 2)"},
      {"--head-dim", "D", IN_BENCH, KIND_INTEGER, AT(head_dim), SIZES_FROM(1),
       "width of queries and keys (64)"},
      {"--value-dim", "DV", IN_BENCH, KIND_INTEGER, AT(value_dim), SIZES_FROM(1), "width of values (D)"},
      {"--lengths", "T,...", IN_BENCH, KIND_LENGTHS, AT(lengths), NO_LIMITS,
       "sequence lengths: numbers or ranges, A:B in doublings, A:B:xN, A:B:+N\n"
       "(128:8192; 128:65536 where time grows as T)"},
      {"--causal", NULL, IN_BENCH, KIND_FLAG, AT(causal), NO_LIMITS, "a query sees no later key"},
      {"--window", "W", IN_BENCH, KIND_INTEGER, AT(window), SIZES_FROM(0),
       "a query sees itself and the W keys before it (sliding_window 512, others all)"},
      {"--threads", "N", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_MACHINE, KIND_INTEGER, AT(threads), 1, 4096,
       NULL, "threads that a kernel may use (the processors this process may use; fuzz: 1 to 8 in turn)"},
      {"--isa", "NAME", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_TEXT, AT(isa), NO_LIMITS,
       "hold our variants to this instruction set (bench: the fastest; verify, fuzz: each in turn)"},
      {"--seed", "N", IN_BENCH | IN_VERIFY | IN_FUZZ, KIND_SEED, AT(seed), NO_LIMITS,
       "of all random input, but where a problem names its own (1)"},
      {"--out", "FOLDER", IN_BENCH | IN_PLOTS, KIND_TEXT, AT(out), NO_LIMITS,
       "write results.json, results.csv, console.txt, summary.txt and the plots there"},
      {"--min-time", "SECONDS|Nx", IN_BENCH, KIND_MIN_TIME, AT(min_time), NO_LIMITS,
       "the same as --benchmark_min_time"},
      {"--repetitions", "N", IN_BENCH, KIND_INTEGER, AT(repetitions), 1, 1000000, NULL,
       "the same as --benchmark_repetitions"},
      {"--precision", "PERCENT", IN_BENCH, KIND_PERCENT, AT(precision), NO_LIMITS,
       "repeat a point until its median is known to so much either way (1%)"},
      {"--point-budget", "SECONDS", IN_BENCH, KIND_SECONDS, AT(point_budget), NO_LIMITS,
       "or until its repetitions have taken so long; six are always made (1)"},
      {"--point-limit", "SECONDS", IN_BENCH, KIND_SECONDS, AT(point_limit), NO_LIMITS,
       "skip a point when a single run would take longer (8)"},
      {"--cold", NULL, IN_BENCH, KIND_FLAG, AT(cold), NO_LIMITS,
       "rotate inputs, so that each iteration finds its own in no cache (false)"},
      {"--instructions", NULL, IN_BENCH, KIND_FLAG, AT(instructions), NO_LIMITS,
       "count the instructions of kernels, where valgrind is installed (true)"},
      {"--brief", NULL, IN_BENCH, KIND_FLAG, AT(brief), NO_LIMITS,
       "one row a point on the console, its median; =false: every repetition and aggregate (true)"},
      {"--quiet", NULL, IN_BENCH, KIND_FLAG, AT(quiet), NO_LIMITS, "no progress, no notes"},
      {"--count", "N", IN_VERIFY, KIND_INTEGER, AT(count), 0, 1000000000, NULL,
       "random problems for each variant, after the fixed grid (100)"},
      {"--fail-fast", NULL, IN_VERIFY, KIND_FLAG, AT(fail_fast), NO_LIMITS, "stop at the first failure"},
      {"--seconds", "SECONDS", IN_FUZZ, KIND_SECONDS, AT(seconds), NO_LIMITS,
       "how long to search, and then to shrink a failure at most (60)"},
      {"--cases", "FOLDER", IN_VERIFY, KIND_TEXT, AT(cases), NO_LIMITS,
       "hold the variants to a folder of given answers instead"},
      {"--scripts", "FOLDER", IN_BENCH | IN_PLOTS, KIND_TEXT, AT(scripts), NO_LIMITS,
       "where the gnuplot files lie (those of the source tree)"},
      {"--benchmark_filter", "REGEX", IN_BENCH, KIND_TEXT, AT(filter), NO_LIMITS,
       "only points whose name matches; with a '-' in front, all others"},
      {"--benchmark_list_tests", NULL, IN_BENCH, KIND_FLAG, AT(list_tests), NO_LIMITS,
       "print the names of the points and stop"},
      {"--benchmark_min_time", "SECONDS|Nx", IN_BENCH, KIND_MIN_TIME, AT(min_time), NO_LIMITS,
       "shortest time of one repetition, or N iterations exactly; without a number of\n"
       "repetitions: of all together, each a tenth of it (0.5s)"},
      {"--benchmark_min_warmup_time", "SECONDS", IN_BENCH, KIND_SECONDS, AT(min_warmup_time), NO_LIMITS,
       "unmeasured running before a point, beyond what it takes to settle (0)"},
      {"--benchmark_repetitions", "N", IN_BENCH, KIND_INTEGER, AT(repetitions), 1, 1000000, NULL,
       "exactly so many of each point (as --precision takes)"},
      {"--benchmark_report_aggregates_only", NULL, IN_BENCH, KIND_FLAG, AT(report_aggregates_only), NO_LIMITS,
       "no single repetitions in the files"},
      {"--benchmark_display_aggregates_only", NULL, IN_BENCH, KIND_FLAG, AT(display_aggregates_only),
       NO_LIMITS, "no single repetitions on the console"},
      {"--benchmark_enable_random_interleaving", NULL, IN_BENCH, KIND_FLAG, AT(random_interleaving),
       NO_LIMITS, "repetitions of different points in random order (true)"},
      {"--benchmark_format", "FORMAT", IN_BENCH, KIND_TEXT, AT(format), 0, 0, "console|json|csv",
       "what is printed (console)"},
      {"--benchmark_out", "FILE", IN_BENCH, KIND_TEXT, AT(out_file), NO_LIMITS, "write the report there too"},
      {"--benchmark_out_format", "FORMAT", IN_BENCH, KIND_TEXT, AT(out_format), 0, 0, "json|console|csv",
       "of that file (json)"},
      {"--benchmark_time_unit", "UNIT", IN_BENCH, KIND_TEXT, AT(time_unit), 0, 0, "ns|us|ms|s",
       "of all times (what suits each)"},
      {"--benchmark_dry_run", NULL, IN_BENCH, KIND_FLAG, AT(dry_run), NO_LIMITS,
       "run each point once, to see that it runs"},
      {"--benchmark_color", "WHEN", IN_BENCH, KIND_TEXT, AT(color), 0, 0, "auto|true|yes|1|false|no|0",
       "colours on the console (auto: on a terminal)"},
      {"--benchmark_context", "KEY=VALUE,...", IN_BENCH, KIND_PAIRS, AT(context), NO_LIMITS,
       "more context for the record; repeatable"},
      {"--benchmark_counters_tabular", NULL, IN_BENCH, KIND_FLAG, AT(counters_tabular), NO_LIMITS,
       "accepted: counters always stand in columns"},
  };
  *count = sizeof rows / sizeof *rows;
  return rows;
}

static const char *const command_names[] = {"bench",   "verify", "fuzz", "list",
                                            "machine", "plots",  "help", "version"};
enum { COMMAND_COUNT = sizeof command_names / sizeof *command_names };

/* ---- values ---- */

static bool list_append(text_list *list, const char *text, size_t length) {
  char **items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (!items) return false;
  list->items = items;
  items[list->count] = strndup(text, length);
  if (!items[list->count]) return false;
  list->count++;
  return true;
}

static bool append_length(options *options, int64_t length, char *why, size_t why_size) {
  if (options->length_count >= OPTIONS_MAX_LENGTHS) {
    snprintf(why, why_size, "--lengths names more than %d lengths", OPTIONS_MAX_LENGTHS);
    return false;
  }
  options->lengths[options->length_count++] = length;
  return true;
}

/* One item of --lengths: T, A:B, A:B:xN or A:B:+N. *end is left at the comma or the end behind it. */
static bool parse_length_range(options *options, const char *text, const char **end, char *why,
                               size_t why_size) {
  int64_t from = 0, to = 0, step = 2;
  char how = 'x';
  bool sound = text_integer(text, 1, largest_size, end, &from);
  to = from;
  if (sound && **end == ':') {
    sound = text_integer(*end + 1, from, largest_size, end, &to);
    if (sound && **end == ':') {
      how = (*end)[1];
      sound = how == 'x' || how == '+';
      sound = sound && text_integer(*end + 2, how == 'x' ? 2 : 1, largest_size, end, &step);
    }
  }
  if (!sound || (**end != ',' && **end != '\0')) {
    snprintf(why, why_size,
             "--lengths takes numbers from 1 or ranges A:B, A:B:xN, A:B:+N with A <= B, such as "
             "128,256 or 128:8192, not '%s'",
             text);
    return false;
  }
  while (from <= to) {
    if (!append_length(options, from, why, why_size)) return false;
    if (how == 'x' && from > to / step) break; /* the next one lies beyond; the product could overflow */
    from = how == 'x' ? from * step : from + step;
  }
  return true;
}

static int ascending(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static bool parse_lengths(options *options, const char *text, char *why, size_t why_size) {
  if (!options->lengths) options->lengths = calloc(OPTIONS_MAX_LENGTHS, sizeof *options->lengths);
  if (!options->lengths) {
    snprintf(why, why_size, "out of memory");
    return false;
  }
  const char *end = text;
  if (!parse_length_range(options, text, &end, why, why_size)) return false;
  while (*end == ',')
    if (!parse_length_range(options, end + 1, &end, why, why_size)) return false;

  qsort(options->lengths, options->length_count, sizeof *options->lengths, ascending);
  size_t kept = 1;
  for (size_t i = 1; i < options->length_count; i++)
    if (options->lengths[i] != options->lengths[kept - 1]) options->lengths[kept++] = options->lengths[i];
  options->length_count = kept;
  return true;
}

/* Words with commas between them; those of pairs have a key, an '=' and a value. */
static bool parse_words(text_list *list, const char *text, bool pairs) {
  for (;;) {
    size_t length = strcspn(text, ",");
    if (pairs && (*text == '=' || !memchr(text, '=', length))) return false;
    if (length == 0 || !list_append(list, text, length)) return false;
    if (text[length] == '\0') return true;
    text += length + 1;
  }
}

/* As in Google Benchmark: "0.5s", "0.5" or, for a number of iterations, "100x". */
static bool parse_min_time(options *options, const char *text, char *why, size_t why_size) {
  const char *end = NULL;
  options->iterations = 0;
  if (text_seconds(text, &options->min_time)) return true;
  if (text_integer(text, 1, 1000000000, &end, &options->iterations) && strcmp(end, "x") == 0) return true;
  snprintf(
      why, why_size,
      "--benchmark_min_time takes seconds, such as 0.5s, or a number of iterations, such as 100x, not '%s'",
      text);
  return false;
}

/* Puts the value where the row says. text is NULL only for a flag that stands alone. */
static bool store(const row *row, options *options, const char *text, char *why, size_t why_size) {
  void *field = (char *)options + row->offset;
  const char *end = "";
  switch (row->kind) {
    case KIND_FLAG:
      if (text_flag(text, field)) return true;
      snprintf(why, why_size, "%s takes true or false, not '%s'", row->name, text);
      return false;
    case KIND_INTEGER:
      if (text_integer(text, row->minimum, row->maximum, &end, field) && *end == '\0') return true;
      snprintf(why, why_size, "%s takes a whole number from %lld to %lld, not '%s'", row->name,
               (long long)row->minimum, (long long)row->maximum, text);
      return false;
    case KIND_SEED:
      if (text_seed(text, field)) return true;
      snprintf(why, why_size, "%s takes a whole number from 0 to 2^64 - 1, not '%s'", row->name, text);
      return false;
    case KIND_SECONDS:
      if (text_seconds(text, field)) return true;
      snprintf(why, why_size, "%s takes seconds, such as 0.5, not '%s'", row->name, text);
      return false;
    case KIND_PERCENT:
      if (text_percent(text, field)) return true;
      snprintf(why, why_size, "%s takes a percentage, such as 1%%, not '%s'", row->name, text);
      return false;
    case KIND_MIN_TIME: return parse_min_time(options, text, why, why_size);
    case KIND_TEXT:
      *(const char **)field = text;
      if (row->choices ? text_is_choice(row->choices, text) : *text != '\0') return true;
      snprintf(why, why_size, "%s takes %s, not '%s'", row->name, row->choices ? row->choices : row->value,
               text);
      return false;
    case KIND_WORDS:
      if (parse_words(field, text, false)) return true;
      snprintf(why, why_size, "%s takes names with commas between them, not '%s'", row->name, text);
      return false;
    case KIND_PAIRS:
      if (parse_words(field, text, true)) return true;
      snprintf(why, why_size, "%s takes %s, not '%s'", row->name, row->value, text);
      return false;
    case KIND_ITEM:
      if (*text && list_append(field, text, strlen(text))) return true;
      snprintf(why, why_size, "%s takes %s, not '%s'", row->name, row->value, text);
      return false;
    case KIND_LENGTHS: return parse_lengths(options, text, why, why_size);
  }
  return false;
}

/* ---- the command line ---- */

static int64_t usable_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1; /* more processors than the set can hold */
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

static options options_default(void) {
  options options = {
      .batch = OPTIONS_UNSAID,
      .heads = OPTIONS_UNSAID,
      .kv_heads = OPTIONS_UNSAID,
      .head_dim = OPTIONS_UNSAID,
      .value_dim = OPTIONS_UNSAID,
      .window = OPTIONS_UNSAID,
      .threads = usable_processors(),
      .seed = 1,
      .min_time = 0.5,
      .precision = 1,
      .point_limit = 8,
      .point_budget = 1,
      .count = 100,
      .seconds = 60,
      .brief = true,
      .random_interleaving = true,
      .instructions = true,
      .format = "console",
      .out_format = "json",
      .color = "auto",
  };
  return options;
}

static const row *find_row(const char *name, size_t length) {
  size_t count;
  const row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++)
    if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0) return &rows[i];
  return NULL;
}

static void say_unknown_option(const char *argument, size_t length, char *why, size_t why_size) {
  char word[64];
  const char *names[64];
  size_t count;
  const row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++) names[i] = rows[i].name;
  snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), argument);
  const char *nearest = text_nearest(word, names, count);
  snprintf(why, why_size, "there is no option %s; %s%s", word,
           nearest ? "the nearest is " : "attnbench --help lists them all", nearest ? nearest : "");
}

/* The option at argv[*at]; *at moves on over a value that stands in an argument of its own. */
static bool parse_option(options *options, int argc, char **argv, int *at, char *why, size_t why_size) {
  const char *argument = argv[*at];
  size_t length = strcspn(argument, "=");
  const row *row = find_row(argument, length);
  if (!row) {
    say_unknown_option(argument, length, why, why_size);
    return false;
  }
  if (!(row->commands >> options->command & 1)) {
    snprintf(why, why_size, "%s has no option %s; attnbench --help lists what each command takes",
             command_names[options->command], row->name);
    return false;
  }
  const char *text = argument[length] == '=' ? argument + length + 1 : NULL;
  if (!text && row->kind != KIND_FLAG) {
    if (*at + 1 >= argc) {
      snprintf(why, why_size, "%s needs a value: %s %s", row->name, row->name, row->value);
      return false;
    }
    text = argv[++*at];
  }
  return store(row, options, text, why, why_size);
}

static bool parse_command(options *options, const char *word, char *why, size_t why_size) {
  for (size_t i = 0; i < COMMAND_COUNT; i++)
    if (strcmp(word, command_names[i]) == 0) {
      options->command = (command)i;
      return true;
    }
  const char *nearest = text_nearest(word, command_names, COMMAND_COUNT);
  snprintf(why, why_size, "there is no command '%s'; %s%s", word,
           nearest ? "the nearest is "
                   : "the commands are bench, verify, fuzz, list, machine, plots, gate, help and version",
           nearest ? nearest : "");
  return false;
}

static bool is_help(const char *word) { return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0; }

static bool check_together(const options *options, char *why, size_t why_size) {
  bool has_shape = options->batch >= 0 || options->heads >= 0 || options->kv_heads >= 0 ||
                   options->head_dim >= 0 || options->value_dim >= 0 || options->window >= 0 ||
                   options->causal || options->length_count > 0;
  if (has_shape && (options->presets.count || options->problems.count)) {
    snprintf(why, why_size, "%s fixes the whole shape; leave out --batch, --heads, --lengths and the like",
             options->presets.count ? "--preset" : "--problem");
    return false;
  }
  if (options->cases && options->problems.count) {
    snprintf(why, why_size, "verify takes --cases or --problem, not both");
    return false;
  }
  if (options->cases && options->isa) {
    snprintf(why, why_size, "verify --cases runs on every instruction set; leave out --isa");
    return false;
  }
  if (options->cases && options->fail_fast) {
    snprintf(why, why_size, "verify --cases names every case that fails; leave out --fail-fast");
    return false;
  }
  if (options->command == COMMAND_FUZZ && options->problems.count &&
      (options->problems.count > 1 || options->variants.count != 1)) {
    snprintf(why, why_size, "fuzz shrinks one --problem for one --variant, which fails it");
    return false;
  }
  if (options->command == COMMAND_PLOTS && !options->file) {
    snprintf(why, why_size, "plots needs a file: attnbench plots results/latest/results.json");
    return false;
  }
  return true;
}

bool options_parse(options *options, int argc, char **argv, char *why, size_t why_size) {
  *options = options_default();
  for (int i = 1; i < argc; i++) {
    if (is_help(argv[i])) options->command = COMMAND_HELP;
    if (strcmp(argv[i], "--version") == 0) options->command = COMMAND_VERSION;
  }
  if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION) return true;

  int at = 1;
  if (argc > 1 && argv[1][0] != '-' && !parse_command(options, argv[at++], why, why_size)) return false;
  for (; at < argc; at++) {
    if (argv[at][0] == '-') {
      if (!parse_option(options, argc, argv, &at, why, why_size)) return false;
    } else if (options->command == COMMAND_PLOTS && !options->file) {
      options->file = argv[at];
    } else {
      snprintf(why, why_size, "%s does not know what to do with '%s'", command_names[options->command],
               argv[at]);
      return false;
    }
  }
  return check_together(options, why, why_size);
}

static void list_destroy(text_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  *list = (text_list){NULL, 0};
}

void options_destroy(options *options) {
  list_destroy(&options->variants);
  list_destroy(&options->plugins);
  list_destroy(&options->presets);
  list_destroy(&options->problems);
  list_destroy(&options->context);
  free(options->lengths);
  options->lengths = NULL;
  options->length_count = 0;
}

/* ---- help ---- */

/* The options that are valid for exactly these commands. A help text's second line is indented alike. */
static void print_options(FILE *out, const char *heading, unsigned commands) {
  enum { COLUMN = 42 };
  size_t count;
  const row *rows = option_rows(&count);
  fprintf(out, "\n%s\n", heading);
  for (size_t i = 0; i < count; i++) {
    if (rows[i].commands != commands) continue;
    char left[80];
    snprintf(left, sizeof left, "  %s%s%s", rows[i].name, rows[i].value ? " " : "",
             rows[i].value ? rows[i].value : "");
    const char *help = rows[i].help, *second = strchr(help, '\n');
    int first_length = second ? (int)(second - help) : (int)strlen(help);
    fprintf(out, "%-*s %.*s\n", COLUMN, left, first_length, help);
    if (second) fprintf(out, "%-*s %s\n", COLUMN, "", second + 1);
  }
}

void options_help(FILE *out) {
  fputs("attnbench verifies attention kernels against a double-precision reference and measures how their\n"
        "time and memory grow with the sequence length T.\n"
        "\n"
        "  attnbench [bench] [options]     measure a sweep of T for each variant, each point verified first\n"
        "  attnbench verify [options]      hold variants to the reference over a grid and random problems\n"
        "  attnbench fuzz [options]        random problems without end; shrink what fails\n"
        "  attnbench list                  variants, instruction sets and presets\n"
        "  attnbench machine               what this machine is and what it can do at best\n"
        "  attnbench plots RESULTS.json    draw the pictures of a run again\n"
        "  attnbench gate [options]        what scripts/gate.sh runs; gate --help lists its options\n"
        "  attnbench help | version        this text | the version\n"
        "\n"
        "Options are given as --name VALUE or --name=VALUE; defaults stand in parentheses.\n"
        "Status: 0 all is well, 1 a kernel is wrong, 2 nothing could be done, and one line says why.\n",
        out);
  print_options(out, "bench, verify, fuzz and list", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_LIST);
  print_options(out, "bench, verify, fuzz and machine", IN_BENCH | IN_VERIFY | IN_FUZZ | IN_MACHINE);
  print_options(out, "bench, verify and fuzz", IN_BENCH | IN_VERIFY | IN_FUZZ);
  print_options(out, "bench and plots", IN_BENCH | IN_PLOTS);
  print_options(out, "bench", IN_BENCH);
  print_options(out, "verify", IN_VERIFY);
  print_options(out, "fuzz", IN_FUZZ);
}
