/* The command line: what is understood, and that what is not is refused with a reason that helps. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "base/text.h"

/* Parses a command line given as one string with single spaces. The words live until the next call. */
static bool parse(options *options, const char *line, char *why, size_t why_size) {
  static char words[1024];
  static char *argv[64];
  int argc = 0;
  snprintf(words, sizeof words, "attnbench %s", line);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  return options_parse(options, argc, argv, why, why_size);
}

static void parse_well(options *options, const char *line) {
  char why[512] = "";
  if (!parse(options, line, why, sizeof why)) fail_msg("'%s' was refused: %s", line, why);
}

/* ---- what is understood ---- */

static void no_arguments_mean_a_sweep_of_everything(void **state) {
  (void)state;
  options options;
  parse_well(&options, "");
  assert_int_equal(options.command, COMMAND_BENCH);
  assert_int_equal(options.variants.count, 0);
  assert_int_equal(options.length_count, 0);
  assert_int_equal(options.batch, OPTIONS_UNSAID);
  assert_true(options.threads >= 1);
  assert_true(options.random_interleaving);
  options_destroy(&options);
}

static void each_command_has_its_name(void **state) {
  (void)state;
  static const struct {
    const char *line;
    command command;
  } cases[] = {
      {"bench", COMMAND_BENCH},     {"verify", COMMAND_VERIFY},     {"fuzz --seconds 3", COMMAND_FUZZ},
      {"list", COMMAND_LIST},       {"machine", COMMAND_MACHINE},   {"plots a.json", COMMAND_PLOTS},
      {"help", COMMAND_HELP},       {"bench --help", COMMAND_HELP}, {"verify -h", COMMAND_HELP},
      {"version", COMMAND_VERSION}, {"--version", COMMAND_VERSION}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options options;
    parse_well(&options, cases[i].line);
    assert_int_equal(options.command, cases[i].command);
    options_destroy(&options);
  }
}

static void values_may_follow_or_be_joined(void **state) {
  (void)state;
  options options;
  parse_well(&options, "bench --variant fused,naive --variant=linear --batch 2 --heads=8 --causal --window 0 "
                       "--seed 18446744073709551615 --min-time 0.25s --plugin a.so --plugin=b.so "
                       "--benchmark_enable_random_interleaving=false --benchmark_format=json");
  assert_int_equal(options.variants.count, 3);
  assert_string_equal(options.variants.items[1], "naive");
  assert_string_equal(options.variants.items[2], "linear");
  assert_int_equal(options.batch, 2);
  assert_int_equal(options.heads, 8);
  assert_true(options.causal);
  assert_int_equal(options.window, 0);
  assert_true(options.seed == UINT64_MAX);
  assert_true(options.min_time == 0.25);
  assert_int_equal(options.plugins.count, 2);
  assert_false(options.random_interleaving);
  assert_string_equal(options.format, "json");
  options_destroy(&options);
}

static void defaults_are_those_of_google_benchmark(void **state) {
  (void)state;
  options options;
  parse_well(&options, "");
  assert_true(options.min_time == 0.5 && options.min_warmup_time == 0);
  assert_int_equal(options.iterations, 0);
  assert_false(options.report_aggregates_only || options.display_aggregates_only || options.dry_run ||
               options.counters_tabular || options.list_tests);
  assert_string_equal(options.format, "console");
  assert_string_equal(options.out_format, "json");
  assert_string_equal(options.color, "auto");
  assert_null(options.filter);
  assert_null(options.out_file);
  assert_null(options.time_unit);
  options_destroy(&options);
}

static void a_least_time_is_seconds_or_iterations(void **state) {
  (void)state;
  options options;
  parse_well(&options, "--benchmark_min_time=2s");
  assert_true(options.min_time == 2 && options.iterations == 0);
  options_destroy(&options);
  parse_well(&options, "--benchmark_min_time=100x");
  assert_int_equal(options.iterations, 100);
  options_destroy(&options);
  parse_well(&options, "--precision 0.5% --point-budget 20");
  assert_true(options.precision == 0.5 && options.point_budget == 20);
  assert_int_equal(options.repetitions, 0);
  options_destroy(&options);
}

static void context_is_pairs(void **state) {
  (void)state;
  options options;
  parse_well(&options, "--benchmark_context=commit=1a2b,branch=main --benchmark_context=note=a=b");
  assert_int_equal(options.context.count, 3);
  assert_string_equal(options.context.items[1], "branch=main");
  assert_string_equal(options.context.items[2], "note=a=b");
  options_destroy(&options);
}

static void a_problem_is_not_split_at_its_commas(void **state) {
  (void)state;
  options options;
  parse_well(&options, "verify --problem band:16,0,31/B:2/T:64");
  assert_int_equal(options.problems.count, 1);
  assert_string_equal(options.problems.items[0], "band:16,0,31/B:2/T:64");
  options_destroy(&options);
}

static void lengths_are_numbers_and_ranges_sorted_each_once(void **state) {
  (void)state;
  static const struct {
    const char *line;
    size_t count;
    int64_t lengths[8];
  } cases[] = {
      {"--lengths 100", 1, {100}},
      {"--lengths 300,100,200,100", 3, {100, 200, 300}},
      {"--lengths 128:1024", 4, {128, 256, 512, 1024}},
      {"--lengths 100:999", 4, {100, 200, 400, 800}},
      {"--lengths 10:1000:x10", 3, {10, 100, 1000}},
      {"--lengths 5:20:+5,7", 5, {5, 7, 10, 15, 20}},
      {"--lengths 64 --lengths 32", 2, {32, 64}},
      {"--lengths 7:7", 1, {7}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options options;
    parse_well(&options, cases[i].line);
    assert_int_equal(options.length_count, cases[i].count);
    for (size_t t = 0; t < cases[i].count; t++) assert_int_equal(options.lengths[t], cases[i].lengths[t]);
    options_destroy(&options);
  }
}

static void what_is_wrong_is_refused_with_a_reason(void **state) {
  (void)state;
  static const struct {
    const char *line, *reason;
  } cases[] = {
      {"benhc", "the nearest is bench"},
      {"frobnicate", "the commands are"},
      {"--varriant fused", "the nearest is --variant"},
      {"--zzzzzzzz", "--help lists them all"},
      {"--variant", "--variant NAME"},
      {"--variant fused,,naive", "commas"},
      {"--variant=", "commas"},
      {"--batch 0", "from 1"},
      {"--batch -3", "from 1"},
      {"--batch 3x", "from 1"},
      {"--batch 99999999999999999999", "from 1"},
      {"--heads 1.5", "whole number"},
      {"--threads 0", "from 1"},
      {"--window -1", "from 0"},
      {"--seed -1", "from 0"},
      {"--seed 18446744073709551616", "from 0"},
      {"--min-time -1", "seconds"},
      {"--min-time nan", "seconds"},
      {"--min-time 1e999", "seconds"},
      {"--repetitions 0", "from 1"},
      {"--benchmark_min_time 0x", "100x"},
      {"--benchmark_min_time 10y", "100x"},
      {"--precision -1", "percentage"},
      {"--benchmark_context commit", "KEY=VALUE"},
      {"--benchmark_context a=1,=2", "KEY=VALUE"},
      {"--lengths 0", "A:B"},
      {"--lengths 128:64", "A:B"},
      {"--lengths 128:", "A:B"},
      {"--lengths 1:8:x1", "A:B"},
      {"--lengths 1:8:+0", "A:B"},
      {"--lengths 1:8:*2", "A:B"},
      {"--lengths 1,", "A:B"},
      {"--lengths 1:1000000:+1", "more than"},
      {"--benchmark_format=xml", "console|json|csv"},
      {"--benchmark_time_unit=h", "ns|us|ms|s"},
      {"--causal=maybe", "true or false"},
      {"--isa=", "NAME"},
      {"--preset gpt2 --batch 2", "leave out"},
      {"--problem full/T:8 --lengths 8", "leave out"},
      {"verify --lengths 8", "verify has no option --lengths"},
      {"list --threads 2", "list has no option --threads"},
      {"verify --problem full/T:8 --cases folder", "not both"},
      {"verify --isa avx2 --cases folder", "leave out --isa"},
      {"plots", "needs a file"},
      {"plots a.json b.json", "b.json"},
      {"bench fused", "'fused'"},
      {"version bench", "'bench'"},
      {"help benhc", "the nearest is bench"},
      {"help bench fuzz", "'fuzz'"},
      {"gaet", "the nearest is gate"},
      {"frobnicate", "bench, verify, fuzz, list, machine, plots, gate, help and version"},
      {"bench -", "'-'"},
      {"bench --budget 5", "bench has no option --budget; attnbench bench --help"},
      {"bench --itself a.so", "there is no option --itself"},
      {"verify --lenghts 8", "there is no option --lenghts"},
      {"machine --precision 2", "machine has no option --precision"},
      {"gate", "gate needs a head"},
      {"gate --head a.so", "gate needs a base"},
      {"gate --head a.so --no-base why", "gate needs the head's facts"},
      {"gate --head a.so --no-base why --facts --times", "gate needs the head's facts"},
      {"gate --head a.so --head b.so --base c.so --times", "there are 1 --base and 2 --head"},
      {"gate --head a.so --head b.so --write-facts f", "one --head; there are 2"},
      {"gate --hed x", "the nearest is --head"},
      {"gate --zzzzzzzz", "attnbench gate --help lists them all"},
      {"gate --head-dim 64", "gate has no option --head-dim"},
      {"gate a.so", "gate does not know what to do with 'a.so'"},
      {"gate --head", "--head needs a value: --head FILE.so"},
      {"gate --head=", "--head takes FILE.so, not ''"},
      {"gate --accept=", "--accept takes TEXT, not ''"},
      {"gate --out=", "--out takes FOLDER, not ''"},
      {"gate --budget soon", "--budget takes seconds, 1 or more, not 'soon'"},
      {"gate --budget 0.9", "--budget takes seconds, 1 or more, not '0.9'"},
      {"gate --smallest 0", "--smallest takes percent, above 0 and up to 100, not '0'"},
      {"gate --smallest 101", "--smallest takes percent, above 0 and up to 100, not '101'"},
      {"gate --smallest 2s", "--smallest takes percent, above 0 and up to 100, not '2s'"},
      {"gate --cases folder", "--cases takes a whole number from 0 to 1000000, not 'folder'"},
      {"gate --seed -1", "--seed takes a whole number from 0 to 2^64 - 1, not '-1'"},
      {"gate --shadow=maybe", "--shadow takes true or false, not 'maybe'"},
      {"gate-measure --base a --head b", "needs one --base, one --head and --itself"},
      {"gate-measure --quads x", "--quads takes a whole number"},
      {"count-instructions --plugin a.so --plugin b.so", "from one --plugin"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options options;
    char why[512] = "";
    if (parse(&options, cases[i].line, why, sizeof why)) fail_msg("'%s' was accepted", cases[i].line);
    if (!strstr(why, cases[i].reason))
      fail_msg("'%s': the reason lacks '%s': %s", cases[i].line, cases[i].reason, why);
    if (strchr(why, '\n')) fail_msg("'%s': the reason is more than a line: %s", cases[i].line, why);
    options_destroy(&options);
  }
}

/* Each option of each command: what is said, and where it arrives. `arrives` has the field's value in words. */
typedef struct taken {
  command command;
  const char *line;
  option_kind kind;
  size_t offset;
  const char *arrives;
} taken;

#define AT(field) offsetof(options, field)

static const taken all_taken[] = {
    {COMMAND_BENCH, "--variant fused,naive", KIND_WORDS, AT(variants), "fused naive"},
    {COMMAND_BENCH, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_BENCH, "--problem band:1,0,3/T:8", KIND_ITEM, AT(problems), "band:1,0,3/T:8"},
    {COMMAND_BENCH, "--preset gpt2 --preset=bert", KIND_WORDS, AT(presets), "gpt2 bert"},
    {COMMAND_BENCH, "--batch 2", KIND_INTEGER, AT(batch), "2"},
    {COMMAND_BENCH, "--heads 8", KIND_INTEGER, AT(heads), "8"},
    {COMMAND_BENCH, "--kv-heads 4", KIND_INTEGER, AT(kv_heads), "4"},
    {COMMAND_BENCH, "--head-dim 32", KIND_INTEGER, AT(head_dim), "32"},
    {COMMAND_BENCH, "--value-dim 16", KIND_INTEGER, AT(value_dim), "16"},
    {COMMAND_BENCH, "--lengths 16,32", KIND_LENGTHS, 0, "16 32"},
    {COMMAND_BENCH, "--causal", KIND_FLAG, AT(causal), "true"},
    {COMMAND_BENCH, "--window 0", KIND_INTEGER, AT(window), "0"},
    {COMMAND_BENCH, "--threads 3", KIND_INTEGER, AT(threads), "3"},
    {COMMAND_BENCH, "--isa avx2", KIND_TEXT, AT(isa), "avx2"},
    {COMMAND_BENCH, "--seed 7", KIND_SEED, AT(seed), "7"},
    {COMMAND_BENCH, "--out folder", KIND_TEXT, AT(out), "folder"},
    {COMMAND_BENCH, "--scripts plots", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_BENCH, "--min-time 2s", KIND_SECONDS, AT(min_time), "2"},
    {COMMAND_BENCH, "--repetitions 9", KIND_INTEGER, AT(repetitions), "9"},
    {COMMAND_BENCH, "--precision 3%", KIND_PERCENT, AT(precision), "3"},
    {COMMAND_BENCH, "--point-budget 5", KIND_SECONDS, AT(point_budget), "5"},
    {COMMAND_BENCH, "--point-limit 6s", KIND_SECONDS, AT(point_limit), "6"},
    {COMMAND_BENCH, "--cold", KIND_FLAG, AT(cold), "true"},
    {COMMAND_BENCH, "--instructions=false", KIND_FLAG, AT(instructions), "false"},
    {COMMAND_BENCH, "--brief=no", KIND_FLAG, AT(brief), "false"},
    {COMMAND_BENCH, "--quiet", KIND_FLAG, AT(quiet), "true"},
    {COMMAND_BENCH, "--benchmark_filter fused", KIND_TEXT, AT(filter), "fused"},
    {COMMAND_BENCH, "--benchmark_list_tests", KIND_FLAG, AT(list_tests), "true"},
    {COMMAND_BENCH, "--benchmark_min_time 4", KIND_SECONDS, AT(min_time), "4"},
    {COMMAND_BENCH, "--benchmark_min_warmup_time 1", KIND_SECONDS, AT(min_warmup_time), "1"},
    {COMMAND_BENCH, "--benchmark_repetitions 3", KIND_INTEGER, AT(repetitions), "3"},
    {COMMAND_BENCH, "--benchmark_report_aggregates_only", KIND_FLAG, AT(report_aggregates_only), "true"},
    {COMMAND_BENCH, "--benchmark_display_aggregates_only", KIND_FLAG, AT(display_aggregates_only), "true"},
    {COMMAND_BENCH, "--benchmark_enable_random_interleaving=0", KIND_FLAG, AT(random_interleaving), "false"},
    {COMMAND_BENCH, "--benchmark_format csv", KIND_TEXT, AT(format), "csv"},
    {COMMAND_BENCH, "--benchmark_out file", KIND_TEXT, AT(out_file), "file"},
    {COMMAND_BENCH, "--benchmark_out_format console", KIND_TEXT, AT(out_format), "console"},
    {COMMAND_BENCH, "--benchmark_time_unit us", KIND_TEXT, AT(time_unit), "us"},
    {COMMAND_BENCH, "--benchmark_dry_run", KIND_FLAG, AT(dry_run), "true"},
    {COMMAND_BENCH, "--benchmark_color no", KIND_TEXT, AT(color), "no"},
    {COMMAND_BENCH, "--benchmark_context a=1,b=2", KIND_PAIRS, AT(context), "a=1 b=2"},
    {COMMAND_BENCH, "--benchmark_counters_tabular", KIND_FLAG, AT(counters_tabular), "true"},

    {COMMAND_VERIFY, "--variant fused", KIND_WORDS, AT(variants), "fused"},
    {COMMAND_VERIFY, "--plugin a.so --plugin b,c.so", KIND_ITEM, AT(plugins), "a.so b,c.so"},
    {COMMAND_VERIFY, "--problem full/T:8 --problem full/T:9", KIND_ITEM, AT(problems), "full/T:8 full/T:9"},
    {COMMAND_VERIFY, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_VERIFY, "--isa portable", KIND_TEXT, AT(isa), "portable"},
    {COMMAND_VERIFY, "--seed 0", KIND_SEED, AT(seed), "0"},
    {COMMAND_VERIFY, "--count 0", KIND_INTEGER, AT(count), "0"},
    {COMMAND_VERIFY, "--fail-fast", KIND_FLAG, AT(fail_fast), "true"},
    {COMMAND_VERIFY, "--cases folder", KIND_TEXT, AT(cases), "folder"},

    {COMMAND_FUZZ, "--variant fused", KIND_WORDS, AT(variants), "fused"},
    {COMMAND_FUZZ, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_FUZZ, "--problem full/T:8 --variant fused", KIND_ITEM, AT(problems), "full/T:8"},
    {COMMAND_FUZZ, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_FUZZ, "--isa portable", KIND_TEXT, AT(isa), "portable"},
    {COMMAND_FUZZ, "--seed 5", KIND_SEED, AT(seed), "5"},
    {COMMAND_FUZZ, "--seconds 0.5", KIND_SECONDS, AT(seconds), "0.5"},

    {COMMAND_LIST, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_MACHINE, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_PLOTS, "--out folder a.json", KIND_TEXT, AT(out), "folder"},
    {COMMAND_PLOTS, "--scripts plots a.json", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_PLOTS, "a.json", KIND_ITEM, AT(words), "a.json"},

    {COMMAND_GATE, "--head b.so", KIND_ITEM, AT(gate.heads), "h.so b.so"},
    {COMMAND_GATE, "--base b.so", KIND_ITEM, AT(gate.bases), "b.so"},
    {COMMAND_GATE, "--no-base why", KIND_TEXT, AT(gate.why_no_base), "why"},
    {COMMAND_GATE, "--base-name main", KIND_TEXT, AT(gate.base_name), "main"},
    {COMMAND_GATE, "--identical naive --identical=", KIND_NOTE, AT(gate.identical), ""},
    {COMMAND_GATE, "--accept --help --accept time", KIND_ITEM, AT(gate.accepted), "--help time"},
    {COMMAND_GATE, "--baseline b.json", KIND_TEXT, AT(gate.baseline), "b.json"},
    {COMMAND_GATE, "--write-facts f.json", KIND_TEXT, AT(gate.write_facts), "f.json"},
    {COMMAND_GATE, "--head-facts h.json", KIND_TEXT, AT(gate.head_facts), "h.json"},
    {COMMAND_GATE, "--base-facts b.json", KIND_TEXT, AT(gate.base_facts), "b.json"},
    {COMMAND_GATE, "--out folder", KIND_TEXT, AT(out), "folder"},
    {COMMAND_GATE, "--scripts plots", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_GATE, "--facts", KIND_FLAG, AT(gate.facts), "true"},
    {COMMAND_GATE, "--times", KIND_FLAG, AT(gate.times), "true"},
    {COMMAND_GATE, "--benchmark fused/", KIND_TEXT, AT(gate.only), "fused/"},
    {COMMAND_GATE, "--budget 30s", KIND_SECONDS, AT(gate.budget), "30"},
    {COMMAND_GATE, "--smallest 0.5%", KIND_PERCENT, AT(gate.smallest), "0.5"},
    {COMMAND_GATE, "--shadow", KIND_FLAG, AT(gate.shadow), "true"},
    {COMMAND_GATE, "--cases 0", KIND_INTEGER, AT(gate.cases), "0"},
    {COMMAND_GATE, "--seed 11", KIND_SEED, AT(seed), "11"},

    {COMMAND_GATE_MEASURE, "--head a.so --base b.so --itself c.so", KIND_ITEM, AT(gate.heads), "a.so"},
    {COMMAND_GATE_MEASURE, "--base b.so --head a.so --itself c.so", KIND_ITEM, AT(gate.bases), "b.so"},
    {COMMAND_GATE_MEASURE, "--itself c.so --base b --head a", KIND_TEXT, AT(gate.itself), "c.so"},
    {COMMAND_GATE_MEASURE, "--seed 3 --itself c --base b --head a", KIND_SEED, AT(seed), "3"},
    {COMMAND_GATE_MEASURE, "--quads 4 --itself c --base b --head a", KIND_INTEGER, AT(gate.quads), "4"},
    {COMMAND_GATE_MEASURE, "--itself c --base b --head a fused T:8 -", KIND_ITEM, AT(words), "fused T:8 -"},
    {COMMAND_COUNT_INSTRUCTIONS, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_COUNT_INSTRUCTIONS, "fused full/T:8", KIND_ITEM, AT(words), "fused full/T:8"},
};

/* What the gate needs with each of its options. */
static const char *with_option(const taken *taken) {
  if (taken->command != COMMAND_GATE) return "";
  if (strstr(taken->line, "--write-facts")) return " --head h.so";
  if (strstr(taken->line, "--head b.so")) return " --head h.so --no-base why --head-facts f";
  return strstr(taken->line, "--head-facts") ? " --head h.so --no-base why"
                                             : " --head h.so --no-base why --head-facts f";
}

static void put_field(const options *options, const taken *taken, char *text, size_t size) {
  const void *field = (const char *)options + taken->offset;
  size_t used = 0;
  *text = '\0';
  switch (taken->kind) {
    case KIND_FLAG: snprintf(text, size, "%s", *(const bool *)field ? "true" : "false"); break;
    case KIND_INTEGER: snprintf(text, size, "%lld", (long long)*(const int64_t *)field); break;
    case KIND_SEED: snprintf(text, size, "%llu", (unsigned long long)*(const uint64_t *)field); break;
    case KIND_SECONDS:
    case KIND_PERCENT:
    case KIND_MIN_TIME: snprintf(text, size, "%g", *(const double *)field); break;
    case KIND_TEXT:
    case KIND_NOTE:
      snprintf(text, size, "%s", *(const char *const *)field ? *(const char *const *)field : "(none)");
      break;
    case KIND_LENGTHS:
      for (size_t n = 0; n < options->length_count; n++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", n ? " " : "",
                                 (long long)options->lengths[n]);
      break;
    case KIND_WORDS:
    case KIND_PAIRS:
    case KIND_ITEM: {
      const text_list *list = field;
      for (size_t n = 0; n < list->count; n++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", n ? " " : "", list->items[n]);
    }
  }
}

static void each_option_arrives_where_its_row_says(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof all_taken / sizeof *all_taken; n++) {
    const taken *taken = &all_taken[n];
    char line[256], text[256];
    options options;
    snprintf(line, sizeof line, "%s%s %s", option_command(taken->command)->name, with_option(taken),
             taken->line);
    parse_well(&options, line);
    assert_int_equal(options.command, taken->command);
    put_field(&options, taken, text, sizeof text);
    if (strcmp(text, taken->arrives) != 0) fail_msg("%s: '%s', not '%s'", line, text, taken->arrives);
    options_destroy(&options);
  }
}

static bool is_tested(const option_row *row, command command) {
  for (size_t n = 0; n < sizeof all_taken / sizeof *all_taken; n++) {
    const char *line = all_taken[n].line;
    if (all_taken[n].command == command && strncmp(line, row->name, strlen(row->name)) == 0 &&
        strchr("= ", line[strlen(row->name)]))
      return true;
  }
  return false;
}

/* A new row fails this until it has its line above. */
static void the_table_is_sound_and_each_row_is_tested(void **state) {
  (void)state;
  size_t count;
  const option_row *rows = option_rows(&count);
  for (size_t i = 0; i < count; i++) {
    assert_true(rows[i].help && *rows[i].help && strlen(rows[i].name) < 64);
    assert_int_equal(rows[i].value == NULL, rows[i].kind == KIND_FLAG);
    for (size_t other = 0; other < i; other++)
      if (strcmp(rows[i].name, rows[other].name) == 0 && rows[i].commands & rows[other].commands)
        fail_msg("%s has two rows for one command", rows[i].name);
    for (unsigned n = 0; n < COMMAND_COUNT; n++)
      if (rows[i].commands >> n & 1 && !is_tested(&rows[i], (command)n))
        fail_msg("no line of all_taken begins with %s for %s", rows[i].name,
                 option_command((command)n)->name);
  }
}

/* ---- help ---- */

static void put_help(command about, char *text, size_t size) {
  FILE *out = fmemopen(text, size, "w");
  assert_non_null(out);
  options_help(about, out);
  assert_int_equal(fclose(out), 0);
}

static bool has_line_of(const char *help, const char *name) {
  char start[80];
  snprintf(start, sizeof start, "\n  %s ", name);
  return strstr(help, start) != NULL;
}

static void the_help_of_a_command_has_its_options_and_no_others(void **state) {
  (void)state;
  static char help[32768];
  size_t count;
  const option_row *rows = option_rows(&count);
  for (unsigned n = 0; n < COMMAND_COUNT; n++) {
    if (n == COMMAND_HELP) continue;
    put_help((command)n, help, sizeof help);
    assert_true(strlen(help) < sizeof help - 1 && strstr(help, option_command((command)n)->name));
    for (size_t i = 0; i < count; i++) {
      bool taken = false;
      for (size_t other = 0; other < count; other++)
        taken = taken || (strcmp(rows[i].name, rows[other].name) == 0 && rows[other].commands >> n & 1);
      if (has_line_of(help, rows[i].name) != taken)
        fail_msg("%s in the help of %s:\n%s", rows[i].name, option_command((command)n)->name, help);
    }
  }
}

static void the_help_of_all_hides_what_the_program_runs_of_itself(void **state) {
  (void)state;
  static char help[32768];
  put_help(COMMAND_HELP, help, sizeof help);
  assert_non_null(strstr(help, "\nbench, verify, fuzz and list\n  --plugin "));
  assert_non_null(strstr(help, "gate --help lists its options"));
  static const char *const absent[] = {"gate-measure", "count-instructions", "--itself", "--quads",
                                       "--head "};
  for (size_t n = 0; n < sizeof absent / sizeof *absent; n++)
    if (strstr(help, absent[n])) fail_msg("the help has %s", absent[n]);
}

static void help_is_about_the_command_that_is_named(void **state) {
  (void)state;
  static const struct {
    const char *line;
    command about;
  } cases[] = {{"help", COMMAND_HELP},
               {"--help", COMMAND_HELP},
               {"--threads 2 -h", COMMAND_HELP},
               {"benhc --help", COMMAND_HELP},
               {"bench --help", COMMAND_BENCH},
               {"verify --frobnicate -h", COMMAND_VERIFY},
               {"gate --head a.so --help", COMMAND_GATE},
               {"gate-measure --help", COMMAND_GATE_MEASURE},
               {"help gate", COMMAND_GATE},
               {"help help", COMMAND_HELP}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    options options;
    parse_well(&options, cases[n].line);
    assert_int_equal(options.command, COMMAND_HELP);
    if (options.about != cases[n].about) fail_msg("'%s'", cases[n].line);
    options_destroy(&options);
  }
}

/* ---- limits ---- */

static void a_repeatable_option_has_no_limit(void **state) {
  (void)state;
  enum { TIMES = 1000, FIRST = 6 };
  static char *argv[FIRST + 2 * TIMES] = {"attnbench", "gate", "--head", "a.so", "--write-facts", "f"};
  static const struct {
    char *name;
    size_t offset;
  } cases[] = {{"--accept", AT(gate.accepted)}, {"--base", AT(gate.bases)}};
  static char texts[TIMES][8];
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    for (size_t n = 0; n < TIMES; n++) {
      snprintf(texts[n], sizeof texts[n], "%zu", n);
      argv[FIRST + 2 * n] = cases[c].name;
      argv[FIRST + 2 * n + 1] = texts[n];
    }
    options options;
    char why[512] = "";
    if (!options_parse(&options, FIRST + 2 * TIMES, argv, why, sizeof why)) fail_msg("%s", why);
    const text_list *list = (const text_list *)((const char *)&options + cases[c].offset);
    assert_int_equal(list->count, TIMES);
    assert_string_equal(list->items[TIMES - 1], "999");
    options_destroy(&options);
  }
}

/* A name that is cut to fit a buffer would be another file's. */
static void a_path_that_is_too_long_is_refused(void **state) {
  (void)state;
  static char path[4002];
  memset(path, 'x', sizeof path - 1);
  char *lines[][6] = {{"attnbench", "bench", "--out", path},
                      {"attnbench", "verify", "--cases", path},
                      {"attnbench", "gate", "--head", "a.so", "--write-facts", path}};
  for (size_t n = 0; n < 3; n++) {
    options options;
    char why[512] = "";
    assert_false(options_parse(&options, n < 2 ? 4 : 6, lines[n], why, sizeof why));
    if (!strstr(why, "takes at most 4000 bytes, not 4001")) fail_msg("%s", why);
    options_destroy(&options);
  }
}

static void the_nearest_word_is_suggested_only_when_it_is_near(void **state) {
  (void)state;
  static const char *const words[] = {"naive", "blocked", "fused", "linear", "sliding_window"};
  const size_t count = sizeof words / sizeof *words;
  assert_string_equal(text_nearest("fuzed", words, count), "fused");
  assert_string_equal(text_nearest("naiv", words, count), "naive");
  assert_string_equal(text_nearest("sliding-window", words, count), "sliding_window");
  assert_null(text_nearest("convolution", words, count));
  assert_null(text_nearest("", words, 0));
}

static void overlong_words_are_refused_not_copied(void **state) {
  (void)state;
  char word[900], why[256];
  memset(word, 'x', sizeof word - 1);
  word[sizeof word - 1] = '\0';
  word[0] = word[1] = '-';
  options options;
  assert_false(parse(&options, word, why, sizeof why));
  options_destroy(&options);
  assert_false(parse(&options, word + 2, why, sizeof why));
  options_destroy(&options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_arguments_mean_a_sweep_of_everything),
      cmocka_unit_test(each_command_has_its_name),
      cmocka_unit_test(values_may_follow_or_be_joined),
      cmocka_unit_test(defaults_are_those_of_google_benchmark),
      cmocka_unit_test(a_least_time_is_seconds_or_iterations),
      cmocka_unit_test(context_is_pairs),
      cmocka_unit_test(a_problem_is_not_split_at_its_commas),
      cmocka_unit_test(lengths_are_numbers_and_ranges_sorted_each_once),
      cmocka_unit_test(what_is_wrong_is_refused_with_a_reason),
      cmocka_unit_test(each_option_arrives_where_its_row_says),
      cmocka_unit_test(the_table_is_sound_and_each_row_is_tested),
      cmocka_unit_test(the_help_of_a_command_has_its_options_and_no_others),
      cmocka_unit_test(the_help_of_all_hides_what_the_program_runs_of_itself),
      cmocka_unit_test(help_is_about_the_command_that_is_named),
      cmocka_unit_test(a_repeatable_option_has_no_limit),
      cmocka_unit_test(a_path_that_is_too_long_is_refused),
      cmocka_unit_test(the_nearest_word_is_suggested_only_when_it_is_near),
      cmocka_unit_test(overlong_words_are_refused_not_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
