/* Times of one point in two runs: what is said of their ratio is as often true as it claims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "measure/unpaired.h"

enum { RUNS = 2000, SAMPLES = 10 };

/* Standard normal: a sum of twelve uniforms. */
static double normal(uint64_t *place) {
  double sum = -6;
  for (int n = 0; n < 12; n++) sum += (double)(random_bits(3, (*place)++) >> 11) * 0x1p-53;
  return sum;
}

/* Around this many seconds, with a spread of so much. */
static result draw(double *seconds, size_t count, double middle, double spread, uint64_t *place) {
  for (size_t n = 0; n < count; n++) seconds[n] = middle * exp(spread * normal(place));
  return (result){.repetitions = count,
                  .seconds = seconds,
                  .seconds_median = statistics_median_interval(seconds, count, 0.95)};
}

static void intervals_hold_the_true_ratio_as_often_as_they_say(void **state) {
  (void)state;
  double one[SAMPLES], other[SAMPLES];
  uint64_t place = 0;
  size_t held = 0;
  for (size_t n = 0; n < RUNS; n++) {
    const result now = draw(one, SAMPLES, 3e-3, 0.03, &place),
                 before = draw(other, SAMPLES, 2e-3, 0.01, &place);
    const interval lag = unpaired_lag(&now, &before);
    held += lag.low <= log(1.5) && log(1.5) <= lag.high;
  }
  assert_true((double)held >= 0.95 * RUNS);
}

static void of_equal_kernels_few_are_called_faster_or_slower(void **state) {
  (void)state;
  enum { QUESTIONS = 10 };
  double one[SAMPLES], other[SAMPLES];
  uint64_t place = 1 << 20;
  size_t alarms = 0;
  for (size_t n = 0; n < RUNS; n++)
    for (size_t question = 0; question < QUESTIONS; question++) {
      const result now = draw(one, SAMPLES, 1, 0.05, &place), before = draw(other, SAMPLES, 1, 0.02, &place);
      if (unpaired_lead(&now, &before, QUESTIONS) == LEAD_UNDECIDED) continue;
      alarms++;
      break;
    }
  if (alarms == 0 || (double)alarms > 0.05 * RUNS) fail_msg("%zu false alarms in %d runs", alarms, RUNS);
}

static void a_difference_of_three_spreads_is_called(void **state) {
  (void)state;
  double one[SAMPLES], other[SAMPLES];
  uint64_t place = 1 << 22;
  size_t found = 0;
  for (size_t n = 0; n < RUNS; n++) {
    const result now = draw(one, SAMPLES, 1.06, 0.02, &place), before = draw(other, SAMPLES, 1, 0.02, &place);
    found += unpaired_lead(&now, &before, 10) == LEAD_BEHIND;
    assert_true(unpaired_lead(&before, &now, 10) != LEAD_BEHIND);
  }
  assert_true((double)found > 0.98 * RUNS);
}

static void single_samples_decide_nothing(void **state) {
  (void)state;
  double one[SAMPLES], other[SAMPLES];
  uint64_t place = 0;
  const result before = draw(other, SAMPLES, 2, 0.001, &place), now = draw(one, 1, 1, 0, &place);
  assert_int_equal(unpaired_lead(&now, &before, 1), LEAD_UNDECIDED);
  assert_true(isinf(unpaired_lag(&now, &before).high));
  const result often = draw(one, SAMPLES, 1, 0.001, &place);
  assert_int_equal(unpaired_lead(&often, &before, 1), LEAD_AHEAD);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(intervals_hold_the_true_ratio_as_often_as_they_say),
      cmocka_unit_test(of_equal_kernels_few_are_called_faster_or_slower),
      cmocka_unit_test(a_difference_of_three_spreads_is_called),
      cmocka_unit_test(single_samples_decide_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
