/* A report as a run would leave it, with known answers: for tests that need one and no machine. */
#ifndef ATTN_TESTS_SAMPLE_REPORT_H
#define ATTN_TESTS_SAMPLE_REPORT_H

#include "report/report.h"

/* How one variant behaves: seconds = fixed + factor (T / 1024)^exponent, workspace alike. */
typedef struct sample_variant {
  const char *name, *band; /* the text of the workload up to the sizes */
  int kv_heads, exponent, workspace_exponent;
  double fixed, factor;
  size_t workspace; /* bytes at T = 1024 */
  double error;     /* share of the bound at T = 1024 */
  int longest;      /* T */
} sample_variant;

/* The eight variants of attnbench, as they might run on one AVX-512 core. */
enum { SAMPLE_VARIANTS = 8, SAMPLE_REPETITIONS = 5 };
extern const sample_variant sample_variants[SAMPLE_VARIANTS];

/* Lengths from `shortest` in doublings to each variant's longest; times vary by +-1 % over the
 * repetitions around their median. report_destroy frees it. */
void sample_report(report *report, const sample_variant *variants, size_t count, int shortest);

/* Appends a point that was not measured. */
void sample_unmeasured(report *report, const char *name, int family_index, result_state state,
                       const char *reason);

/* All eight, from T = 128 on, and one that was not measured, for a reason with quotes and a newline. */
void sample_whole_report(report *report);

/* Repetitions and aggregates. */
extern const report_options sample_all_rows;

/* As "json", "csv" or "console"; the caller frees it. */
char *sample_text(const report *report, const report_options *options, const char *format);

/* Fails the test where there is none of this name. */
const result *sample_result(const report *report, const char *name);

#endif
