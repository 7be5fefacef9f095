/* Statistics against published tables and certified data. */
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

/* NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2. */
static void t_quantiles_are_those_of_the_tables(void **state) {
  (void)state;
  static const struct {
    double p, degrees_of_freedom, quantile;
  } table[] = {{0.90, 1, 3.078},   {0.95, 1, 6.314},   {0.975, 1, 12.706}, {0.99, 1, 31.821},
               {0.975, 2, 4.303},  {0.975, 3, 3.182},  {0.90, 3, 1.638},   {0.995, 4, 4.604},
               {0.975, 5, 2.571},  {0.95, 8, 1.860},   {0.975, 8, 2.306},  {0.975, 10, 2.228},
               {0.999, 10, 4.144}, {0.99, 20, 2.528},  {0.975, 30, 2.042}, {0.95, 60, 1.671},
               {0.999, 60, 3.232}, {0.975, 100, 1.984}};
  for (size_t n = 0; n < sizeof table / sizeof *table; n++)
    assert_near(statistics_t_quantile(table[n].p, table[n].degrees_of_freedom), table[n].quantile, 0.0005001);
}

/* With 1, 2 and 4 degrees of freedom the quantile has a closed form. */
static void t_quantiles_agree_with_the_closed_forms(void **state) {
  (void)state;
  for (double p = 0.501; p < 0.9999; p += 0.0037) {
    const double alpha = 4 * p * (1 - p), pi = acos(-1);
    const double two = (2 * p - 1) * sqrt(2 / alpha);
    const double four = 2 * sqrt(cos(acos(sqrt(alpha)) / 3) / sqrt(alpha) - 1);
    assert_near(statistics_t_quantile(p, 1) / tan(pi * (p - 0.5)), 1, 1e-11);
    assert_near(statistics_t_quantile(p, 2) / two, 1, 1e-11);
    assert_near(statistics_t_quantile(p, 4) / four, 1, 1e-9);
    assert_near(statistics_t_quantile(1 - p, 4), -statistics_t_quantile(p, 4), 1e-9);
  }
  assert_near(statistics_t_quantile(0.5, 7), 0, 0);
  assert_near(statistics_t_quantile(0.975, 1e7), 1.959964, 1e-5); /* the normal distribution's */
  assert_true(isinf(statistics_t_quantile(1, 3)));
  assert_true(isnan(statistics_t_quantile(1.5, 3)));
  assert_true(isnan(statistics_t_quantile(0.9, 0)));
}

static void mean_median_and_spread_of_small_sets(void **state) {
  (void)state;
  const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
  assert_near(statistics_mean(values, 8), 5, 0);
  assert_near(statistics_stddev(values, 8), sqrt(32.0 / 7), 1e-15);
  assert_near(statistics_median(values, 8), 4.5, 0);
  const double shuffled[] = {9, 1, 5};
  assert_near(statistics_median(shuffled, 3), 5, 0);
  assert_near(shuffled[0], 9, 0);
  assert_near(statistics_stddev(values, 1), 0, 0);
  assert_true(isnan(statistics_mean(values, 0)));
  assert_true(isnan(statistics_median(values, 0)));
}

/* NIST Statistical Reference Datasets, NumAcc3: the mean is 1000000.2, the deviation 0.1. */
static void a_large_mean_hides_no_spread(void **state) {
  (void)state;
  double values[1001] = {1000000.2};
  for (int n = 1; n < 1001; n++) values[n] = n % 2 ? 1000000.1 : 1000000.3;
  assert_near(statistics_mean(values, 1001), 1000000.2, 1e-8);
  assert_near(statistics_stddev(values, 1001), 0.1, 1e-9);
}

/* Le Boudec, Performance Evaluation of Computer and Communication Systems, table A.1 (95 %): the ranks of
 * the two ends; below six values there is no such interval, and the widest is given. */
static void median_intervals_have_the_published_ranks(void **state) {
  (void)state;
  static const struct {
    size_t count;
    double low, high;
  } table[] = {{1, 1, 1},  {3, 1, 3},   {5, 1, 5},   {6, 1, 6},   {7, 1, 7},   {8, 1, 8},   {9, 2, 8},
               {10, 2, 9}, {12, 3, 10}, {15, 4, 12}, {20, 6, 15}, {25, 8, 18}, {30, 10, 21}};
  double values[30];
  for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
    for (size_t i = 0; i < table[n].count; i++) values[i] = (double)(table[n].count - i);
    interval median = statistics_median_interval(values, table[n].count, 0.95);
    assert_near(median.estimate, 0.5 * (double)(table[n].count + 1), 0);
    assert_near(median.low, table[n].low, 0);
    assert_near(median.high, table[n].high, 0);
  }
}

static void mean_intervals_are_students(void **state) {
  (void)state;
  const double values[] = {1, 2, 3, 4, 5};
  interval mean = statistics_mean_interval(values, 5, 0.95);
  assert_near(mean.estimate, 3, 0);
  assert_near(mean.high - mean.estimate, 2.776445 * sqrt(2.5 / 5), 1e-6);
  assert_near(mean.estimate - mean.low, mean.high - mean.estimate, 1e-15);
  mean = statistics_mean_interval(values, 1, 0.95);
  assert_true(isinf(mean.low) && isinf(mean.high));
}

/* NIST Statistical Reference Datasets, Norris (linear regression, lower level of difficulty). */
static void slopes_are_those_of_certified_data(void **state) {
  (void)state;
  static const double y[] = {0.1, 338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3,
                             0.1, 778.1, 668.8, 339.3, 448.9, 10.8,  557.7, 228.3, 998.0, 888.8, 119.6, 0.3,
                             0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};
  static const double x[] = {0.2, 337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4,
                             0.6, 775.5, 666.9, 338.0, 447.5, 11.6,  556.0, 228.1, 995.8, 887.6, 120.2, 0.3,
                             0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
  double intercept;
  const interval slope = statistics_slope(x, y, 36, 0.95, &intercept);
  assert_near(slope.estimate, 1.00211681802045, 1e-13);
  assert_near(intercept, -0.262323073774029, 1e-11);
  const double deviation = (slope.high - slope.estimate) / statistics_t_quantile(0.975, 34);
  assert_near(deviation, 0.429796848199937e-3, 1e-13);
}

static void too_few_values_claim_nothing(void **state) {
  (void)state;
  const double x[] = {1, 2, 3}, y[] = {1, 3, 5}, same[] = {2, 2, 2};
  interval slope = statistics_slope(x, y, 2, 0.95, NULL);
  assert_near(slope.estimate, 2, 0);
  assert_true(isinf(slope.low) && isinf(slope.high));
  assert_true(isnan(statistics_slope(same, y, 3, 0.95, NULL).estimate));
  assert_true(isnan(statistics_median_interval(x, 0, 0.95).estimate));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(t_quantiles_are_those_of_the_tables),
      cmocka_unit_test(t_quantiles_agree_with_the_closed_forms),
      cmocka_unit_test(mean_median_and_spread_of_small_sets),
      cmocka_unit_test(a_large_mean_hides_no_spread),
      cmocka_unit_test(median_intervals_have_the_published_ranks),
      cmocka_unit_test(mean_intervals_are_students),
      cmocka_unit_test(slopes_are_those_of_certified_data),
      cmocka_unit_test(too_few_values_claim_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
