/* scripts/decode.sh with options of bench's that measure little or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/shell.h"

#define DECODE "'" ATTN_SOURCE_DIR "/scripts/decode.sh' '" ATTN_BUILD_DIR "' "
#define IN_A_FOLDER "folder=$(mktemp -d) && trap 'rm -rf $folder' EXIT && "

/* A row of one repetition has the point's name, one of several the name and _median. */
static void one_repetition_has_a_row_of_each_length(void **state) {
  (void)state;
  shell_expect(IN_A_FOLDER DECODE
               "$folder --benchmark_dry_run --seed 7 --scripts /nowhere && "
               "cut -d ' ' -f 1 $folder/decode.dat | tr '\n' ' ' && awk 'NF != 4' $folder/decode.dat",
               0, "\n64 256 1024 4096 16384 65536 ");
  assert_non_null(strstr(shell_output, "microseconds a step: T, fused, linear, linear_recurrent\n64 "));
}

static void what_measures_nothing_is_benchs_own_answer(void **state) {
  (void)state;
  shell_expect(IN_A_FOLDER DECODE "$folder --benchmark_list_tests && test -z \"$(ls -A $folder)\"", 0,
               "linear/linear/causal/B:1/H:4/Hkv:4/D:64/T:1/state/final_state\n");
  assert_null(strstr(shell_output, "decode.sh"));
  shell_expect(IN_A_FOLDER DECODE "$folder --help && test -z \"$(ls -A $folder)\"", 0,
               "attnbench [bench] [options]");
  assert_null(strstr(shell_output, "decode.sh"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_repetition_has_a_row_of_each_length),
      cmocka_unit_test(what_measures_nothing_is_benchs_own_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
