/* The walks of people who use the program, each a script that does what they would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"
#define WALKS ATTN_SOURCE_DIR "/tests/walks/"

enum { STATUS_SKIPPED = 77 };

/* Runs a walk in a folder of its own; on failure all that it and the program said. */
static void walk(const char *arguments) {
  char folder[] = "/tmp/attnbench-walk-XXXXXX", command[2048];
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command,
           "%s%s %s; status=$?; [ $status -eq 0 ] || tail -n 20 %s/notes; exit $status", WALKS, arguments,
           folder, folder);
  const int status = shell(command);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  /* What the walk said is to be kept. */
  assert_int_equal(system(command), 0);
  if (status == STATUS_SKIPPED) skip();
  if (status != 0) fail_msg("%s: status %d: %s", arguments, status, shell_output);
}

static void a_teacher_gets_a_slide(void **state) {
  (void)state;
  walk("teacher.sh " PROGRAM " " ATTN_SOURCE_DIR "/scripts/plots");
}

static void a_researcher_compares_decoding(void **state) {
  (void)state;
  walk("researcher.sh " PROGRAM);
}

static void an_author_verifies_a_kernel_that_takes_little(void **state) {
  (void)state;
  walk("author.sh " PROGRAM " " ATTN_SOURCE_DIR "/variants");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_teacher_gets_a_slide),
      cmocka_unit_test(a_researcher_compares_decoding),
      cmocka_unit_test(an_author_verifies_a_kernel_that_takes_little),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
