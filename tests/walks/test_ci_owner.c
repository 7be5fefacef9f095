/* The walk of a CI's owner, from installing attnbench to a verdict on a change of their own kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static void the_action_judges_changes_in_another_repository(void **state) {
  (void)state;
  static char said[1 << 16];
  FILE *from = popen("CC=" ATTN_CC " " ATTN_SOURCE_DIR "/tests/walks/ci_owner.sh " ATTN_SOURCE_DIR
                     " " ATTN_BUILD_DIR " 2>&1",
                     "r");
  assert_non_null(from);
  said[fread(said, 1, sizeof said - 1, from)] = '\0';
  const int status = pclose(from);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s", said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_action_judges_changes_in_another_repository),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
