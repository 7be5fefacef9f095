/* See limits.h. */
#include "limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "problem/types.h"
#include "reference/rows.h"

/* ---- what has to be done ---- */

/* Scores of this deviation lie within some 12 of each other over 2^17 keys: all of them count in float32. */
static const double largest_deviation = 1.5;

/* The weights of all keys that are seen matter: no kernel may leave one out. */
static bool all_keys_count(const workload *w, const attn_problem *p) {
  if (reference_has_position(p) || p->decay.type) return false; /* far keys may not */
  if (!reference_function_of(p->function)->has_scores)
    return w->fill == FILL_UNIFORM || w->fill == FILL_NORMAL;
  const double variance = w->fill == FILL_UNIFORM ? 1.0 / 3 : w->fill == FILL_NORMAL ? 1 : INFINITY;
  return fabs(p->scale) * variance * sqrt((double)p->head_dim) <= largest_deviation;
}

static int64_t bias_row(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  return b * p->bias.batch + h * p->bias.head + i * p->bias.position;
}

/* Keys that the row sees and whose weights are not 0. */
static int64_t keys_needed(const inputs *in, int64_t b, int64_t h, int64_t i) {
  enum { AT_ONCE = 512 };
  const attn_problem *p = &in->problem;
  const attn_range keys = attn_visible_keys(p, b, i);
  const element_type *type = element_type_of(p->bias.type);
  const char *bias =
      type ? (const char *)in->tensors.bias + bias_row(p, b, h, i) * (int64_t)type->bytes : NULL;
  uint8_t visible[AT_ONCE];
  int64_t seen = 0;
  if (!p->mask.type && !bias && !attn_has_pattern(p)) return keys.end - keys.first;
  for (int64_t j = attn_next_visible(p, b, h, i, i + 1, keys.first); j < keys.end;
       j = attn_next_visible(p, b, h, i, i + 1, j + AT_ONCE)) {
    const int64_t end = j + AT_ONCE < keys.end ? j + AT_ONCE : keys.end;
    seen += attn_visible_row(p, &in->tensors, b, h, i, j, end, visible);
    for (int64_t n = j; type && n < end; n++)
      seen -= visible[n - j] && type->load(bias + n * (int64_t)type->bytes) == -INFINITY;
  }
  return seen;
}

/* A row that sees one key has its value for an answer. */
static double needed_pairs(const inputs *in) {
  const attn_problem *p = &in->problem;
  double pairs = 0;
#pragma omp parallel for schedule(static) reduction(+ : pairs)
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const int64_t b = n / p->query_length / p->query_heads, h = n / p->query_length % p->query_heads;
    const int64_t seen = keys_needed(in, b, h, n % p->query_length);
    pairs += seen > 1 || p->sink.type ? (double)seen : 0;
  }
  return pairs;
}

static const machine_rate *memory_rate(const machine *machine) {
  const machine_rate *last = machine->read_count ? &machine->reads[machine->read_count - 1] : NULL;
  return last && last->median > 0 ? last : NULL;
}

void limits_find(result *result, const inputs *in, const machine *machine) {
  const attn_problem *p = &in->problem;
  const machine_rate *memory = memory_rate(machine);
  result->least_flops = result->least_bytes = 0;
  if (!all_keys_count(&in->workload, p)) return;
  const double pairs = needed_pairs(in);
  result->least_flops = fmin(reference_function_of(p->function)->operations(p, pairs),
                             reference_function_of(ATTN_SOFTMAX)->operations(p, pairs));
  const bool hides = p->mask.type || p->bias.type || attn_has_pattern(p);
  const double bytes = hides ? 0 : workload_seen_bytes(&in->workload);
  if (memory && bytes >= (double)memory->working_set_bytes) result->least_bytes = bytes;
}

/* ---- what can be done ---- */

/* Of all instruction sets: a plugin need not keep to the one that ours are held to. Products of 16 bits are faster, but
 * of no use to float32. */
static const machine_rate *most_flops(const machine *machine, bool narrow) {
  const machine_rate *most = NULL;
  for (size_t n = 0; n < machine->peak_count; n++)
    if ((narrow || machine->peaks[n].type == ATTN_FLOAT32) && machine->peaks[n].median > 0 &&
        (!most || machine_most(&machine->peaks[n]) > machine_most(most)))
      most = &machine->peaks[n];
  return most;
}

/* The slow end of the median's interval, and a step of the clock more. */
static double surely_taken(const result *result, const report *report) {
  const double step = report->disturbance.clock_step_seconds;
  return result->seconds_median.high + (isfinite(step) ? step / (double)result->iterations : 0);
}

bool limits_hold(const result *result, const report *report, char *sentence, size_t sentence_size) {
  if (result->repetitions == 0 || result->iterations == 0) return true;
  const double seconds = surely_taken(result, report);
  const machine_rate *peak = most_flops(&report->machine, element_type_is_narrow(result->workload.type)),
                     *memory = memory_rate(&report->machine);
  const struct {
    double needed;
    const machine_rate *rate;
    const char *unit, *explanation;
  } limits[] = {
      {result->least_flops, peak, "GFLOP/s", "it leaves work out, or has more threads than it was given"},
      {result->least_bytes, memory, "GB/s of keys and values", "it leaves some of them out"}};
  for (size_t n = 0; n < sizeof limits / sizeof *limits; n++) {
    const double rate = limits[n].needed / seconds;
    if (!limits[n].rate || !(rate > machine_most(limits[n].rate))) continue;
    snprintf(sentence, sentence_size,
             "%.4g %s cannot be: the most for this machine with %d thread%s is %.4g (%s); %s", rate * 1e-9,
             limits[n].unit, report->machine.threads, report->machine.threads == 1 ? "" : "s",
             machine_most(limits[n].rate) * 1e-9, limits[n].rate->name, limits[n].explanation);
    return false;
  }
  return true;
}

void limits_fail(report *report, void (*measure_again)(machine *machine, void *context), void *context) {
  bool again = false;
  for (size_t n = 0; n < report->result_count; n++) {
    result *result = &report->results[n];
    char sentence[sizeof result->reason];
    if (result->state != RESULT_MEASURED || limits_hold(result, report, sentence, sizeof sentence)) continue;
    if (!again) measure_again(&report->machine, context);
    again = true;
    if (limits_hold(result, report, sentence, sizeof sentence)) continue;
    memcpy(result->reason, sentence, sizeof sentence);
    result->state = RESULT_FAILED;
  }
}
