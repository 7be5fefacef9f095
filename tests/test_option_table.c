/* Each row of the option table: its words, and where its value arrives. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "command_line.h"
#include "option_table.h"

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
    {COMMAND_BENCH, "--device emu", KIND_TEXT, AT(device), "emu"},
    {COMMAND_BENCH, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_BENCH, "--problem band:1,0,3/T:8", KIND_ITEM, AT(problems), "band:1,0,3/T:8"},
    {COMMAND_BENCH, "--preset gpt2 --preset=bert", KIND_WORDS, AT(presets), "gpt2 bert"},
    {COMMAND_BENCH, "--memory-only naive,fused", KIND_WORDS, AT(memory_only), "naive fused"},
    {COMMAND_BENCH, "--batch 2", KIND_INTEGER, AT(batch), "2"},
    {COMMAND_BENCH, "--heads 8", KIND_INTEGER, AT(heads), "8"},
    {COMMAND_BENCH, "--kv-heads 4", KIND_INTEGER, AT(kv_heads), "4"},
    {COMMAND_BENCH, "--head-dim 32", KIND_INTEGER, AT(head_dim), "32"},
    {COMMAND_BENCH, "--value-dim 16", KIND_INTEGER, AT(value_dim), "16"},
    {COMMAND_BENCH, "--lengths 16,32", KIND_LENGTHS, AT(lengths), "16 32"},
    {COMMAND_BENCH, "--batches 1:4", KIND_LENGTHS, AT(batches), "1 2 4"},
    {COMMAND_BENCH, "--head-dims 16,32", KIND_LENGTHS, AT(head_dims), "16 32"},
    {COMMAND_BENCH, "--causal", KIND_FLAG, AT(causal), "true"},
    {COMMAND_BENCH, "--query-length 1", KIND_INTEGER, AT(query_length), "1"},
    {COMMAND_BENCH, "--window 0", KIND_INTEGER, AT(window), "0"},
    {COMMAND_BENCH, "--threads 3", KIND_INTEGER, AT(threads), "3"},
    {COMMAND_BENCH, "--pin", KIND_FLAG, AT(pin), "true"},
    {COMMAND_BENCH, "--isa avx2", KIND_TEXT, AT(isa), "avx2"},
    {COMMAND_BENCH, "--seed 7", KIND_SEED, AT(seed), "7"},
    {COMMAND_BENCH, "--shard 3/8", KIND_TEXT, AT(shard), "3/8"},
    {COMMAND_BENCH, "--out folder", KIND_TEXT, AT(out), "folder"},
    {COMMAND_BENCH, "--title Here", KIND_TEXT, AT(title), "Here"},
    {COMMAND_BENCH, "--font-size 26", KIND_INTEGER, AT(font_size), "26"},
    {COMMAND_BENCH, "--format png,pdf", KIND_WORDS, AT(formats), "png pdf"},
    {COMMAND_BENCH, "--raw a.csv", KIND_TEXT, AT(raw), "a.csv"},
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
    {COMMAND_BENCH, "--run-limit 3s", KIND_SECONDS, AT(run_limit), "3"},
    {COMMAND_BENCH, "--isolate=false", KIND_FLAG, AT(isolate), "false"},
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
    {COMMAND_VERIFY, "--device emu", KIND_TEXT, AT(device), "emu"},
    {COMMAND_VERIFY, "--own=false --plugin a.so", KIND_FLAG, AT(own), "false"},
    {COMMAND_FUZZ, "--own=false --plugin a.so", KIND_FLAG, AT(own), "false"},
    {COMMAND_VERIFY, "--plugin a.so --plugin b,c.so", KIND_ITEM, AT(plugins), "a.so b,c.so"},
    {COMMAND_VERIFY, "--problem full/T:8 --problem full/T:9", KIND_ITEM, AT(problems), "full/T:8 full/T:9"},
    {COMMAND_VERIFY, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_VERIFY, "--isa portable", KIND_TEXT, AT(isa), "portable"},
    {COMMAND_VERIFY, "--seed 0", KIND_SEED, AT(seed), "0"},
    {COMMAND_VERIFY, "--count 0", KIND_INTEGER, AT(count), "0"},
    {COMMAND_VERIFY, "--every 3", KIND_INTEGER, AT(every), "3"},
    {COMMAND_VERIFY, "--properties layout,none", KIND_WORDS, AT(properties), "layout none"},
    {COMMAND_VERIFY, "--fail-fast", KIND_FLAG, AT(fail_fast), "true"},
    {COMMAND_VERIFY, "--cases folder", KIND_TEXT, AT(cases), "folder"},
    {COMMAND_VERIFY, "--run-limit 3s", KIND_SECONDS, AT(run_limit), "3"},
    {COMMAND_VERIFY, "--isolate=false", KIND_FLAG, AT(isolate), "false"},

    {COMMAND_FUZZ, "--variant fused", KIND_WORDS, AT(variants), "fused"},
    {COMMAND_FUZZ, "--device emu", KIND_TEXT, AT(device), "emu"},
    {COMMAND_FUZZ, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_FUZZ, "--problem full/T:8 --variant fused", KIND_ITEM, AT(problems), "full/T:8"},
    {COMMAND_FUZZ, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_FUZZ, "--isa portable", KIND_TEXT, AT(isa), "portable"},
    {COMMAND_FUZZ, "--seed 5", KIND_SEED, AT(seed), "5"},
    {COMMAND_FUZZ, "--seconds 0.5", KIND_SECONDS, AT(seconds), "0.5"},
    {COMMAND_FUZZ, "--run-limit 3s", KIND_SECONDS, AT(run_limit), "3"},
    {COMMAND_FUZZ, "--isolate=false", KIND_FLAG, AT(isolate), "false"},

    {COMMAND_BENCH, "--band causal_bottom_right --layout bthd", KIND_WORD, AT(parts),
     "causal_bottom_right layout:bthd"},
    {COMMAND_BENCH, "--layout=bthd --layout padded", KIND_PART, AT(parts), "layout:bthd layout:padded"},
    {COMMAND_BENCH, "--band window:5", KIND_WORD, AT(parts), "window:5"},
    {COMMAND_BENCH, "--type bf16", KIND_WORD, AT(parts), "bf16"},
    {COMMAND_BENCH, "--type f16/out:f32", KIND_WORD, AT(parts), "f16/out:f32"},
    {COMMAND_BENCH, "--mask bq", KIND_PART, AT(parts), "mask:bq"},
    {COMMAND_BENCH, "--bias 1", KIND_PART, AT(parts), "bias:1"},
    {COMMAND_BENCH, "--key-lengths 5,6", KIND_PART, AT(parts), "lengths:5,6"},
    {COMMAND_BENCH, "--offsets 0,-3", KIND_PART, AT(parts), "offsets:0,-3"},
    {COMMAND_BENCH, "--scale -0.5", KIND_PART, AT(parts), "scale:-0.5"},
    {COMMAND_BENCH, "--softcap 30", KIND_PART, AT(parts), "softcap:30"},
    {COMMAND_BENCH, "--epsilon 0", KIND_PART, AT(parts), "epsilon:0"},
    {COMMAND_BENCH, "--sink --lse", KIND_PART, AT(parts), "sink lse"},
    {COMMAND_BENCH, "--lse", KIND_PART, AT(parts), "lse"},
    {COMMAND_BENCH, "--weights", KIND_PART, AT(parts), "weights"},
    {COMMAND_BENCH, "--fill normal", KIND_PART, AT(parts), "fill:normal"},

    {COMMAND_LIST, "--device emu", KIND_TEXT, AT(device), "emu"},
    {COMMAND_MACHINE, "--device emu", KIND_TEXT, AT(device), "emu"},
    {COMMAND_LIST, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_LIST, "--isolate=false", KIND_FLAG, AT(isolate), "false"},
    {COMMAND_MACHINE, "--pin", KIND_FLAG, AT(pin), "true"},
    {COMMAND_MACHINE, "--threads 2", KIND_INTEGER, AT(threads), "2"},
    {COMMAND_PLOTS, "--title Here a.json", KIND_TEXT, AT(title), "Here"},
    {COMMAND_PLOTS, "--font-size 26 a.json", KIND_INTEGER, AT(font_size), "26"},
    {COMMAND_PLOTS, "--format svg a.json", KIND_WORDS, AT(formats), "svg"},
    {COMMAND_PLOTS, "--out folder a.json", KIND_TEXT, AT(out), "folder"},
    {COMMAND_PLOTS, "--scripts plots a.json", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_PLOTS, "a.json", KIND_ITEM, AT(words), "a.json"},
    {COMMAND_REPORT, "--html page.html a.json", KIND_TEXT, AT(html), "page.html"},
    {COMMAND_REPORT, "--scripts plots a.json", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_REPORT, "a.json b.json", KIND_ITEM, AT(words), "a.json b.json"},

    {COMMAND_DUMP, "--out folder full/T:8", KIND_TEXT, AT(out), "folder"},
    {COMMAND_DUMP, "--seed 3 --out folder full/T:8", KIND_SEED, AT(seed), "3"},
    {COMMAND_DUMP, "full/T:8 --out folder", KIND_ITEM, AT(words), "full/T:8"},
    {COMMAND_JUDGE, "--output o.npy folder", KIND_TEXT, AT(output), "o.npy"},
    {COMMAND_JUDGE, "--lse l.npy --output o.npy folder", KIND_TEXT, AT(lse), "l.npy"},
    {COMMAND_JUDGE, "--weights w.npy --output o.npy folder", KIND_TEXT, AT(weights), "w.npy"},
    {COMMAND_JUDGE, "--gradients g folder", KIND_TEXT, AT(gradients), "g"},
    {COMMAND_JUDGE, "--states s --output o folder", KIND_TEXT, AT(states), "s"},
    {COMMAND_JUDGE, "--json --output o.npy folder", KIND_FLAG, AT(json), "true"},
    {COMMAND_JUDGE, "folder --output o.npy", KIND_ITEM, AT(words), "folder"},
    {COMMAND_MERGE, "--title Here a.json", KIND_TEXT, AT(title), "Here"},
    {COMMAND_MERGE, "--font-size 26 a.json", KIND_INTEGER, AT(font_size), "26"},
    {COMMAND_MERGE, "--format svg a.json", KIND_WORDS, AT(formats), "svg"},
    {COMMAND_MERGE, "--out all.json a.json", KIND_TEXT, AT(out), "all.json"},
    {COMMAND_MERGE, "--scripts plots a.json", KIND_TEXT, AT(scripts), "plots"},
    {COMMAND_MERGE, "a.json b.json", KIND_ITEM, AT(words), "a.json b.json"},

    {COMMAND_GATE, "--head b.so", KIND_ITEM, AT(gate.heads), "h.so b.so"},
    {COMMAND_GATE, "--base b.so", KIND_ITEM, AT(gate.bases), "b.so"},
    {COMMAND_GATE, "--variant mine,yours", KIND_WORDS, AT(variants), "mine yours"},
    {COMMAND_GATE, "--problem full/T:8", KIND_ITEM, AT(problems), "full/T:8"},
    {COMMAND_GATE, "--again 'again%'", KIND_TEXT, AT(gate.again), "'again%'"},
    {COMMAND_GATE, "--every 3", KIND_INTEGER, AT(every), "3"},
    {COMMAND_GATE, "--no-base why", KIND_TEXT, AT(gate.why_no_base), "why"},
    {COMMAND_GATE, "--base-name main", KIND_TEXT, AT(gate.base_name), "main"},
    {COMMAND_GATE, "--identical naive --identical=", KIND_NOTE, AT(gate.identical), ""},
    {COMMAND_GATE, "--accept --help --accept time", KIND_ITEM, AT(gate.accepted), "--help time"},
    {COMMAND_GATE, "--baseline b.json", KIND_TEXT, AT(gate.baseline), "b.json"},
    {COMMAND_GATE, "--write-facts f.json", KIND_TEXT, AT(gate.write_facts), "f.json"},
    {COMMAND_GATE, "--head-facts h.json", KIND_TEXT, AT(gate.head_facts), "h.json"},
    {COMMAND_GATE, "--base-facts b.json", KIND_TEXT, AT(gate.base_facts), "b.json"},
    {COMMAND_GATE, "--head-code h.txt", KIND_TEXT, AT(gate.head_code), "h.txt"},
    {COMMAND_GATE, "--base-code b.txt", KIND_TEXT, AT(gate.base_code), "b.txt"},
    {COMMAND_GATE, "--head-team h.so", KIND_TEXT, AT(gate.head_team), "h.so"},
    {COMMAND_GATE, "--base-team b.so", KIND_TEXT, AT(gate.base_team), "b.so"},
    {COMMAND_GATE, "--no-code why", KIND_TEXT, AT(gate.why_no_code), "why"},
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

    {COMMAND_SHOW, "--batch 3", KIND_INTEGER, AT(show.batch), "3"},
    {COMMAND_SHOW, "--head 5", KIND_INTEGER, AT(show.head), "5"},
    {COMMAND_SHOW, "--tile 16x32", KIND_TEXT, AT(show.tile), "16x32"},
    {COMMAND_SHOW, "--weights", KIND_FLAG, AT(show.weights), "true"},
    {COMMAND_SHOW, "--out folder", KIND_TEXT, AT(out), "folder"},
    {COMMAND_SHOW, "--title title", KIND_TEXT, AT(title), "title"},
    {COMMAND_SHOW, "--font-size 26", KIND_INTEGER, AT(font_size), "26"},
    {COMMAND_SHOW, "--format svg,pdf", KIND_WORDS, AT(formats), "svg pdf"},
    {COMMAND_SHOW, "--scripts plots", KIND_TEXT, AT(scripts), "plots"},

    {COMMAND_HELP, "--as man", KIND_TEXT, AT(as), "man"},
    {COMMAND_GATE_MEASURE, "--head a.so --base b.so --itself c.so", KIND_ITEM, AT(gate.heads), "a.so"},
    {COMMAND_GATE_MEASURE, "--base b.so --head a.so --itself c.so", KIND_ITEM, AT(gate.bases), "b.so"},
    {COMMAND_GATE_MEASURE, "--itself c.so --base b --head a", KIND_TEXT, AT(gate.itself), "c.so"},
    {COMMAND_GATE_MEASURE, "--seed 3 --itself c --base b --head a", KIND_SEED, AT(seed), "3"},
    {COMMAND_GATE_MEASURE, "--quads 4 --itself c --base b --head a", KIND_INTEGER, AT(gate.quads), "4"},
    {COMMAND_GATE_MEASURE, "--itself c --base b --head a fused T:8 -", KIND_ITEM, AT(words), "fused T:8 -"},
    {COMMAND_COUNT_INSTRUCTIONS, "--plugin a.so", KIND_ITEM, AT(plugins), "a.so"},
    {COMMAND_COUNT_INSTRUCTIONS, "fused full/T:8", KIND_ITEM, AT(words), "fused full/T:8"},
};

/* What a command needs with each of its options. */
static const char *with_option(const taken *taken) {
  if (taken->command == COMMAND_SHOW) return " T:8";
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
    case KIND_LENGTHS: {
      const size_list *list = field;
      for (size_t n = 0; n < list->count; n++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", n ? " " : "", (long long)list->sizes[n]);
      break;
    }
    case KIND_WORDS:
    case KIND_PAIRS:
    case KIND_PART:
    case KIND_WORD:
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
    parse_line_well(&options, line);
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
    if (rows[i].kind != KIND_PART) assert_int_equal(rows[i].value == NULL, rows[i].kind == KIND_FLAG);
    for (size_t other = 0; other < i; other++)
      if (strcmp(rows[i].name, rows[other].name) == 0 && rows[i].commands & rows[other].commands)
        fail_msg("%s has two rows for one command", rows[i].name);
    for (unsigned n = 0; n < COMMAND_COUNT; n++)
      if (rows[i].commands >> n & 1 && !is_tested(&rows[i], (command)n))
        fail_msg("no line of all_taken begins with %s for %s", rows[i].name,
                 option_command((command)n)->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_option_arrives_where_its_row_says),
      cmocka_unit_test(the_table_is_sound_and_each_row_is_tested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
