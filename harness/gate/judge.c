/* What follows from the numbers of the timing part; nothing here measures.
 *
 * Slower is what an exact signed-rank test over the processes says to lie above half the smallest effect,
 * Holm-corrected over all that were confirmed, and whose estimate reaches the smallest effect. Nothing is
 * ever divided by the suite's median, which would hide what hits all. */
#include <math.h>
#include <string.h>

#include "gate.h"

static const double significance = 0.01;
static const double confidence = 0.95;

/* ---- screening ---- */

/* The run's own noise, from the spread over the benchmarks, raises the bar; but never so far that 5 % would
 * pass below it: a suspect more costs seconds. */
static double suspicion_threshold(const gate_set *set, double smallest) {
  double distances[GATE_MAX_BENCHMARKS], means[GATE_MAX_BENCHMARKS];
  for (size_t n = 0; n < set->count; n++) means[n] = set->benchmarks[n].screen;
  const double middle = statistics_median(means, set->count);
  for (size_t n = 0; n < set->count; n++) distances[n] = fabs(means[n] - middle);
  const double spread = 1.4826 * statistics_median(distances, set->count);
  return fmin(fmax(0.6 * smallest, 2.5 * spread), 1.5 * smallest);
}

void gate_screen(gate_times *times, double smallest) {
  gate_set *set = &times->set;
  for (size_t n = 0; n < set->count; n++) {
    gate_benchmark *benchmark = &set->benchmarks[n];
    benchmark->change = statistics_centre_interval(benchmark->screens, benchmark->screen_count, confidence);
    benchmark->screen = benchmark->change.estimate;
  }
  times->threshold = suspicion_threshold(set, log1p(smallest));
  for (size_t n = 0; n < set->count; n++) {
    gate_benchmark *benchmark = &set->benchmarks[n];
    benchmark->suspect = benchmark->screen > times->threshold ||
                         (gate_is_control(benchmark) && -benchmark->screen > times->threshold);
  }
}

double gate_urgency(const gate_benchmark *benchmark) {
  if (gate_is_control(benchmark)) return INFINITY;
  const double slower = benchmark->change.low, faster = -benchmark->change.high;
  return strcmp(benchmark->isa, "-") == 0 && !benchmark->is_excuse ? slower : fmax(slower, faster);
}

/* ---- confirmation ---- */

static bool is_confirmed(const gate_benchmark *benchmark) { return benchmark->confirmation_count > 0; }

/* The chances, uncorrected, that the benchmark is no slower than half the smallest effect, and no faster. */
static void test(gate_benchmark *benchmark, double smallest, double *slower, double *faster) {
  const size_t count = benchmark->confirmation_count;
  double inverse[GATE_CONFIRMATIONS];
  for (size_t n = 0; n < count; n++) inverse[n] = -benchmark->confirmations[n];
  *slower = statistics_signed_rank(benchmark->confirmations, count, log1p(smallest / 2));
  *faster = statistics_signed_rank(inverse, count, 0);
  benchmark->change = statistics_centre_interval(benchmark->confirmations, count, confidence);
}

/* Faster, which fails nothing, takes less: below nothing beyond chance, and by half the smallest effect. */
static gate_verdict judge(const gate_benchmark *benchmark, double smallest, double slower, double faster) {
  const double change = benchmark->change.estimate;
  if (slower <= significance && change >= log1p(smallest)) return GATE_SLOWER;
  if (faster <= significance && change <= -log1p(smallest / 2)) return GATE_FASTER;
  return GATE_UNCONFIRMED;
}

bool gate_judge(gate_times *times, double smallest) {
  gate_benchmark *confirmed[GATE_MAX_BENCHMARKS];
  double slower[GATE_MAX_BENCHMARKS], faster[GATE_MAX_BENCHMARKS];
  size_t count = 0;
  for (size_t n = 0; n < times->set.count; n++) {
    if (!is_confirmed(&times->set.benchmarks[n])) continue;
    confirmed[count] = &times->set.benchmarks[n];
    test(confirmed[count], smallest, &slower[count], &faster[count]);
    count++;
  }
  if (!statistics_holm(slower, count, slower) || !statistics_holm(faster, count, faster)) return false;
  times->contaminated = false;
  for (size_t n = 0; n < count; n++) {
    confirmed[n]->p = slower[n];
    confirmed[n]->verdict = judge(confirmed[n], smallest, slower[n], faster[n]);
    times->contaminated |= gate_is_control(confirmed[n]) && confirmed[n]->verdict != GATE_UNCONFIRMED &&
                           fabs(confirmed[n]->change.estimate) >= log1p(smallest);
  }
  return true;
}

/* ---- findings and the verdict ---- */

bool gate_find_slower(const gate_times *times, const gate_options *options, gate_findings *findings) {
  for (size_t n = 0; n < times->set.count; n++) {
    const gate_benchmark *b = &times->set.benchmarks[n];
    if (b->wrong[0] && !gate_find(findings, options, GATE_WRONG, b->variant, b->name,
                                  "wrong while it is timed: %s", b->wrong))
      return false;
    if (b->verdict != GATE_SLOWER || gate_is_control(b)) continue;
    size_t above = 0;
    for (size_t i = 0; i < b->confirmation_count; i++) above += b->confirmations[i] > 0;
    if (!gate_find(findings, options, GATE_TIME, b->variant, b->name,
                   "%.3f times as long [%.3f, %.3f]; slower in %zu of %zu processes over %zu links, p = %.1e",
                   exp(b->change.estimate), exp(b->change.low), exp(b->change.high), above,
                   b->confirmation_count, times->links, b->p))
      return false;
  }
  return true;
}

void gate_excuse(const gate_times *times, gate_findings *findings) {
  for (size_t n = 0; n < findings->count; n++) {
    gate_finding *finding = &findings->items[n];
    bool faster = false, slower = false;
    if (finding->kind != GATE_INSTRUCTIONS) continue;
    for (size_t i = 0; i < times->set.count; i++) {
      const gate_benchmark *b = &times->set.benchmarks[i];
      if (strcmp(b->variant, finding->variant) != 0 || strcmp(b->isa, finding->isa) != 0) continue;
      faster |= b->verdict == GATE_FASTER;
      slower |= b->verdict == GATE_SLOWER;
    }
    finding->waived = faster && !slower && !times->contaminated;
  }
}

gate_status gate_decide(const gate_findings *findings, const gate_times *times, bool shadow) {
  bool certain = false, timed = false;
  for (size_t n = 0; n < findings->count; n++) {
    const gate_finding *finding = &findings->items[n];
    if (finding->accepted || finding->waived) continue;
    *(finding->kind == GATE_TIME ? &timed : &certain) = true;
  }
  if (certain) return GATE_REGRESSION;
  if (shadow) return GATE_PASS;
  if (times->contaminated) return GATE_CONTAMINATED;
  return timed ? GATE_REGRESSION : GATE_PASS;
}
