/* Which problems the gate poses to a variant: those of the command line; or the gate's usual ones, which benchmarks.c and
 * facts.c have; or, to a variant that takes none of these, the nearest that it does take, found by asking it. */
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "measure/sweep.h"
#include "run/runner.h"
#include "verify/fitting.h"

bool gate_takes(const gate_pair *pair, const workload *w) {
  char why[8];
  if (!workload_check(w, why, sizeof why)) return false;
  const attn_problem problem = workload_problem(w);
  return !runner_refusal(pair->variant, &problem) && (!pair->other || !runner_refusal(pair->other, &problem));
}

/* ---- the nearest that it takes ---- */

enum { KEPT = 0 }; /* as it is wanted */
static const attn_type types[] = {ATTN_ABSENT /* float32 */, ATTN_BFLOAT16, ATTN_FLOAT16};
static const int64_t dims[] = {KEPT, 128, 32, 256, 16, 96, 80, 8}, heads[] = {KEPT, 8, 1, 32},
                     groups[] = {KEPT, 1, 4, 8}, lengths[] = {KEPT, 512, 128, 1024, 64, 2048},
                     batches[] = {KEPT, 2};
enum { FULL, CAUSAL, WINDOWED, DECODING, BANDS };
static const workload_layout layouts[] = {LAYOUT_BHTD, LAYOUT_BTHD};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void set_band(workload *w, size_t band) {
  if (band != FULL) w->right = 0;
  if (band == WINDOWED) w->left = 64;
  if (band == DECODING) {
    w->key_length = 4 * w->query_length;
    w->query_length = 1;
    w->offset = w->key_length - 1;
  }
}

/* The next digit of a number that counts through all choices. */
static size_t next(size_t *n, size_t count) {
  const size_t digit = *n % count;
  *n /= count;
  return digit;
}
#define NEXT(list) list[next(&n, COUNT(list))]

/* Any choice of one from each list, the n-th: what stands first in this function changes first. */
static bool choose(size_t n, workload *w) {
  const int64_t dim = NEXT(dims);
  w->layout = NEXT(layouts);
  const int64_t length = NEXT(lengths), group = NEXT(groups), head_count = NEXT(heads);
  const size_t band = next(&n, BANDS);
  w->type = NEXT(types);
  if (NEXT(batches) != KEPT) w->batch = 2;
  if (dim != KEPT) w->head_dim = w->value_dim = dim;
  if (length != KEPT) w->query_length = w->key_length = length;
  if (head_count != KEPT) w->query_heads = head_count;
  const int64_t shared = group == KEPT ? 1 : group;
  w->kv_heads = w->query_heads / shared;
  set_band(w, band);
  return w->query_heads % shared == 0;
}

static bool find_nearest(const gate_pair *pair, workload *found) {
  const size_t choices = COUNT(dims) * COUNT(lengths) * COUNT(groups) * COUNT(heads) * BANDS *
                         COUNT(layouts) * COUNT(types) * COUNT(batches);
  for (size_t n = 0; n < choices; n++) {
    workload w = workload_default();
    w.function = pair->variant->function;
    w.query_length = w.key_length = 256;
    if (!choose(n, &w) || !gate_takes(pair, &w)) continue;
    *found = w;
    return true;
  }
  return false;
}

/* Of what the verification learns that it takes, the longest problem up to 512 keys. */
static bool find_fitted(const gate_pair *pair, workload *found) {
  fitting *of = fitting_create(pair->variant);
  bool is_found = false;
  for (int n = 0; of && n < of->count && !is_found; n++) {
    const fitting_anchor *anchor = &of->anchors[n];
    const fitting_size size = anchor->values[SIZE_LENGTHS].count ? SIZE_LENGTHS : SIZE_KEYS;
    const fitting_values *keys = &anchor->values[size];
    for (int k = keys->count - 1; k >= 0 && !is_found; k--) {
      *found = anchor->workload;
      fitting_set_size(found, size, keys->of[k], anchor->bottom_right);
      is_found = keys->of[k] <= 512 && gate_takes(pair, found);
    }
  }
  fitting_destroy(of);
  return is_found;
}

/* ---- what is posed ---- */

/* Queries beside other numbers of keys, and lists for each batch entry, have no other length that would be the same. */
bool gate_halve(const gate_pair *pair, workload *w) {
  workload half = *w;
  if (w->query_length != w->key_length || w->offset != 0 || w->has_offsets || w->has_lengths) return false;
  if (w->query_length < 16 || w->query_length % 2 != 0) return false;
  half.query_length = half.key_length = w->query_length / 2;
  if (!gate_takes(pair, &half)) return false;
  *w = half;
  return true;
}

size_t gate_posed(const gate_pair *pair, const gate_options *options, workload posed[GATE_MAX_PROBLEMS]) {
  size_t count = 0;
  char why[512];
  if (options->problem_count == 0) return find_nearest(pair, &posed[0]) || find_fitted(pair, &posed[0]);
  for (size_t n = 0; n < options->problem_count && count < GATE_MAX_PROBLEMS; n++)
    if (workload_parse_sound(options->problems[n], &posed[count], why, sizeof why) &&
        gate_takes(pair, &posed[count]))
      count++;
  return count;
}
