/* scripts/scale: of which runs beside their simulation the result is not called good, and that a folder's name is none of its matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/shell.h"

#define FOLDER ATTN_BUILD_DIR "/tests/scale"
#define CHECK ATTN_SOURCE_DIR "/scripts/scale/check.sh '" FOLDER "'"
/* Lines as scale.sh writes them. */
#define VALIDATION(two, four)                                                                                \
  "mkdir -p '" FOLDER "' && printf '%s\\n' 'Real runs of OpenMPI on this machine.' "                         \
  "'ring/causal/T:1024/bf16       2     16.86 ms     15.86 ms     -6 %   -40 to +2' "                        \
  "'ulysses/causal/T:4096/bf16    2     20.00 ms     26.00 ms     " two " %' "                               \
  "'tree_decode/full/T:4096/bf16  4     20.00 ms     10.00 ms     " four " %' >'" FOLDER                     \
  "/validation.txt' && " CHECK

static void two_ranks_within_thirty_percent_are_good_and_four_are_not_asked(void **state) {
  (void)state;
  shell_expect(VALIDATION("+30", "-50"), 0, NULL);
  shell_expect(VALIDATION("-30", "+90"), 0, NULL);
}

static void a_point_of_two_ranks_further_off_is_named(void **state) {
  (void)state;
  shell_expect(VALIDATION("+31", "-50"), 1, "apart for ulysses/causal/T:4096/bf16 (+31 %); the results");
  shell_expect(VALIDATION("-57", "-2"), 1, "apart for ulysses/causal/T:4096/bf16 (-57 %); the results");
  assert_null(strstr(shell_output, "ring/causal"));
}

static void what_has_no_point_of_two_ranks_is_not_called_good(void **state) {
  (void)state;
  shell_expect("rm -rf '" FOLDER "' && " CHECK, 2, "validation.txt is missing");
  shell_expect("mkdir -p '" FOLDER "' && echo nothing >'" FOLDER "/validation.txt' && " CHECK, 2,
               "has no point of two ranks");
}

#define NAMED ATTN_BUILD_DIR "/tests/scale of one's own"
static void a_folder_may_have_any_name(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  shell_expect(
      "rm -rf \"" NAMED "\" && mkdir -p \"" NAMED "\" && cd \"" NAMED "\" &&"
      " { echo cluster; echo asked; } >cluster.txt && echo ok >validation.txt &&"
      " awk 'BEGIN { for (ranks = 8; ranks <= 1024; ranks *= 2) for (T = 4096; T <= 4194304; T *= 4) {"
      "   print \"ring\", ranks, T, T, T / ranks, T, 9; print \"ulysses\", ranks, T, T, (.9 * T + 4e4) / "
      "ranks, "
      "T, 9;"
      "   print \"tree_decode\", ranks, 1, T, T / ranks, T, 9 } }' >points.txt",
      0, NULL);
  shell_expect(ATTN_SOURCE_DIR "/scripts/scale/draw.sh \"" NAMED "\"", 0, NULL);
  assert_string_equal(shell_output, "");
  shell_expect("cd \"" NAMED "\" && ls *.png *.svg | wc -l", 0, "6");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_ranks_within_thirty_percent_are_good_and_four_are_not_asked),
      cmocka_unit_test(a_point_of_two_ranks_further_off_is_named),
      cmocka_unit_test(a_folder_may_have_any_name),
      cmocka_unit_test(what_has_no_point_of_two_ranks_is_not_called_good),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
