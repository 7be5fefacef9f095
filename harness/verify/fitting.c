/* See fitting.h. Fitting begins with a problem that the variant takes, and takes over the parts of the wanted one, one after
 * the other, each where the variant still takes it. */
#include "fitting.h"

#include <math.h>

#include "problem/features.h"
#include "run/runner.h"

/* ---- problems ---- */

bool fitting_takes(const attn_variant *variant, const workload *w) {
  char why[8];
  const bool lists = w->has_offsets || w->has_lengths;
  if (lists && w->batch > WORKLOAD_MAX_LISTED_BATCH) return false;
  if (!workload_check(w, why, sizeof why)) return false;
  const attn_problem problem = workload_problem(w);
  return !runner_refusal(variant, &problem);
}

double fitting_cost(const workload *w) {
  const double heads = (double)w->batch * (double)w->query_heads,
               width = (double)(w->head_dim + w->value_dim);
  const double queries = (double)w->query_length, keys = (double)w->key_length;
  return heads * (queries * keys * (width + 8) + 3 * (queries + keys) * width + 20000);
}

static bool ends_bottom_right(const workload *w) {
  return w->right == 0 && w->left == ATTN_UNLIMITED && w->offset != 0 &&
         w->offset == w->key_length - w->query_length;
}

void fitting_settle(workload *w, bool bottom_right) {
  if (bottom_right) w->offset = w->key_length - w->query_length;
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++)
    if (w->lengths[b] > w->key_length) w->lengths[b] = w->key_length;
  for (int64_t b = 0; b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++)
    if (w->query_lengths[b] > w->query_length) w->query_lengths[b] = w->query_length;
}

void fitting_set_size(workload *w, fitting_size size, int64_t value, bool bottom_right) {
  const int64_t group = w->kv_heads > 0 ? w->query_heads / w->kv_heads : 1;
  switch (size) {
    case SIZE_LENGTHS: w->query_length = w->key_length = value; break;
    case SIZE_QUERIES: w->query_length = value; break;
    case SIZE_KEYS: w->key_length = value; break;
    case SIZE_DIMS: w->head_dim = w->value_dim = value; break;
    case SIZE_HEAD_DIM: w->head_dim = value; break;
    case SIZE_VALUE_DIM: w->value_dim = value; break;
    case SIZE_BATCH: w->batch = value; break;
    case SIZE_KV_HEADS: w->kv_heads = value, w->query_heads = value * group; break;
    default: w->query_heads = w->kv_heads * value;
  }
  fitting_settle(w, bottom_right);
}

/* ---- fitting ---- */

/* A problem on its way. */
typedef struct fit {
  const fitting *of;
  const fitting_anchor *anchor;
  workload workload;
  bool bottom_right;
  double most_cost;
  draws draws;
} fit;

/* Takes the candidate where the variant does. */
static bool take(fit *to, workload candidate) {
  fitting_settle(&candidate, to->bottom_right);
  if (fitting_cost(&candidate) > to->most_cost || !fitting_takes(to->of->variant, &candidate)) return false;
  to->workload = candidate;
  return true;
}

static bool take_size(fit *to, fitting_size size, int64_t value) {
  workload candidate = to->workload;
  fitting_set_size(&candidate, size, value, to->bottom_right);
  return take(to, candidate);
}

/* The wanted one, or another that the variant may take. */
static void take_size_or_other(fit *to, fitting_size size, int64_t value) {
  enum { TRIES = 6 };
  const fitting_values *values = &to->anchor->values[size];
  bool taken = value >= 0 && take_size(to, size, value);
  for (int n = 0; n < TRIES && !taken && values->count > 1; n++)
    taken = take_size(to, size, values->of[draw_between(&to->draws, 0, values->count - 1)]);
}

/* Of two lengths that it takes only alike, the longer one, for little can be wrong with short ones. */
static void take_lengths(fit *to, const workload *wanted) {
  const int64_t longer =
      wanted->query_length > wanted->key_length ? wanted->query_length : wanted->key_length;
  workload candidate = to->workload;
  candidate.query_length = wanted->query_length;
  candidate.key_length = wanted->key_length;
  if (take(to, candidate)) return;
  take_size_or_other(to, SIZE_LENGTHS, longer);
  if (to->anchor->values[SIZE_QUERIES].count > 1) take_size_or_other(to, SIZE_QUERIES, wanted->query_length);
  if (to->anchor->values[SIZE_KEYS].count > 1) take_size_or_other(to, SIZE_KEYS, wanted->key_length);
}

static void take_dims(fit *to, const workload *wanted) {
  workload candidate = to->workload;
  candidate.head_dim = wanted->head_dim;
  candidate.value_dim = wanted->value_dim;
  if (take(to, candidate)) return;
  take_size_or_other(to, SIZE_DIMS, wanted->head_dim);
  if (wanted->value_dim == wanted->head_dim) return;
  take_size_or_other(to, SIZE_VALUE_DIM, wanted->value_dim);
}

static void take_heads(fit *to, const workload *wanted) {
  const int64_t group = wanted->kv_heads > 0 ? wanted->query_heads / wanted->kv_heads : 1;
  workload candidate = to->workload;
  candidate.query_heads = wanted->query_heads;
  candidate.kv_heads = wanted->kv_heads;
  if (take(to, candidate)) return;
  take_size_or_other(to, SIZE_KV_HEADS, wanted->kv_heads);
  take_size_or_other(to, SIZE_GROUP, group);
}

/* Sizes first, for one head or row alone can be taken where more of them are not. */
enum { PART_LENGTHS, PART_DIMS, PART_HEADS, PART_BATCH, PART_SIZES };

static void take_feature(fit *to, const feature_row *row, const workload *wanted) {
  workload candidate = to->workload;
  const bool was = to->bottom_right;
  feature_copy(row, wanted, &candidate);
  if (row->bit == ATTN_BAND) to->bottom_right = ends_bottom_right(wanted);
  if (!take(to, candidate)) to->bottom_right = was;
}

static void take_sizes(fit *to, int part, const workload *wanted) {
  switch (part) {
    case PART_LENGTHS: take_lengths(to, wanted); break;
    case PART_DIMS: take_dims(to, wanted); break;
    case PART_HEADS: take_heads(to, wanted); break;
    default: take_size_or_other(to, SIZE_BATCH, wanted->batch);
  }
}

static void take_words(fit *to, const workload *wanted) {
  workload candidate = to->workload;
  candidate.type = wanted->type;
  candidate.output_type = wanted->output_type;
  (void)take(to, candidate);
  candidate = to->workload;
  candidate.layout = wanted->layout;
  (void)take(to, candidate);
  candidate = to->workload;
  candidate.fill = wanted->fill;
  (void)take(to, candidate);
}

/* How much of what only a kind of problem has two problems share. */
static int likeness(const fitting_anchor *anchor, const workload *wanted) {
  const workload *w = &anchor->workload;
  return 2 * (w->type == wanted->type && w->output_type == wanted->output_type) +
         (w->right == wanted->right && (w->left == ATTN_UNLIMITED) == (wanted->left == ATTN_UNLIMITED) &&
          anchor->bottom_right == ends_bottom_right(wanted));
}

/* The most alike, and of those another each time. */
static const fitting_anchor *anchor_for(const fitting *of, int64_t n, const workload *wanted) {
  const fitting_anchor *best = NULL;
  for (int k = 0; k < of->count; k++) {
    const fitting_anchor *anchor = &of->anchors[(n + k) % of->count];
    if (!best || likeness(anchor, wanted) > likeness(best, wanted)) best = anchor;
  }
  return best;
}

/* Most problems are small, so that there can be many; some are larger, for what only many tiles show. */
static double most_cost_of(const fitting_anchor *anchor, int64_t n) {
  const double most = n % 256 == 255 ? 2e8 : n % 8 == 7 ? 2e7 : 5e6;
  return fmax(most, 2 * fitting_cost(&anchor->workload));
}

static fit begin(const fitting *of, int64_t n, const workload *wanted) {
  const fitting_anchor *anchor = anchor_for(of, n, wanted);
  fit to = {.of = of,
            .anchor = anchor,
            .workload = anchor->workload,
            .bottom_right = anchor->bottom_right,
            .most_cost = most_cost_of(anchor, n),
            .draws = {random_mixed(wanted->seed) + random_mixed((uint64_t)n), 0}};
  return to;
}

bool fitting_fit(const fitting *of, int64_t n, workload *w) {
  if (of->count == 0) return false;
  const workload wanted = *w;
  fit to = begin(of, n, &wanted);
  to.workload.seed = wanted.seed;
  for (int part = 0; part < PART_SIZES; part++) take_sizes(&to, (int)((part + n) % PART_SIZES), &wanted);
  for (int row = 0; row < FEATURES; row++) take_feature(&to, &feature_table[(row + n) % FEATURES], &wanted);
  take_words(&to, &wanted);
  *w = to.workload;
  return true;
}

void fitting_vary(const fitting *of, int64_t n, workload *w) {
  fit to = begin(of, n, w);
  to.workload = *w;
  to.bottom_right = ends_bottom_right(w);
  to.most_cost = fmax(to.most_cost, fitting_cost(w));
  for (int size = 0; size < FITTING_SIZES; size++) {
    if (to.anchor->values[size].count < 2) continue;
    const bool is_apart =
        size == SIZE_QUERIES || size == SIZE_KEYS || size == SIZE_HEAD_DIM || size == SIZE_VALUE_DIM;
    if (!is_apart || draw_one_in(&to.draws, 3)) take_size_or_other(&to, (fitting_size)size, -1);
  }
}
