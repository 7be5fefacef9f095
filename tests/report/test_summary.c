/* The summary says what the numbers say: known reports, known sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/sample_report.h"

static char *summary_of(const report *report, const report_place *place) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  report_summary(report, place, file);
  fclose(file);
  return text;
}

static void assert_says(const char *text, const char *sentence) {
  if (!strstr(text, sentence)) fail_msg("'%s' is missing from:\n%s", sentence, text);
}

static void the_whole_sample_is_told_in_few_lines(void **state) {
  (void)state;
  report report;
  sample_report(&report, sample_variants, SAMPLE_VARIANTS, 128);
  sample_unmeasured(&report, "naive/full/B:1/H:8/Hkv:8/D:64/T:8192", 0, RESULT_SKIPPED, "would take 122 s");
  char *text = summary_of(&report, &(report_place){"results/now", false});
  size_t lines = 0;
  for (const char *at = text; *at; at++) lines += *at == '\n';
  assert_true(lines <= 18);
  assert_says(text, "1 thread: peak 105 GFLOP/s (avx512 multiply-adds)");
  /* 4096 is the longest that naive was measured at: 1.9 * 16 / (0.026 * 16) is 73. */
  assert_says(
      text, "Fastest exact variant on full/B:1/H:8/Hkv:8/D:64/T:4096: fused, 82.6 GFLOP/s, 79% of the peak, "
            "73 times as fast as naive");
  assert_says(text, "time 1.99 [1.97, 2.01]   workspace 2 exactly");
  assert_says(text, "linear against fused: ahead at every measured T from 128 to 8192");
  assert_says(text, "Verified: 61 of the 61 points that were timed; worst error 0.036 of its bound");
  assert_says(text, "Skipped: 1 point, such as naive/full/B:1/H:8/Hkv:8/D:64/T:8192: would take 122 s");
  assert_says(text, "results.json lies in results/now");
  free(text);
  report_destroy(&report);
}

/* fused: 0.5 (T/1024)^2, sliding_window: factor (T/1024), both without overhead: they meet where
 * T = 2048 factor. */
static void assert_crossover(double factor, const char *sentence) {
  const sample_variant pair[] = {{"fused", "full", 8, 2, 0, 0, 0.5, 1 << 20, 0.01, 8192},
                                 {"sliding_window", "window:256", 8, 1, 0, 0, factor, 1 << 20, 0.01, 65536}};
  report report;
  sample_report(&report, pair, 2, 128);
  char *text = summary_of(&report, NULL);
  assert_says(text, sentence);
  assert_null(strstr(text, "results.json"));
  free(text);
  report_destroy(&report);
}

static void a_crossover_is_told_between_measured_lengths(void **state) {
  (void)state;
  assert_crossover(
      0.75,
      "sliding_window against fused: overtakes between T = 1024 and 2048 (near 1500 if the ratio changes "
      "smoothly)\n");
  assert_crossover(0.15, "sliding_window against fused: overtakes between T = 256 and 512 (near 310 if");
}

static void a_crossover_is_never_extrapolated(void **state) {
  (void)state;
  assert_crossover(0.01, "sliding_window against fused: ahead at every measured T from 128 to 8192\n");
  assert_crossover(16, "sliding_window against fused: behind at every measured T from 128 to 8192\n");
}

/* The same factor, and one that is 4 % slower: its times, +-1 %, never meet theirs. */
static void the_fastest_is_named_only_where_it_is(void **state) {
  (void)state;
  const sample_variant rivals[] = {{"naive", "full", 8, 2, 0, 0, 0.52, 1 << 20, 0.01, 1024},
                                   {"blocked", "full", 8, 2, 0, 0, 0.5, 1 << 20, 0.01, 1024},
                                   {"fused", "full", 8, 2, 0, 0, 0.5, 1 << 20, 0.01, 1024}};
  report report;
  sample_report(&report, rivals, 3, 1024);
  char *text = summary_of(&report, NULL);
  assert_says(text, "Fastest exact variants on full/B:1/H:8/Hkv:8/D:64/T:1024: ");
  assert_says(text, "; fused, ");
  assert_says(text, "; not distinguishable\n");
  assert_null(strstr(text, "; naive"));
  assert_null(strstr(text, "times as fast"));
  free(text);
  report_destroy(&report);
}

/* The folder is one that is not there: it is the caller's word that counts, not what lies about. */
static void pictures_are_told_where_they_were_drawn(void **state) {
  (void)state;
  report report;
  sample_report(&report, sample_variants, SAMPLE_VARIANTS, 128);
  char *text = summary_of(&report, &(report_place){"/nowhere", true});
  assert_says(text, "\nPictures and results.json lie in /nowhere\n");
  free(text);
  report_destroy(&report);
}

static void variants_that_were_not_measured_are_not_told(void **state) {
  (void)state;
  report report;
  sample_report(&report, &sample_variants[4], 1, 128); /* linear alone */
  char *text = summary_of(&report, NULL);
  assert_null(strstr(text, "full softmax")); /* nobody asked for any */
  assert_null(strstr(text, "against"));
  free(text);
  sample_unmeasured(&report, "fused/full/B:1/H:8/Hkv:8/D:64/T:8192", 1, RESULT_SKIPPED, "would take 122 s");
  text = summary_of(&report, NULL);
  assert_says(text, "No variant was measured on full softmax attention.");
  free(text);
  report_destroy(&report);
}

static void a_pattern_is_no_full_attention(void **state) {
  (void)state;
  const sample_variant sparse = {"fused", "see:local:9,9", 8, 2, 0, 0, 0.5, 1 << 20, 0.01, 1024};
  report report;
  sample_report(&report, &sparse, 1, 128);
  char *text = summary_of(&report, NULL);
  assert_null(strstr(text, "Fastest exact"));
  free(text);
  report_destroy(&report);
}

static void a_failed_point_is_said(void **state) {
  (void)state;
  report report;
  sample_report(&report, sample_variants, SAMPLE_VARIANTS, 128);
  sample_unmeasured(&report, "fused/full/B:1/H:8/Hkv:8/D:64/T:96", 3, RESULT_FAILED,
                    "error 17 times its bound");
  char *text = summary_of(&report, NULL);
  assert_says(text, "FAILED: 1 point; the table says how");
  free(text);
  report_destroy(&report);
}

static void an_empty_report_is_summed_up_too(void **state) {
  (void)state;
  report report;
  memset(&report, 0, sizeof report);
  char *text = summary_of(&report, NULL);
  assert_says(text, "Verified: 0 of the 0 points");
  free(text);
}

/* A kernel of a plugin three times as slow as fused and a third as fast as naive. */
static void a_plugins_kernel_ends_with_its_ratio_to_the_fastest(void **state) {
  (void)state;
  const sample_variant three[] = {{"naive", "causal", 8, 2, 0, 0, 4.5, 1 << 20, 0.01, 1024},
                                  {"fused", "causal", 8, 2, 0, 0, 0.5, 1 << 20, 0.01, 1024},
                                  {"mine", "causal", 8, 2, 0, 0, 1.5, 1 << 20, 0.01, 512}};
  report report;
  sample_report(&report, three, 3, 128);
  for (size_t n = 0; n < report.result_count; n++)
    report.results[n].from_plugin = strcmp(report.results[n].variant, "mine") == 0;
  char *text = summary_of(&report, &(report_place){"results/now", false}), said[8192];
  snprintf(said, sizeof said, "%s", text);
  const char *last = strstr(said, "\nmine takes ");
  if (!last || last[strcspn(last + 1, "\n") + 2] != '\0') {
    fail_msg("it does not end with a ratio:\n%s", said);
    return; /* the analyzer does not know that this ends the test */
  }
  assert_says(
      text,
      " times as long as fused, the fastest other variant on the same points (causal/B:1/H:8/Hkv:8/D:64, "
      "mean of 3): ");
  assert_true(fabs(strtod(last + strlen("\nmine takes "), NULL) - 3) < 0.2);
  assert_says(last, " at T = 128, ");
  assert_says(last, " at T = 512\n");
  free(text);
  report_destroy(&report);
}

static void a_plugins_kernel_alone_has_no_ratio(void **state) {
  (void)state;
  const sample_variant alone[] = {{"mine", "causal", 8, 2, 0, 0, 1.5, 1 << 20, 0.01, 512}};
  report report;
  sample_report(&report, alone, 1, 128);
  for (size_t n = 0; n < report.result_count; n++) report.results[n].from_plugin = true;
  char *text = summary_of(&report, NULL);
  assert_says(
      text,
      "mine has no ratio: no other variant was measured on causal/B:1/H:8/Hkv:8/D:64; name one beside it");
  free(text);
  report_destroy(&report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_whole_sample_is_told_in_few_lines),
      cmocka_unit_test(a_crossover_is_told_between_measured_lengths),
      cmocka_unit_test(a_crossover_is_never_extrapolated),
      cmocka_unit_test(the_fastest_is_named_only_where_it_is),
      cmocka_unit_test(pictures_are_told_where_they_were_drawn),
      cmocka_unit_test(variants_that_were_not_measured_are_not_told),
      cmocka_unit_test(a_pattern_is_no_full_attention),
      cmocka_unit_test(a_failed_point_is_said),
      cmocka_unit_test(an_empty_report_is_summed_up_too),
      cmocka_unit_test(a_plugins_kernel_ends_with_its_ratio_to_the_fastest),
      cmocka_unit_test(a_plugins_kernel_alone_has_no_ratio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
