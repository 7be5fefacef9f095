/* The gate as anybody has it: two shared objects of a kernel that attnbench has never seen, and no script that prepares
 * anything. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/gate.h"
#include "tests/shell.h"

#define GATE ATTN_BUILD_DIR "/attnbench gate "
#define SMALL "causal/H:2/D:80/T:32/layout:bthd"
#define OWN ATTN_BUILD_DIR "/attnbench_variants.so"
/* Of what takes longest, little; what all of it says, others test. */
#define QUICK " --every 400 --cases 0 "

static char folder[] = "/tmp/attnbench-test-alone-XXXXXX";

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  return shell(
      "build() { " ATTN_CC " -std=gnu17 -O2 -shared -fPIC -I" ATTN_SOURCE_DIR "/variants $1 -o $2 -lm; } && "
      "source=" ATTN_SOURCE_DIR "/tests/plugins/particular.c && mkdir one other && cp $source one/ && "
      "cp $source other/ && build '-g one/particular.c' base.so && build '-g other/particular.c' same.so && "
      "build \"-DSLOW $source\" slow.so && build \"-DWRONG $source\" wrong.so && "
      "sed 's/is causal/is Causal/' $source >letter_more.c && build letter_more.c letter_more.so && build "
      "\"-DCRASHES $source\" crashes.so && build \"-DTILE=64 $source\" tiles.so && "
      "build \"-DTILE=64 -DSLOW $source\" slow_tiles.so && build \"-DAVX512 $source\" wide.so && sed "
      "'s/\"particular\"/\"fused\"/' $source >fused.c && "
      "build \"-DWRONG fused.c\" taken.so");
}

static int tear_down(void **state) {
  (void)state;
  char command[96];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static void the_same_kernel_built_elsewhere_passes_untimed(void **state) {
  (void)state;
  shell_expect("cmp base.so same.so", 1, "differ"); /* in what debuggers read */
  shell_expect(GATE "--base base.so --head same.so --problem " SMALL QUICK, 0,
               "every kernel's object code is the base's\n\ngate: pass (no times)");
}

static void code_that_differs_is_not_taken_for_the_same(void **state) {
  (void)state;
  assert_true(gate_same_code("base.so", "same.so"));
  assert_false(gate_same_code("base.so", "slow.so"));
  assert_false(gate_same_code("base.so", "letter_more.so")); /* of the same size */
  assert_false(gate_same_code("base.so", "nowhere.so"));
  assert_int_equal(shell("head -c 3000 base.so >short.so; printf x >letter.so"), 0);
  assert_false(gate_same_code("short.so", "short.so"));
  assert_false(gate_same_code("letter.so", "letter.so"));
}

static void a_wrong_head_fails_with_what_repeats_it(void **state) {
  (void)state;
  shell_expect(GATE "--base base.so --head wrong.so" QUICK, 1, "gate: REGRESSION: 1 finding\n");
  assert_null(strstr(shell_output, "NOT HELD"));
  assert_null(strstr(shell_output, "timing part"));
  char *again = strstr(shell_output, "reproduce: attnbench verify ");
  assert_non_null(again);
  again[strcspn(again, "\n")] = '\0';
  char command[1024];
  snprintf(command, sizeof command, ATTN_BUILD_DIR "/%s", again + strlen("reproduce: "));
  shell_expect(command, 1, "FAILED");
}

/* The head's is verified, not ours. */
static void a_wrong_head_with_the_name_of_a_variant_of_ours_fails(void **state) {
  (void)state;
  shell_expect(GATE "--base taken.so --head taken.so" QUICK, 1,
               "attnbench verify --variant fused --problem ");
  assert_non_null(strstr(shell_output, " --own=false --plugin 'taken.so'"));
}

static void a_slow_head_fails_by_its_instructions_and_says_how_to_see_it_again(void **state) {
  (void)state;
  if (shell("command -v valgrind") != 0) skip();
  shell_expect(GATE "--facts --base base.so --head slow.so --problem causal/H:2/D:80/T:64/layout:bthd" QUICK,
               1, "  instructions particular/causal/B:1/H:2/Hkv:2/D:80/T:64/layout:bthd\n");
  assert_non_null(strstr(shell_output, "(+300.0%)"));
  char *again = strstr(shell_output, "again: attnbench gate ");
  assert_non_null(again);
  again[strcspn(again, "\n")] = '\0';
  char command[1024];
  snprintf(command, sizeof command, ATTN_BUILD_DIR "/%s" QUICK, again + strlen("again: "));
  shell_expect(command, 1, "(+300.0%)");
}

/* Which takes no problem so short as one that libraries might be set up by. */
static void a_kernel_of_long_tiles_is_counted_too(void **state) {
  (void)state;
  if (shell("command -v valgrind") != 0) skip();
  shell_expect(
      GATE "--facts --base tiles.so --head slow_tiles.so --problem causal/H:2/D:80/T:128/layout:bthd" QUICK,
      1, "  instructions particular/causal/B:1/H:2/Hkv:2/D:80/T:128/layout:bthd\n");
}

/* The gate says what it leaves out, and compares the rest. */
static void a_kernel_that_valgrind_cannot_run_is_compared_without_counts(void **state) {
  (void)state;
  if (shell("command -v valgrind && grep -q avx512f /proc/cpuinfo") != 0) skip();
  shell_expect(GATE "--facts --base wide.so --head wide.so" QUICK, 0, "gate: pass");
  shell_expect(GATE "--facts --base base.so --head wide.so --problem causal/H:2/D:80/T:64/layout:bthd" QUICK,
               0, "instructions are not counted: valgrind ended with status ");
  assert_non_null(strstr(shell_output, "gate: pass"));
}

static void a_slow_head_fails_by_its_time_and_says_how_to_see_it_again(void **state) {
  (void)state;
  /* 3: the control moved, as on a busy machine it may by chance. */
  shell_expect("for n in 1 2 3 4 5; do " GATE
               "--times --budget 1 --base base.so --head slow.so --problem " SMALL
               " --benchmark threads:1; status=$?; [ $status -eq 3 ] || break; done; exit $status",
               1, "\n  time         particular/causal/B:1/H:2/Hkv:2/D:80/T:32/layout:bthd/threads:1\n");
  assert_non_null(strstr(shell_output, "again: attnbench gate --base base.so --head slow.so --problem "
                                       "causal/H:2/D:80/T:32/layout:bthd --times --benchmark "
                                       "particular/causal/B:1/H:2/Hkv:2/D:80/T:32/layout:bthd/threads:1\n"));
  assert_non_null(strstr(shell_output, "control:particular/causal/"));
}

static variant_list load(const char *path, const gate_options *options) {
  char why[512];
  variant_list list = {0};
  if (!gate_load(&list, path, options, why, sizeof why)) fail_msg("%s", why);
  return list;
}

/* None of the usual shapes has 80 features. */
static void a_narrow_kernel_is_timed_where_it_lives(void **state) {
  (void)state;
  static gate_set set;
  const gate_options options = {.smallest = 0.02};
  variant_list base = load("base.so", &options), head = load("slow.so", &options);
  gate_set_fill(&set, &base, &head, &options);
  size_t controls = 0, halves = 0;
  for (size_t n = 0; n < set.count; n++) {
    const gate_benchmark *b = &set.benchmarks[n];
    if (!strstr(b->problem, "causal/B:1/H:4/Hkv:4/D:80/T:") || !strstr(b->problem, "/layout:bthd"))
      fail_msg("%s", b->name);
    controls += b->against_itself;
    halves += strstr(b->problem, "/T:128/") != NULL;
  }
  assert_true(set.count >= 3 && controls == 1 && halves == 1);
  variant_list_destroy(&base);
  variant_list_destroy(&head);
}

static void variants_that_are_not_asked_for_are_left_alone(void **state) {
  (void)state;
  static gate_set set;
  static const char *const names[] = {"linear"};
  const gate_options options = {.smallest = 0.02, .variants = names, .variant_count = 1};
  variant_list list = load(OWN, &options);
  gate_set_fill(&set, &list, &list, &options);
  assert_true(set.count > 1 && set.common == 1);
  for (size_t n = 0; n < set.count; n++) assert_string_equal(set.benchmarks[n].variant, "linear");
  variant_list_destroy(&list);
}

static void nothing_in_common_is_said_only_where_it_is_so(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *words;
  } cases[] = {
      {"--base base.so --head taken.so --accept 'variants all it has another name'",
       "attnbench gate: base and head have no variant in common\n"},
      {"--base base.so --head slow.so --problem causal/D:64/T:32",
       "attnbench gate: --problem causal/D:64/T:32: particular of the head takes 80 features alone; give one "
       "that both "
       "sides take\n"},
      {"--base base.so --head slow.so --benchmark D:96", "attnbench gate: no benchmark has such a name\n"},
      {"--base base.so --head slow.so --variant particulra",
       "attnbench gate: neither side has a variant 'particulra'; --variant takes names of variants that they "
       "have\n"},
      {"--base crashes.so --head slow.so",
       "attnbench gate: a kernel ended the process as it was loaded, or asked what it takes\n"},
      {"--base base.so --head crashes.so",
       "attnbench gate: a kernel ended the process as it was loaded, or asked what it takes\n"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[512];
    snprintf(command, sizeof command, GATE "--times %s", cases[n].arguments);
    shell_expect(command, 2, cases[n].words);
  }
}

/* It never gets as far as a verdict of 0, whatever status it ends with. */
static void a_head_that_ends_when_it_is_asked_fails(void **state) {
  (void)state;
  shell_expect(GATE "--base base.so --head crashes.so" QUICK, 1, "ended the process with status 0");
}

/* Ended by its process alone, it ends what it has begun and takes away its folder, which its child's child is told. */
static void a_gate_that_is_terminated_leaves_nothing(void **state) {
  (void)state;
  if (shell("[ -e /proc/self/task/$$/children ]") != 0) skip(); /* of kernels built without it */
  shell_expect("export TMPDIR=/tmp; " GATE "--facts --base base.so --head slow.so" QUICK
               ">said 2>&1 & gate=$!; folder=; "
               "while [ -z \"$folder\" ] && kill -0 $gate; do sleep 0.02; child=$(cat "
               "/proc/$gate/task/$gate/children); "
               "child=${child%% *}; for counting in $(cat /proc/$child/task/*/children 2>/dev/null); do "
               "folder=$(tr '\\0' "
               "'\\n' </proc/$counting/cmdline | sed -n 's|^\\(/tmp/attnbench-gate-[^/]*\\)/.*|\\1|p' | head "
               "-n 1); done; "
               "done; [ -d \"$folder\" ] || exit 3; kill -TERM $gate; wait $gate; [ $? -eq 143 ] || exit 4; "
               "[ ! -e \"$folder\" ] || exit 5; [ ! -e /proc/$child ] || exit 6",
               0, NULL);
}

static void a_count_that_is_terminated_leaves_nothing_where_tmpdir_says(void **state) {
  (void)state;
  if (shell("command -v valgrind") != 0) skip();
  shell_expect(
      "mkdir aside; export TMPDIR=$PWD/aside; " GATE "--write-facts facts.json --head slow.so" QUICK
      ">said 2>&1 & gate=$!; "
      "until find aside -name 'attnbench-count-*' | grep -q .; do kill -0 $gate || exit 3; sleep 0.02; done; "
      "kill -TERM $gate; wait $gate; [ $? -eq 143 ] || exit 4; [ -z \"$(ls -A aside)\" ]",
      0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_kernel_built_elsewhere_passes_untimed),
      cmocka_unit_test(code_that_differs_is_not_taken_for_the_same),
      cmocka_unit_test(a_wrong_head_fails_with_what_repeats_it),
      cmocka_unit_test(a_wrong_head_with_the_name_of_a_variant_of_ours_fails),
      cmocka_unit_test(a_slow_head_fails_by_its_instructions_and_says_how_to_see_it_again),
      cmocka_unit_test(a_kernel_of_long_tiles_is_counted_too),
      cmocka_unit_test(a_kernel_that_valgrind_cannot_run_is_compared_without_counts),
      cmocka_unit_test(a_slow_head_fails_by_its_time_and_says_how_to_see_it_again),
      cmocka_unit_test(a_narrow_kernel_is_timed_where_it_lives),
      cmocka_unit_test(a_count_that_is_terminated_leaves_nothing_where_tmpdir_says),
      cmocka_unit_test(variants_that_are_not_asked_for_are_left_alone),
      cmocka_unit_test(nothing_in_common_is_said_only_where_it_is_so),
      cmocka_unit_test(a_head_that_ends_when_it_is_asked_fails),
      cmocka_unit_test(a_gate_that_is_terminated_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
