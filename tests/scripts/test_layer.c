/* What scripts/layer says of a layer's parts, on the run in results/gallery/layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/shell.h"

#define TOOL "'" ATTN_BUILD_DIR "/scripts/layer/crossover' "
#define GALLERY "'" ATTN_SOURCE_DIR "/results/gallery/layer'"
#define PLOTS " '" ATTN_SOURCE_DIR "/scripts/plots'"
#define IN_A_COPY                                                                                            \
  "folder=$(mktemp -d) && trap 'rm -rf $folder' EXIT && cp " GALLERY "/results.json $folder && "

static void counted_and_measured_crossovers_are_told_and_drawn(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  shell_expect(IN_A_COPY TOOL "$folder" PLOTS " | diff - " GALLERY
                              "/console.txt && test -s $folder/crossover.png",
               0, NULL);
  shell_expect("cat " GALLERY "/console.txt", 0, "As many operations at T = 1024. As much time at T = ");
}

static void lengths_without_all_three_curves_do_not_count(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  shell_expect(IN_A_COPY
               "sed -i 's|layer/full\\([^ \"]*\\)/T:1448/lengths:0|layer/full\\1/T:1449/lengths:0|' "
               "$folder/results.json && " TOOL "$folder" PLOTS,
               0, "surely between 1024 and 2048");
  if (strstr(shell_output, "\n  1448")) fail_msg("%s", shell_output);
}

static void a_folder_without_such_a_run_is_refused(void **state) {
  (void)state;
  shell_expect(TOOL, 2, "usage: crossover FOLDER PLOTS");
  shell_expect(TOOL "/nowhere" PLOTS, 2, "crossover: ");
  shell_expect("folder=$(mktemp -d) && trap 'rm -rf $folder' EXIT && cp '" ATTN_SOURCE_DIR
               "/results/gallery/results.json' $folder && " TOOL "$folder" PLOTS,
               2, "crossover: results.json has no layer with its parts at two lengths");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counted_and_measured_crossovers_are_told_and_drawn),
      cmocka_unit_test(lengths_without_all_three_curves_do_not_count),
      cmocka_unit_test(a_folder_without_such_a_run_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
