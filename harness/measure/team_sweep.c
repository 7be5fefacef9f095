/* See team_sweep.h. */
#include "team_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format.h"
#include "base/statistics.h"
#include "power_law.h"

enum { MOST_POINTS = 512 };

static void note_run(team_measurement *to, double *waiting, double *in_flight) {
  const team_result *results = team_results();
  for (int rank = 0; rank < to->ranks; rank++) {
    if (results[rank].account.sent_bytes > to->sent) to->sent = results[rank].account.sent_bytes;
    const size_t workspace = results[rank].workspace_bytes;
    if (workspace > to->workspace) to->workspace = workspace;
    if (rank == 0 || workspace < to->workspace_least) to->workspace_least = workspace;
    *waiting += results[rank].account.waiting_seconds;
    *in_flight += results[rank].account.in_flight_seconds;
  }
}

static bool measure(const bench_point *point, const char *isa, int threads, team_measurement *to, char *why,
                    size_t why_size) {
  inputs in;
  char name[WORKLOAD_NAME_BYTES];
  double waiting = 0, in_flight = 0;
  *to = (team_measurement){.point = point, .ranks = team_ranks(isa)};
  workload_name(&point->workload, name);
  if (!inputs_create(&in, &point->workload, true, why, why_size)) return false;
  const run_setup setup = {.variant = point->variant, .isa = isa, .threads = threads, .problem = name};
  const run_watch watch = {.workspace = RUN_POISONED, .inputs_checksum = inputs_checksum(&in)};
  bool ran = true;
  for (int n = -1; ran && n < TEAM_RUNS; n++) { /* the first one warms up */
    run_outcome outcome;
    ran = runner_run(&setup, &in, &watch, &outcome, why, why_size);
    if (!ran || n < 0) continue;
    to->runs[n] = outcome.seconds;
    note_run(to, &waiting, &in_flight);
    if (outcome.violation[0]) snprintf(to->violation, sizeof to->violation, "%s", outcome.violation);
  }
  inputs_destroy(&in);
  if (!ran) return false;
  double sorted[TEAM_RUNS];
  memcpy(sorted, to->runs, sizeof sorted);
  to->seconds = statistics_median(sorted, TEAM_RUNS);
  to->hidden = in_flight > 0 ? fmax(0, 1 - waiting / in_flight) : NAN;
  return true;
}

static void print_row(const team_measurement *m, FILE *out) {
  char name[WORKLOAD_NAME_BYTES], sent[FORMAT_BYTES], workspace[FORMAT_BYTES], hidden[16] = "-";
  sweep_point_name(m->point, name);
  format_bytes(sent, (double)m->sent);
  format_bytes(workspace, (double)m->workspace);
  if (!isnan(m->hidden)) snprintf(hidden, sizeof hidden, "%.0f %%", 100 * m->hidden);
  fprintf(out, "%-48s %5d %10.3f ms %12s %12s %8s\n", name, m->ranks, 1e3 * m->seconds, sent, workspace,
          hidden);
  if (m->violation[0]) fprintf(out, "    FAILED: %s\n", m->violation);
}

typedef double team_quantity(const team_measurement *m);
static double workspace_of(const team_measurement *m) { return (double)m->workspace; }

/* Eight heads among seven ranks are two for one of them, as many as among four: the most that a rank has falls in
 * steps, which are no power. */
static bool is_even(const team_measurement *m) {
  return (double)m->workspace <= 1.1 * (double)m->workspace_least;
}

static double seconds_of(const team_measurement *m) { return m->seconds; }

/* Of a variant's measurements that are alike but for T, or for P (then by 1 / P), where there are three or more. */
static void fit_growth(team_report *report, const team_measurement *like, bool by_ranks, const char *quantity,
                       team_quantity *of) {
  double x[MOST_POINTS], y[MOST_POINTS];
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  size_t points = 0;
  for (size_t n = 0; n < report->count; n++) {
    const team_measurement *m = &report->points[by_ranks ? report->count - 1 - n : n];
    const bool same_length = m->point->workload.key_length == like->point->workload.key_length;
    if (m->point->variant != like->point->variant) continue;
    if (by_ranks ? !same_length || m->ranks < 2 || !is_even(m) : m->ranks != like->ranks) continue;
    /* Ranks that take turns say nothing of how time falls with their number. */
    if (by_ranks && of == seconds_of && m->ranks > processors) continue;
    x[points] = by_ranks ? 1.0 / m->ranks : (double)m->point->workload.key_length;
    y[points++] = of(m);
  }
  if (points < 3) return;
  const power_fit fit = power_law_fit(x, points, y, 1);
  if (isnan(fit.exponent.estimate)) return;
  report->growths[report->growth_count++] = (team_growth){.variant = like->point->variant->name,
                                                          .quantity = quantity,
                                                          .by_ranks = by_ranks,
                                                          .ranks = like->ranks,
                                                          .length = like->point->workload.key_length,
                                                          .exponent = fit.exponent};
}

static void print_growth(const team_growth *growth, FILE *out) {
  fprintf(out, "%s: %s grows as %s^%.2f (%.2f to %.2f)", growth->variant, growth->quantity,
          growth->by_ranks ? "(1/P)" : "T", growth->exponent.estimate, growth->exponent.low,
          growth->exponent.high);
  if (growth->by_ranks)
    fprintf(out, " at T = %" PRId64 ", from two ranks on, where all have about as much\n", growth->length);
  else
    fprintf(out, " with %d ranks\n", growth->ranks);
}

static void fit_growths(team_report *report) {
  for (size_t n = 0; n < report->count; n++) {
    const team_measurement *m = &report->points[n];
    const bool is_last = n + 1 == report->count || report->points[n + 1].point->variant != m->point->variant;
    if (!is_last) continue; /* the longest, among the most ranks */
    fit_growth(report, m, false, "workspace of a rank", workspace_of);
    fit_growth(report, m, true, "workspace of a rank", workspace_of);
    fit_growth(report, m, false, "time", seconds_of);
    fit_growth(report, m, true, "time", seconds_of);
  }
}

static void note_refused(const bench_point *point, int sizes, const char *isa, const char *reason,
                         FILE *out) {
  char name[WORKLOAD_NAME_BYTES];
  sweep_point_name(point, name);
  fprintf(out, "%-48s %5d not run%s: it %s\n", name, team_ranks(isa),
          sizes > 1 ? ", nor among some others" : "", reason);
}

/* All points among all numbers of ranks that their variants take. False, with the reason in words. */
static bool measure_all(const sweep *sweep, const variant_list *list, int threads, team_report *report,
                        FILE *out, char *why, size_t why_size) {
  for (size_t n = 0; n < sweep->count; n++) {
    const bench_point *point = &sweep->points[n];
    const attn_problem problem = workload_problem(&point->workload);
    const char *const *sizes = variant_list_instruction_sets_of(list, point->variant), *refused = NULL,
                      *why_not = NULL;
    int refusals = 0;
    for (; *sizes && report->count < MOST_POINTS; sizes++) {
      const char *reason = runner_refusal_with(point->variant, &problem, *sizes);
      if (reason) {
        refused = *sizes, why_not = reason, refusals++;
        continue;
      }
      if (!measure(point, *sizes, threads, &report->points[report->count], why, why_size)) return false;
      print_row(&report->points[report->count++], out);
      fflush(out);
    }
    if (refusals) note_refused(point, refusals, refused, why_not, out);
  }
  return true;
}

int team_sweep(const sweep *sweep, const variant_list *list, int threads, team_report *report, FILE *out) {
  enum { MOST_GROWTHS = 4 * MOST_POINTS };
  char why[256] = "no memory for the results";
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  *report = (team_report){.points = calloc(MOST_POINTS, sizeof *report->points),
                          .growths = calloc(MOST_GROWTHS, sizeof *report->growths)};
  fprintf(out,
          "Median of %d runs. There are %ld processors here; ranks beyond them take turns, and no speed-up "
          "is claimed.\n",
          TEAM_RUNS, processors);
  fprintf(out, "%-48s %5s %13s %12s %12s %8s\n", "", "ranks", "time", "sent", "workspace", "hidden");
  team_set_strict(false);
  if (!report->points || !report->growths ||
      !measure_all(sweep, list, threads, report, out, why, sizeof why)) {
    fprintf(stderr, "attnbench: %s\n", why);
    return 2;
  }
  bool is_wrong = false;
  for (size_t n = 0; n < report->count; n++) is_wrong |= report->points[n].violation[0] != '\0';
  fit_growths(report);
  fputc('\n', out);
  for (size_t n = 0; n < report->growth_count; n++) print_growth(&report->growths[n], out);
  fprintf(out, "\nsent: the most of any rank, counted; %s\n",
          is_wrong ? "what is FAILED above was not as declared"
                   : "exactly what each rank's variant declares");
  fprintf(out, "hidden: of the time with messages on their way, the share that no rank spent inside MPI\n");
  return is_wrong;
}

void team_report_destroy(team_report *report) {
  free(report->points);
  free(report->growths);
  *report = (team_report){0};
}
