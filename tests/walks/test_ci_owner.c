/* The walk of a CI's owner, from installing attnbench to a verdict on a change of their own kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/shell.h"

static void the_action_judges_changes_in_another_repository(void **state) {
  (void)state;
  shell_expect("CC=" ATTN_CC " " ATTN_SOURCE_DIR "/tests/walks/ci_owner.sh " ATTN_SOURCE_DIR
               " " ATTN_BUILD_DIR,
               0, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_action_judges_changes_in_another_repository),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
