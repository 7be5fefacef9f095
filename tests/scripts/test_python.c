/* The Python module, by its own tests (bindings/python/tests), which need numpy and pytest; PYTHON names the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/shell.h"

#define PYTHON "ATTNBENCH_HOME='" ATTN_BUILD_DIR "' \"${PYTHON:-python3}\" -B "

static void the_python_module_passes_its_tests(void **state) {
  (void)state;
  if (shell(PYTHON "-c 'import sys, numpy, pytest; sys.exit(sys.version_info < (3, 9))'") != 0) skip();
  if (shell(PYTHON "-m pytest -q -p no:cacheprovider '" ATTN_SOURCE_DIR "/bindings/python/tests'") != 0)
    fail_msg("%s", shell_output);
}

static void a_library_that_is_not_there_is_told_in_a_line(void **state) {
  (void)state;
  if (shell(PYTHON "-c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))'") != 0) skip();
  shell_expect("cd '" ATTN_SOURCE_DIR
               "/bindings/python' && ATTNBENCH_HOME=/nowhere \"${PYTHON:-python3}\" -B -c 'import attnbench'",
               1,
               "ImportError: libattnbench.so is not found: run `make` in a checkout of attnbench and set "
               "ATTNBENCH_HOME");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_python_module_passes_its_tests),
      cmocka_unit_test(a_library_that_is_not_there_is_told_in_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
