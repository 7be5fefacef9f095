/* Each point by itself: its samples in the order in which they were taken, so that a drift shows, what was checked,
 * and the command that repeats it. Families are folded, on paper too, where all would be dozens of pages; a link to a
 * point unfolds it (page.js). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "html.h"
#include "page_parts.h"

enum { STRIP_WIDTH = 320, STRIP_HEIGHT = 64, MARGIN = 6, VALUES_MOST = 200, DOTS_MOST = 1000 };

/* ---- the samples, drawn ---- */

typedef struct strip {
  double low, high; /* seconds at the lower and upper edge */
  size_t count;
} strip;

static double strip_x(const strip *strip, size_t n) {
  const double room = STRIP_WIDTH - 2 * MARGIN;
  return strip->count < 2 ? STRIP_WIDTH / 2.0 : MARGIN + room * (double)n / (double)(strip->count - 1);
}

static double strip_y(const strip *strip, double seconds) {
  const double room = STRIP_HEIGHT - 2 * MARGIN, range = strip->high - strip->low;
  return range > 0 ? MARGIN + room * (strip->high - seconds) / range : STRIP_HEIGHT / 2.0;
}

static void put_strip(const result *result, FILE *out) {
  const interval median = result->seconds_median;
  const bool has_interval = isfinite(median.low) && isfinite(median.high);
  strip strip = {median.estimate, median.estimate, result->repetitions};
  for (size_t n = 0; n < result->repetitions; n++) {
    strip.low = fmin(strip.low, result->seconds[n]);
    strip.high = fmax(strip.high, result->seconds[n]);
  }
  fprintf(out, "<svg class=\"strip\" viewBox=\"0 0 %d %d\" role=\"img\"><title>", STRIP_WIDTH, STRIP_HEIGHT);
  html_print(out, "Samples of %s in the order in which they were taken, with their median%s", result->name,
             has_interval ? " and its interval" : "");
  fputs("</title>", out);
  if (has_interval) {
    const double top = strip_y(&strip, fmin(median.high, strip.high)),
                 bottom = strip_y(&strip, fmax(median.low, strip.low));
    fprintf(out, "<rect x=\"0\" width=\"%d\" y=\"%.1f\" height=\"%.1f\" class=\"band\"/>", STRIP_WIDTH, top,
            fmax(bottom - top, 0.5));
  }
  const double y = strip_y(&strip, median.estimate);
  fprintf(out, "<path d=\"M0 %.1fH%d\" class=\"median\"/><path class=\"samples\" d=\"", y, STRIP_WIDTH);
  const size_t step = result->repetitions / DOTS_MOST + 1; /* more dots than these would lie on each other */
  for (size_t n = 0; n < result->repetitions; n += step)
    fprintf(out, "M%.1f %.1fh0", strip_x(&strip, n), strip_y(&strip, result->seconds[n]));
  fputs("\"/></svg>\n", out);
}

/* ---- and in words ---- */

static void put_values(const result *result, FILE *out) {
  char text[FORMAT_BYTES];
  size_t shown = result->repetitions;
  if (shown > VALUES_MOST) shown = VALUES_MOST;
  fputs("<p class=\"values\">", out);
  if (shown < result->repetitions)
    html_print(out, "The first %zu of %zu samples: ", shown, result->repetitions);
  else
    html_print(out, "%zu sample%s: ", shown, shown == 1 ? "" : "s");
  for (size_t n = 0; n < shown; n++) {
    format_time(text, result->seconds[n], 4, NULL);
    html_print(out, "%s%s", n ? ", " : "", text);
  }
  fputs("</p>\n", out);
}

static void put_median(const result *result, FILE *out) {
  char median[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
  const interval is = result->seconds_median;
  const int digits = format_digits(is.estimate, format_half_width(is));
  format_time(median, is.estimate, digits, NULL);
  format_time(low, is.low, digits, NULL);
  format_time(high, is.high, digits, NULL);
  if (isfinite(is.low) && isfinite(is.high))
    html_print(out, "Median %s [%s, %s]", median, low, high);
  else
    html_print(out, "Median %s [unknown]", median);
  html_print(out, ", each sample a mean of %lld iteration%s, %d thread%s", (long long)result->iterations,
             result->iterations == 1 ? "" : "s", result->threads, result->threads == 1 ? "" : "s");
  if (result->isa[0]) html_print(out, ", %s", result->isa);
}

static void put_point(const report *report, size_t n, FILE *out) {
  const result *result = &report->results[n];
  fprintf(out, "<article id=\"point-%zu\"><h4>", n);
  html_name(out, result->name);
  fputs("</h4>\n", out);
  if (result_is_measured(result)) {
    fputs("<p>", out);
    put_median(result, out);
    fputs("</p>\n", out);
    put_strip(result, out);
    put_values(result, out);
  } else {
    fputs("<p>", out);
    html_print(out, "%s: %s", result->state == RESULT_FAILED ? "FAILED" : "Skipped",
               result->reason[0] ? result->reason : "no time was taken");
    fputs("</p>\n", out);
  }
  if (result->rows_total > 0) {
    char checked[FORMAT_CHECKED_BYTES];
    format_checked(checked, result);
    fputs("<p>Checked: ", out);
    html_text(out, checked);
    fputs("</p>\n", out);
  }
  fputs("<p>Again: ", out);
  page_put_command(report, result, out);
  fputs("</p></article>\n", out);
}

static void put_family(const report *report, int family, FILE *out) {
  const result *first = NULL;
  size_t count = 0;
  for (size_t n = 0; n < report->result_count; n++) {
    if (report->results[n].family_index != family) continue;
    if (count++ == 0) first = &report->results[n];
  }
  if (!first) return;
  fputs("<details><summary>", out);
  html_name(out, first->family);
  html_print(out, " (%zu point%s)", count, count == 1 ? "" : "s");
  fputs("</summary>\n", out);
  for (size_t n = 0; n < report->result_count; n++)
    if (report->results[n].family_index == family) put_point(report, n, out);
  fputs("</details>\n", out);
}

void page_put_samples(const report *report, FILE *out) {
  fputs("<section id=\"samples\"><h2>Each point, and the command that repeats it</h2>\n"
        "<p>Dots are samples, from the first on the left to the last on the right, the slowest on top; the "
        "line is their "
        "median, the band its 95% interval. Samples of different points were taken in turns.</p>\n",
        out);
  for (int family = 0; family < report_family_count(report); family++) put_family(report, family, out);
  fputs("</section>\n", out);
}
