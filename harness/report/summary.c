/* What a run found, in a dozen lines for someone who will read no table. Only what was measured is said:
 * crossovers lie between measured lengths. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/crossover.h"
#include "format.h"
#include "merged.h"
#include "ratios.h"
#include "summary.h"

/* ---- the fastest exact variant ---- */

static bool asks_full_softmax(const result *result) {
  const attn_problem problem = workload_problem(&result->workload);
  return problem.function == ATTN_SOFTMAX && problem.left == ATTN_UNLIMITED &&
         problem.right == ATTN_UNLIMITED && !attn_has_pattern(&problem);
}

static bool is_full_softmax(const result *result) {
  return result_is_measured(result) && asks_full_softmax(result);
}

/* How many variants were measured on this very problem, full softmax attention of this length. */
static size_t competitors(const report *report, const result *point) {
  size_t count = 0;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *other = &report->results[i];
    count += is_full_softmax(other) && result_length(other) == result_length(point) &&
             strcmp(result_problem(other->name), result_problem(point->name)) == 0;
  }
  return count;
}

/* The problem that most variants solved, and of those the longest. */
static const result *common_problem(const report *report) {
  const result *best = NULL;
  size_t best_count = 0;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *point = &report->results[i];
    if (!is_full_softmax(point)) continue;
    size_t count = competitors(report, point);
    if (count > best_count || (count == best_count && result_length(point) > result_length(best))) {
      best = point;
      best_count = count;
    }
  }
  return best;
}

static void print_rate(const result *result, FILE *out) {
  const double spread = format_half_width(result->seconds_median) / result->seconds_median.estimate;
  char rate[FORMAT_BYTES];
  const int digits = format_digits(result->flops_per_second, spread * result->flops_per_second);
  format_number(rate, result->flops_per_second * 1e-9, digits < 3 ? digits : 3);
  fprintf(out, "%s, %s GFLOP/s", result->variant, rate);
}

/* The fastest in front, and those that cannot be told from it; first: of all, in the table's order. */
static void print_rivals(const result **rivals, size_t tied, const result *first, FILE *out) {
  const result *fastest = rivals[0];
  fprintf(out, "Fastest exact variant%s on %s: ", tied > 1 ? "s" : "", result_problem(fastest->name));
  print_rate(fastest, out);
  if (isfinite(fastest->peak_fraction) && fastest->peak_fraction > 0)
    fprintf(out, ", %.0f%% of the peak", 100 * fastest->peak_fraction);
  for (size_t n = 1; n < tied; n++) {
    fputs("; ", out);
    print_rate(rivals[n], out);
  }
  if (tied > 1) fputs("; not distinguishable", out);
  if (first != fastest && tied == 1) {
    char times[FORMAT_BYTES];
    format_number(times, first->seconds_median.estimate / fastest->seconds_median.estimate, 2);
    fprintf(out, ", %s times as fast as %s", times, first->variant);
  }
  /* As when something else kept the machine busy while the peak was measured. */
  if (fastest->peak_fraction > 1)
    fprintf(out, ".\n  More than 100%% cannot be: the peak or this rate was mismeasured");
  fputc('\n', out);
}

void summary_fastest(const report *report, FILE *out) {
  const result *problem = common_problem(report), *first = NULL;
  const result **rivals = calloc(report->result_count + 1, sizeof *rivals);
  size_t count = 0;
  for (size_t i = 0; rivals && problem && i < report->result_count; i++) {
    const result *result = &report->results[i];
    if (!is_full_softmax(result) || strcmp(result_problem(result->name), result_problem(problem->name)) != 0)
      continue;
    rivals[count++] = result;
    if (!first || result->family_index < first->family_index) first = result;
  }
  const size_t tied = paired_fastest(rivals, count);
  bool asked = false; /* who measures other attention expects no word of it */
  for (size_t i = 0; i < report->result_count; i++) asked = asked || asks_full_softmax(&report->results[i]);
  if (!first && asked) fprintf(out, "No variant was measured on full softmax attention.\n");
  if (first) print_rivals(rivals, tied, first, out);
  free(rivals);
}

/* ---- crossovers ---- */

static void print_sides(const contest *contest, const char *length, FILE *out) {
  const long long first = (long long)contest->first, last = (long long)contest->last;
  const size_t sure = contest->ahead + contest->behind;
  const char *side = contest->ahead ? "ahead" : "behind";
  if (sure == 0)
    fprintf(out, "not distinguishable at any measured %s from %lld to %lld", length, first, last);
  else if (sure == contest->lengths)
    fprintf(out, "%s at every measured %s from %lld to %lld", side, length, first, last);
  else
    fprintf(out, "%s at %zu of the %zu measured %s from %lld to %lld, not distinguishable at the others",
            side, sure, contest->lengths, length, first, last);
}

static void print_contest(const report *report, const result *challenger, int champion, const char *names,
                          FILE *out) {
  const contest contest = contest_judge(report, challenger->family_index, champion);
  const char *length = sweep_axis_name(challenger->swept);
  if (contest.lengths == 1) return; /* one length shows no crossover */
  fprintf(out, "%s: ", names);
  if (contest.lengths == 0)
    fprintf(out, "at no %s were both measured", length);
  else if (contest.crossover_count == 0)
    print_sides(&contest, length, out);
  for (size_t n = 0; n < contest.crossover_count && n < CROSSOVERS_KEPT; n++) {
    const crossover *one = &contest.crossovers[n];
    char smooth[FORMAT_BYTES];
    format_number(smooth, one->smooth.estimate, 2);
    fprintf(out, "%s%s between %s = %lld and %lld (near %s if the ratio changes smoothly)", n ? "; " : "",
            one->now == LEAD_AHEAD ? "overtakes" : "falls behind", length, (long long)one->after,
            (long long)one->before, smooth);
  }
  if (contest.crossover_count > CROSSOVERS_KEPT)
    fprintf(out, "; %zu more changes", contest.crossover_count - CROSSOVERS_KEPT);
  fputc('\n', out);
}

static const result *first_of(const report *report, int family) {
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].family_index == family) return &report->results[i];
  return NULL;
}

/* But for the length that is swept, along which they can be compared. */
static bool same_sizes(const result *one, const result *other) {
  const workload *a = &one->workload, *b = &other->workload;
  if (one->swept != other->swept || strcmp(one->host, other->host) != 0) return false;
  if (one->swept == SWEPT_KEYS && a->query_length != b->query_length) return false;
  if (one->swept == SWEPT_QUERIES && a->key_length != b->key_length) return false;
  if (one->swept >= SWEPT_BATCH && (a->query_length != b->query_length || a->key_length != b->key_length))
    return false;
  return a->batch == b->batch && a->query_heads == b->query_heads && a->kv_heads == b->kv_heads &&
         a->head_dim == b->head_dim && a->value_dim == b->value_dim;
}

/* The declared exponent of time; -1: there is no growth of that family. */
static double declared_growth(const report *report, int family) {
  const growth *growth = report_growth(report, family);
  return growth ? growth->time_declared : -1;
}

/* Seconds at the longest length that was measured. */
static double longest_seconds(const report *report, int family) {
  const result *longest = NULL;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *point = &report->results[i];
    if (point->family_index != family || !result_is_measured(point)) continue;
    if (!longest || result_length(point) > result_length(longest)) longest = point;
  }
  return longest ? longest->seconds_median.estimate : INFINITY;
}

/* The family that the challenger, which declares to grow more slowly, has to overtake: of those that grow faster with
 * the same sizes the fastest, causal where the challenger is, if any was measured so. One with a pattern shows other keys
 * and is no rival; nor is a layer one of attention alone. */
static const result *champion_of(const report *report, const result *challenger) {
  const result *champion = NULL;
  const double declared = declared_growth(report, challenger->family_index);
  for (int family = 0; family < report_family_count(report); family++) {
    const result *other = first_of(report, family);
    if (!other || declared_growth(report, family) <= declared) continue;
    if (!same_sizes(other, challenger) || result_has_pattern(other)) continue;
    if ((other->workload.function == ATTN_LAYER) != (challenger->workload.function == ATTN_LAYER)) continue;
    const bool alike = other->workload.right == challenger->workload.right;
    const bool was_alike = champion && champion->workload.right == challenger->workload.right;
    const bool faster =
        champion && longest_seconds(report, family) < longest_seconds(report, champion->family_index);
    if (!champion || (alike && !was_alike) || (alike == was_alike && faster)) champion = other;
  }
  return champion;
}

static size_t families_of(const report *report, const char *variant) {
  size_t count = 0;
  for (int family = 0; family < report_family_count(report); family++) {
    const result *first = first_of(report, family);
    count += first && strcmp(first->variant, variant) == 0;
  }
  return count;
}

void summary_crossovers(const report *report, FILE *out) {
  for (int family = 0; family < report_family_count(report); family++) {
    const result *challenger = first_of(report, family);
    if (!challenger || declared_growth(report, family) < 0 || result_has_pattern(challenger)) continue;
    const result *champion = champion_of(report, challenger);
    if (!champion) continue;
    char names[2 * WORKLOAD_NAME_BYTES + 16];
    bool alone = families_of(report, challenger->variant) == 1;
    snprintf(names, sizeof names, "%s against %s", alone ? challenger->variant : challenger->family,
             alone ? champion->variant : champion->family);
    print_contest(report, challenger, champion->family_index, names, out);
  }
}

/* ---- growth, verification, what is missing ---- */

static void print_growths(const report *report, FILE *out) {
  int width = 0;
  for (size_t i = 0; i < report->growth_count; i++)
    if ((int)strlen(report->growths[i].family) > width) width = (int)strlen(report->growths[i].family);
  const char *length = report->growth_count > 0 ? sweep_axis_name(report->growths[0].swept) : "";
  for (size_t i = 0; i < report->growth_count; i++)
    if (report->growths[i].swept != report->growths[0].swept) length = "the length that is swept";
  if (report->growth_count > 0)
    fprintf(out, "Growth, as the exponent of %s with its 95%% interval:\n", length);
  for (size_t i = 0; i < report->growth_count; i++) {
    const growth *growth = &report->growths[i];
    char time[FORMAT_BYTES], workspace[FORMAT_BYTES] = "none or too few points";
    if (growth->has_time)
      format_exponent(time, growth->time);
    else
      snprintf(time, sizeof time, "%s", format_no_time(growth));
    if (growth->has_workspace) format_exponent(workspace, growth->workspace);
    fprintf(out, "  %-*s  time %-18s  workspace %s\n", width, growth->family, time, workspace);
    char advice[ADVICE_BYTES];
    format_advice(advice, growth);
    if (advice[0]) fprintf(out, "  %-*s  inconclusive: %s\n", width, "", advice);
  }
}

static void print_verification(const report *report, FILE *out) {
  const result *worst = NULL;
  size_t held = 0, timed = 0, failed = 0;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    failed += result->state == RESULT_FAILED;
    timed += result_is_measured(result);
    if (!result_is_measured(result) || isnan(result->error_bound_fraction)) continue;
    held++;
    if (!worst || result->error_bound_fraction > worst->error_bound_fraction) worst = result;
  }
  fprintf(out, "Verified: %zu of the %zu points that were timed", held, timed);
  if (worst) {
    char share[FORMAT_BYTES];
    format_share(share, worst->error_bound_fraction);
    fprintf(out, "; worst error %s of its bound (%s)", share, worst->name);
  }
  fputc('\n', out);
  if (failed > 0) fprintf(out, "FAILED: %zu point%s; the table says how\n", failed, failed == 1 ? "" : "s");
}

static void print_skipped(const report *report, FILE *out) {
  const result *first = NULL;
  size_t skipped = 0;
  for (size_t i = 0; i < report->result_count; i++) {
    if (!result_is_skipped(&report->results[i])) continue;
    if (skipped++ == 0) first = &report->results[i];
  }
  if (first)
    fprintf(out, "Skipped: %zu point%s, such as %s: %s\n", skipped, skipped == 1 ? "" : "s", first->name,
            first->reason);
}

static void print_place(const report_place *place, FILE *out) {
  fprintf(out, "%s in %s\n", place->has_pictures ? "Pictures and results.json lie" : "results.json lies",
          place->folder);
}

void report_summary(const report *report, const report_place *place, FILE *out) {
  if (report->run_count > 0) {
    merged_summary(report, report_summary, out);
    if (place) print_place(place, out);
    return;
  }
  const machine *machine = &report->machine;
  const machine_rate *peak = report_peak(report, ATTN_FLOAT32);
  if (machine->device.name[0])
    fprintf(out, "%s", machine->device.name);
  else
    fprintf(out, "%s, %d thread%s", machine->cpu, machine->threads, machine->threads == 1 ? "" : "s");
  if (peak) {
    char rate[FORMAT_BYTES];
    format_number(rate, peak->median * 1e-9, 3);
    fprintf(out, ": peak %s GFLOP/s (%s multiply-adds)", rate, peak->name);
  }
  fputc('\n', out);
  if (report->interrupted) fprintf(out, "Interrupted: this is what was measured until then.\n");
  report_warnings(report, "Beware: ", out);
  report_few_repetitions(report, "Beware: ", out);
  summary_fastest(report, out);
  print_growths(report, out);
  summary_crossovers(report, out);
  print_verification(report, out);
  print_skipped(report, out);
  if (place) print_place(place, out);
  report_ratios(report, out);
}
