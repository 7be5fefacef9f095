/* A right variant does not suffer from one that ran before it on the same inputs and wrote where it may not: in
 * verification, under properties, on golden cases and in a benchmark. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "measure/bench.h"
#include "run/plugins.h"
#include "tests/measure/small_bench.h"
#include "verify/golden.h"
#include "verify/properties.h"
#include "verify/verify.h"

static const char *const corrupting[] = {"change_key", "write_before_output", "write_before_key",
                                         "change_problem", "change_lengths"};
enum { CORRUPTING = sizeof corrupting / sizeof *corrupting };

static const char plugin[] = ATTN_BUILD_DIR "/tests/plugins/side_effects.so";
static variant_list all;
static int *runs_before_change; /* of the variant change_value_once */

static const attn_variant *find(const char *name) {
  const attn_variant *variant = variant_list_find(&all, name);
  if (!variant) fail_msg("the plugin has no variant '%s'", name);
  return variant;
}

/* Each in front of one that is right. */
static const attn_variant *variants[2 * CORRUPTING];
static const char *origins[2 * CORRUPTING];

static variant_list in_turns(void) {
  for (size_t n = 0; n < CORRUPTING; n++) {
    variants[2 * n] = find(corrupting[n]);
    variants[2 * n + 1] = find(n % 2 ? "nothing" : "team");
  }
  return (variant_list){.variants = variants, .origins = origins, .count = (size_t)2 * CORRUPTING};
}

static bool is_said(const char *text, const char *variant, const char *verdict) {
  char line[64];
  snprintf(line, sizeof line, "\n%-*s %s", VARIANT_COLUMN, variant, verdict);
  return strstr(text, line) != NULL;
}

static void expect_only_the_corrupting_to_fail(const char *text) {
  static const char *const right[] = {"nothing", "team"};
  for (int n = 0; n < CORRUPTING; n++)
    if (!is_said(text, corrupting[n], "FAILED")) fail_msg("%s did not fail:\n%s", corrupting[n], text);
  for (int n = 0; n < 2; n++)
    if (is_said(text, right[n], "FAILED") || !is_said(text, right[n], "passed"))
      fail_msg("%s, which is right, did not always pass:\n%s", right[n], text);
}

static void in_verification(void **state) {
  (void)state;
  static const char *const problems[] = {"full/B:2/H:2/D:5/T:9/lengths:9,4",
                                         "full/B:2/H:2/Hkv:1/D:3/Tq:5/Tk:7/lengths:7,7/layout:bthd",
                                         "full/B:2/H:1/D:6/T:11/lengths:3,11/layout:padded"};
  const variant_list list = in_turns();
  const verify_options options = {.problems = problems, .problem_count = 3, .threads = 2, .seed = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_int_equal(verify_all(&list, &options, out), 1);
  fclose(out);
  expect_only_the_corrupting_to_fail(text);
  free(text);
}

static void on_golden_cases(void **state) {
  (void)state;
  const variant_list list = in_turns();
  const verify_options options = {.cases = ATTN_SOURCE_DIR "/tests/cases", .threads = 2, .seed = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_int_equal(golden_verify(&list, &options, out), 1);
  fclose(out);
  expect_only_the_corrupting_to_fail(text);
  free(text);
}

/* Whichever of its inputs it is that is changed: those of each property are made anew. */
static void under_properties(void **state) {
  (void)state;
  const run_setup changing = {.variant = find("change_value_once"), .threads = 2};
  const run_setup right = {.variant = find("nothing"), .threads = 2};
  workload w;
  inputs in;
  expected known;
  char why[512] = "";
  assert_true(workload_parse("full/B:2/H:4/Hkv:2/D:4/T:6/lengths:6,4", &w, why, sizeof why));
  assert_true(inputs_create(&in, &w, false, why, sizeof why));
  assert_true(expected_solve(&known, &in, 0, why, sizeof why));
  properties *prepared = properties_prepare(&in, &known, why, sizeof why);
  assert_non_null(prepared);
  int runs = 0;
  for (bool failed = true; failed; runs++) {
    property_verdict verdict;
    *runs_before_change = runs;
    assert_true(properties_hold(prepared, &changing, PROPERTIES_ALL, &verdict, why, sizeof why));
    failed = verdict.failed;
    if (failed && !strstr(verdict.problem, "changes its inputs")) fail_msg("%s", verdict.problem);
    assert_true(properties_hold(prepared, &right, PROPERTIES_ALL, &verdict, why, sizeof why));
    if (verdict.failed) fail_msg("after a change in run %d: %s", runs, verdict.problem);
  }
  assert_in_range(runs, 15, 60);
  properties_destroy(prepared);
  expected_destroy(&known);
  inputs_destroy(&in);
}

static void measured(const char *changing, int runs_before) {
  bench_options options = small_bench_options;
  options.threads = 2;
  options.isa = NULL;
  options.repetitions = 8;
  bench_point points[2] = {{.variant = find(changing)}, {.variant = find("nothing")}};
  report report;
  char why[256] = "";
  for (int n = 0; n < 2; n++)
    assert_true(workload_parse("full/B:2/H:1/D:4/T:16/lengths:16,9", &points[n].workload, why, sizeof why));
  *runs_before_change = runs_before;
  if (!bench_run(points, 2, &options, &report, why, sizeof why)) fail_msg("%s", why);
  *runs_before_change = -1;
  if (runs_before < 0) assert_int_equal(report.results[0].state, RESULT_FAILED);
  if (report.results[1].state != RESULT_MEASURED)
    fail_msg("after %s: %s", changing, report.results[1].reason);
  report_destroy(&report);
}

static void in_a_benchmark(void **state) {
  (void)state;
  for (int n = 0; n < CORRUPTING; n++) measured(corrupting[n], -1);
  /* Some of these fall into batches that nobody checks. */
  static const int runs[] = {1, 2, 5, 10, 20, 50, 100, 200};
  for (size_t n = 0; n < sizeof runs / sizeof *runs; n++) measured("change_value_once", runs[n]);
}

static int set_up(void **state) {
  (void)state;
  char why[512];
  if (!variant_list_add(&all, plugin, why, sizeof why)) return -1;
  void *object = dlopen(plugin, RTLD_NOW | RTLD_LOCAL); /* the one that is loaded */
  runs_before_change = object ? dlsym(object, "runs_before_change") : NULL;
  if (object) dlclose(object);
  return runs_before_change ? 0 : -1;
}

static int clean_up(void **state) {
  (void)state;
  variant_list_destroy(&all);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_verification),
      cmocka_unit_test(on_golden_cases),
      cmocka_unit_test(under_properties),
      cmocka_unit_test(in_a_benchmark),
  };
  return cmocka_run_group_tests(tests, set_up, clean_up);
}
