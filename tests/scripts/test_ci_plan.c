/* `.ci/run --plan` in a copy of the sources: what a change makes it ask again, and what is known. */
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
#include <unistd.h>

#include "tests/shell.h"

#define ALL_FAULTS "== planted faults: make mutants\n"
#define FAULTS_OF_CHANGED "== planted faults: make mutants ARGS=--since="
#define LONG_TESTS "UNASKED=\n"
#define ATTACKS ": make adversary\n"
#define UNWRITTEN ": make memcheck\n"
#define DEVICE "== the same on the emulated device: "

static char folder[] = "/tmp/attnbench-ci-plan-XXXXXX";

/* Tools that make test-full does without have steps of their own. */
static bool lacks_something(void) {
  return shell("command -v clang && command -v valgrind && test -f /usr/include/valgrind/memcheck.h && "
               "git -C '" ATTN_SOURCE_DIR "' rev-parse HEAD") != 0;
}

static int begin(void **state) {
  (void)state;
  char command[1024];
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  if (lacks_something()) return 0;
  snprintf(command, sizeof command,
           "set -e; export GIT_CONFIG_GLOBAL=/dev/null; (cd '%s' && git ls-files -z --cached --others "
           "--exclude-standard |"
           " tar -c --null -T - --ignore-failed-read 2>/dev/null) | tar -x;"
           "git init -q -b main; git config user.name a; git config user.email a@b; git add -A; git commit "
           "-q -m base;"
           "git checkout -q -b change",
           ATTN_SOURCE_DIR);
  return shell(command) == 0 && access(".ci/run", X_OK) == 0 ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

/* What is asked after the change, which is undone; each step of ASKED is, and of these alone. */
static void expect_asked(const char *change, const char *const *asked) {
  static const char *const steps[] = {ALL_FAULTS, FAULTS_OF_CHANGED, LONG_TESTS, ATTACKS, UNWRITTEN, DEVICE};
  char command[1024];
  snprintf(command, sizeof command,
           "set -e; { %s; } >&2; git add -A; git commit -q --allow-empty -m change; .ci/run --plan; git "
           "reset -q --hard main",
           change);
  shell_expect(command, 0, "== tests: make test\n");
  for (size_t n = 0; n < sizeof steps / sizeof *steps; n++) {
    bool wanted = false;
    for (const char *const *step = asked; *step; step++) wanted = wanted || !strcmp(*step, steps[n]);
    if ((strstr(shell_output, steps[n]) != NULL) != wanted)
      fail_msg("%s: %s\n%s", change, wanted ? "not asked" : "asked", steps[n]);
  }
}
#define EXPECT_ASKED(change, ...) expect_asked(change, (const char *const[]){__VA_ARGS__, NULL})
#define EVERYTHING ALL_FAULTS, LONG_TESTS, ATTACKS, UNWRITTEN, DEVICE

#define NEEDS_ALL                                                                                            \
  (void)state;                                                                                               \
  if (lacks_something()) skip()

static void of_words_nothing_is_asked_again(void **state) {
  NEEDS_ALL;
  expect_asked("echo more >>README.md; echo '/* more */' >>harness/gate/judge.c",
               (const char *const[]){NULL});
}

static void a_kernel_is_asked_alone(void **state) {
  NEEDS_ALL;
  EXPECT_ASKED("echo '/* more */' >>variants/naive.c", FAULTS_OF_CHANGED, UNWRITTEN);
  EXPECT_ASKED("echo '/* more */' >>variants/cuda/tiles.h", FAULTS_OF_CHANGED, UNWRITTEN, DEVICE);
}

static void what_judges_is_asked_everything(void **state) {
  NEEDS_ALL;
  EXPECT_ASKED("echo '/* more */' >>harness/measure/sweep.c", EVERYTHING);
  EXPECT_ASKED("echo '/* more */' >>variants/attention.h", EVERYTHING);
}

static void other_commands_are_asked_everything(void **state) {
  NEEDS_ALL;
  EXPECT_ASKED("sed -i 's/memcheck.sh .(PROGRAM)/& --more/' Makefile", EVERYTHING);
  EXPECT_ASKED("sed -i 's/mutants.sh .(BUILD)/& --check/' Makefile", EVERYTHING);
  EXPECT_ASKED("sed -i 's/),-Wshadow,/),,/' Makefile", EVERYTHING);
  EXPECT_ASKED("sed -i 's/,-O0,/,-O1,/' Makefile", EVERYTHING);
  EXPECT_ASKED("sed -i 's/attnbench verify --count 20/attnbench verify --count 21/' .ci/run", EVERYTHING);
}

static void tests_of_what_judges_are_asked(void **state) {
  NEEDS_ALL;
  EXPECT_ASKED("echo '/* more */' >>tests/scripts/test_adversary.c; echo '# more' >>tests/mutants/faults.txt",
               ALL_FAULTS, ATTACKS);
  EXPECT_ASKED("echo '/* more */' >>harness/measure/bench.c; echo '# more' >>scripts/memcheck.sh", ATTACKS,
               UNWRITTEN);
}

static void what_is_not_committed_has_changed(void **state) {
  NEEDS_ALL;
  shell_expect("git commit -q --allow-empty -m change; touch variants/new.c; .ci/run --plan; status=$?; rm "
               "variants/new.c;"
               "git reset -q --hard main; exit $status",
               0, FAULTS_OF_CHANGED);
}

static void without_a_base_everything_is_asked(void **state) {
  NEEDS_ALL;
  shell_expect("git checkout -q main; .ci/run --plan; status=$?; git checkout -q change; exit $status", 0,
               ALL_FAULTS);
}

static void another_word_is_refused(void **state) {
  (void)state;
  shell_expect(ATTN_SOURCE_DIR "/.ci/run --plans", 2,
               ".ci/run: there is no option --plans; there is --plan\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_words_nothing_is_asked_again),
      cmocka_unit_test(a_kernel_is_asked_alone),
      cmocka_unit_test(what_judges_is_asked_everything),
      cmocka_unit_test(other_commands_are_asked_everything),
      cmocka_unit_test(tests_of_what_judges_are_asked),
      cmocka_unit_test(what_is_not_committed_has_changed),
      cmocka_unit_test(without_a_base_everything_is_asked),
      cmocka_unit_test(another_word_is_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
