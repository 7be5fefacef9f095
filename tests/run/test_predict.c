/* What a run would cost: from runs of parts of the problem, whatever lists it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/plugins.h"
#include "run/predict.h"

static void lists_are_shortened_with_the_problem(void **state) {
  (void)state;
  static const char *const lists[] = {"", "/lengths:2048,1000", "/qlengths:2048,1000", "/offsets:0,-3",
                                      "/lengths:2048,1000/qlengths:2000,2048/offsets:7,9"};
  variant_list list = {0};
  char why[512] = "";
  if (!variant_list_add(&list, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why)) fail_msg("%s", why);
  const run_setup setup = {.variant = variant_list_find(&list, "fused"), .isa = "portable", .threads = 1};
  assert_non_null(setup.variant);
  for (size_t n = 0; n < sizeof lists / sizeof *lists; n++) {
    char problem[128];
    workload w;
    snprintf(problem, sizeof problem, "causal/B:2/H:1/D:64/T:2048%s", lists[n]);
    if (!workload_parse_sound(problem, &w, why, sizeof why)) fail_msg("%s", why);
    /* Without a run it is what the slowest kernel would take, exactly; a busy machine may well take longer. */
    if (predict_seconds(&setup, &w, 1e-3) == run_slowest_seconds(setup.variant, &w))
      fail_msg("no part of %s was run", problem);
  }
  variant_list_destroy(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_shortened_with_the_problem)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
