/* What a page says first: whether the kernels are right, whether they grow as declared, and whether anything
 * disturbed the run. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "html.h"
#include "page_parts.h"
#include "summary.h"

typedef struct card {
  const char *mark; /* good, warn, bad */
  const char *head;
  char word[96];
} card;

static void open_card(const card *card, FILE *out) {
  fprintf(out, "<div class=\"card %s\"><h3>", card->mark);
  html_text(out, card->head);
  fputs("</h3><p class=\"word\">", out);
  html_text(out, card->word);
  fputs("</p>\n", out);
}

/* ---- right ---- */

static void put_verified(const report *report, FILE *out) {
  const result *worst = NULL;
  size_t held = 0, timed = 0, failed = 0;
  card card = {"good", "Verification", ""};
  for (size_t n = 0; n < report->result_count; n++) {
    const result *result = &report->results[n];
    failed += result->state == RESULT_FAILED;
    timed += result_is_measured(result);
    if (!result_is_measured(result) || isnan(result->error_bound_fraction)) continue;
    held++;
    if (!worst || result->error_bound_fraction > worst->error_bound_fraction) worst = result;
  }
  if (failed > 0)
    snprintf(card.word, sizeof card.word, "%zu point%s FAILED", failed, failed == 1 ? "" : "s");
  else if (timed == 0)
    snprintf(card.word, sizeof card.word, "Nothing was measured");
  else if (held < timed)
    snprintf(card.word, sizeof card.word, "%zu of %zu points verified", held, timed);
  else
    snprintf(card.word, sizeof card.word, "Right: all %zu points", timed);
  card.mark = failed > 0 ? "bad" : held < timed || timed == 0 ? "warn" : "good";
  open_card(&card, out);
  if (worst) {
    char share[FORMAT_BYTES];
    format_share(share, worst->error_bound_fraction);
    html_print(out, "Worst error %s of its bound: ", share);
    html_name(out, worst->name);
  }
  if (failed > 0) fputs("<p><a href=\"#unmeasured\">How they failed</a></p>", out);
  fputs("</div>\n", out);
}

/* ---- growth ---- */

typedef struct verdict_counts {
  size_t good, open, bad;
} verdict_counts;

static void count_verdict(verdict_counts *counts, const char *unknown, interval exponent, double declared) {
  if (declared == GROWTH_UNDECLARED) return;
  const char *verdict = unknown ? "inconclusive" : format_verdict(exponent, declared);
  counts->good += strcmp(verdict, "as declared") == 0;
  counts->open += strcmp(verdict, "inconclusive") == 0;
  counts->bad += strncmp(verdict, "grows", 5) == 0;
}

static void put_exceptions(const report *report, FILE *out) {
  for (size_t n = 0; n < report->growth_count; n++) {
    const growth *growth = &report->growths[n];
    const char *time =
        growth->has_time ? format_verdict(growth->time, growth->time_declared) : format_no_time(growth);
    if (growth->memory_only || strcmp(time, "as declared") == 0) continue;
    fputs("<p>", out);
    html_name(out, growth->family);
    html_print(out, ": %s", time);
    fputs("</p>\n", out);
  }
}

static void put_growth(const report *report, FILE *out) {
  verdict_counts time = {0}, workspace = {0};
  card card = {"good", "Growth", ""};
  for (size_t n = 0; n < report->growth_count; n++) {
    const growth *growth = &report->growths[n];
    if (!growth->memory_only)
      count_verdict(&time, format_no_time(growth), growth->time, growth->time_declared);
    if (growth->has_workspace) count_verdict(&workspace, NULL, growth->workspace, growth->workspace_declared);
  }
  const size_t families = time.good + time.open + time.bad;
  if (families == 0)
    snprintf(card.word, sizeof card.word, "Too few lengths to say");
  else if (time.bad + workspace.bad > 0)
    snprintf(card.word, sizeof card.word, "Not as declared: %zu of %zu", time.bad ? time.bad : workspace.bad,
             families);
  else if (time.open == 0)
    snprintf(card.word, sizeof card.word, "As declared: all %zu", families);
  else
    snprintf(card.word, sizeof card.word, "As declared: %zu of %zu", time.good, families);
  card.mark = time.bad + workspace.bad > 0 ? "bad" : time.open > 0 || families == 0 ? "warn" : "good";
  open_card(&card, out);
  put_exceptions(report, out);
  if (workspace.good + workspace.open + workspace.bad > 0) {
    fputs("<p>", out);
    html_print(out, "Workspace as declared: %zu of %zu.", workspace.good,
               workspace.good + workspace.open + workspace.bad);
    fputs("</p>\n", out);
  }
  fputs("</div>\n", out);
}

/* ---- disturbed ---- */

/* What a function says, for the caller to free; NULL without memory. */
static char *said_by(void (*say)(const report *report, FILE *out), const report *report) {
  char *text = NULL;
  size_t size = 0;
  FILE *lines = open_memstream(&text, &size);
  if (!lines) return NULL;
  say(report, lines);
  fclose(lines);
  return text;
}

static void say_warnings(const report *report, FILE *out) {
  report_warnings(report, "", out);
  report_few_repetitions(report, "", out);
}

static void put_disturbance(const report *report, FILE *out) {
  char *warnings = said_by(say_warnings, report);
  const bool watched = report->disturbance.seconds > 0, disturbed = warnings && *warnings;
  card card = {disturbed || !watched ? "warn" : "good", "Disturbance", ""};
  snprintf(card.word, sizeof card.word, "%s",
           disturbed ? "Disturbed"
           : watched ? "Nothing spoiled the times"
                     : "Not watched");
  open_card(&card, out);
  if (warnings) html_lines(out, warnings, "<p>", "</p>");
  fputs("</div>\n", out);
  free(warnings);
}

/* ---- what else is said in a sentence ---- */

static void say_rest(const report *report, FILE *out) {
  size_t skipped = 0;
  summary_fastest(report, out);
  summary_crossovers(report, out);
  for (size_t n = 0; n < report->result_count; n++) skipped += result_is_skipped(&report->results[n]);
  if (skipped > 0) fprintf(out, "%zu point%s skipped\n", skipped, skipped == 1 ? " was" : "s were");
}

void page_put_verdict(const report *report, FILE *out) {
  char *rest = said_by(say_rest, report);
  fputs("<section id=\"verdict\"><h2>Verdict</h2>\n", out);
  if (report->interrupted)
    fputs("<p class=\"note\">Interrupted: this is what was measured until then.</p>\n", out);
  fputs("<div class=\"cards\">\n", out);
  put_verified(report, out);
  put_growth(report, out);
  put_disturbance(report, out);
  fputs("</div>\n<ul>\n", out);
  if (rest) html_lines(out, rest, "<li>", "</li>");
  fputs("</ul></section>\n", out);
  free(rest);
}
