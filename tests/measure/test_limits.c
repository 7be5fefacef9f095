/* What no kernel can leave out, and what no machine can do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure/limits.h"

/* Peaks of 100 and 200 GFLOP/s and memory at 10 GB/s over 64 MiB, of which the fastest repetitions were 2 % faster. */
static report of_machine(void) {
  report report = {.machine = {.threads = 2, .peak_count = 2, .read_count = 2}};
  report.machine.peaks[0] = (machine_rate){"portable", 100e9, 99e9, 101e9, 0, 102e9, ATTN_FLOAT32};
  report.machine.peaks[1] = (machine_rate){"avx2", 200e9, 198e9, 202e9, 0, 204e9, ATTN_FLOAT32};
  report.machine.reads[0] = (machine_rate){"read L1", 400e9, 390e9, 401e9, 32 << 10, 404e9, ATTN_ABSENT};
  report.machine.reads[1] = (machine_rate){"read memory", 10e9, 9e9, 10.1e9, 64 << 20, 10.2e9, ATTN_ABSENT};
  return report;
}

static result result_of(const char *problem) {
  result result = {.repetitions = 9, .iterations = 10};
  inputs in;
  char why[512] = "";
  const report report = of_machine();
  if (!workload_parse_sound(problem, &result.workload, why, sizeof why) ||
      !inputs_create(&in, &result.workload, true, why, sizeof why))
    fail_msg("%s: %s", problem, why);
  limits_find(&result, &in, &report.machine);
  inputs_destroy(&in);
  return result;
}

static void operations_that_a_kernel_may_leave_out_do_not_count(void **state) {
  (void)state;
  const struct {
    const char *problem;
    double pairs; /* times 4 D; 0: not known */
  } cases[] = {
      {"full/B:2/H:3/D:16/T:20", 2 * 3 * 400},
      {"causal/B:1/H:1/D:16/T:20", 209},      /* the first row sees one key */
      {"causal/B:1/H:1/D:16/T:20/sink", 210}, /* and a sink */
      {"window:0/B:1/H:1/D:16/T:20", 0},      /* all see one */
      {"full/B:1/H:1/D:16/T:20/lengths:7", 20 * 7},
      {"full/B:1/H:1/D:16/T:20/fill:normal", 400},
      {"full/B:1/H:1/D:16/T:20/fill:saturated", 0}, /* most weights vanish */
      {"full/B:1/H:1/D:16/T:20/scale:10", 0},
      {"linear/full/B:1/H:1/D:16/T:4", 16},       /* as softmax attention: 4 D T^2 */
      {"linear/full/B:1/H:1/D:16/T:64", 64 * 16}, /* 2 D Dv a key and a query */
  };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const result result = result_of(cases[n].problem);
    if (result.least_flops != 64 * cases[n].pairs)
      fail_msg("%s: %g operations, not %g", cases[n].problem, result.least_flops, 64 * cases[n].pairs);
  }
}

static void pairs_that_mask_or_bias_hide_do_not_count(void **state) {
  (void)state;
  const double all = result_of("full/B:1/H:2/D:16/T:100").least_flops;
  const double masked = result_of("full/B:1/H:2/D:16/T:100/mask:q").least_flops;
  assert_true(masked > 0.5 * all && masked < 0.75 * all); /* 70 % are seen, of 15 rows in 16 */
  static const char *const types[] = {"f32", "bf16", "f16"};
  for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
    char problem[64];
    snprintf(problem, sizeof problem, "full/B:1/H:2/D:16/T:100/bias:q/%s", types[n]);
    const double biased = result_of(problem).least_flops;
    assert_true(biased > 0.94 * all && biased < 0.99 * all); /* one in 32 is -inf */
  }
}

static void pairs_that_a_pattern_hides_do_not_count(void **state) {
  (void)state;
  const char *const problems[] = {
      "see:local:4,4+global:2+random:1,16",
      "causal_bottom_right/Tk:300/see:local:3,0+strided:sqrt",
      "docs:40",
      "blocks:8,16,0.4,b/B:2",
      "blocks:8,60,0.4,h",
      "topk:4/see:local:1,1",
  };
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
    char problem[128];
    snprintf(problem, sizeof problem, "H:2/D:16/T:200/sink/%s", problems[n]);
    const result result = result_of(problem);
    const double pairs = workload_visible_pairs(&result.workload);
    const double all = (double)result.workload.batch * 2 * 200 * (double)result.workload.key_length;
    assert_true(pairs > 0 && pairs < all);
    if (result.least_flops != 64 * pairs) fail_msg("%s: %g of %g", problem, result.least_flops, 64 * pairs);
  }
  assert_true(result_of("causal_bottom_right/H:1/D:64/Tq:1/Tk:131072/see:local:9,0+first:1").least_bytes ==
              0);
}

static void bytes_count_only_where_no_cache_can_hold_them(void **state) {
  (void)state;
  assert_true(result_of("causal_bottom_right/B:1/H:1/D:64/Tq:1/Tk:131072").least_bytes == 0x1p26);
  assert_true(result_of("causal_bottom_right/B:1/H:1/D:64/Tq:1/Tk:131071").least_bytes == 0);
  assert_true(result_of("window:100/B:1/H:1/D:64/Tq:1/Tk:131072").least_bytes == 0);
}

static bool holds(double flops, double bytes, interval seconds, const report *report, char sentence[256]) {
  const result result = {.repetitions = 9,
                         .iterations = 10,
                         .seconds_median = seconds,
                         .least_flops = flops,
                         .least_bytes = bytes};
  return limits_hold(&result, report, sentence, 256);
}

static void a_rate_is_too_high_above_the_fastest_by_what_lies_between_it_and_the_median(void **state) {
  (void)state;
  report report = of_machine();
  char sentence[256] = "";
  const interval second = {1, 0.9, 1};
  assert_true(holds(204e9 * 1.019, 0, second, &report, sentence));
  assert_false(holds(204e9 * 1.021, 0, second, &report, sentence));
  assert_string_equal(sentence,
                      "208.3 GFLOP/s cannot be: the most for this machine with 2 threads is 208.1 (avx2); it "
                      "leaves work out, or has more threads than it was given");
  assert_true(holds(204e9 * 1.021, 0, (interval){1, 0.9, 1.1}, &report, sentence)); /* perhaps slower */
  report.disturbance.clock_step_seconds = 0.1; /* a clock that shows no more than tenths of a second */
  assert_true(holds(204e9 * 1.021, 0, second, &report, sentence));
  report.disturbance.clock_step_seconds = NAN;
  report.machine.peaks[0].fastest = 210e9; /* the other set is above its median by more */
  assert_true(holds(204e9 * 1.021, 0, second, &report, sentence));
  assert_true(holds(0, 10.3e9, second, &report, sentence));
  assert_false(holds(0, 10.5e9, second, &report, sentence));
  assert_non_null(strstr(sentence, "10.5 GB/s of keys and values cannot be"));
  report.machine.peak_count = report.machine.read_count = 0; /* nothing was measured */
  assert_true(holds(1e30, 1e30, second, &report, sentence));
}

static void raise_peak(machine *machine, void *context) {
  machine->peaks[1].median = machine->peaks[1].fastest = 300e9;
  ++*(int *)context;
}

static void the_machine_is_measured_again_before_anything_fails(void **state) {
  (void)state;
  const double needed[] = {1e9, 299e9, 301e9, 290e9, 400e9}; /* in a second; of 204 at first */
  enum { RESULTS = sizeof needed / sizeof *needed };
  result results[RESULTS] = {0};
  report report = of_machine();
  for (size_t n = 0; n < RESULTS; n++)
    results[n] = (result){.state = RESULT_MEASURED,
                          .repetitions = 9,
                          .iterations = 1,
                          .least_flops = needed[n],
                          .seconds_median = {1, 1, 1}};
  report.results = results;
  report.result_count = RESULTS;
  int times = 0;
  limits_fail(&report, raise_peak, &times);
  assert_int_equal(times, 1);
  for (size_t n = 0; n < RESULTS; n++) {
    assert_int_equal(results[n].state, needed[n] > 300e9 ? RESULT_FAILED : RESULT_MEASURED);
    assert_int_equal(results[n].reason[0] != '\0', needed[n] > 300e9);
  }
  assert_non_null(
      strstr(results[2].reason, "301 GFLOP/s cannot be: the most for this machine with 2 threads is 300"));
  report.result_count = 1;
  limits_fail(&report, raise_peak, &times); /* nothing to fail */
  assert_int_equal(times, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations_that_a_kernel_may_leave_out_do_not_count),
      cmocka_unit_test(pairs_that_mask_or_bias_hide_do_not_count),
      cmocka_unit_test(pairs_that_a_pattern_hides_do_not_count),
      cmocka_unit_test(bytes_count_only_where_no_cache_can_hold_them),
      cmocka_unit_test(the_machine_is_measured_again_before_anything_fails),
      cmocka_unit_test(a_rate_is_too_high_above_the_fastest_by_what_lies_between_it_and_the_median),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
