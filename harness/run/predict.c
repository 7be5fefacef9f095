/* See predict.h. */
#include "predict.h"

#include <math.h>

/* A pilot that took so long has left its overhead behind. */
static const double believable_seconds = 0.1;

double predict_growth(const workload *from, const workload *to, int exponent) {
  const double queries = (double)to->query_length / (double)(from->query_length ? from->query_length : 1);
  const double keys = (double)to->key_length / (double)(from->key_length ? from->key_length : 1);
  /* Decoding grows in its keys alone: O(T^2) is a matter of pairs, O(T) of the longer side. */
  return exponent >= 2 ? queries * keys * pow(fmax(queries, keys), exponent - 2)
                       : pow(fmax(queries, keys), exponent);
}

static int64_t part_of(int64_t length, int64_t divisor) { return length > divisor ? length / divisor : 1; }

static workload shortened(const workload *original, int64_t divisor) {
  workload part = *original;
  if (part.query_length > 0) part.query_length = part_of(part.query_length, divisor);
  if (part.key_length > 0) part.key_length = part_of(part.key_length, divisor);
  part.offset /= divisor;
  for (int b = 0; b < WORKLOAD_MAX_LISTED_BATCH; b++) {
    part.offsets[b] /= divisor;
    part.lengths[b] /= divisor;
    if (part.lengths[b] > part.key_length) part.lengths[b] = part.key_length;
    part.query_lengths[b] /= divisor;
    if (part.query_lengths[b] > part.query_length) part.query_lengths[b] = part.query_length;
  }
  return part;
}

/* The faster of two runs, as the first one meets pages that are not there yet; one that is long enough is
 * not repeated. Infinite when the problem cannot be had. */
static double time_run(const run_setup *setup, const workload *workload) {
  char why[256];
  inputs inputs;
  double best = INFINITY;
  if (!inputs_create(&inputs, workload, true, why, sizeof why)) return best;
  if (!runner_refusal(setup->variant, &inputs.problem)) {
    const run_watch watch = {.workspace = 0, .inputs_checksum = inputs_checksum(&inputs)};
    run_outcome outcome;
    for (int run = 0; run == 0 || (run == 1 && best < believable_seconds); run++) {
      if (!runner_run(setup, &inputs, &watch, &outcome, why, sizeof why)) break;
      best = fmin(best, outcome.seconds);
    }
  }
  inputs_destroy(&inputs);
  return best;
}

double predict_seconds(const run_setup *setup, const workload *whole, double limit) {
  const double longest = run_slowest_seconds(setup->variant, whole);
  if (longest <= limit) return longest;
  int64_t divisor = 2;
  workload part = shortened(whole, divisor);
  while (run_slowest_seconds(setup->variant, &part) > believable_seconds &&
         (part.query_length > 1 || part.key_length > 1)) {
    divisor *= 2;
    part = shortened(whole, divisor);
  }
  double predicted = longest;
  for (; divisor > 1; divisor /= 4) {
    part = shortened(whole, divisor);
    const double seconds = time_run(setup, &part);
    if (!isfinite(seconds)) return predicted;
    predicted = seconds * predict_growth(&part, whole, setup->variant->time_exponent);
    if (predicted <= limit || seconds >= believable_seconds) return predicted;
  }
  return predicted;
}
