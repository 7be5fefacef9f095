/* See options.h. The rows of the table say what there is; this file says how each kind of value is read. */
#define _GNU_SOURCE
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/affinity.h"

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

static bool append_size(const option_row *row, size_list *list, int64_t size, char *why, size_t why_size) {
  if (list->count >= OPTIONS_MAX_LENGTHS) {
    snprintf(why, why_size, "%s names more than %d", row->name, OPTIONS_MAX_LENGTHS);
    return false;
  }
  list->sizes[list->count++] = size;
  return true;
}

/* One item of --lengths: T, A:B, A:B:xN or A:B:+N. *end is left at the comma or the end behind it. */
static bool parse_length_range(const option_row *row, size_list *list, const char *text, const char **end,
                               char *why, size_t why_size) {
  int64_t from = 0, to = 0, step = 2;
  char how = 'x';
  bool sound = text_integer(text, row->minimum, row->maximum, end, &from);
  to = from;
  if (sound && **end == ':') {
    sound = text_integer(*end + 1, from, row->maximum, end, &to);
    if (sound && **end == ':') {
      how = (*end)[1];
      sound = how == 'x' || how == '+';
      sound = sound && text_integer(*end + 2, how == 'x' ? 2 : 1, row->maximum, end, &step);
    }
  }
  if (!sound || (**end != ',' && **end != '\0')) {
    snprintf(why, why_size,
             "%s takes numbers from %lld or ranges A:B, A:B:xN, A:B:+N with A <= B, such as "
             "128,256 or 128:8192, not '%s'",
             row->name, (long long)row->minimum, text);
    return false;
  }
  while (from <= to) {
    if (!append_size(row, list, from, why, why_size)) return false;
    if (how == 'x' && from > to / step) break; /* the next one lies beyond; the product could overflow */
    from = how == 'x' ? from * step : from + step;
  }
  return true;
}

static int ascending(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static bool parse_lengths(const option_row *row, size_list *list, const char *text, char *why,
                          size_t why_size) {
  if (!list->sizes) list->sizes = calloc(OPTIONS_MAX_LENGTHS, sizeof *list->sizes);
  if (!list->sizes) {
    snprintf(why, why_size, "out of memory");
    return false;
  }
  const char *end = text;
  if (!parse_length_range(row, list, text, &end, why, why_size)) return false;
  while (*end == ',')
    if (!parse_length_range(row, list, end + 1, &end, why, why_size)) return false;

  qsort(list->sizes, list->count, sizeof *list->sizes, ascending);
  size_t kept = 1;
  for (size_t i = 1; i < list->count; i++)
    if (list->sizes[i] != list->sizes[kept - 1]) list->sizes[kept++] = list->sizes[i];
  list->count = kept;
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

static bool are_choices(const option_row *row, const text_list *list) {
  for (size_t n = 0; row->choices && n < list->count; n++)
    if (!text_is_choice(row->choices, list->items[n])) return false;
  return true;
}

/* As in Google Benchmark: "0.5s", "0.5" or, for a number of iterations, "100x". */
static bool parse_min_time(options *options, const char *text) {
  const char *end = NULL;
  options->iterations = 0;
  if (text_seconds(text, &options->min_time)) return true;
  return text_integer(text, 1, 1000000000, &end, &options->iterations) && strcmp(end, "x") == 0;
}

static bool parse_percent(const option_row *row, const char *text, double *percent) {
  if (!text_percent(text, percent)) return false;
  return !row->maximum || (*percent > (double)row->minimum && *percent <= (double)row->maximum);
}

static bool parse_text(const option_row *row, const char *text, const char **place) {
  *place = text;
  if (row->choices) return text_is_choice(row->choices, text);
  return *text != '\0' && !strchr(text, '\n') && (!row->maximum || strlen(text) <= (size_t)row->maximum);
}

/* Whether the problem makes sense with it is for the sweep to see. */
static bool parse_part(const option_row *row, const char *text, text_list *list) {
  char part[1024];
  if (row->value ? !text || !*text || strchr(text, '/') : text != NULL) return false;
  const int length = snprintf(part, sizeof part, "%s%s", row->choices, text ? text : "");
  return length > 0 && (size_t)length < sizeof part && list_append(list, part, (size_t)length);
}

/* One of the row's choices; of one that ends in a colon, with something behind it. */
static bool parse_word(const option_row *row, const char *text, text_list *list) {
  const size_t said = strlen(text);
  for (const char *choice = row->choices; *choice;) {
    const size_t length = strcspn(choice, "|");
    const bool has_value = choice[length - 1] == ':' && said > length && !strchr(text, '/');
    if ((has_value || said == length) && strncmp(text, choice, length) == 0 && text[said - 1] != ':')
      return list_append(list, text, said);
    choice += length + (choice[length] == '|');
  }
  return false;
}

/* The sentence about a value that the row's kind does not allow. */
static void say_wrong_value(const option_row *row, const char *text, char *why, size_t why_size) {
  char takes[160];
  const long long minimum = row->minimum, maximum = row->maximum;
  snprintf(takes, sizeof takes, "%s",
           row->choices && row->kind != KIND_PART ? row->choices
           : row->value                           ? row->value
           : row->kind == KIND_PART               ? "no value"
                                                  : "true or false");
  if (row->kind == KIND_INTEGER)
    snprintf(takes, sizeof takes, "a whole number from %lld to %lld", minimum, maximum);
  if (row->kind == KIND_SEED) snprintf(takes, sizeof takes, "a whole number from 0 to 2^64 - 1");
  if (row->kind == KIND_SECONDS) snprintf(takes, sizeof takes, "seconds, such as 0.5");
  if (row->kind == KIND_SECONDS && minimum) snprintf(takes, sizeof takes, "seconds, %lld or more", minimum);
  if (row->kind == KIND_PERCENT) snprintf(takes, sizeof takes, "a percentage, such as 1%%");
  if (row->kind == KIND_PERCENT && maximum)
    snprintf(takes, sizeof takes, "percent, above %lld and up to %lld", minimum, maximum);
  if (row->kind == KIND_MIN_TIME)
    snprintf(takes, sizeof takes, "seconds, such as 0.5s, or a number of iterations, such as 100x");
  if (row->kind == KIND_WORDS && !row->choices)
    snprintf(takes, sizeof takes, "names with commas between them");
  if (row->kind == KIND_TEXT && strchr(text, '\n'))
    snprintf(why, why_size, "%s takes a text without line breaks, and this one has one", row->name);
  else if (row->kind == KIND_TEXT && maximum && *text)
    snprintf(why, why_size, "%s takes at most %lld bytes, not %zu", row->name, maximum, strlen(text));
  else
    snprintf(why, why_size, "%s takes %s, not '%s'", row->name, takes, text);
}

/* Puts the value where the row says. text is NULL only for a flag that stands alone. */
static bool store(const option_row *row, options *options, const char *text, char *why, size_t why_size) {
  void *field = (char *)options + row->offset;
  const char *end = "";
  bool sound = false;
  if (!text && row->kind != KIND_FLAG && row->kind != KIND_PART) return false;
  switch (row->kind) {
    case KIND_FLAG: sound = text_flag(text, field); break;
    case KIND_INTEGER:
      sound = text_integer(text, row->minimum, row->maximum, &end, field) && *end == '\0';
      break;
    case KIND_SEED: sound = text_seed(text, field); break;
    case KIND_SECONDS: sound = text_seconds(text, field) && *(double *)field >= (double)row->minimum; break;
    case KIND_PERCENT: sound = parse_percent(row, text, field); break;
    case KIND_MIN_TIME: sound = parse_min_time(options, text); break;
    case KIND_TEXT: sound = parse_text(row, text, field); break;
    case KIND_NOTE:
      *(const char **)field = text;
      sound = true;
      break;
    case KIND_WORDS: sound = parse_words(field, text, false) && are_choices(row, field); break;
    case KIND_PAIRS: sound = parse_words(field, text, true); break;
    case KIND_PART: sound = parse_part(row, text, field); break;
    case KIND_WORD: sound = parse_word(row, text, field); break;
    case KIND_ITEM: sound = *text && list_append(field, text, strlen(text)); break;
    case KIND_LENGTHS: return parse_lengths(row, field, text, why, why_size);
  }
  if (!sound) say_wrong_value(row, text, why, why_size);
  return sound;
}

/* ---- the command line ---- */

static int64_t usable_processors(void) {
  int processors[AFFINITY_MOST];
  const size_t count = affinity_processors(processors);
  return count > 0 ? (int64_t)count : 1; /* 0: more processors than the system's set can hold */
}

static options options_default(void) {
  options options = {
      .about = COMMAND_HELP,
      .batch = OPTIONS_UNSAID,
      .heads = OPTIONS_UNSAID,
      .kv_heads = OPTIONS_UNSAID,
      .head_dim = OPTIONS_UNSAID,
      .value_dim = OPTIONS_UNSAID,
      .window = OPTIONS_UNSAID,
      .query_length = OPTIONS_UNSAID,
      .threads = usable_processors(),
      .seed = 1,
      .min_time = 0.5,
      .precision = 1,
      .point_limit = 8,
      .point_budget = 1,
      .count = 100,
      .every = 1,
      .seconds = 60,
      .brief = true,
      .random_interleaving = true,
      .instructions = true,
      .isolate = true,
      .own = true,
      .format = "console",
      .out_format = "json",
      .color = "auto",
      .as = "text",
      .show = {.tile = "64x64"},
      .gate = {.base_name = "the base", .budget = 120, .smallest = 2, .cases = 5},
  };
  return options;
}

static bool has_name(const option_row *row, const char *name, size_t length) {
  return strlen(row->name) == length && strncmp(row->name, name, length) == 0;
}

/* The option of this name that one of these commands takes. */
static const option_row *find_row(const char *name, size_t length, unsigned commands) {
  size_t count;
  const option_row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++)
    if (rows[i].commands & commands && has_name(&rows[i], name, length)) return &rows[i];
  return NULL;
}

/* Another command's option, a mistyped one, or nothing like any. */
static void say_unknown_option(command command, const char *argument, size_t length, char *why,
                               size_t why_size) {
  const char *const name = option_command(command)->name;
  const option_row *other = find_row(argument, length, option_public_commands());
  if (other) {
    snprintf(why, why_size, "%s has no option %s; attnbench %s --help lists what it takes", name, other->name,
             name);
    return;
  }
  char word[64];
  size_t count, own = 0;
  const option_row *rows = option_rows(&count);
  const char **names = calloc(count, sizeof *names);
  for (size_t i = 0; names && i < count; i++)
    if (rows[i].commands >> command & 1) names[own++] = rows[i].name;
  snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), argument);
  const char *nearest = names ? text_nearest(word, names, own) : NULL;
  if (nearest)
    snprintf(why, why_size, "there is no option %s; the nearest is %s", word, nearest);
  else
    snprintf(why, why_size, "there is no option %s; attnbench %s --help lists them all", word, name);
  free(names);
}

/* The option at argv[*at]; *at moves on over a value that stands in an argument of its own. */
static bool parse_option(options *options, int argc, char **argv, int *at, char *why, size_t why_size) {
  const char *argument = argv[*at];
  size_t length = strcspn(argument, "=");
  const option_row *row = find_row(argument, length, 1U << options->command);
  if (!row) {
    say_unknown_option(options->command, argument, length, why, why_size);
    return false;
  }
  const char *text = argument[length] == '=' ? argument + length + 1 : NULL;
  if (!text && row->value) {
    if (*at + 1 >= argc) {
      snprintf(why, why_size, "%s needs a value: %s %s", row->name, row->name, row->value);
      return false;
    }
    text = argv[++*at];
  }
  return store(row, options, text, why, why_size);
}

static bool find_command(const char *word, command *found) {
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    if (strcmp(word, option_command((command)n)->name) == 0) {
      *found = (command)n;
      return true;
    }
  return false;
}

static bool say_unknown_command(const char *word, char *why, size_t why_size) {
  const unsigned public = option_public_commands();
  const char *names[COMMAND_COUNT];
  char list[256];
  size_t count = 0;
  for (unsigned n = 0; n < COMMAND_COUNT; n++)
    if (public >> n & 1) names[count++] = option_command((command)n)->name;
  const char *nearest = text_nearest(word, names, count);
  option_name_commands(public, list, sizeof list);
  if (nearest)
    snprintf(why, why_size, "there is no command '%s'; the nearest is %s", word, nearest);
  else
    snprintf(why, why_size, "there is no command '%s'; the commands are %s", word, list);
  return false;
}

/* --help, -h, --version and -V are heard wherever they stand, but where they are an option's value: what a
 * commit message says, which the gate is given, must not turn it into its help. */
static bool asks_about(options *options, int argc, char **argv, bool named) {
  for (int at = 1; at < argc; at++) {
    const bool help = strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0;
    if (help || strcmp(argv[at], "--version") == 0 || strcmp(argv[at], "-V") == 0) {
      options->about = named ? options->command : COMMAND_HELP;
      options->command = help ? COMMAND_HELP : COMMAND_VERSION;
      return true;
    }
    const option_row *row = find_row(argv[at], strlen(argv[at]), 1U << options->command);
    at += row && row->value;
  }
  return false;
}

/* ---- what goes together ---- */

static bool check_shape(const options *options, char *why, size_t why_size) {
  bool has_shape = options->batch >= 0 || options->heads >= 0 || options->kv_heads >= 0 ||
                   options->head_dim >= 0 || options->value_dim >= 0 || options->window >= 0 ||
                   options->query_length >= 0 || options->causal || options->lengths.count > 0 ||
                   options->batches.count > 0 || options->head_dims.count > 0 || options->parts.count > 0;
  if (!has_shape || (!options->presets.count && !options->problems.count)) return true;
  snprintf(why, why_size, "%s fixes the whole shape; leave out --batch, --heads, --lengths and the like",
           options->presets.count ? "--preset" : "--problem");
  return false;
}

/* What is swept takes the place of the one size, which is then of what else is swept, if anything is. */
static bool check_sizes(const options *options, char *why, size_t why_size) {
  const bool batches = options->batches.count > 0, head_dims = options->head_dims.count > 0;
  const bool lengths = options->lengths.count > 1;
  if (batches && options->batch >= 0 && !head_dims && !lengths)
    snprintf(why, why_size, "--batches says all batches; leave out --batch");
  else if (head_dims && options->head_dim >= 0 && !batches && !lengths)
    snprintf(why, why_size, "--head-dims says all head dimensions; leave out --head-dim");
  else
    return true;
  return false;
}

static bool check_cases(const options *options, char *why, size_t why_size) {
  if (!options->cases) return true;
  if (options->problems.count)
    snprintf(why, why_size, "verify takes --cases or --problem, not both");
  else if (options->isa)
    snprintf(why, why_size, "verify --cases runs on every instruction set; leave out --isa");
  else if (options->fail_fast)
    snprintf(why, why_size, "verify --cases names every case that fails; leave out --fail-fast");
  else if (options->properties.count)
    snprintf(why, why_size, "verify --cases holds no properties; leave out --properties");
  else
    return true;
  return false;
}

static bool check_own(const options *options, char *why, size_t why_size) {
  if (options->own || (options->plugins.count && !options->device)) return true;
  snprintf(why, why_size,
           options->device ? "--own=false leaves out what --device would take; give one of them"
                           : "--own=false leaves nothing to run: give a --plugin FILE.so");
  return false;
}

static bool check_gate(const options *options, char *why, size_t why_size) {
  const bool writes = options->gate.write_facts != NULL;
  const size_t heads = options->gate.heads.count, bases = options->gate.bases.count;
  if (heads == 0)
    snprintf(why, why_size, "gate needs a head and a base: --base BEFORE.so --head AFTER.so");
  else if (writes && heads > 1)
    snprintf(why, why_size, "gate --write-facts writes those of one --head; there are %zu", heads);
  else if (!writes && bases == 0 && !options->gate.why_no_base)
    snprintf(why, why_size, "gate needs a base: --base FILE.so, or --no-base and the reason");
  else if (!writes && bases > 0 && bases != heads)
    snprintf(why, why_size, "gate takes --base as often as --head; there are %zu --base and %zu --head",
             bases, heads);
  else if (options->gate.again && !strchr(options->gate.again, '%'))
    snprintf(why, why_size, "--again says with a %% where options go: 'make gate ARGS=\"%%\"'");
  else
    return true;
  return false;
}

static bool check_pin(const options *options, char *why, size_t why_size) {
  const int64_t processors = usable_processors();
  if (!options->pin || options->threads <= processors) return true;
  snprintf(why, why_size,
           "--pin gives each thread a processor of its own; there are %lld, so --threads takes no more",
           (long long)processors);
  return false;
}

static bool check_together(const options *options, char *why, size_t why_size) {
  if (!check_pin(options, why, why_size) || !check_shape(options, why, why_size) ||
      !check_sizes(options, why, why_size) || !check_cases(options, why, why_size) ||
      !check_own(options, why, why_size))
    return false;
  if (options->command == COMMAND_FUZZ && options->problems.count &&
      (options->problems.count > 1 || options->variants.count != 1)) {
    snprintf(why, why_size, "fuzz shrinks one --problem for one --variant, which fails it");
    return false;
  }
  if (options->command == COMMAND_HELP && options->words.count && strcmp(options->as, "text") != 0) {
    snprintf(why, why_size, "help --as %s is of all commands; leave out '%s'", options->as,
             options->words.items[0]);
    return false;
  }
  if (options->command == COMMAND_PLOTS && !options->words.count) {
    snprintf(why, why_size, "plots needs a file: attnbench plots results/latest/results.json");
    return false;
  }
  if (options->command == COMMAND_DUMP && (!options->words.count || !options->out)) {
    snprintf(why, why_size,
             "dump needs a problem and a folder: attnbench dump causal/B:1/H:8/D:64/T:512 --out FOLDER");
    return false;
  }
  if (options->command == COMMAND_JUDGE &&
      (!options->words.count || (!options->output && !options->gradients))) {
    snprintf(why, why_size, "judge needs a folder and an output: attnbench judge FOLDER --output o.npy");
    return false;
  }
  if (options->command == COMMAND_REPORT && !options->words.count) {
    snprintf(why, why_size, "report needs a file: attnbench report results/latest/results.json");
    return false;
  }
  if (options->command == COMMAND_MERGE && !options->words.count) {
    snprintf(why, why_size,
             "merge needs reports: attnbench merge a/results.json b/results.json, or their folder");
    return false;
  }
  if (options->command == COMMAND_SHOW && !options->words.count) {
    snprintf(why, why_size, "show needs a problem: attnbench show causal/T:64");
    return false;
  }
  if (options->command == COMMAND_GATE_MEASURE &&
      (options->gate.bases.count != 1 || options->gate.heads.count != 1 || !options->gate.itself)) {
    snprintf(why, why_size, "gate-measure needs one --base, one --head and --itself");
    return false;
  }
  if (options->command == COMMAND_COUNT_INSTRUCTIONS && options->plugins.count > 1) {
    snprintf(why, why_size, "count-instructions takes all variants from one --plugin");
    return false;
  }
  return options->command != COMMAND_GATE || check_gate(options, why, why_size);
}

/* ---- all of it ---- */

static bool take_word(options *options, const char *word, char *why, size_t why_size) {
  const command_row *command = option_command(options->command);
  if (options->words.count >= command->most_words)
    snprintf(why, why_size, "%s does not know what to do with '%s'", command->name, word);
  else if (!list_append(&options->words, word, strlen(word)))
    snprintf(why, why_size, "out of memory");
  else if (options->command == COMMAND_HELP && !find_command(word, &options->about))
    say_unknown_command(word, why, why_size);
  else
    return true;
  return false;
}

bool options_parse(options *options, int argc, char **argv, char *why, size_t why_size) {
  *options = options_default();
  const bool named = argc > 1 && argv[1][0] != '-';
  const bool known = !named || find_command(argv[1], &options->command);
  if (asks_about(options, argc, argv, named && known)) return true;
  if (!known) return say_unknown_command(argv[1], why, why_size);
  if (options->command == COMMAND_GATE) options->seed = (uint64_t)time(NULL);
  for (int at = named ? 2 : 1; at < argc; at++) {
    const bool is_option = argv[at][0] == '-' && argv[at][1] != '\0';
    if (is_option ? !parse_option(options, argc, argv, &at, why, why_size)
                  : !take_word(options, argv[at], why, why_size))
      return false;
  }
  return check_together(options, why, why_size);
}

static void list_destroy(text_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  *list = (text_list){NULL, 0};
}

void options_destroy(options *options) {
  text_list *const lists[] = {&options->words,      &options->variants,   &options->plugins,
                              &options->presets,    &options->problems,   &options->context,
                              &options->gate.heads, &options->gate.bases, &options->gate.accepted,
                              &options->formats,    &options->parts,      &options->memory_only,
                              &options->properties};
  for (size_t n = 0; n < sizeof lists / sizeof *lists; n++) list_destroy(lists[n]);
  size_list *const sizes[] = {&options->lengths, &options->batches, &options->head_dims};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    free(sizes[n]->sizes);
    *sizes[n] = (size_list){NULL, 0};
  }
}
