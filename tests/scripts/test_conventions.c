/* docs/conventions.md and the facts that its tables are made of, by bindings/python/real/conventions.py. The
 * libraries themselves are not run here: that takes them, and a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/shell.h"

#define REAL "bindings/python/real/"

/* What is run in a copy of the page and of the scripts, after `change` was made there. */
static int run_in_a_copy(const char *change, const char *arguments) {
  char command[4096];
  snprintf(
      command, sizeof command,
      "at=$(mktemp -d) && trap 'rm -rf \"$at\"' EXIT && cd %s && mkdir -p \"$at/docs\" \"$at/" REAL "\" && "
      "cp docs/conventions.md \"$at/docs\" && cp " REAL "conventions*.py \"$at/" REAL "\" && cd \"$at\" && "
      "%s && python3 -BSEs " REAL "conventions.py %s",
      ATTN_SOURCE_DIR, change, arguments);
  return shell(command);
}

static void skip_without_python(void) {
  if (shell("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'")) skip();
}

static void the_page_has_the_tables_of_its_facts(void **state) {
  (void)state;
  skip_without_python();
  if (run_in_a_copy("true", "--check") != 0) fail_msg("%s", shell_output);
}

static void a_table_that_was_changed_by_hand_is_found_and_written_again(void **state) {
  (void)state;
  skip_without_python();
  const char *change = "sed -i 's/^| JAX | `is_causal=True` | `causal` |/| JAX | `is_causal=True` | `full` "
                       "|/' docs/conventions.md "
                       "&& grep -q '`full` | run' docs/conventions.md";
  assert_int_equal(run_in_a_copy(change, "--check"), 1);
  assert_non_null(strstr(shell_output, "conventions.md has other tables than conventions_facts.py"));
  assert_int_equal(run_in_a_copy(change, "--page && python3 -B " REAL "conventions.py --check"), 0);
}

static void a_page_without_the_marks_is_left_as_it_is(void **state) {
  (void)state;
  skip_without_python();
  assert_int_equal(run_in_a_copy("sed -i '/end of tables/d' docs/conventions.md", "--page"), 2);
  assert_non_null(strstr(shell_output, "must hold the two marks of its tables once"));
}

static void with_no_library_nothing_is_said_to_be_right(void **state) {
  (void)state;
  skip_without_python();
  assert_int_equal(run_in_a_copy("true", ""), 2);
  assert_non_null(strstr(shell_output, "0 rows run, 0 wrong; not installed: torch, jax, onnx, onnxruntime"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_page_has_the_tables_of_its_facts),
      cmocka_unit_test(a_table_that_was_changed_by_hand_is_found_and_written_again),
      cmocka_unit_test(a_page_without_the_marks_is_left_as_it_is),
      cmocka_unit_test(with_no_library_nothing_is_said_to_be_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
