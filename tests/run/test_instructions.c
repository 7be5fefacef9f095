/* Instruction counts: exact, repeatable, of the kernel alone. Left out where valgrind is not installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/instructions.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"

static void count(instruction_point *points, size_t number) {
  char isa[INSTRUCTIONS_ISA_BYTES], why[512];
  if (!instructions_count(PROGRAM, NULL, NULL, points, number, isa, why, sizeof why)) fail_msg("%s", why);
  assert_string_not_equal(isa, "avx512");
}

static void a_run_takes_the_same_instructions_every_time(void **state) {
  (void)state;
  if (instructions_unavailable()) skip();
  instruction_point first[] = {{"fused", "causal/H:1/T:128", 0}, {"blocked", "full/H:2/T:64", 0}};
  instruction_point second[] = {{"fused", "causal/H:1/T:128", 0}, {"blocked", "full/H:2/T:64", 0}};
  setenv("ATTN_TEST_LONG_ENVIRONMENT", "that would move the stack of a child that inherited it", 1);
  count(first, 2);
  unsetenv("ATTN_TEST_LONG_ENVIRONMENT");
  count(second, 2);
  for (size_t n = 0; n < 2; n++)
    if (first[n].instructions == 0 || first[n].instructions != second[n].instructions)
      fail_msg("%s: %llu, then %llu instructions", first[n].variant,
               (unsigned long long)first[n].instructions, (unsigned long long)second[n].instructions);
}

static void counts_grow_as_the_formulas_do(void **state) {
  (void)state;
  if (instructions_unavailable()) skip();
  instruction_point points[] = {{"naive", "full/H:1/T:64", 0},
                                {"naive", "full/H:1/T:128", 0},
                                {"linear", "linear/H:1/T:512", 0},
                                {"linear", "linear/H:1/T:1024", 0}};
  count(points, 4);
  const double naive = log2((double)points[1].instructions / (double)points[0].instructions);
  const double linear = log2((double)points[3].instructions / (double)points[2].instructions);
  if (fabs(naive - 2) > 0.05 || fabs(linear - 1) > 0.1)
    fail_msg("instructions of naive grow as T^%.3f and of linear as T^%.3f", naive, linear);
}

static void a_variant_that_is_not_there_is_named(void **state) {
  (void)state;
  if (instructions_unavailable()) skip();
  instruction_point point = {"fuzed", "full/T:16", 0};
  char isa[INSTRUCTIONS_ISA_BYTES], why[512];
  assert_false(instructions_count(PROGRAM, NULL, NULL, &point, 1, isa, why, sizeof why));
  if (!strstr(why, "fuzed")) fail_msg("the reason names no fuzed: %s", why);
}

static void counts_are_put_away_where_tmpdir_says(void **state) {
  (void)state;
  if (instructions_unavailable()) skip();
  instruction_point point = {"naive", "full/T:16", 0};
  char isa[INSTRUCTIONS_ISA_BYTES], why[512];
  setenv("TMPDIR", "/none", 1);
  const bool counted = instructions_count(PROGRAM, NULL, NULL, &point, 1, isa, why, sizeof why);
  unsetenv("TMPDIR");
  assert_false(counted);
  assert_string_equal(why, "cannot make a folder in /none for the counts");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_takes_the_same_instructions_every_time),
      cmocka_unit_test(counts_grow_as_the_formulas_do),
      cmocka_unit_test(a_variant_that_is_not_there_is_named),
      cmocka_unit_test(counts_are_put_away_where_tmpdir_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
