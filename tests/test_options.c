/* The command line: what is understood, and that what is not is refused with a reason that helps. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "command_line.h"
#include "base/text.h"

/* ---- what is understood ---- */

static void no_arguments_mean_a_sweep_of_everything(void **state) {
  (void)state;
  options options;
  parse_line_well(&options, "");
  assert_int_equal(options.command, COMMAND_BENCH);
  assert_int_equal(options.variants.count, 0);
  assert_int_equal(options.lengths.count, 0);
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
  } cases[] = {{"bench", COMMAND_BENCH},
               {"verify", COMMAND_VERIFY},
               {"fuzz --seconds 3", COMMAND_FUZZ},
               {"list", COMMAND_LIST},
               {"machine", COMMAND_MACHINE},
               {"plots a.json", COMMAND_PLOTS},
               {"report a.json b.json", COMMAND_REPORT},
               {"merge a.json b.json", COMMAND_MERGE},
               {"show T:8", COMMAND_SHOW},
               {"help", COMMAND_HELP},
               {"bench --help", COMMAND_HELP},
               {"verify -h", COMMAND_HELP},
               {"version", COMMAND_VERSION},
               {"--version", COMMAND_VERSION},
               {"verify -V", COMMAND_VERSION}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options options;
    parse_line_well(&options, cases[i].line);
    assert_int_equal(options.command, cases[i].command);
    options_destroy(&options);
  }
}

static void values_may_follow_or_be_joined(void **state) {
  (void)state;
  options options;
  parse_line_well(&options,
                  "bench --variant fused,naive --variant=linear --batch 2 --heads=8 --causal --window 0 "
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
  parse_line_well(&options, "");
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
  parse_line_well(&options, "--benchmark_min_time=2s");
  assert_true(options.min_time == 2 && options.iterations == 0);
  options_destroy(&options);
  parse_line_well(&options, "--benchmark_min_time=100x");
  assert_int_equal(options.iterations, 100);
  options_destroy(&options);
  parse_line_well(&options, "--precision 0.5% --point-budget 20");
  assert_true(options.precision == 0.5 && options.point_budget == 20);
  assert_int_equal(options.repetitions, 0);
  options_destroy(&options);
}

static void context_is_pairs(void **state) {
  (void)state;
  options options;
  parse_line_well(&options, "--benchmark_context=commit=1a2b,branch=main --benchmark_context=note=a=b");
  assert_int_equal(options.context.count, 3);
  assert_string_equal(options.context.items[1], "branch=main");
  assert_string_equal(options.context.items[2], "note=a=b");
  options_destroy(&options);
}

static void a_problem_is_not_split_at_its_commas(void **state) {
  (void)state;
  options options;
  parse_line_well(&options, "verify --problem band:16,0,31/B:2/T:64");
  assert_int_equal(options.problems.count, 1);
  assert_string_equal(options.problems.items[0], "band:16,0,31/B:2/T:64");
  options_destroy(&options);
}

static void one_size_stands_beside_many_where_something_else_is_swept_with_it(void **state) {
  (void)state;
  static const char *const lines[] = {
      "--batches 1,2 --batch 4 --lengths 64,128", "--batches 1,2 --batch 4 --head-dims 32,64",
      "--batches 1,2 --head-dim 16", "--head-dims 32,64 --head-dim 16 --lengths 64,128"};
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    options options;
    parse_line_well(&options, lines[n]);
    options_destroy(&options);
  }
}

static void parts_of_a_problem_are_options(void **state) {
  (void)state;
  options options;
  parse_line_well(&options, "--sink --layout bthd --mask=bq");
  assert_int_equal(options.parts.count, 3);
  assert_string_equal(options.parts.items[0], "sink");
  assert_string_equal(options.parts.items[1], "layout:bthd");
  assert_string_equal(options.parts.items[2], "mask:bq");
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
    parse_line_well(&options, cases[i].line);
    assert_int_equal(options.lengths.count, cases[i].count);
    for (size_t t = 0; t < cases[i].count; t++)
      assert_int_equal(options.lengths.sizes[t], cases[i].lengths[t]);
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
      {"--band full/D:3", "--band takes full|causal|causal_bottom_right|window:|band:, not 'full/D:3'"},
      {"--band window:", "not 'window:'"},
      {"--band window:5/D:3", "not 'window:5/D:3'"},
      {"--band causal:", "not 'causal:'"},
      {"--band bf16", "not 'bf16'"},
      {"--type causal", "--type takes f32|bf16|f16|bf16/out:f32|f16/out:f32, not 'causal'"},
      {"--type=", "not ''"},
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
      {"--problem full/T:8 --batches 8", "leave out"},
      {"--preset gpt2 --head-dims 8", "leave out"},
      {"--batches 1,2 --batch 4", "leave out --batch"},
      {"--batches 1,2 --batch 4 --lengths 64", "leave out --batch"},
      {"--head-dims 32,64 --head-dim 16", "leave out --head-dim"},
      {"--batches 0", "--batches takes numbers from 1"},
      {"--head-dims 64:32", "--head-dims takes numbers from 1"},
      {"verify --lengths 8", "verify has no option --lengths"},
      {"list --threads 2", "list has no option --threads"},
      {"verify --problem full/T:8 --cases folder", "not both"},
      {"verify --isa avx2 --cases folder", "leave out --isa"},
      {"plots", "needs a file"},
      {"merge", "needs reports"},
      {"merge a.json --shard 1/2", "merge has no option --shard"},
      {"plots a.json b.json", "b.json"},
      {"report", "report needs a file: attnbench report results/latest/results.json"},
      {"report a.json b.json c.json", "report does not know what to do with 'c.json'"},
      {"report a.json --html=", "--html"},
      {"report a.json --out folder", "report has no option --out"},
      {"bench fused", "'fused'"},
      {"version bench", "'bench'"},
      {"help benhc", "the nearest is bench"},
      {"help bench fuzz", "'fuzz'"},
      {"gaet", "the nearest is gate"},
      {"frobnicate",
       "bench, verify, fuzz, dump, judge, list, machine, plots, report, merge, show, gate, problem, "
       "help and version"},
      {"bench -", "'-'"},
      {"bench --budget 5", "bench has no option --budget; attnbench bench --help"},
      {"bench --itself a.so", "there is no option --itself"},
      {"verify --lenghts 8", "there is no option --lenghts"},
      {"machine --precision 2", "machine has no option --precision"},
      {"gate", "gate needs a head"},
      {"gate --head a.so", "gate needs a base"},
      {"gate --head a.so --base b.so --again make", "--again says with a % where options go"},
      {"verify --own=false", "--own=false leaves nothing to run: give a --plugin FILE.so"},
      {"fuzz --own=false --device emu --plugin a.so",
       "leaves out what --device would take; give one of them"},
      {"gate --head a.so --head b.so --base c.so --times", "there are 1 --base and 2 --head"},
      {"gate --head a.so --head b.so --write-facts f", "one --head; there are 2"},
      {"gate --hed x", "the nearest is --head"},
      {"show --tile 4x4", "show needs a problem"},
      {"show T:8 T:9", "does not know what to do with 'T:9'"},
      {"gate --zzzzzzzz", "attnbench gate --help lists them all"},
      {"gate --head-dim 64", "gate has no option --head-dim"},
      {"help --as man gate", "help --as man is of all commands; leave out 'gate'"},
      {"help --as html", "--as takes text|man|bash, not 'html'"},
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
    if (parse_line(&options, cases[i].line, why, sizeof why)) fail_msg("'%s' was accepted", cases[i].line);
    if (!strstr(why, cases[i].reason))
      fail_msg("'%s': the reason lacks '%s': %s", cases[i].line, cases[i].reason, why);
    if (strchr(why, '\n')) fail_msg("'%s': the reason is more than a line: %s", cases[i].line, why);
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
  } cases[] = {{"--accept", offsetof(options, gate.accepted)}, {"--base", offsetof(options, gate.bases)}};
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
  assert_false(parse_line(&options, word, why, sizeof why));
  options_destroy(&options);
  assert_false(parse_line(&options, word + 2, why, sizeof why));
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
      cmocka_unit_test(one_size_stands_beside_many_where_something_else_is_swept_with_it),
      cmocka_unit_test(parts_of_a_problem_are_options),
      cmocka_unit_test(lengths_are_numbers_and_ranges_sorted_each_once),
      cmocka_unit_test(what_is_wrong_is_refused_with_a_reason),
      cmocka_unit_test(a_repeatable_option_has_no_limit),
      cmocka_unit_test(a_path_that_is_too_long_is_refused),
      cmocka_unit_test(the_nearest_word_is_suggested_only_when_it_is_near),
      cmocka_unit_test(overlong_words_are_refused_not_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
