/* What the gate says: one line for each thing that got worse, with what repeats it alone, the picture of all
 * intervals in letters, and the same as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

enum { AXIS = 41, NAME_COLUMN = 74 };

double gate_percent(double log_ratio) { return 100 * expm1(log_ratio); }

static int by_change(const void *left, const void *right) {
  const gate_benchmark *a = *(const gate_benchmark *const *)left, *b = *(const gate_benchmark *const *)right;
  return (a->change.estimate < b->change.estimate) - (a->change.estimate > b->change.estimate);
}

size_t gate_sorted(const gate_times *times, const gate_benchmark **sorted) {
  if (times->set.count == 0) return 0;
  for (size_t n = 0; n < times->set.count; n++) sorted[n] = &times->set.benchmarks[n];
  qsort(sorted, times->set.count, sizeof *sorted, by_change);
  return times->set.count;
}

double gate_axis_limit(const gate_times *times) {
  double limit = 3;
  for (size_t n = 0; n < times->set.count; n++)
    limit = fmax(limit, 1.2 * fabs(gate_percent(times->set.benchmarks[n].change.estimate)));
  return ceil(fmin(limit, 60));
}

const char *gate_verdict_word(const gate_benchmark *benchmark) {
  const bool moved = benchmark->verdict == GATE_SLOWER || benchmark->verdict == GATE_FASTER;
  if (gate_is_control(benchmark)) return moved ? "CONTROL MOVED" : "control";
  if (benchmark->verdict == GATE_SLOWER) return "SLOWER";
  if (benchmark->verdict == GATE_FASTER) return "faster";
  return benchmark->verdict == GATE_UNCONFIRMED ? "not confirmed" : "";
}

/* ---- the picture in letters ---- */

static size_t column(double percent, double limit) {
  const double share = (percent / limit + 1) / 2;
  return (size_t)lround(fmin(fmax(share, 0), 1) * (AXIS - 1));
}

void gate_forest_text(const gate_times *times, FILE *out) {
  const gate_benchmark *sorted[GATE_MAX_BENCHMARKS];
  const size_t count = gate_sorted(times, sorted);
  const double limit = gate_axis_limit(times);
  char left[AXIS], right[AXIS];
  snprintf(left, sizeof left, "%+.0f%%", -limit);
  snprintf(right, sizeof right, "%+.0f%%", limit);
  fprintf(out, "\n  %-*s %-*s0%*s  change of time [95%% interval]\n", NAME_COLUMN, "head against base",
          AXIS / 2, left, AXIS / 2, right);
  for (size_t n = 0; n < count; n++) {
    const gate_benchmark *benchmark = sorted[n];
    const double low = gate_percent(benchmark->change.low), high = gate_percent(benchmark->change.high);
    const double estimate = gate_percent(benchmark->change.estimate);
    char axis[AXIS + 1];
    memset(axis, ' ', AXIS);
    axis[AXIS] = '\0';
    axis[AXIS / 2] = '|';
    for (size_t at = column(low, limit); at <= column(high, limit); at++) axis[at] = '-';
    axis[column(estimate, limit)] = benchmark->confirmation_count ? '#' : 'o';
    fprintf(out, "  %-*.*s %s %+6.2f%% [%+.2f, %+.2f] %s\n", NAME_COLUMN, NAME_COLUMN, benchmark->name, axis,
            estimate, low, high, gate_verdict_word(benchmark));
  }
  fprintf(out, "  o screened in %zu processes, # confirmed in %zu, over %zu links\n", times->screens,
          times->confirmations, times->links);
}

/* ---- the table of what got worse ---- */

const char *gate_why_no_base_facts(const gate_options *options) {
  if (!options->facts || options->base_facts) return NULL;
  return options->why_no_base ? options->why_no_base : "what the base needs could not be counted";
}

static bool counts(const gate_finding *finding) { return !finding->accepted && !finding->waived; }

static void print_again(const gate_options *options, const char *more, FILE *out) {
  fputs("               again: ", out);
  gate_put_again(options, more, out);
  fputc('\n', out);
}

static void print_finding(const gate_finding *finding, const gate_options *options, FILE *out) {
  fprintf(out, "  %-12s %s\n               %s\n", gate_kind_name(finding->kind), finding->name,
          finding->text);
  if (finding->accepted) {
    fprintf(out, "               accepted by a commit message\n");
  } else if (finding->waived) {
    fprintf(out, "               excused: its time there got shorter\n");
  } else if (finding->kind == GATE_TIME) {
    char only[GATE_NAME_BYTES + 32];
    snprintf(only, sizeof only, "--times --benchmark %s", finding->name);
    print_again(options, only, out);
  } else if (finding->kind == GATE_VARIANTS) {
    const char *const how = options->again ? "\"Gate-Accept: variants %s reason\" in the commit message"
                                           : "--accept 'variants %s reason'";
    fputs("               meant so? ", out);
    fprintf(out, how, finding->variant);
    fputc('\n', out);
  } else if (finding->kind != GATE_WRONG) {
    print_again(options, "--facts", out);
  }
}

/* Of one kind in one variant the first few say it all. */
static void print_findings(const gate_findings *findings, const gate_options *options, FILE *out) {
  enum { MOST = 3 };
  for (size_t n = 0; n < findings->count; n++) {
    const gate_finding *finding = &findings->items[n];
    size_t before = 0, after = 0;
    for (size_t other = 0; other < findings->count; other++) {
      const gate_finding *one = &findings->items[other];
      if (other == n || one->kind != finding->kind || strcmp(one->variant, finding->variant) != 0) continue;
      before += other < n;
      after += other > n;
    }
    if (before < MOST || finding->kind == GATE_TIME) {
      print_finding(finding, options, out);
    } else if (before == MOST) {
      fprintf(out, "               and %zu more of %s, all in gate.json\n", after + 1, finding->variant);
    }
  }
}

static void print_times(const gate_times *times, const gate_options *options, FILE *out) {
  size_t controls = 0, confirmed = 0;
  for (size_t n = 0; n < times->set.count; n++) {
    controls += gate_is_control(&times->set.benchmarks[n]);
    confirmed += times->set.benchmarks[n].confirmation_count > 0;
  }
  fprintf(out,
          "  %zu benchmarks, %zu of them controls; suspects above %+.1f%%, %zu confirmed; smallest effect "
          "%.1f%%; %.0f s\n",
          times->set.count, controls, gate_percent(times->threshold), confirmed, 100 * options->smallest,
          times->seconds);
  if (times->left_out)
    fprintf(out, "  %zu more suspects were not confirmed for lack of time: give --budget more than %.0f\n",
            times->left_out, options->budget);
}

void gate_report(const gate_findings *findings, const gate_times *times, const gate_options *options,
                 gate_status status, FILE *out) {
  if (times->measured) print_times(times, options, out);
  if (times->set.left_out)
    fprintf(out,
            "  %zu benchmarks were not timed, %zu of them of kernels that changed: there is room for %d\n",
            times->set.left_out, times->set.left_out_changed, GATE_MAX_BENCHMARKS);
  size_t worse = 0, other = 0;
  for (size_t n = 0; n < findings->count; n++) *(counts(&findings->items[n]) ? &worse : &other) += 1;
  if (findings->count) fprintf(out, "\nworse than the base\n");
  print_findings(findings, options, out);
  fputc('\n', out);
  if (status == GATE_REGRESSION)
    fprintf(out, "gate: REGRESSION: %zu finding%s\n", worse, worse == 1 ? "" : "s");
  else if (status == GATE_CONTAMINATED)
    fprintf(out, "gate: CONTAMINATED: controls moved, whose code is the same on both sides, so no time of "
                 "this run can "
                 "be believed; run it again\n");
  else if (status == GATE_UNUSABLE)
    fprintf(out, "gate: UNUSABLE: it could not measure\n");
  else if (status == GATE_PASS)
    fprintf(out, "gate: pass%s%s\n", times->measured ? "" : " (no times)",
            worse ? " in shadow mode: the times above fail nothing yet" : "");
  bool wrong = false; /* then nothing was held to anything */
  for (size_t n = 0; n < findings->count; n++) wrong = wrong || findings->items[n].kind == GATE_WRONG;
  if (gate_why_no_base_facts(options) && status != GATE_UNUSABLE && !wrong)
    fprintf(out, "gate: NOT HELD TO THE BASE, only to the committed baseline: %s\n",
            gate_why_no_base_facts(options));
  if (other) fprintf(out, "gate: %zu findings accepted or excused\n", other);
}

/* ---- JSON ---- */

static json_t *json_benchmark(const gate_benchmark *b) {
  json_t *screens = json_array(), *confirmations = json_array();
  for (size_t n = 0; n < b->screen_count; n++) json_array_append_new(screens, json_real(b->screens[n]));
  for (size_t n = 0; n < b->confirmation_count; n++)
    json_array_append_new(confirmations, json_real(b->confirmations[n]));
  json_t *row = json_pack(
      "{s:s, s:s, s:b, s:I, s:f, s:f, s:o, s:o}", "name", b->name, "verdict", gate_verdict_word(b), "control",
      gate_is_control(b), "iterations", (json_int_t)b->iterations, "ratio", exp(b->change.estimate), "p",
      b->confirmation_count ? b->p : 1.0, "screens", screens, "confirmations", confirmations);
  /* Too few processes leave an end open; JSON has no infinity. */
  if (isfinite(b->change.low)) json_object_set_new(row, "ratio_low", json_real(exp(b->change.low)));
  if (isfinite(b->change.high)) json_object_set_new(row, "ratio_high", json_real(exp(b->change.high)));
  return row;
}

json_t *gate_report_json(const gate_findings *findings, const gate_times *times, const gate_options *options,
                         gate_status status) {
  static const char *const words[] = {"pass", "regression", "unusable", "contaminated"};
  json_t *worse = json_array(), *benchmarks = json_array();
  for (size_t n = 0; n < findings->count; n++) {
    const gate_finding *finding = &findings->items[n];
    json_array_append_new(worse,
                          json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "kind", gate_kind_name(finding->kind),
                                    "variant", finding->variant, "name", finding->name, "text", finding->text,
                                    "accepted", finding->accepted, "waived", finding->waived));
  }
  for (size_t n = 0; n < times->set.count && times->measured; n++)
    json_array_append_new(benchmarks, json_benchmark(&times->set.benchmarks[n]));
  return json_pack("{s:s, s:s?, s:s, s:f, s:f, s:I, s:o, s:o}", "base", options->base_name, "no_base",
                   options->why_no_base ? options->why_no_base : gate_why_no_base_facts(options), "verdict",
                   words[status], "timing_seconds", times->seconds, "threshold", times->threshold, "left_out",
                   (json_int_t)times->set.left_out, "findings", worse, "benchmarks", benchmarks);
}
