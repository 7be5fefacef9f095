/* Tests by ranks against published examples and an independent implementation: SciPy 1.17.1, its exact
 * methods, and with ties its enumeration of all permutations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/statistics.h"

static void assert_near(double computed, double expected, double tolerance) {
  if (!(fabs(computed - expected) <= tolerance))
    fail_msg("%.15g is not within %.3g of %.15g", computed, tolerance, expected);
}

/* Hollander, Wolfe and Chicken, example 3.1 (Hamilton's depression scale): T+ = 40 of nine pairs, P = 10/512. */
static void the_textbook_example_of_signed_ranks(void **state) {
  (void)state;
  const double change[] = {0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01};
  assert_near(statistics_signed_rank(change, 9, 0), 10.0 / 512, 1e-15);
}

/* scipy.stats.wilcoxon(values - shift, alternative='greater', method='exact') */
static void signed_ranks_agree_with_scipy(void **state) {
  (void)state;
  const double five[] = {-0.004, -0.0145, 0.007, 0.0204, 0.0347};
  assert_near(statistics_signed_rank(five, 5, 0), 0.21875, 1e-15);
  assert_near(statistics_signed_rank(five, 5, 0.01), 0.59375, 1e-15);
  const double sixteen[] = {0.0142, 0.0009, -0.0037, 0.027,  0.0447,  0.0175,  -0.0127, -0.0072,
                            0.044,  0.0161, -0.0226, 0.0103, -0.0113, -0.0006, 0.0022,  -0.0023};
  assert_near(statistics_signed_rank(sixteen, 16, 0), 0.1372222900390625, 1e-15);
  assert_near(statistics_signed_rank(sixteen, 16, 0.01), 0.8122711181640625, 1e-15);
  const double twenty_five[] = {0.0231,  0.0107, 0.0002, 0.0202, 0.0286, -0.0209, 0.0069,  -0.0076, 0.0085,
                                -0.0138, 0.0124, 0.0112, 0.0059, -0.009, 0.0041,  -0.0098, -0.0151, 0.0165,
                                -0.0102, 0.0354, 0.0263, -0.028, 0.0174, -0.01,   0.0127};
  assert_near(statistics_signed_rank(twenty_five, 25, 0), 0.09540712833404541, 1e-14);
}

/* Hollander, Wolfe and Chicken, examples 3.3 and 3.4: estimate -0.46, 96.1 % interval (-0.786, -0.010). */
static void the_textbook_example_of_the_centre(void **state) {
  (void)state;
  const double change[] = {-0.952, 0.147, -1.022, -0.43, -0.62, -0.59, -0.49, 0.08, -0.01};
  const interval centre = statistics_centre_interval(change, 9, 0.961 - 0.0005);
  assert_near(centre.estimate, -0.46, 1e-12);
  assert_near(centre.low, -0.786, 1e-12);
  assert_near(centre.high, -0.010, 1e-12);
}

/* All of five values give 93.75 %, 2^-5 being left on either side; dropping the outermost means, 87.5 %. */
static void few_values_give_their_whole_range(void **state) {
  (void)state;
  const double values[] = {3, 1, 10, 2, 5};
  const interval wide = statistics_centre_interval(values, 5, 0.95);
  const interval narrower = statistics_centre_interval(values, 5, 0.875);
  assert_near(wide.estimate, 3.5, 0);
  assert_near(wide.low, 1, 0);
  assert_near(wide.high, 10, 0);
  assert_near(narrower.low, 1.5, 0);
  assert_near(narrower.high, 7.5, 0);
  assert_near(statistics_centre_interval(values, 1, 0.95).high, 3, 0);
  assert_true(isnan(statistics_centre_interval(values, 0, 0.95).estimate));
}

/* Small whole numbers, with ties, and two (one) of them equal to the shift;
 * scipy.stats.wilcoxon(kept, alternative='greater', method=PermutationMethod(n_resamples=10**6)) */
static void ties_share_ranks_and_zeros_are_left_out(void **state) {
  (void)state;
  const double values[] = {1, 2, -2, 3, 3, 0, -1, 5, 2, 4, -3, 6, 0, 7};
  assert_near(statistics_signed_rank(values, 14, 0), 0.019287109375, 1e-15);
  assert_near(statistics_signed_rank(values, 14, 1), 0.153564453125, 1e-15);
}

static void the_smallest_p_value_is_two_to_the_minus_n(void **state) {
  (void)state;
  double values[400];
  for (int n = 0; n < 400; n++) values[n] = 1 + n;
  assert_near(statistics_signed_rank(values, 16, 0) * 65536, 1, 1e-12);
  assert_near(statistics_signed_rank(values, 400, 0) * 0x1p400, 1, 1e-9);
  assert_near(statistics_signed_rank(values, 16, 500), 1, 0);
  assert_near(statistics_signed_rank(values, 0, 0), 1, 0);
  assert_near(statistics_signed_rank(values, 1, 1), 1, 0);
}

/* Ages at diagnosis, the example of scipy.stats.mannwhitneyu's documentation: U = 17, P = 1/9 by the tables. */
static void the_textbook_example_of_two_samples(void **state) {
  (void)state;
  const double males[] = {19, 22, 16, 29, 24}, females[] = {20, 11, 17, 12};
  assert_near(statistics_rank_sum(males, 5, females, 4), 1.0 / 9, 1e-15);
  assert_near(statistics_rank_sum(females, 4, males, 5), 1.0 / 9, 1e-15);
}

static void two_samples_agree_with_scipy(void **state) {
  (void)state;
  /* method=PermutationMethod(n_resamples=10**7): all 24310 ways */
  const double left[] = {1, 2, 2, 3, 5, 5, 8, 9}, right[] = {2, 4, 5, 6, 6, 7, 9, 9, 10};
  assert_near(statistics_rank_sum(left, 8, right, 9), 0.1311394487865076, 1e-14);
  /* method='exact' */
  const double thirty[] = {9.648,  10.265, 9.536,  9.521,  9.279,  9.48,   10.16,  9.62,  10.1,  11.901,
                           10.479, 8.424,  11.734, 10.348, 9.059,  10.907, 10.018, 9.385, 9.366, 9.007,
                           10.048, 11.069, 9.675,  10.421, 11.876, 8.785,  10.258, 9.694, 8.941, 8.974};
  const double forty[] = {10.585, 11.034, 10.068, 10.654, 11.322, 10.897, 11.469, 11.061, 11.088, 12.427,
                          11.223, 10.729, 11.31,  9.681,  10.262, 11.393, 11.231, 12.148, 10.61,  9.138,
                          12.547, 11.693, 9.541,  11.976, 10.632, 8.786,  10.18,  10.091, 12.191, 9.808,
                          10.346, 10.323, 10.221, 9.686,  10.819, 11.677, 11.224, 9.673,  9.45,   10.719};
  assert_near(statistics_rank_sum(thirty, 30, forty, 40), 0.0002468884499850343, 1e-15);
  /* method='asymptotic', with ties */
  double eighty[80], seventy[70];
  for (int n = 0; n < 80; n++) eighty[n] = n * 37 % 101;
  for (int n = 0; n < 70; n++) seventy[n] = n * 53 % 97 + 10;
  assert_near(statistics_rank_sum(eighty, 80, seventy, 70), 0.1866890625134663, 1e-14);
}

static void samples_that_are_empty_or_all_equal_differ_in_nothing(void **state) {
  (void)state;
  const double same[] = {3, 3, 3, 3};
  assert_near(statistics_rank_sum(same, 0, same, 4), 1, 0);
  assert_near(statistics_rank_sum(same, 4, same, 4), 1, 0);
  double many[200] = {0};
  assert_near(statistics_rank_sum(many, 100, many, 100), 1, 0);
}

/* The example of Holm's step-down in R's p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm"), out of order. The running$
 * maximum keeps the order. */
static void holm_multiplies_and_keeps_the_order(void **state) {
  (void)state;
  double p[] = {0.04, 0.01, 0.05, 0.02, 0.03};
  const double expected[] = {0.09, 0.05, 0.09, 0.08, 0.09};
  assert_true(statistics_holm(p, 5, p));
  for (int n = 0; n < 5; n++) assert_near(p[n], expected[n], 1e-15);
  double large[] = {0.6, 0.7};
  assert_true(statistics_holm(large, 2, large));
  assert_near(large[0], 1, 0);
  assert_near(large[1], 1, 0);
  assert_true(statistics_holm(large, 0, large));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_textbook_example_of_signed_ranks),
      cmocka_unit_test(signed_ranks_agree_with_scipy),
      cmocka_unit_test(the_textbook_example_of_the_centre),
      cmocka_unit_test(few_values_give_their_whole_range),
      cmocka_unit_test(ties_share_ranks_and_zeros_are_left_out),
      cmocka_unit_test(the_smallest_p_value_is_two_to_the_minus_n),
      cmocka_unit_test(the_textbook_example_of_two_samples),
      cmocka_unit_test(two_samples_agree_with_scipy),
      cmocka_unit_test(samples_that_are_empty_or_all_equal_differ_in_nothing),
      cmocka_unit_test(holm_multiplies_and_keeps_the_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
