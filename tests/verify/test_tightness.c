/* The table of how tight the bounds are: cases are counted by their kind of input, and each share stands in its
 * column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/tightness.h"

static void add(tightness *to, workload_fill fill, double worst, double probable) {
  const verdict result = {.bound_share = worst, .probabilistic_share = probable};
  assert_true(tightness_add(to, fill, &result));
}

/* The words of the variant's line, numbers in their order. */
static void numbers_of(const tightness *of, double numbers[10], int *count) {
  char line[256] = "", *end = line + strlen("variant");
  FILE *out = fmemopen(line, sizeof line, "w");
  assert_non_null(out);
  tightness_print(of, "variant", out);
  fclose(out);
  assert_memory_equal(line, "variant", strlen("variant"));
  *count = 0;
  for (char *at = end; *count < 10; at = end, ++*count) {
    numbers[*count] = strtod(at, &end);
    if (end == at) break;
  }
}

static void medians_and_largest_shares_stand_apart_by_input(void **state) {
  (void)state;
  tightness all = {0};
  const double wanted[10] = {3, 0.2, 0.5, 0.3, 0.6, 1, 0.7, 0.7, 0.9, 0.9};
  double numbers[10] = {0};
  int count;
  add(&all, FILL_UNIFORM, 0.5, 0.6);
  add(&all, FILL_NORMAL, 0.1, 0.2);
  add(&all, FILL_UNIFORM, 0.2, 0.3);
  add(&all, FILL_RISING, 0.7, 0.9);
  numbers_of(&all, numbers, &count);
  assert_int_equal(count, 10);
  for (int n = 0; n < 10; n++) assert_float_equal(numbers[n], wanted[n], 1e-6);
}

static void more_cases_than_fit_at_first_are_kept(void **state) {
  (void)state;
  tightness all = {0};
  double numbers[10] = {0};
  int count;
  for (int n = 1; n <= 1001; n++) add(&all, FILL_UNIFORM, n / 1e4, n / 1e3);
  numbers_of(&all, numbers, &count);
  assert_float_equal(numbers[0], 1001, 0);
  assert_float_equal(numbers[1], 0.05, 1e-3); /* two digits are shown */
  assert_float_equal(numbers[4], 1, 1e-6);
  assert_float_equal(numbers[5], 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(medians_and_largest_shares_stand_apart_by_input),
      cmocka_unit_test(more_cases_than_fit_at_first_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
