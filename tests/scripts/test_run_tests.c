/* scripts/run_tests.sh over small programs that pass, fail and end in other ways: none is lost, and each failure is named. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/shell.h"

#define LIMITED(seconds)                                                                                     \
  "env -u ATTN_TEST_WRAPPER ATTN_TEST_SECONDS=" seconds " '" ATTN_SOURCE_DIR "/scripts/run_tests.sh' "
#define SCRIPT LIMITED("60")

static char folder[] = "/tmp/attnbench-run-tests-XXXXXX";

static const struct {
  const char *name, *does;
} programs[] = {
    {"./passes", "echo 1..2; echo ok 1 - a; echo '	ok 2 - b'"},
    {"./fails", "echo ok 1 - a; echo not ok 2 - b; echo '# why'; echo ok 3 - c; echo not ok 4 - d; exit 2"},
    /* cmocka cuts what a test says at 1024 characters, the end of the line with it. */
    {"./cut", "echo ok 1 - a; printf 'words without an end' >&2; echo not ok 2 - b; exit 1"},
    {"./skips", "echo not ok 1 '# SKIP a'; echo ok 2 - b"},
    {"./only_skips", "echo not ok 1 '# SKIP a'"},
    {"./ends", "echo ok 1 - a; exit 3"},
    {"./crashes", "echo ok 1 - a; kill -ILL $$"},
    {"./silent", ":"},
    {"./hangs", "echo ok 1 - a; exec sleep 30"},
};

static int begin(void **state) {
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) != 0) return -1;
  for (size_t n = 0; n < sizeof programs / sizeof *programs; n++) {
    FILE *file = fopen(programs[n].name, "w");
    if (!file || fprintf(file, "#!/bin/sh\n%s\n", programs[n].does) < 0 || fclose(file) != 0 ||
        chmod(programs[n].name, 0755) != 0)
      return -1;
  }
  return 0;
}

static int end(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static void what_passes_is_summed_up(void **state) {
  (void)state;
  shell_expect(SCRIPT "./passes ./skips", 0, "\n3 passed, 0 failed\n");
  assert_null(strstr(shell_output, "failed: "));
}

static void what_fails_is_named_once_more_at_the_end(void **state) {
  (void)state;
  static const struct {
    const char *name, *ends;
  } cases[] = {
      {"./fails", "\nfailed: fails: b\nfailed: fails: d\n4 passed, 2 failed\n"},
      {"./cut", "\nfailed: cut: b\n3 passed, 1 failed\n"},
      {"./ends", "\nfailed: ends, with status 3\n3 passed, 1 failed\n"},
      {"./crashes", "\nfailed: crashes, with status 132\n3 passed, 1 failed\n"},
      {"./silent", "\nfailed: silent, with status 0\n2 passed, 1 failed\n"},
      {"./nowhere", "\nfailed: nowhere, with status 127\n2 passed, 1 failed\n"},
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[512];
    snprintf(command, sizeof command, SCRIPT "%s ./passes", cases[n].name);
    shell_expect(command, 1, cases[n].ends);
  }
  shell_expect(SCRIPT "./fails ./cut ./passes", 1,
               "\nfailed: cut: b\nfailed: fails: b\nfailed: fails: d\n5 passed, 3 failed\n");
}

static void what_a_failing_test_said_is_shown(void **state) {
  (void)state;
  shell_expect(SCRIPT "./fails", 1, "    # why\n");
  shell_expect(LIMITED("1") "./hangs", 1, "    did not end within 1 s\n");
  assert_non_null(strstr(shell_output, "\nfailed: hangs, with status 124\n1 passed, 1 failed\n"));
}

static void where_none_has_passed_that_is_a_failure(void **state) {
  (void)state;
  shell_expect(SCRIPT "./only_skips", 1, "\n0 passed, 0 failed\n");
  shell_expect(SCRIPT, 1, "0 passed, 0 failed\n");
  assert_string_equal(shell_output, "0 passed, 0 failed\n");
  shell_expect(SCRIPT "./only_skips ./passes", 0, "\n2 passed, 0 failed\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_passes_is_summed_up),
      cmocka_unit_test(what_fails_is_named_once_more_at_the_end),
      cmocka_unit_test(what_a_failing_test_said_is_shown),
      cmocka_unit_test(where_none_has_passed_that_is_a_failure),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
