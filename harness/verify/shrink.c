/* See shrink.h. The idea is delta debugging (Zeller and Hildebrandt 2002) on a problem's own parts: each
 * number is lowered by the largest step after which the problem still fails, and the parts are gone
 * through again until a whole round changes nothing. */
#include "shrink.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/timer.h"
#include "problem/check.h"
#include "problem/features.h"

typedef struct shrinking {
  failing best;
  shrink_fails *fails;
  void *context;
  double until;
  int64_t tries;
} shrinking;

static bool is_over(const shrinking *s) { return wall_seconds() >= s->until || interrupt_wanted(); }

static bool is_same(const failing *a, const failing *b) {
  char one[WORKLOAD_NAME_BYTES], other[WORKLOAD_NAME_BYTES];
  workload_name(&a->workload, one);
  workload_name(&b->workload, other);
  return a->threads == b->threads && strcmp(one, other) == 0;
}

/* Takes the candidate when it differs, is sound and fails. */
static bool take(shrinking *s, const failing *candidate) {
  char why[8];
  if (is_over(s) || is_same(candidate, &s->best)) return false;
  const attn_problem problem = workload_problem(&candidate->workload);
  if (!check_problem(&problem, why, sizeof why)) return false;
  s->tries++;
  if (!s->fails(candidate, s->context)) return false;
  s->best = *candidate;
  return true;
}

/* ---- parts that can be left out ---- */

enum {
  LEFT_LIMIT,
  RIGHT_LIMIT,
  THE_OFFSET,
  THE_GROUPS,
  THE_LAYOUT,
  THE_TYPE,
  THE_OUTPUT_TYPE,
  THE_SEED,
  THE_THREADS,
  PARTS
};

static void leave_out(int part, failing *from) {
  workload *w = &from->workload;
  const workload usual = workload_default();
  switch (part) {
    case LEFT_LIMIT: w->left = ATTN_UNLIMITED; break;
    case RIGHT_LIMIT: w->right = ATTN_UNLIMITED; break;
    case THE_OFFSET: w->offset = 0; break;
    case THE_GROUPS: w->query_heads = w->kv_heads; break;
    case THE_LAYOUT: w->layout = usual.layout; break;
    case THE_TYPE: w->type = w->output_type = usual.type; break;
    case THE_OUTPUT_TYPE: w->output_type = usual.output_type; break;
    case THE_SEED: w->seed = usual.seed, w->names_seed = false; break;
    default: assert(part == THE_THREADS); from->threads = 1;
  }
}

/* A feature as a whole, and then each axis that it varies over. */
static bool leave_out_feature(shrinking *s, const feature_row *feature) {
  failing candidate = s->best;
  feature_leave_out(feature, &candidate.workload);
  bool changed = take(s, &candidate);
  for (int axis = 0; feature->axes && axis < 3; axis++) {
    candidate = s->best;
    workload_axes *axes = feature_axes(feature, &candidate.workload);
    *(axis == 0 ? &axes->batch : axis == 1 ? &axes->head : &axes->query) = false;
    changed |= take(s, &candidate);
  }
  return changed;
}

static bool leave_out_terms(shrinking *s) {
  bool changed = false;
  for (int64_t n = s->best.workload.term_count - 1; n >= 0; n--) {
    failing candidate = s->best;
    workload *w = &candidate.workload;
    for (int64_t m = n; m + 1 < w->term_count; m++) w->terms[m] = w->terms[m + 1];
    w->term_count--;
    changed |= take(s, &candidate);
  }
  return changed;
}

static bool leave_out_parts(shrinking *s) {
  bool changed = leave_out_terms(s);
  for (int n = FEATURES - 1; n >= 0; n--) changed |= leave_out_feature(s, &feature_table[n]);
  for (int part = 0; part < PARTS; part++) {
    failing candidate = s->best;
    leave_out(part, &candidate);
    changed |= take(s, &candidate);
  }
  /* Fills stand in the order of their plainness. */
  for (workload_fill fill = FILL_UNIFORM; fill < s->best.workload.fill; fill++) {
    failing candidate = s->best;
    candidate.workload.fill = fill;
    changed |= take(s, &candidate);
  }
  return changed;
}

static bool leave_out_entries(shrinking *s) {
  bool changed = false;
  for (int64_t b = s->best.workload.batch - 1; b >= 0; b--) {
    failing candidate = s->best;
    workload *w = &candidate.workload;
    for (int64_t n = b; n + 1 < w->batch && n + 1 < WORKLOAD_MAX_LISTED_BATCH; n++) {
      w->offsets[n] = w->offsets[n + 1];
      w->lengths[n] = w->lengths[n + 1];
      w->query_lengths[n] = w->query_lengths[n + 1];
    }
    w->batch--;
    changed |= take(s, &candidate);
  }
  return changed;
}

/* ---- numbers that can be lowered ---- */

enum {
  BOTH_LENGTHS, /* while they are equal */
  QUERY_LENGTH,
  KEY_LENGTH,
  BOTH_DIMS,
  HEAD_DIM,
  VALUE_DIM,
  MODEL_DIM,
  BATCH,
  KV_HEADS,
  GROUP, /* query heads that share a key/value head */
  LEFT,
  RIGHT,
  OFFSET, /* towards 0 from either side, like the lists */
  THREADS,
  NUMBERS,
  FIRST_OF_LENGTHS = NUMBERS,
  FIRST_OF_OFFSETS = NUMBERS + WORKLOAD_MAX_LISTED_BATCH,
  ALL_NUMBERS = FIRST_OF_OFFSETS + WORKLOAD_MAX_LISTED_BATCH
};

static int64_t magnitude(int64_t number) { return number < 0 ? -number : number; }

/* What can be taken off the number; 0 where there is no such number. */
static int64_t excess(const failing *of, int number) {
  const workload *w = &of->workload;
  const int64_t entry = (number - NUMBERS) % WORKLOAD_MAX_LISTED_BATCH;
  if (number >= FIRST_OF_OFFSETS)
    return w->has_offsets && entry < w->batch ? magnitude(w->offsets[entry]) : 0;
  if (number >= FIRST_OF_LENGTHS) return w->has_lengths && entry < w->batch ? w->lengths[entry] : 0;
  switch (number) {
    case BOTH_LENGTHS: return w->query_length == w->key_length ? w->key_length : 0;
    case QUERY_LENGTH: return w->query_length;
    case KEY_LENGTH: return w->key_length;
    case BOTH_DIMS: return w->head_dim == w->value_dim ? w->head_dim - 1 : 0;
    case HEAD_DIM: return w->head_dim - 1;
    case VALUE_DIM: return w->value_dim;
    case MODEL_DIM: return w->model_dim > 0 ? w->model_dim - 1 : 0;
    case BATCH: return w->batch;
    case KV_HEADS: return w->kv_heads > 0 ? w->kv_heads - 1 : 0;
    case GROUP: return w->kv_heads > 0 ? w->query_heads / w->kv_heads - 1 : 0;
    case LEFT: return w->left == ATTN_UNLIMITED ? 0 : w->left;
    case RIGHT: return w->right == ATTN_UNLIMITED ? 0 : w->right;
    case OFFSET: return magnitude(w->offset);
    default: assert(number == THREADS); return of->threads - 1;
  }
}

/* Lists follow the key length, and so does a diagonal that ends bottom right. */
static void shorten(workload *w, int64_t queries, int64_t keys) {
  const bool bottom_right = w->offset != 0 && w->offset == w->key_length - w->query_length;
  w->query_length -= queries;
  w->key_length -= keys;
  if (bottom_right) w->offset = w->key_length - w->query_length;
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++)
    if (w->lengths[b] > w->key_length) w->lengths[b] = w->key_length;
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++)
    if (w->query_lengths[b] > w->query_length) w->query_lengths[b] = w->query_length;
}

static void lower(failing *of, int number, int64_t by) {
  workload *w = &of->workload;
  const int64_t entry = (number - NUMBERS) % WORKLOAD_MAX_LISTED_BATCH;
  const int64_t group = w->kv_heads > 0 ? w->query_heads / w->kv_heads : 0;
  if (number >= FIRST_OF_OFFSETS) {
    w->offsets[entry] -= w->offsets[entry] < 0 ? -by : by;
    return;
  }
  if (number >= FIRST_OF_LENGTHS) {
    w->lengths[entry] -= by;
    return;
  }
  switch (number) {
    case BOTH_LENGTHS: shorten(w, by, by); break;
    case QUERY_LENGTH: shorten(w, by, 0); break;
    case KEY_LENGTH: shorten(w, 0, by); break;
    case BOTH_DIMS: w->head_dim -= by, w->value_dim -= by; break;
    case HEAD_DIM: w->head_dim -= by; break;
    case VALUE_DIM: w->value_dim -= by; break;
    case MODEL_DIM: w->model_dim -= by; break;
    case BATCH: w->batch -= by; break;
    case KV_HEADS: w->kv_heads -= by, w->query_heads = w->kv_heads * group; break;
    case GROUP: w->query_heads = w->kv_heads * (group - by); break;
    case LEFT: w->left -= by; break;
    case RIGHT: w->right -= by; break;
    case OFFSET: w->offset -= w->offset < 0 ? -by : by; break;
    default: assert(number == THREADS); of->threads -= (int)by;
  }
}

/* The largest power of two below n; 0 when there is none. */
static int64_t power_below(int64_t n) {
  int64_t power = n > 1 ? 1 : 0;
  while (power > 0 && power <= (n - 1) / 2) power *= 2;
  return power;
}

/* All that can be taken off first, then powers of two, the largest first: what fails at the edges of
 * tiles comes down by whole tiles. */
static bool lower_number(shrinking *s, int number) {
  bool changed = false;
  int64_t step = excess(&s->best, number);
  while (step > 0 && !is_over(s)) {
    failing candidate = s->best;
    lower(&candidate, number, step);
    if (take(s, &candidate))
      changed = true;
    else
      step = power_below(step);
    const int64_t left = excess(&s->best, number);
    if (step > left) step = power_below(left + 1);
  }
  return changed;
}

int64_t shrink(failing *subject, double seconds, shrink_fails *fails, void *context) {
  shrinking s = {*subject, fails, context, wall_seconds() + seconds, 0};
  for (bool changed = true; changed && !is_over(&s);) {
    changed = leave_out_parts(&s);
    changed |= leave_out_entries(&s);
    for (int number = 0; number < ALL_NUMBERS; number++) changed |= lower_number(&s, number);
  }
  *subject = s.best;
  return s.tries;
}
