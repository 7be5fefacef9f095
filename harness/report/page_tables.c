/* The tables of a page: growth, times, memory, and what was not measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/paired.h"
#include "format.h"
#include "html.h"
#include "page_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- what all have ---- */

/* Variant, problem without the length, and the length. */
static void put_names(const report *report, const result *result, FILE *out) {
  char length[32];
  fprintf(out, "<tr><th scope=\"row\"><a href=\"#point-%td\">", result - report->results);
  html_text(out, result->variant);
  fputs("</a></th><td>", out);
  html_name(out, result_problem(result->family));
  fputs("</td>", out);
  snprintf(length, sizeof length, "%lld", (long long)result_length(result));
  html_number(out, (double)result_length(result), length);
}

/* What the length of all points is called. */
static const char *length_head(const report *report) {
  for (size_t n = 1; n < report->result_count; n++)
    if (report->results[n].swept != report->results[0].swept) return "#Length";
  const sweep_axis axis = report->result_count ? report->results[0].swept : SWEPT_BOTH;
  static const char *const columns[] = {[SWEPT_BOTH] = "#T",
                                        [SWEPT_KEYS] = "#Tk",
                                        [SWEPT_QUERIES] = "#Tq",
                                        [SWEPT_BATCH] = "#B",
                                        [SWEPT_HEAD_DIM] = "#D"};
  return columns[axis];
}

typedef void put_point(const report *whole, const result *point, FILE *out);

/* Calls it with each measured point, family by family. */
static void for_each_measured(const report *report, put_point *put, FILE *out) {
  for (int family = 0; family < report_family_count(report); family++)
    for (size_t n = 0; n < report->result_count; n++)
      if (report->results[n].family_index == family && result_is_measured(&report->results[n]))
        put(report, &report->results[n], out);
}

/* ---- growth ---- */

/* Exponent, the declared one, and the verdict. unknown: why there is none, or NULL. */
static void put_exponent(const char *unknown, interval exponent, double declared, FILE *out) {
  char text[FORMAT_BYTES];
  const bool is_declared = declared != GROWTH_UNDECLARED;
  const char *verdict = unknown || !is_declared ? "" : format_verdict(exponent, declared);
  const bool is_good = strcmp(verdict, "as declared") == 0, is_open = strcmp(verdict, "inconclusive") == 0;
  if (!unknown) format_exponent(text, exponent);
  html_number(out, unknown ? NAN : exponent.estimate, unknown ? unknown : text);
  snprintf(text, sizeof text, "%g", declared);
  html_number(out, is_declared ? declared : (double)NAN, is_declared ? text : "-");
  fprintf(out, "<td class=\"%s\">%s</td>",
          is_good     ? "good"
          : is_open   ? "warn"
          : !*verdict ? "open"
                      : "bad",
          verdict);
}

static void put_growth(const growth *growth, FILE *out) {
  char text[ADVICE_BYTES];
  fputs("<tr><th scope=\"row\">", out);
  html_text(out, growth->variant);
  fputs("</th><td>", out);
  html_name(out, result_problem(growth->family));
  fputs("</td>", out);
  put_exponent(format_no_time(growth), growth->time, growth->time_declared, out);
  snprintf(text, sizeof text, "%s %.0f to %.0f", sweep_axis_name(growth->swept), growth->from_length,
           growth->to_length);
  html_number(out, growth->has_time ? growth->from_length : (double)NAN,
              growth->has_time ? text : sweep_axis_name(growth->swept));
  put_exponent(growth->has_workspace ? NULL : "too few points", growth->workspace, growth->workspace_declared,
               out);
  if (growth->has_instructions) format_exponent(text, growth->instructions);
  html_number(out, growth->has_instructions ? growth->instructions.estimate : NAN,
              growth->has_instructions ? text : "-");
  format_advice(text, growth);
  html_words(out, text);
  fputs("</tr>\n", out);
}

void page_put_growth(const report *report, FILE *out) {
  static const char *const heads[] = {"Variant", "Problem",       "#Time exponent",      "#Declared",
                                      "Verdict", "#Fitted over",  "#Workspace exponent", "#Declared",
                                      "Verdict", "#Instructions", "What would decide"};
  if (report->growth_count == 0) return;
  fputs("<section id=\"growth\"><h2>Growth</h2>\n<p>The exponent of the length that is swept, with its 95% "
        "interval, beside the "
        "one that the variant declares.",
        out);
  if (report->instructions_isa[0])
    html_print(out, " Instructions were counted with %s.", report->instructions_isa);
  if (report->instructions_note[0])
    html_print(out, " Instructions were not counted: %s.", report->instructions_note);
  fputs("</p>\n", out);
  html_table(out, "Growth", heads, COUNT(heads));
  for (int family = 0; family < report_family_count(report); family++) {
    const growth *growth = report_growth(report, family);
    if (growth) put_growth(growth, out);
  }
  html_table_end(out);
  fputs("</section>\n", out);
}

/* ---- times ---- */

/* How long it takes against the fastest of those that were measured on the same problem. */
static void put_against_fastest(const report *report, const result *point, FILE *out) {
  const result **rivals = calloc(report->result_count + 1, sizeof *rivals);
  size_t count = 0;
  for (size_t n = 0; rivals && n < report->result_count; n++)
    if (result_is_measured(&report->results[n]) &&
        strcmp(result_problem(report->results[n].name), result_problem(point->name)) == 0)
      rivals[count++] = &report->results[n];
  const size_t tied = paired_fastest(rivals, count);
  bool is_tied = false;
  for (size_t n = 1; rivals && n < tied; n++) is_tied = is_tied || rivals[n] == point;
  char text[FORMAT_RATIO_BYTES];
  if (!rivals || count < 2) {
    html_number(out, NAN, "alone");
  } else if (rivals[0] == point) {
    html_number(out, 1, "fastest");
  } else {
    const interval lag = paired_lag(point, rivals[0], 0.95);
    format_ratio(text, lag);
    fprintf(out, "<td class=\"n\" data-sort=\"%.9g\">", exp(lag.estimate));
    html_print(out, "%s%s", text, is_tied ? ", not distinguishable" : "");
    fputs("</td>", out);
  }
  free(rivals);
}

static void put_rate(double rate, double spread, FILE *out) {
  char text[FORMAT_BYTES];
  format_number(text, rate * 1e-9, format_digits(rate, spread * rate));
  html_number(out, rate, text);
}

static void put_share(double share, double spread, bool limits, FILE *out) {
  char text[FORMAT_BYTES], said[FORMAT_BYTES + 8];
  const int digits = format_digits(share, spread * share);
  format_number(text, 100 * share, digits < 3 ? digits : 3);
  snprintf(said, sizeof said, "%s%%%s", text, limits ? "*" : "");
  html_number(out, share, isfinite(share) ? said : "-");
}

static void put_interval(interval median, int digits, FILE *out) {
  char low[FORMAT_BYTES], high[FORMAT_BYTES], text[2 * FORMAT_BYTES + 8];
  const double half = format_half_width(median);
  format_time(low, median.low, digits, NULL);
  format_time(high, median.high, digits, NULL);
  snprintf(text, sizeof text, "[%s, %s]", low, high);
  html_number(out, half / median.estimate, isfinite(half) ? text : "unknown");
}

/* A report of before does not. */
static bool knows_bytes(const report *report) {
  for (size_t n = 0; n < report->result_count; n++)
    if (result_is_measured(&report->results[n]) && report->results[n].bytes > 0) return true;
  return false;
}

static void put_time(const report *report, const result *result, FILE *out) {
  char text[FORMAT_BYTES];
  const interval median = result->seconds_median;
  const double half = format_half_width(median), spread = half / median.estimate;
  const int digits = format_digits(median.estimate, half);
  const result_limit limit = result_limit_of(result);
  put_names(report, result, out);
  format_time(text, median.estimate, digits, NULL);
  html_number(out, median.estimate, text);
  put_interval(median, digits, out);
  snprintf(text, sizeof text, "%zu", result->repetitions);
  html_number(out, (double)result->repetitions, text);
  put_against_fastest(report, result, out);
  put_rate(result->flops_per_second, spread, out);
  put_share(result->peak_fraction, spread, limit == LIMIT_MULTIPLY_ADDS, out);
  if (knows_bytes(report)) {
    put_rate(result->bytes > 0 ? result->bytes_per_second : (double)NAN, spread, out);
    put_share(result->bytes > 0 ? result->read_fraction : (double)NAN, spread, limit == LIMIT_READS, out);
  }
  format_share(text, result->error_bound_fraction);
  html_number(out, result->error_bound_fraction, text);
  fputs("</tr>\n", out);
}

void page_put_points(const report *report, FILE *out) {
  const char *heads[12] = {"Variant",       "Problem",  length_head(report),  "#Time",
                           "#95% interval", "#Samples", "#Times the fastest", "#GFLOP/s",
                           "#Peak"};
  size_t count = 9;
  const bool has_bytes = knows_bytes(report);
  if (has_bytes) heads[count++] = "#GB/s", heads[count++] = "#Read";
  heads[count++] = "#Worst error";
  fputs("<section id=\"points\"><h2>Times</h2>\n<p>Medians with their 95% intervals. Times the fastest: the "
        "ratio of times within "
        "each pass to the fastest variant that was measured on the same problem, with its 95% interval. "
        "Peak: share of the "
        "multiply-adds' peak. ",
        out);
  if (has_bytes)
    fputs("Read: share of the rate at which the cache or memory that holds inputs and outputs is read, if "
          "each byte is moved once. "
          "*: the larger of the two, which limits. ",
          out);
  fputs("Worst error: as a share of its bound.</p>\n", out);
  html_table(out, "Times", heads, count);
  for_each_measured(report, put_time, out);
  html_table_end(out);
  fputs("</section>\n", out);
}

/* ---- memory ---- */

static void put_memory(const report *report, const result *result, FILE *out) {
  char text[FORMAT_BYTES];
  const size_t bytes[] = {result->memory_bytes, result->workspace_bytes, result->workspace_touched_bytes,
                          result->stack_bytes,  result->static_bytes,    result->hidden_bytes};
  put_names(report, result, out);
  for (size_t n = 0; n < COUNT(bytes); n++) {
    format_bytes(text, (double)bytes[n]);
    html_number(out, (double)bytes[n], text);
  }
  snprintf(text, sizeof text, "%zu", result->heap_calls);
  html_number(out, (double)result->heap_calls, text);
  fputs("</tr>\n", out);
}

void page_put_memory(const report *report, FILE *out) {
  const char *const heads[] = {
      "Variant",  "Problem", length_head(report), "#Memory",          "#Workspace asked for",
      "#Touched", "#Stacks", "#Static data",      "#Hidden mappings", "#Heap calls"};
  fputs("<section id=\"memory\"><h2>Memory</h2>\n<p>Measured: touched workspace, stacks, static data and "
        "hidden mappings, "
        "summed, and each by itself.</p>\n",
        out);
  html_table(out, "Memory", heads, COUNT(heads));
  for_each_measured(report, put_memory, out);
  html_table_end(out);
  fputs("</section>\n", out);
}

/* ---- what was not measured ---- */

void page_put_unmeasured(const report *report, FILE *out) {
  static const char *const heads[] = {"Point", "What", "Why", "Again"};
  size_t count = 0;
  for (size_t n = 0; n < report->result_count; n++) count += !result_is_measured(&report->results[n]);
  if (count == 0) return;
  fputs("<section id=\"unmeasured\"><h2>Not measured</h2>\n", out);
  html_table(out, "Not measured", heads, COUNT(heads));
  for (size_t n = 0; n < report->result_count; n++) {
    const result *result = &report->results[n];
    if (result_is_measured(result)) continue;
    const bool failed = result->state == RESULT_FAILED;
    fputs("<tr><th scope=\"row\">", out);
    html_name(out, result->name);
    fprintf(out, "</th><td class=\"%s\">%s</td>",
            failed                ? "bad"
            : result->memory_only ? "open"
                                  : "warn",
            failed                ? "FAILED"
            : result->memory_only ? "not run"
                                  : "skipped");
    html_words(out, result->reason);
    fputs("<td>", out);
    page_put_command(report, result, out);
    fputs("</td></tr>\n", out);
  }
  html_table_end(out);
  fputs("</section>\n", out);
}
