/* The attack of tests/adversary, its quick part: a kernel of each class that verify is to find wrong, and some that are
 * right. `make adversary` makes all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/shell.h"

/* The status of the script with these arguments; what it says is in shell_output. */
static int run(const char *arguments) {
  char command[4096];
  snprintf(command, sizeof command, "ATTN_ADVERSARY_FOLDER=%s/test_adversary %s/scripts/adversary.sh %s %s",
           ATTN_BUILD_DIR, ATTN_SOURCE_DIR, ATTN_BUILD_DIR, arguments);
  return shell(command);
}

static void each_kernel_gets_the_verdict_that_it_deserves(void **state) {
  (void)state;
  if (run("--quick") != 0) fail_msg("%s", shell_output);
  assert_null(strstr(shell_output, "<-- not as expected"));
}

static void a_name_that_no_kernel_has_is_an_error(void **state) {
  (void)state;
  assert_int_equal(run("nobody"), 2);
  assert_non_null(strstr(shell_output, "there is no kernel nobody"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_kernel_gets_the_verdict_that_it_deserves),
      cmocka_unit_test(a_name_that_no_kernel_has_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
