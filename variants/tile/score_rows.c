/* Between the two products of two-pass attention, row by row. */
#include "score_rows.h"

#include <math.h>
#include <string.h>

#include "base2.h"

enum { WIDEST_VECTOR = 16 };

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

int64_t score_rows_pitch(int64_t keys) { return (keys + WIDEST_VECTOR - 1) / WIDEST_VECTOR * WIDEST_VECTOR; }

const float *score_rows_query(const score_rows *rows, int64_t r) {
  return (const float *)rows->tensors->query +
         at(&rows->problem->query, rows->batch, rows->head, rows->first_row + r);
}

const float *score_rows_key(const score_rows *rows) {
  return (const float *)rows->tensors->key +
         at(&rows->problem->key, rows->batch, rows->kv_head, rows->keys.first);
}

static const float *first_value(const score_rows *rows) {
  return (const float *)rows->tensors->value +
         at(&rows->problem->value, rows->batch, rows->kv_head, rows->keys.first);
}

float *score_rows_out(const score_rows *rows, int64_t r) {
  return (float *)rows->tensors->output +
         at(&rows->problem->output, rows->batch, rows->head, rows->first_row + r);
}

static attn_range visible(const score_rows *rows, int64_t r) {
  return attn_visible_keys(rows->problem, rows->batch, rows->first_row + r);
}

/* Beyond the range of a row something is hidden from it. */
static bool is_masked(const attn_problem *problem) { return problem->mask.type || attn_has_pattern(problem); }

/* Of keys [first, end), at most AT_ONCE. */
enum { AT_ONCE = 256 };

static void visible_keys(const score_rows *rows, int64_t r, int64_t first, int64_t end,
                         uint8_t visible[AT_ONCE]) {
  attn_visible_row(rows->problem, rows->tensors, rows->batch, rows->head, rows->first_row + r, first, end,
                   visible);
}

void score_rows_place(score_rows *rows) {
  const attn_problem *problem = rows->problem;
  bool hidden = is_masked(problem);
  rows->kv_head = rows->head / (problem->query_heads / problem->kv_heads);
  rows->keys = (attn_range){0, 0};
  for (int64_t r = 0; r < rows->count; r++) {
    const attn_range range = visible(rows, r);
    if (range.first == range.end) continue;
    if (rows->keys.first == rows->keys.end) rows->keys = range;
    if (range.first < rows->keys.first) rows->keys.first = range.first;
    if (range.end > rows->keys.end) rows->keys.end = range.end;
  }
  for (int64_t r = 0; r < rows->count; r++) {
    const attn_range range = visible(rows, r);
    hidden |= range.first > rows->keys.first || range.end < rows->keys.end;
  }
  const int64_t keys = rows->keys.end - rows->keys.first;
  rows->value = first_value(rows);
  rows->value_pitch = problem->value.position;
  const tile_rows value = {rows->value, rows->value_pitch};
  if (hidden && !rows->kernels->all_finite(keys, problem->value_dim, value)) {
    rows->kernels->copy_finite(keys, problem->value_dim, value, rows->finite);
    rows->value = rows->finite;
    rows->value_pitch = problem->value_dim;
  }
}

float score_rows_factor(const attn_problem *problem) {
  return (float)(problem->scale * (problem->softcap > 0 ? 1 / problem->softcap : 1 / ln2));
}

static void hide(const score_rows *rows, int64_t r, float *score, int64_t padded) {
  const attn_range range = visible(rows, r);
  uint8_t seen[AT_ONCE];
  const int64_t from = range.first - rows->keys.first, to = range.end - rows->keys.first;
  for (int64_t j = 0; j < from && j < padded; j++) score[j] = -INFINITY;
  for (int64_t j = to > 0 ? to : 0; j < padded; j++) score[j] = -INFINITY;
  for (int64_t first = range.first; first < range.end && is_masked(rows->problem); first += AT_ONCE) {
    const int64_t end = first + AT_ONCE < range.end ? first + AT_ONCE : range.end;
    visible_keys(rows, r, first, end, seen);
    for (int64_t j = first; j < end; j++)
      if (!seen[j - first]) score[j - rows->keys.first] = -INFINITY;
  }
}

static void write_weights(const score_rows *rows, int64_t r, const float *weight) {
  const attn_problem *problem = rows->problem;
  float *out =
      (float *)rows->tensors->weights + at(&problem->weights, rows->batch, rows->head, rows->first_row + r);
  memset(out, 0, (size_t)problem->key_length * sizeof *out);
  if (rows->sum[r] == 0) return;
  const attn_range range = visible(rows, r);
  const float factor = attn_kept_factor(problem);
  uint8_t seen[AT_ONCE];
  for (int64_t first = range.first; first < range.end; first += AT_ONCE) {
    const int64_t end = first + AT_ONCE < range.end ? first + AT_ONCE : range.end;
    visible_keys(rows, r, first, end, seen);
    for (int64_t j = first; j < end; j++)
      if (seen[j - first]) out[j] = weight[j - rows->keys.first] / rows->sum[r] * factor;
  }
}

/* The log-sum-exp of a row with this largest score, in base 2; the sink joins its sum. */
static double log_sum(score_rows *rows, int64_t r, float max) {
  const attn_layout *layout = &rows->problem->sink;
  const double largest = (double)max * ln2;
  if (layout->type == ATTN_ABSENT || rows->first_row + r >= attn_query_count(rows->problem, rows->batch))
    return largest + log((double)rows->sum[r]);
  const double sink = rows->tensors->sink[rows->head * layout->head];
  if (rows->sum[r] == 0) return sink; /* no key is seen */
  const double top = fmax(largest, sink);
  /* By the formula an infinite sink makes NaN, as 0 times it does. */
  const double joins = sink == -INFINITY ? 0 : exp(sink - top) + 0 * sink,
               sum = rows->sum[r] * exp(largest - top);
  rows->sum[r] = (float)((sum + joins) / exp(largest - top));
  return top + log(sum + joins);
}

/* By runs of keys. */
static void add_position(const score_rows *rows, int64_t r, float *score) {
  const int64_t keys = rows->keys.end - rows->keys.first, i = rows->first_row + r;
  float bias[AT_ONCE];
  for (int64_t first = 0; first < keys; first += AT_ONCE) {
    const int64_t count = keys - first < AT_ONCE ? keys - first : AT_ONCE;
    attn_position_biases(rows->problem, rows->head,
                         attn_distance(rows->problem, rows->batch, i, rows->keys.first + first), count, bias);
    for (int64_t n = 0; n < count; n++) score[first + n] += log2e * bias[n];
  }
}

/* The factor of what is left follows in the end. */
static void drop(const score_rows *rows, int64_t r, float *weight) {
  const int64_t keys = rows->keys.end - rows->keys.first;
  const uint8_t *keep =
      attn_keep_row(rows->problem, rows->batch, rows->head, rows->first_row + r) + rows->keys.first;
  for (int64_t j = 0; j < keys; j++) weight[j] = keep[j] ? weight[j] : 0;
}

void score_rows_softmax(score_rows *rows, int64_t r) {
  const attn_problem *problem = rows->problem;
  const int64_t keys = rows->keys.end - rows->keys.first, padded = score_rows_pitch(keys);
  float *score = rows->scores + r * rows->pitch, max = -INFINITY;
  memset(score + keys, 0, (size_t)(padded - keys) * sizeof *score);
  if (problem->softcap > 0) rows->kernels->softcap(padded, 1, base2_cap(problem->softcap), score);
  if (problem->bias.type) {
    const float *bias = (const float *)rows->tensors->bias +
                        at(&problem->bias, rows->batch, rows->head, rows->first_row + r) + rows->keys.first;
    for (int64_t j = 0; j < keys; j++) score[j] += base2_bias(bias[j]);
  }
  if (attn_has_position_bias(problem)) add_position(rows, r, score);
  hide(rows, r, score, padded);
  rows->kernels->softmax_row(padded, score, &max, &rows->sum[r], NULL);
  if (problem->lse.type || problem->sink.type) { /* a logarithm is 5 % of a row of 60 keys */
    const double lse = log_sum(rows, r, max);
    if (problem->lse.type)
      rows->tensors->lse[at(&problem->lse, rows->batch, rows->head, rows->first_row + r)] = (float)lse;
  }
  if (problem->keep.type) drop(rows, r, score);
  if (problem->weights.type) write_weights(rows, r, score);
}

static void add_nonfinite(const score_rows *rows, int64_t r, float *out) {
  const attn_problem *problem = rows->problem;
  const attn_range range = visible(rows, r);
  for (int64_t j = range.first; j < range.end; j++) {
    if (is_masked(problem) &&
        !attn_sees(problem, rows->tensors, rows->batch, rows->head, rows->first_row + r, j))
      continue;
    const float weight = rows->scores[r * rows->pitch + j - rows->keys.first];
    const float *value = first_value(rows) + (j - rows->keys.first) * problem->value.position;
    for (int64_t e = 0; e < problem->value_dim; e++)
      if (!isfinite(value[e])) out[e] += weight * value[e];
  }
}

void score_rows_finish(const score_rows *rows, int64_t r) {
  float *out = score_rows_out(rows, r);
  const float factor = attn_kept_factor(rows->problem) / rows->sum[r];
  if (rows->value == rows->finite) add_nonfinite(rows, r, out);
  for (int64_t e = 0; e < rows->problem->value_dim; e++) out[e] = rows->sum[r] == 0 ? 0 : out[e] * factor;
}
