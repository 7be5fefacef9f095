/* The deterministic part of the gate: what it makes of facts, of files that cannot be read, and of calls
 * that cannot be answered. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/gate.h"
#include "run/plugins.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define HEAD " --head " ATTN_BUILD_DIR "/attnbench_variants.so"

/* ---- comparing ---- */

static const char before[] =
    "{'schema': 'attnbench-gate-1',"
    " 'growth': {'fused': {'time': 2, 'workspace': 0}, 'linear': {'time': 1, 'workspace': 0}},"
    " 'workspace_bytes': {'avx2': {'fused/T:256/threads:1': 1000, 'fused/T:512/threads:1': 1000}},"
    " 'error_share': {'avx2': {'fused/T:200': 0.01}},"
    " 'instructions': {'gcc-12/avx2': {'linear/T:256': 1000, 'linear/T:512': 2000}}}";

/* The facts above after some of the text was replaced. */
static json_t *facts_with(const char *old, const char *new) {
  char quoted[1024], text[2048], *at = memcpy(quoted, before, sizeof before);
  for (; (at = strchr(at, '\'')); at++) *at = '"';
  if (!old) old = new = "";
  assert_non_null(at = strstr(quoted, old));
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - quoted), quoted, new, at + strlen(old));
  json_error_t error;
  json_t *facts = json_loads(text, 0, &error);
  if (!facts) fail_msg("%s: %s", text, error.text);
  return facts;
}

typedef struct compared {
  gate_findings findings;
  char *said;
} compared;

static compared compare(const char *old, const char *new, bool with_base, const gate_options *options) {
  compared result = {.said = NULL};
  size_t size;
  FILE *out = open_memstream(&result.said, &size);
  json_t *head = facts_with(old, new), *earlier = facts_with(NULL, NULL);
  assert_non_null(out);
  assert_true(gate_compare(head, with_base ? earlier : NULL, with_base ? NULL : earlier, options,
                           &result.findings, out));
  fclose(out);
  json_decref(head);
  json_decref(earlier);
  return result;
}

static void forget(compared *result) {
  gate_findings_destroy(&result->findings);
  free(result->said);
}

typedef struct change {
  const char *old, *new;
  int kind; /* of the finding; -1: none */
} change;

static const change changes[] = {
    {NULL, NULL, -1},
    {"threads:1\": 1000}", "threads:1\": 1001}", GATE_WORKSPACE},
    {"threads:1\": 1000}", "threads:1\": 999}", -1},
    {"T:256\": 1000", "T:256\": 1020", -1},
    {"T:256\": 1000", "T:256\": 1021", GATE_INSTRUCTIONS},
    {"T:256\": 1000", "T:256\": 990", -1},
    {"T:200\": 0.01", "T:200\": 0.0199", -1},
    {"T:200\": 0.01", "T:200\": 0.0201", GATE_ERROR},
    {"T:200\": 0.01", "T:200\": 1.01", GATE_WRONG},
    {"\"linear\": {\"time\": 1", "\"linear\": {\"time\": 2", GATE_GROWTH}, /* declared */
    {"\"fused\": {\"time\": 2", "\"fused\": {\"time\": 1", -1},
    /* Another compiler's counts and a new problem's say nothing. */
    {"gcc-12/avx2\": {\"linear/T:256\": 1000, \"linear/T:512\": 2000",
     "gcc-13/avx2\": {\"linear/T:512\": 9000", -1},
    {"\"fused/T:512/threads:1\": 1000", "\"fused/T:513/threads:1\": 9000", -1},
};

static void what_got_worse_is_found_against_a_base_and_against_the_baseline(void **state) {
  (void)state;
  const gate_options options = {.base_name = "main"};
  for (int with_base = 0; with_base < 2; with_base++)
    for (size_t n = 0; n < sizeof changes / sizeof *changes; n++) {
      const change *c = &changes[n];
      compared result = compare(c->old, c->new, with_base, &options);
      if (result.findings.count != (c->kind >= 0) ||
          (c->kind >= 0 && (int)result.findings.items[0].kind != c->kind))
        fail_msg("%s instead of %s: %zu findings\n%s", c->new, c->old, result.findings.count, result.said);
      forget(&result);
    }
}

static void growth_beyond_what_is_declared_is_found_without_any_base(void **state) {
  (void)state;
  const gate_options options = {.base_name = "main"};
  const change grown[] = {{"\"linear/T:512\": 2000", "\"linear/T:512\": 2100", 0}, /* T^1.07 */
                          {"\"fused/T:512/threads:1\": 1000", "\"fused/T:512/threads:1\": 1050", 0}};
  for (size_t n = 0; n < sizeof grown / sizeof *grown; n++) {
    gate_findings findings = {0};
    json_t *head = facts_with(grown[n].old, grown[n].new);
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    assert_true(gate_compare(head, NULL, NULL, &options, &findings, out));
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].kind, GATE_GROWTH);
    fclose(out);
    gate_findings_destroy(&findings);
    json_decref(head);
  }
}

static void a_commit_message_accepts_what_it_names_and_nothing_else(void **state) {
  (void)state;
  const struct {
    const char *text;
    bool accepts;
  } lines[] = {{"workspace fused a second panel of keys", true},
               {"workspace all rounding up", true},
               {"workspace linear a second panel", false},
               {"instructions fused more", false},
               {"workspace", false},
               {"", false}};
  for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
    const gate_options options = {.base_name = "main", .accepted = &lines[n].text, .accepted_count = 1};
    compared result = compare("threads:1\": 1000}", "threads:1\": 1001}", true, &options);
    const gate_times none = {.measured = false};
    assert_int_equal(result.findings.count, 1);
    if (result.findings.items[0].accepted != lines[n].accepts) fail_msg("'%s'", lines[n].text);
    assert_int_equal(gate_decide(&result.findings, &none, false),
                     lines[n].accepts ? GATE_PASS : GATE_REGRESSION);
    forget(&result);
  }
}

static void wrong_results_cannot_be_accepted(void **state) {
  (void)state;
  const char *const accepted = "wrong all we like it so";
  const gate_options options = {.accepted = &accepted, .accepted_count = 1};
  gate_findings findings = {0};
  assert_true(gate_find(&findings, &options, GATE_WRONG, "fused", "fused/T:1", "wrong"));
  assert_false(findings.items[0].accepted);
  gate_findings_destroy(&findings);
}

/* 64 was once the limit, and what came after was dropped without a word. */
static void the_last_of_many_trailers_counts(void **state) {
  (void)state;
  enum { TRAILERS = 1000 };
  const char *accepted[TRAILERS];
  for (size_t n = 0; n < TRAILERS; n++) accepted[n] = "workspace linear a second panel";
  accepted[TRAILERS - 1] = "workspace fused a second panel";
  const gate_options options = {.accepted = accepted, .accepted_count = TRAILERS};
  gate_findings findings = {0};
  assert_true(gate_find(&findings, &options, GATE_WORKSPACE, "fused", "fused/T:1", "1001 after 1000"));
  assert_true(findings.items[0].accepted);
  gate_findings_destroy(&findings);
}

/* Longer than a buffer for all names could be. */
/* Nothing that the head alone has becomes the base's. */
static void a_base_has_the_facts_of_identical_variants_from_the_head(void **state) {
  (void)state;
  const gate_options options = {.base_name = "main", .identical = "linear blocked"};
  json_t *head = facts_with(NULL, NULL), *base = json_object();
  gate_facts_share(base, head, &options);
  char *said = json_dumps(base, JSON_COMPACT);
  assert_non_null(said);
  assert_non_null(strstr(said, "\"linear\":{\"time\":1"));
  assert_non_null(strstr(said, "\"linear/T:512\":2000"));
  assert_null(strstr(said, "fused"));
  free(said);
  gate_findings findings = {0};
  FILE *out = fopen("/dev/null", "w");
  assert_non_null(out);
  assert_true(gate_compare(head, base, NULL, &options, &findings, out));
  assert_int_equal(findings.count, 0);
  fclose(out);
  json_decref(base);
  json_decref(head);
}

/* ---- variants ---- */

/* With more variants than there is room for, those that changed come first, and the others are counted. */
static void benchmarks_without_room_are_counted(void **state) {
  (void)state;
  enum { MANY = 40 };
  static gate_set set;
  static attn_variant storage[MANY];
  static char names[MANY][16];
  const attn_variant *pointers[MANY];
  const variant_list list = {.variants = pointers, .count = MANY};
  for (int n = 0; n < MANY; n++) {
    snprintf(names[n], sizeof names[n], "v%d", n);
    storage[n] = (attn_variant){.name = names[n],
                                .features = ATTN_BAND | ATTN_OFFSET,
                                .types = 1u << ATTN_FLOAT32,
                                .time_exponent = 2};
    pointers[n] = &storage[n];
  }
  const gate_options few = {.identical = "v0 v1 v2"}, one_changed = {.only = "v39/"};
  gate_set_fill(&set, &list, &list, &few);
  assert_int_equal(set.count, GATE_MAX_BENCHMARKS);
  assert_true(set.left_out > 0 && set.left_out >= set.left_out_changed && set.left_out_changed > 0);
  for (size_t n = 0; n < set.count; n++) assert_false(set.benchmarks[n].identical);
  gate_set_fill(&set, &list, &list, &one_changed);
  assert_int_equal(set.left_out, 0);
  char *said;
  size_t size;
  FILE *out = open_memstream(&said, &size);
  assert_non_null(out);
  gate_times *times = calloc(1, sizeof *times);
  assert_non_null(times);
  times->set.left_out = 7;
  times->set.left_out_changed = 2;
  const gate_findings nothing = {0};
  gate_report(&nothing, times, &few, GATE_PASS, out);
  fclose(out);
  assert_non_null(strstr(said, "7 benchmarks were not timed, 2 of them of kernels that changed"));
  free(times);
  free(said);
}

static void a_pass_without_the_base_says_so(void **state) {
  (void)state;
  const struct {
    gate_options options;
    const char *words;
  } cases[] = {
      {{.facts = true, .base_facts = "facts.json"}, NULL},
      {{.times = true}, NULL},
      {{.facts = true, .why_no_base = "it does not build"},
       "gate: NOT HELD TO THE BASE, only to the committed baseline: it does not build"},
      {{.facts = true}, "gate: NOT HELD TO THE BASE, only to the committed baseline: what the base"}};
  gate_times *none = calloc(1, sizeof *none);
  assert_non_null(none);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const gate_findings nothing = {0};
    char *said;
    size_t size;
    FILE *out = open_memstream(&said, &size);
    assert_non_null(out);
    gate_report(&nothing, none, &cases[n].options, GATE_PASS, out);
    fclose(out);
    assert_non_null(strstr(said, "gate: pass"));
    if (!strstr(said, cases[n].words ? cases[n].words : "gate: pass") ||
        (!cases[n].words && strstr(said, "NOT HELD")))
      fail_msg("case %zu: %s", n, said);
    free(said);
  }
  free(none);
}

/* What a comment says; the caller frees it. */
static char *comment_of(gate_findings *findings, const gate_options *options, gate_status status,
                        size_t *size) {
  gate_times *none = calloc(1, sizeof *none);
  char *said;
  FILE *out = open_memstream(&said, size);
  assert_true(none && out);
  gate_comment(findings, none, options, status, out);
  fclose(out);
  free(none);
  gate_findings_destroy(findings);
  return said;
}

static void a_comment_has_what_got_worse_and_what_repeats_it_and_stays_short(void **state) {
  (void)state;
  const char *const accepted[] = {"workspace fused so be it"};
  const gate_options options = {
      .base_name = "v1", .again = "run it with 100% '%'", .accepted = accepted, .accepted_count = 1};
  gate_findings findings = {0};
  size_t size;
  assert_true(gate_find(&findings, &options, GATE_WORKSPACE, "fused", "fused/T:8", "more"));
  for (int n = 0; n < 200; n++)
    assert_true(gate_find(&findings, &options, GATE_INSTRUCTIONS, "naive", "naive/T:8", "a|b"));
  char *said = comment_of(&findings, &options, GATE_REGRESSION, &size);
  static const char *const words[] = {
      "### attnbench gate: something got worse\n\nAgainst `v1`; nothing was timed.\n",
      "\n| workspace (accepted) | `fused/T:8` | more |\n", "\n| instructions | `naive/T:8` | a\\|b |\n",
      "and 191 more, all in gate.json\n", "```sh\nrun it with 100% '--facts'\n```\n"};
  for (size_t n = 0; n < sizeof words / sizeof *words; n++)
    if (!strstr(said, words[n])) fail_msg("'%s' is not in:\n%s", words[n], said);
  assert_true(size < 3000);
  free(said);
}

static void a_comment_in_shadow_mode_does_not_say_that_nothing_got_worse(void **state) {
  (void)state;
  const gate_options options = {.base_name = "v1", .again = "run %", .shadow = true};
  gate_findings findings = {0};
  size_t size;
  assert_true(gate_find(&findings, &options, GATE_TIME, "fused", "fused/T:8", "4 times as long"));
  char *said = comment_of(&findings, &options, GATE_PASS, &size);
  assert_non_null(
      strstr(said, "### attnbench gate: something got slower, which fails nothing in shadow mode\n"));
  assert_null(strstr(said, "nothing got worse"));
  free(said);
}

/* ---- files and calls ---- */

static int set_up(void **state) {
  char *folder = strdup("/tmp/attnbench-gate-XXXXXX");
  *state = folder;
  return folder && mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  free(*state);
  return chdir("/") == 0 ? system(command) : -1;
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void facts_survive_their_file(void **state) {
  (void)state;
  char why[512];
  json_t *facts = facts_with(NULL, NULL);
  assert_true(gate_facts_write(facts, "facts.json", why, sizeof why));
  json_t *again = gate_facts_read("facts.json", why, sizeof why);
  assert_true(json_equal(facts, again));
  assert_int_equal(access("facts.json.new", F_OK), -1);
  json_decref(again);
  assert_int_equal(rename("facts.json", "elsewhere"), 0);
  assert_int_equal(symlink("elsewhere", "facts.json"), 0);
  assert_true(gate_facts_write(facts, "facts.json", why, sizeof why));
  shell_expect("test -L facts.json && test -f elsewhere && ls", 0, "elsewhere\nfacts.json\n");
  json_decref(facts);
}

static void a_file_that_cannot_be_used_is_named_with_the_reason(void **state) {
  (void)state;
  char why[512];
  json_t *facts = facts_with(NULL, NULL);
  write_text("cut", "{\"schema\": \"attnbench-gate-1\", \"growth\": {\"fus");
  write_text("other", "{\"schema\": \"attnbench-gate-9\"}");
  write_text("empty", "");
  const char *const files[][2] = {
      {"cut", "cut"}, {"other", "attnbench-gate-9"}, {"empty", "empty"}, {"none", "none"}};
  for (size_t n = 0; n < 4; n++) {
    assert_null(gate_facts_read(files[n][0], why, sizeof why));
    assert_non_null(strstr(why, files[n][1]));
  }
  assert_false(gate_facts_write(facts, "no-such-folder/facts.json", why, sizeof why));
  assert_non_null(strstr(why, "cannot write 'no-such-folder/facts.json': No such file"));
  json_decref(facts);
}

static void a_full_disk_leaves_the_old_file(void **state) {
  (void)state;
  char why[512];
  struct rlimit limit;
  json_t *facts = facts_with(NULL, NULL);
  write_text("facts.json", "old");
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, SIG_IGN); /* as the program does */
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, limit.rlim_max});
  const bool written = gate_facts_write(facts, "facts.json", why, sizeof why);
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_false(written);
  assert_non_null(strstr(why, "cannot write 'facts.json'"));
  shell_expect("cat facts.json", 0, "old");
  assert_int_equal(access("facts.json.new", F_OK), -1);
  json_decref(facts);
}

/* Counting takes seconds. */
static void a_full_disk_is_seen_before_anything_is_counted(void **state) {
  (void)state;
  write_text("facts.json", "old");
  shell_expect("mkdir -p bin && printf '#!/bin/sh\\n: >counted\\n' >bin/valgrind && chmod +x bin/valgrind", 0,
               NULL);
  /* LLVM's OpenMP keeps a note of 1024 bytes in shared memory, ThreadSanitizer a file that cannot be had there. */
  shell_expect("ulimit -f 2; TMPDIR=/none PATH=bin " PROGRAM " gate" HEAD " --write-facts facts.json", 2,
               "facts.json cannot be written");
  assert_int_equal(access("counted", F_OK), -1);
  shell_expect("cat facts.json", 0, "old");
  assert_int_equal(access("facts.json.new", F_OK), -1);
}

static void an_acceptance_of_no_kind_is_said(void **state) {
  (void)state;
  shell_expect(PROGRAM
               " gate" HEAD
               " --no-base why --times --accept 'instuctions mine it may' --accept 'error mine it may'",
               2,
               "gate: 'instuctions mine it may' accepts nothing: it is KIND VARIANT reason, and the kinds "
               "are variants ");
  if (strstr(shell_output, "'error mine")) fail_msg("%s", shell_output);
}

static void a_pipe_stays_one(void **state) {
  (void)state;
  char why[256] = "";
  json_t *facts = json_pack("{s:i}", "facts", 7);
  shell_expect("mkfifo pipe && { cat pipe >got 2>&1 & }", 0, NULL);
  if (!gate_facts_write(facts, "pipe", why, sizeof why)) fail_msg("%s", why);
  shell_expect("test -p pipe && for n in $(seq 100); do grep . got && break; sleep .1; done", 0,
               "\"facts\": 7");
  json_decref(facts);
}

static void calls_that_cannot_be_answered_are_status_2_with_a_line(void **state) {
  (void)state;
  shell_expect(PROGRAM " gate", 2, "needs a head");
  shell_expect(PROGRAM " gate" HEAD, 2, "needs a base");
  shell_expect(PROGRAM " gate --hed x", 2, "the nearest is --head");
  shell_expect(PROGRAM " gate" HEAD " --no-base why --budget soon", 2,
               "--budget takes seconds, 1 or more, not 'soon'");
  shell_expect(PROGRAM " gate" HEAD " --no-base why --smallest", 2, "--smallest needs a value");
  shell_expect(PROGRAM " gate" HEAD HEAD " --base base.so --times", 2, "there are 1 --base and 2 --head");
  shell_expect(PROGRAM " gate" HEAD " --no-base why --identical '' --accept --help --budget 0.5", 2,
               "--budget takes seconds, 1 or more");
  shell_expect(PROGRAM " gate" HEAD HEAD " --write-facts facts.json", 2, "one --head; there are 2");
  shell_expect(PROGRAM " gate" HEAD " --no-base 'it does not build' --times", 2, "it does not build");
  shell_expect(PROGRAM " gate" HEAD " --base " ATTN_BUILD_DIR "/tests/plugins/other_version.so --times", 2,
               "version");
  shell_expect(PROGRAM " gate" HEAD " --base " ATTN_BUILD_DIR
                       "/attnbench_variants.so --times --benchmark no/such",
               2, "no benchmark has such a name");
  shell_expect(PROGRAM " gate" HEAD " --base " ATTN_BUILD_DIR
                       "/attnbench_variants.so --times --benchmark fused/isa:avx9",
               2, "no benchmark has such a name");
  shell_expect(PROGRAM " gate" HEAD " --no-base why --times --out /dev/null/folder", 2,
               "--out /dev/null/folder: Not a directory; give a folder that can be written");
}

static void nothing_is_timed_where_all_code_is_the_bases(void **state) {
  (void)state;
  shell_expect(PROGRAM " gate" HEAD " --base " ATTN_BUILD_DIR
                       "/attnbench_variants.so --times --benchmark fused/"
                       " --identical 'naive fused'",
               0, "every kernel's object code is the base's\n\ngate: pass (no times)");
}

/* taken_name.so has naive alone. */
static void variants_that_only_one_side_has_are_told(void **state) {
  (void)state;
#define OTHER ATTN_BUILD_DIR "/tests/plugins/taken_name.so"
  static const char calls[] = PROGRAM " gate --times --identical naive --head " OTHER
                                      " --base " ATTN_BUILD_DIR "/attnbench_variants.so";
  char command[1024];
  shell_expect(calls, 1, "the object code of each kernel that both have is the base's; ");
  shell_expect(
      calls, 1,
      "  variants     fused\n               the base has it, the head does not: nothing of it can be "
      "compared");
  snprintf(command, sizeof command, "%s --accept 'variants all moved elsewhere'", calls);
  shell_expect(command, 0, "gate: pass (no times)");
  variant_list head = {0};
  char why[256];
  assert_true(variant_list_add(&head, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why));
  snprintf(command, sizeof command, "; 0 more are only in the base, %zu only in the head", head.count - 1);
  shell_expect(PROGRAM " gate --times --identical naive --base " OTHER HEAD, 0, command);
  variant_list_destroy(&head);
}

static void a_measuring_process_says_what_it_cannot_take(void **state) {
  (void)state;
  static const char *const calls[][2] = {
      {"--base a --head b --itself c --seed x fused full/T:8 1 - 1 0", "--seed takes a whole number"},
      {"--base a --head b --itself c --quads x fused full/T:8 1 - 1 0", "--quads takes a whole number"},
      {"--base a --head b --itself c --quads -1 fused full/T:8 1 - 1 0", "--quads takes a whole number"},
      {"--base a --head b fused full/T:8 1 - 1 0", "needs one --base, one --head and --itself"},
      {"--base a --base b --head b --itself c fused full/T:8 1 - 1 0", "needs one --base"},
      {"--base a --head b --itself c fused full/T:8 1 -", "six words for each of 1 to 128 benchmarks"},
      {"--base a --head b --itself c", "six words for each of 1 to 128 benchmarks"},
      {"--base a --head b --itself c $(seq 774)", "six words for each of 1 to 128 benchmarks"},
      {"--base a --head b --itself c fused full/T:8 1 - 1 0", "cannot load plugin a"},
  };
  for (size_t n = 0; n < sizeof calls / sizeof *calls; n++) {
    char command[1024];
    snprintf(command, sizeof command, PROGRAM " gate-measure %s", calls[n][0]);
    shell_expect(command, 2, calls[n][1]);
  }
}

/* A folder with these programs and no git. */
static void the_script_says_what_it_lacks(void **state) {
  (void)state;
  char command[1024];
  shell_expect("cd " ATTN_SOURCE_DIR " && GATE_FOLDER=$OLDPWD/gate scripts/gate.sh no-such-commit", 2,
               "git knows no commit 'no-such-commit'");
  snprintf(command, sizeof command,
           "mkdir bin && for tool in bash dirname nproc mkdir; do ln -s $(command -v $tool) bin/; done && "
           "cd " ATTN_SOURCE_DIR " && GATE_FOLDER=%s/gate PATH=%s/bin scripts/gate.sh",
           (char *)*state, (char *)*state);
  shell_expect(command, 2, "git is not installed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_got_worse_is_found_against_a_base_and_against_the_baseline),
      cmocka_unit_test(growth_beyond_what_is_declared_is_found_without_any_base),
      cmocka_unit_test(a_commit_message_accepts_what_it_names_and_nothing_else),
      cmocka_unit_test(wrong_results_cannot_be_accepted),
      cmocka_unit_test(the_last_of_many_trailers_counts),
      cmocka_unit_test(a_base_has_the_facts_of_identical_variants_from_the_head),
      cmocka_unit_test(benchmarks_without_room_are_counted),
      cmocka_unit_test(a_pass_without_the_base_says_so),
      cmocka_unit_test(a_comment_has_what_got_worse_and_what_repeats_it_and_stays_short),
      cmocka_unit_test(a_comment_in_shadow_mode_does_not_say_that_nothing_got_worse),
      cmocka_unit_test_setup_teardown(variants_that_only_one_side_has_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(facts_survive_their_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_file_that_cannot_be_used_is_named_with_the_reason, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_old_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_disk_is_seen_before_anything_is_counted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_acceptance_of_no_kind_is_said, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_pipe_stays_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown(calls_that_cannot_be_answered_are_status_2_with_a_line, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_timed_where_all_code_is_the_bases, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_measuring_process_says_what_it_cannot_take, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_script_says_what_it_lacks, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
