/* See merged.h. */
#include "merged.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"

/* ---- what there is of a point ---- */

/* The result of this planned point on this host. */
static const result *find(const report *report, const char *host, const char *name) {
  for (size_t n = 0; n < report->result_count; n++) {
    const result *one = &report->results[n];
    const size_t variant = strlen(one->variant), prefix = strlen("/host:") + strlen(one->host);
    if (strcmp(one->host, host) != 0 || strlen(one->name) < variant + prefix) continue;
    if (strncmp(name, one->variant, variant) == 0 &&
        strcmp(name + variant, one->name + variant + prefix) == 0)
      return one;
  }
  return NULL;
}

static bool is_first_of_host(const report *report, size_t run) {
  for (size_t n = 0; n < run; n++)
    if (strcmp(report->runs[n].host, report->runs[run].host) == 0) return false;
  return true;
}

static size_t hosts_of(const report *report) {
  size_t hosts = 0;
  for (size_t n = 0; n < report->run_count; n++) hosts += is_first_of_host(report, n);
  return hosts;
}

/* Hosts that have a result for it. */
static size_t hosts_with(const report *report, const char *name) {
  size_t hosts = 0;
  for (size_t n = 0; n < report->run_count; n++)
    hosts += is_first_of_host(report, n) && find(report, report->runs[n].host, name);
  return hosts;
}

/* ---- what is missing ---- */

/* "1, 3, 7": shards that have to run again. */
static void print_shards(const report *report, FILE *out) {
  const sweep_plan *plan = &report->plan;
  const char *before = "Run again:";
  for (int shard = 1; plan->shards > 1 && shard <= plan->shards; shard++) {
    bool lacks = false;
    for (size_t p = 0; p < plan->point_count && !lacks; p++)
      lacks = plan->points[p].shard == shard && hosts_with(report, plan->points[p].name) == 0;
    if (!lacks) continue;
    fprintf(out, "%s --shard %d/%d", before, shard, plan->shards);
    before = ",";
  }
  if (*before == ',') fputc('\n', out);
}

static void print_missing(const report *report, FILE *out) {
  const sweep_plan *plan = &report->plan;
  for (size_t p = 0; p < plan->point_count; p++)
    if (hosts_with(report, plan->points[p].name) == 0)
      fprintf(out, "Missing: %s (shard %d/%d)\n", plan->points[p].name, plan->points[p].shard, plan->shards);
  print_shards(report, out);
  for (size_t n = 0; n < report->run_count; n++) {
    const merged_run *run = &report->runs[n];
    for (size_t p = 0; p < plan->point_count; p++) {
      const planned_point *point = &plan->points[p];
      if (point->shard == run->shard && !find(report, run->host, point->name) &&
          hosts_with(report, point->name) > 0)
        fprintf(out, "Missing on %s alone: %s\n", run->host, point->name);
    }
  }
}

static void print_counts(const report *report, FILE *out) {
  const sweep_plan *plan = &report->plan;
  const size_t hosts = hosts_of(report);
  size_t measured = 0, twice = 0;
  for (size_t p = 0; p < plan->point_count; p++) {
    const size_t with = hosts_with(report, plan->points[p].name);
    measured += with > 0;
    twice += with > 1;
  }
  fprintf(out, "Merged: %zu run%s on %zu host%s, %zu of %zu points", report->run_count,
          report->run_count == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s", measured, plan->point_count);
  if (twice > 0) fprintf(out, ", %zu of them on more than one host", twice);
  fputc('\n', out);
  /* Of a sweep that was shared out, nobody was to measure what another one has. */
  for (size_t p = 0; plan->shards > 1 && p < plan->point_count; p++) {
    if (hosts_with(report, plan->points[p].name) < 2) continue;
    fprintf(out, "On more than one host: %s (", plan->points[p].name);
    const char *before = "";
    for (size_t n = 0; n < report->run_count; n++) {
      if (!is_first_of_host(report, n) || !find(report, report->runs[n].host, plan->points[p].name)) continue;
      fprintf(out, "%s%s", before, report->runs[n].host);
      before = ", ";
    }
    fputs(")\n", out);
  }
}

/* ---- each host by itself ---- */

static bool is_in_family(const report *report, const char *host, int family) {
  for (size_t n = 0; n < report->result_count; n++)
    if (report->results[n].family_index == family && strcmp(report->results[n].host, host) == 0) return true;
  return false;
}

/* A report of what this host measured; what it has is borrowed. */
static bool view_host(const report *whole, size_t run, report *view) {
  const merged_run *of = &whole->runs[run];
  *view = *whole;
  view->run_count = view->result_count = view->growth_count = 0;
  view->machine = of->machine;
  view->disturbance = of->disturbance;
  view->interrupted = of->interrupted;
  memcpy(view->isa, of->isa, sizeof view->isa);
  view->results = calloc(whole->result_count + 1, sizeof *view->results);
  view->growths = calloc(whole->growth_count + 1, sizeof *view->growths);
  if (!view->results || !view->growths) return false;
  for (size_t n = 0; n < whole->result_count; n++)
    if (strcmp(whole->results[n].host, of->host) == 0)
      view->results[view->result_count++] = whole->results[n];
  for (size_t n = 0; n < whole->growth_count; n++)
    if (is_in_family(whole, of->host, whole->growths[n].family_index))
      view->growths[view->growth_count++] = whole->growths[n];
  return true;
}

static void print_host(const report *whole, size_t run, merged_of_host *of_host, FILE *out) {
  const char *host = whole->runs[run].host;
  report view;
  size_t runs = 0;
  for (size_t n = 0; n < whole->run_count; n++) runs += strcmp(whole->runs[n].host, host) == 0;
  fprintf(out, "\n%s: ", host);
  if (view_host(whole, run, &view)) {
    view.plan.point_count = 0;
    view.interrupted = false; /* said of each run below */
    view.disturbance.seconds = 0;
    of_host(&view, NULL, out);
  }
  free(view.results);
  free(view.growths);
  for (size_t n = 0; n < whole->run_count; n++) {
    const merged_run *of = &whole->runs[n];
    if (strcmp(of->host, host) != 0) continue;
    char prefix[96];
    const report alone = {.machine = {.optimised = true}, .disturbance = of->disturbance};
    snprintf(prefix, sizeof prefix, "Beware of shard %d/%d: ", of->shard, of->shards);
    if (of->interrupted) fprintf(out, "%sit was interrupted.\n", prefix);
    report_warnings(&alone, prefix, out);
  }
  if (runs > 1 && whole->plan.shards > 1)
    fprintf(out,
            "These are points of %zu runs: an exponent's interval does not know how the machine changed "
            "between them.\n",
            runs);
}

/* ---- hosts beside each other ---- */

static void print_share(const result *result, FILE *out) {
  if (result->state != RESULT_MEASURED)
    fprintf(out, "  %s %s", result->host, result->state == RESULT_FAILED ? "FAILED" : "skipped");
  else if (isfinite(result->peak_fraction))
    fprintf(out, "  %s %.*f%%", result->host, result->peak_fraction < 0.0995, 100 * result->peak_fraction);
  else
    fprintf(out, "  %s unknown", result->host);
}

static void print_shares(const report *report, FILE *out) {
  const sweep_plan *plan = &report->plan;
  bool begun = false;
  for (size_t p = 0; p < plan->point_count; p++) {
    if (hosts_with(report, plan->points[p].name) < 2) continue;
    if (!begun) fputs("\nHosts beside each other, each as a share of its own peak:\n", out);
    begun = true;
    fprintf(out, "  %s:", plan->points[p].name);
    for (size_t n = 0; n < report->run_count; n++) {
      const result *one =
          is_first_of_host(report, n) ? find(report, report->runs[n].host, plan->points[p].name) : NULL;
      if (one) print_share(one, out);
    }
    fputc('\n', out);
  }
}

void merged_summary(const report *report, merged_of_host *of_host, FILE *out) {
  print_counts(report, out);
  print_missing(report, out);
  for (size_t n = 0; n < report->run_count; n++)
    if (is_first_of_host(report, n)) print_host(report, n, of_host, out);
  print_shares(report, out);
}
