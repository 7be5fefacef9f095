/* The fitted exponent on simulated sweeps whose growth is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/complexity.h"
#include "measure/families.h"
#include "report/format.h"
#include "tests/measure/simulated_sweeps.h"

enum { DRAWS = 400, MOST_PASSES = 15 };

static const int64_t doubling[] = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
enum { TO_8192 = 7, TO_65536 = 10 };

/* Of one family, drawn often. */
typedef struct rates {
  int fitted, covered, as_declared, slower, faster, hidden;
  double width; /* mean, of those that were fitted */
} rates;

static rates draw(const simulated_family *family, const int64_t *lengths, size_t count, size_t passes,
                  double noise, int declared, double truth) {
  report report;
  rates rates = {0};
  uint64_t place = 0;
  simulated_create(&report, family, 1, lengths, count, MOST_PASSES);
  for (int n = 0; n < DRAWS; n++) {
    simulated_draw(&report, family, passes, noise, &place);
    simulated_fit(&report, declared);
    assert_int_equal(report.growth_count, 1);
    const growth *growth = &report.growths[0];
    rates.hidden += growth->is_hidden;
    if (!growth->has_time) continue;
    const char *verdict = format_verdict(growth->time, declared);
    rates.fitted++;
    rates.covered += growth->time.low <= truth && truth <= growth->time.high;
    rates.as_declared += strcmp(verdict, "as declared") == 0;
    rates.slower += strcmp(verdict, "grows slower than declared") == 0;
    rates.faster += strcmp(verdict, "grows faster than declared") == 0;
    rates.width += growth->time.high - growth->time.low;
  }
  rates.width /= fmax(1, rates.fitted);
  report_destroy(&report);
  return rates;
}

/* The table of docs/method.md draws more. */
static void intervals_hold_the_truth_whatever_spoils_the_times(void **state) {
  (void)state;
  static const simulated_family families[] = {
      {.name = "line", .power = 1},
      {.name = "quarter", .power = 1.25},
      {.name = "half", .power = 1.5},
      {.name = "square", .power = 2},
      {.name = "8 tokens more", .power = 1, .constant = 8},
      {.name = "16 tokens more", .power = 1, .constant = 16},
      {.name = "24 tokens more", .power = 1, .constant = 24},
      {.name = "256 tokens more", .power = 1, .constant = 256},
      {.name = "step at 1024", .power = 1, .step = 0.2, .step_at = 1024},
      {.name = "step at 4096", .power = 1, .step = 0.2, .step_at = 4096},
      {.name = "step of a square", .power = 2, .step = 0.2, .step_at = 4096},
      {.name = "slow runs", .power = 1, .slow = 0.1},
      {.name = "drift", .power = 2, .drift = 0.05},
  };
  for (size_t n = 0; n < sizeof families / sizeof *families; n++)
    for (int noisy = 0; noisy < 2; noisy++) {
      const rates seen = draw(&families[n], doubling, TO_8192, noisy ? 6 : MOST_PASSES, noisy ? 0.025 : 0.005,
                              families[n].power > 1.5 ? 2 : 1, families[n].power);
      if (seen.fitted < DRAWS || seen.covered < 0.93 * DRAWS)
        fail_msg("%s: %d of %d intervals hold the truth, %d have a fit", families[n].name, seen.covered,
                 DRAWS, seen.fitted);
    }
}

/* Up to ten times the work of the shortest length, a fifth more beyond a cache, 3 % of drift, slow runs. */
static void intervals_hold_the_truth_where_all_of_it_comes_together(void **state) {
  (void)state;
  static const double overheads[] = {0, 1, 10};
  const simulated_family any = {.name = "any", .power = 1};
  report report;
  uint64_t place = 0;
  int fitted = 0, covered = 0, narrow = 0;
  simulated_create(&report, &any, 1, doubling, TO_65536, MOST_PASSES);
  for (int n = 0; n < 2 * DRAWS; n++) {
    const simulated_family family = {.power = 1 + n % 2,
                                     .constant = 128 * simulated_uniform(&place, 1) *
                                                 overheads[(int)simulated_uniform(&place, 3)],
                                     .step = simulated_uniform(&place, 0.2),
                                     .step_at = 128 * exp2(simulated_uniform(&place, 9)),
                                     .slow = 0.01,
                                     .drift = 0.03};
    simulated_draw(&report, &family, n % 4 < 2 ? 6 : MOST_PASSES, 0.025, &place);
    simulated_fit(&report, n % 2 + 1);
    const growth *growth = &report.growths[0];
    fitted += growth->has_time;
    covered += growth->time.low <= family.power && family.power <= growth->time.high;
    narrow += growth->time.high - growth->time.low < 2 * 0.25;
  }
  if (covered < 0.93 * fitted || fitted < 1.9 * DRAWS || narrow < 0.75 * fitted)
    fail_msg("%d of %d draws have a fit, %d intervals hold the truth, %d are narrow", fitted, 2 * DRAWS,
             covered, narrow);
  report_destroy(&report);
}

static void intervals_are_narrow_where_nothing_bends(void **state) {
  (void)state;
  const simulated_family line = {.name = "line", .power = 1, .constant = 24};
  const rates quiet = draw(&line, doubling, TO_8192, 6, 0.005, 1, 1);
  const rates noisy = draw(&line, doubling, TO_8192, 6, 0.025, 1, 1);
  if (quiet.width > 0.02 || noisy.width > 0.1)
    fail_msg("mean widths %.3f and %.3f", quiet.width, noisy.width);
  assert_true(noisy.as_declared > 0.95 * DRAWS);
}

/* 1024:2048:+64. */
static void dense_lengths_keep_their_fit(void **state) {
  (void)state;
  int64_t lengths[17];
  for (int n = 0; n < 17; n++) lengths[n] = 1024 + 64 * n;
  const simulated_family line = {.name = "line", .power = 1};
  const rates seen = draw(&line, lengths, 17, 9, 0.005, 1, 1);
  assert_int_equal(seen.fitted, DRAWS);
  assert_true(seen.covered >= 0.93 * DRAWS && seen.as_declared >= 0.93 * DRAWS);
}

static void less_growth_than_declared_is_said(void **state) {
  (void)state;
  const simulated_family line = {.name = "line", .power = 1, .constant = 16};
  const simulated_family constant = {.name = "constant", .power = 0, .factor = 1e6};
  const simulated_family square = {.name = "square", .power = 2};
  assert_true(draw(&line, doubling, TO_8192, 6, 0.025, 2, 1).slower > 0.95 * DRAWS);
  assert_true(draw(&constant, doubling, TO_8192, 6, 0.025, 1, 0).slower > 0.95 * DRAWS);
  assert_true(draw(&constant, doubling, TO_8192, 6, 0.005, 2, 0).slower > 0.95 * DRAWS);
  assert_true(draw(&square, doubling, TO_8192, 6, 0.025, 1, 2).faster > 0.95 * DRAWS);
}

/* What grows, to a hundredth of the whole, is seen to be there; a tenth of it can be read. */
static void overhead_is_said_to_hide_the_work_only_where_it_does(void **state) {
  (void)state;
  const simulated_family hidden = {.name = "hidden", .power = 1, .constant = 800e3};
  const simulated_family readable = {.name = "readable", .power = 1, .constant = 65536};
  const simulated_family line = {.name = "line", .power = 1};
  assert_true(draw(&hidden, doubling, TO_8192, 9, 0.005, 1, 1).hidden > 0.6 * DRAWS);
  assert_int_equal(draw(&line, doubling, TO_8192, 6, 0.025, 2, 1).hidden, 0);
  const rates seen = draw(&readable, doubling, TO_65536, 9, 0.005, 1, 1);
  assert_int_equal(seen.hidden, 0);
  assert_true(seen.covered >= 0.93 * DRAWS);
}

/* Of draws without a verdict: how many are advised to take longer lengths. */
static double share_of_bends(const simulated_family *family, double noise) {
  report report;
  uint64_t place = 0;
  int bends = 0, inconclusive = 0;
  simulated_create(&report, family, 1, doubling, TO_8192, MOST_PASSES);
  for (int n = 0; n < DRAWS; n++) {
    char advice[ADVICE_BYTES];
    simulated_draw(&report, family, 6, noise, &place);
    simulated_fit(&report, 1);
    format_advice(advice, &report.growths[0]);
    inconclusive += advice[0] != '\0';
    bends += strncmp(advice, "longer lengths", 14) == 0;
  }
  report_destroy(&report);
  assert_true(inconclusive > 0.1 * DRAWS);
  return (double)bends / inconclusive;
}

static void noise_is_not_taken_for_a_bend(void **state) {
  (void)state;
  const simulated_family line = {.name = "line", .power = 1};
  const simulated_family cache = {.name = "cache", .power = 1, .step = 0.5, .step_at = 4096};
  const double noisy = share_of_bends(&line, 0.15), bent = share_of_bends(&cache, 0.01);
  if (noisy > 0.2 || bent < 0.9) fail_msg("bends are blamed in %.2f and %.2f", noisy, bent);
}

/* ---- whole reports ---- */

static void only_the_top_five_octaves_are_fitted(void **state) {
  (void)state;
  const simulated_family families[] = {{.name = "line", .power = 1}, {.name = "other", .power = 1}};
  report report;
  uint64_t place = 0;
  simulated_create(&report, families, 2, doubling, TO_65536, MOST_PASSES);
  simulated_draw(&report, families, 6, 0.001, &place);
  for (size_t n = 0; n < 4; n++) /* 128 to 1024 */
    for (size_t pass = 0; pass < 6; pass++) report.results[n].seconds[pass] = 1;
  simulated_fit(&report, 1);
  assert_int_equal(report.growth_count, 2);
  assert_true(report.growths[0].from_length == 2048 && report.growths[0].to_length == 65536);
  assert_true(fabs(report.growths[0].time.estimate - 1) < 0.01);
  assert_true(fabs(power_law_at(report.growths[0].time_law, 65536) / 65536e-9 - 1) < 0.01);
  assert_true(fabs(report.growths[0].time_coefficient / 1e-9 - 1) < 0.01 &&
              report.growths[0].time_rms < 0.01);
  report_destroy(&report);
}

static void skipped_lengths_do_not_count(void **state) {
  (void)state;
  const simulated_family line = {.name = "line", .power = 1};
  report report;
  uint64_t place = 0;
  simulated_create(&report, &line, 1, doubling, 4, MOST_PASSES);
  simulated_draw(&report, &line, 6, 0.005, &place);
  report.results[1].state = RESULT_SKIPPED;
  simulated_fit(&report, 1);
  assert_int_equal(report.growth_count, 1);
  assert_true(report.growths[0].has_time);
  report.results[3].state = RESULT_FAILED;
  simulated_fit(&report, 1);
  assert_int_equal(report.growth_count, 0);
  report_destroy(&report);
}

/* ---- memory ---- */

static interval workspace_growth(double (*bytes)(double length)) {
  const simulated_family line = {.name = "line", .power = 1};
  report report;
  uint64_t place = 0;
  simulated_create(&report, &line, 1, doubling, TO_8192, MOST_PASSES);
  simulated_draw(&report, &line, 6, 0.005, &place);
  for (size_t n = 0; n < report.result_count; n++)
    report.results[n].workspace_bytes = (size_t)bytes((double)result_length(&report.results[n]));
  simulated_fit(&report, 1);
  const interval found =
      report.growths[0].has_workspace ? report.growths[0].workspace : (interval){NAN, NAN, NAN};
  report_destroy(&report);
  return found;
}

static double no_bytes(double length) { return 0 * length; }
static double some_bytes(double length) { return 4096 + 0 * length; }
static double line_of_bytes(double length) { return 100000 + 64 * ceil(4 * length / 64); }
static double square_of_bytes(double length) { return 5000 + 2048 * length + 4 * length * length; }
static double root_of_bytes(double length) { return 4096 * sqrt(length); }
static double bytes_at_last(double length) { return length > 4096 ? 64 : 0; }

static void the_growth_of_exact_bytes_is_exact(void **state) {
  (void)state;
  static const struct {
    double (*bytes)(double length);
    int degree;
  } cases[] = {{no_bytes, 0}, {some_bytes, 0}, {line_of_bytes, 1}, {square_of_bytes, 2}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const interval found = workspace_growth(cases[n].bytes);
    if (found.estimate != cases[n].degree || found.low != found.estimate || found.high != found.estimate)
      fail_msg("case %zu: %g [%g, %g]", n, found.estimate, found.low, found.high);
  }
  assert_true(fabs(workspace_growth(root_of_bytes).estimate - 0.5) < 0.01);
  assert_true(isnan(workspace_growth(bytes_at_last).estimate));
}

/* One point of a variant in words. */
static result point_of(const char *variant, const char *problem) {
  result point = {0};
  char why[256] = "";
  if (!workload_parse(problem, &point.workload, why, sizeof why)) fail_msg("%s", why);
  char shape[WORKLOAD_NAME_BYTES];
  workload_name(&point.workload, shape);
  snprintf(point.name, sizeof point.name, "%s/%.1000s", variant, shape);
  return point;
}

static void a_family_is_what_grows_along_one_length(void **state) {
  (void)state;
  static const struct {
    const char *variant, *problem, *family;
    sweep_axis swept;
  } cases[] = {
      {"a", "full/D:8/T:64", "a/full/B:1/H:4/Hkv:4/D:8", SWEPT_BOTH},
      {"a", "full/D:8/T:128", "a/full/B:1/H:4/Hkv:4/D:8", SWEPT_BOTH},
      {"a", "full/D:8/Tq:1/Tk:64", "a/full/B:1/H:4/Hkv:4/D:8/Tq:1", SWEPT_KEYS},
      {"a", "full/D:8/Tq:1/Tk:128", "a/full/B:1/H:4/Hkv:4/D:8/Tq:1", SWEPT_KEYS},
      {"a", "full/D:8/Tq:16/Tk:128/bf16", "a/full/B:1/H:4/Hkv:4/D:8/Tq:16/bf16", SWEPT_KEYS}, /* alone */
      {"b", "full/Tq:16/Tk:4096", "b/full/B:1/H:4/Hkv:4/D:64/Tk:4096", SWEPT_QUERIES},
      {"b", "full/Tq:32/Tk:4096", "b/full/B:1/H:4/Hkv:4/D:64/Tk:4096", SWEPT_QUERIES},
      {"c", "full/T:16", "c/full/B:1/H:4/Hkv:4/D:64/Tq:16",
       SWEPT_KEYS}, /* of 16 queries against more and more keys */
      {"c", "full/Tq:16/Tk:32", "c/full/B:1/H:4/Hkv:4/D:64/Tq:16", SWEPT_KEYS},
      {"d", "full/Tq:16/Tk:32", "d/full/B:1/H:4/Hkv:4/D:64", SWEPT_BOTH}, /* half as many, at each */
      {"d", "full/Tq:32/Tk:64", "d/full/B:1/H:4/Hkv:4/D:64", SWEPT_BOTH},
      {"e", "band:8,0,63/Tq:1/Tk:64", "e/band:8,0,Tk-Tq/B:1/H:4/Hkv:4/D:64/Tq:1", SWEPT_KEYS},
      {"e", "band:8,0,127/Tq:1/Tk:128", "e/band:8,0,Tk-Tq/B:1/H:4/Hkv:4/D:64/Tq:1", SWEPT_KEYS},
      {"f", "full/B:1/T:64", "f/full/H:4/Hkv:4/D:64/T:64", SWEPT_BATCH},
      {"f", "full/B:2/T:64", "f/full/H:4/Hkv:4/D:64/T:64", SWEPT_BATCH},
      {"f", "full/B:8/T:64", "f/full/H:4/Hkv:4/D:64/T:64", SWEPT_BATCH},
      {"g", "full/D:16/Tq:1/Tk:64", "g/full/B:1/H:4/Hkv:4/Tq:1/Tk:64", SWEPT_HEAD_DIM},
      {"g", "full/D:32/Tq:1/Tk:64", "g/full/B:1/H:4/Hkv:4/Tq:1/Tk:64", SWEPT_HEAD_DIM},
      {"g", "full/D:64/Tq:1/Tk:64", "g/full/B:1/H:4/Hkv:4/Tq:1/Tk:64", SWEPT_HEAD_DIM},
      {"i", "full/D:16/Dv:32/T:64", "i/full/B:1/H:4/Hkv:4/Dv:32/T:64", SWEPT_HEAD_DIM},
      {"i", "full/D:32/T:64", "i/full/B:1/H:4/Hkv:4/Dv:32/T:64",
       SWEPT_HEAD_DIM}, /* where values are as wide */
      {"i", "full/D:64/Dv:32/T:64", "i/full/B:1/H:4/Hkv:4/Dv:32/T:64", SWEPT_HEAD_DIM},
      {"j", "full/D:16/T:64", "j/full/B:1/H:4/Hkv:4/T:64", SWEPT_HEAD_DIM},
      {"j", "full/D:32/T:64", "j/full/B:1/H:4/Hkv:4/T:64", SWEPT_HEAD_DIM},
      {"j", "full/D:64/T:64", "j/full/B:1/H:4/Hkv:4/T:64", SWEPT_HEAD_DIM},
      {"j", "full/D:64/Dv:32/T:64", "j/full/B:1/H:4/Hkv:4/D:64/Dv:32", SWEPT_BOTH}, /* of neither */
      {"h", "full/B:1/T:64", "h/full/B:1/H:4/Hkv:4/D:64", SWEPT_BOTH}, /* two batches are no curve */
      {"h", "full/B:2/T:64", "h/full/B:2/H:4/Hkv:4/D:64", SWEPT_BOTH},
  };
  enum { CASES = sizeof cases / sizeof *cases };
  static result results[CASES];
  for (size_t n = 0; n < CASES; n++) results[n] = point_of(cases[n].variant, cases[n].problem);
  families_find(results, CASES);
  for (size_t n = 0; n < CASES; n++) {
    assert_string_equal(results[n].family, cases[n].family);
    assert_int_equal(results[n].swept, cases[n].swept);
  }
}

/* Time is what is counted, so the exponent is known: 1 in B; 1 in D, but 2 of linear attention, whose state is D x Dv. */
static void growth_in_batch_and_head_dimension_is_that_of_what_is_counted(void **state) {
  (void)state;
  static const struct {
    const char *function, *part;
    sweep_axis swept;
    double declared;
  } cases[] = {{"", "B", SWEPT_BATCH, 1},
               {"linear/", "B", SWEPT_BATCH, 1},
               {"layer/", "B", SWEPT_BATCH, 1},
               {"", "D", SWEPT_HEAD_DIM, 1},
               {"linear/", "D", SWEPT_HEAD_DIM, 2}};
  enum { POINTS = 4 };
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    report report = {.result_count = POINTS};
    report.results = calloc(POINTS, sizeof *report.results);
    assert_non_null(report.results);
    for (int m = 0; m < POINTS; m++) {
      char problem[64];
      snprintf(problem, sizeof problem, "%scausal/%s:%d/T:512", cases[n].function, cases[n].part, 8 << m);
      result *result = &report.results[m];
      *result = point_of("simulated", problem);
      result->flops = workload_flops(&result->workload);
      result->repetitions = 8;
      result->seconds = calloc(8, sizeof(double));
      assert_non_null(result->seconds);
      for (int pass = 0; pass < 8; pass++) result->seconds[pass] = result->flops * 1e-9 * (1 + 1e-4 * pass);
      result->seconds_median = statistics_median_interval(result->seconds, 8, 0.95);
    }
    families_find(report.results, POINTS);
    simulated_fit(&report, 2);
    assert_int_equal(report.growth_count, 1);
    assert_int_equal(report.growths[0].swept, cases[n].swept);
    assert_true(report.growths[0].time_declared == cases[n].declared);
    assert_true(fabs(report.growths[0].time.estimate - cases[n].declared) < 0.05);
    assert_int_equal(report.growths[0].workspace_declared, GROWTH_UNDECLARED);
    report_destroy(&report);
  }
}

static void growth_is_declared_in_the_length_that_is_swept(void **state) {
  (void)state;
  static const struct {
    sweep_axis swept;
    attn_function function;
    int exponent, declared;
  } cases[] = {{SWEPT_BOTH, ATTN_SOFTMAX, 2, 2},    {SWEPT_KEYS, ATTN_SOFTMAX, 2, 1},
               {SWEPT_QUERIES, ATTN_SOFTMAX, 2, 1}, {SWEPT_KEYS, ATTN_SOFTMAX, 1, 0},
               {SWEPT_QUERIES, ATTN_SOFTMAX, 1, 1}, {SWEPT_KEYS, ATTN_LINEAR, 1, 1},
               {SWEPT_QUERIES, ATTN_LINEAR, 1, 1},  {SWEPT_KEYS, ATTN_SOFTMAX, 0, 0}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
    assert_int_equal(complexity_declared_along(cases[n].swept, cases[n].function, cases[n].exponent),
                     cases[n].declared);
}

/* Decoding: one query, keys from 128 on. */
static void time_of_one_query_is_fitted_along_its_keys(void **state) {
  (void)state;
  const simulated_family family = {.name = "decode", .power = 1};
  report report;
  uint64_t place = 0;
  simulated_create(&report, &family, 1, doubling, TO_8192, 6);
  for (size_t n = 0; n < report.result_count; n++) {
    report.results[n].workload.query_length = 1;
    report.results[n].swept = SWEPT_KEYS;
    report.results[n].flops = workload_flops(&report.results[n].workload);
  }
  simulated_draw(&report, &family, 6, 0.005, &place);
  simulated_fit(&report, 2);
  assert_int_equal(report.growths[0].time_declared, 1);
  assert_int_equal(report.growths[0].swept, SWEPT_KEYS);
  assert_string_equal(format_verdict(report.growths[0].time, report.growths[0].time_declared), "as declared");
  for (size_t n = 0; n < report.result_count; n++) report.results[n].flops = 1; /* a band of one query */
  simulated_fit(&report, 2);
  assert_int_equal(report.growths[0].time_declared, 0);
  report_destroy(&report);
}

/* 40 keys a query, whatever a variant declares of dense attention; and time that grows as if none were hidden. */
static void growth_of_a_pattern_is_held_to_that_of_what_it_shows(void **state) {
  (void)state;
  static const struct {
    double power;
    const char *verdict;
  } cases[] = {{1, "as declared"}, {2, "grows faster than declared"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const simulated_family family = {.name = "sparse", .power = cases[c].power};
    report report;
    uint64_t place = 0;
    simulated_create(&report, &family, 1, doubling, TO_8192, 6);
    for (size_t n = 0; n < report.result_count; n++) {
      workload *w = &report.results[n].workload;
      w->terms[0] = (attn_term){.kind = ATTN_LOCAL, .a = 20, .b = 20};
      w->term_count = 1;
      report.results[n].flops = workload_flops(w);
    }
    simulated_draw(&report, &family, 6, 0.005, &place);
    simulated_fit(&report, 2);
    assert_true(report.growths[0].time_declared == 1);
    assert_string_equal(format_verdict(report.growths[0].time, report.growths[0].time_declared),
                        cases[c].verdict);
    report_destroy(&report);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_family_is_what_grows_along_one_length),
      cmocka_unit_test(growth_in_batch_and_head_dimension_is_that_of_what_is_counted),
      cmocka_unit_test(growth_is_declared_in_the_length_that_is_swept),
      cmocka_unit_test(time_of_one_query_is_fitted_along_its_keys),
      cmocka_unit_test(growth_of_a_pattern_is_held_to_that_of_what_it_shows),
      cmocka_unit_test(intervals_hold_the_truth_whatever_spoils_the_times),
      cmocka_unit_test(intervals_hold_the_truth_where_all_of_it_comes_together),
      cmocka_unit_test(intervals_are_narrow_where_nothing_bends),
      cmocka_unit_test(dense_lengths_keep_their_fit),
      cmocka_unit_test(less_growth_than_declared_is_said),
      cmocka_unit_test(overhead_is_said_to_hide_the_work_only_where_it_does),
      cmocka_unit_test(noise_is_not_taken_for_a_bend),
      cmocka_unit_test(only_the_top_five_octaves_are_fitted),
      cmocka_unit_test(skipped_lengths_do_not_count),
      cmocka_unit_test(the_growth_of_exact_bytes_is_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
