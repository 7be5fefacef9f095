/* Each of the inputs is made of a changed workload, whose own numbers are then replaced by those of the original
 * problem, so that everything but the change is the same. */
#include "property_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "problem/types.h"
#include "reference/reference.h"

enum { SAMPLED_ROWS = 24 };

/* What of the original a copy holds: from this entry, head, query and key on. */
typedef struct source {
  int64_t entry, query_head, kv_head, query, key;
  int64_t group;        /* heads of the copy to one key/value head of the original */
  const int64_t *order; /* or: each key of the copy; NULL: one after the other */
} source;

static const source whole = {.group = 1};

static uint64_t draw(const properties *all, uint64_t purpose, uint64_t n) {
  return random_bits(random_mixed(all->original->workload.seed) + purpose, n);
}

/* ---- Copies ---- */

/* The copies are ours to change. */
static float *floats(const void *data) { return (float *)(uintptr_t)data; }

static float *row_at(const void *data, const attn_layout *s, int64_t b, int64_t h, int64_t i) {
  return floats(data) + b * s->batch + h * s->head + i * s->position;
}

static int64_t key_of(const source *from, int64_t j) { return from->order ? from->order[j] : from->key + j; }

/* Where an index of the copy lies on an axis of the original, by the letter that tensors.h has for it. */
static int64_t original_index(const source *from, char axis, int64_t n) {
  switch (axis) {
    case 'B': return from->entry + n;
    case 'H': return from->query_head + n;
    case 'K': return from->kv_head + n / from->group;
    case 'q': return from->query + n;
    case 'k': return key_of(from, n);
    default: return n;
  }
}

/* One input of the copy. Axes that it does not vary over are written once for each place on them, with the same
 * numbers. */
static void copy_tensor(const properties *all, inputs *to, tensor_id id, const source *from) {
  const attn_layout *in = tensor_layout(&to->problem, id), *out = tensor_layout(&all->original->problem, id);
  const char *axes = tensor_table[id].axes;
  const tensor_shape shape = tensor_shape_of(&to->problem, id);
  const size_t bytes = element_type_of(in->type)->bytes;
  char *copy = (char *)(uintptr_t)tensor_data(&to->tensors, id);
  const char *given = tensor_data(&all->original->tensors, id);
  const int64_t keys = all->original->problem.key_length; /* the copy may have more */
  for (int64_t b = 0; b < shape.batch; b++)
    for (int64_t h = 0; h < shape.heads; h++)
      for (int64_t n = 0; n < shape.length; n++) {
        if (axes[2] == 'k' && key_of(from, n) >= keys) continue;
        char *row = copy + (b * in->batch + h * in->head + n * in->position) * (int64_t)bytes;
        const char *given_row = given + (original_index(from, axes[0], b) * out->batch +
                                         original_index(from, axes[1], h) * out->head +
                                         original_index(from, axes[2], n) * out->position) *
                                            (int64_t)bytes;
        if (axes[3] != 'k') memcpy(row, given_row, (size_t)shape.width * bytes);
        for (int64_t x = 0; axes[3] == 'k' && x < shape.width && key_of(from, x) < keys; x++)
          memcpy(row + x * (int64_t)bytes, given_row + original_index(from, axes[3], x) * (int64_t)bytes,
                 bytes);
      }
}

static void copy_inputs(const properties *all, inputs *to, const source *from) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (!tensor_table[id].written && tensor_layout(&to->problem, id)->type &&
        all->original->buffers[id].mapping)
      copy_tensor(all, to, id, from);
}

/* Until finish the inputs may be changed further. */
static bool begin(properties *all, altered_kind kind, const workload *w, const source *from, char *why,
                  size_t why_size) {
  altered *made = &all->of[kind];
  if (!inputs_create(&made->inputs, w, false, why, why_size)) return false;
  made->made = true;
  copy_inputs(all, &made->inputs, from);
  return true;
}

static bool finish(properties *all, altered_kind kind, bool with_bounds, char *why, size_t why_size) {
  altered *made = &all->of[kind];
  made->checksum = inputs_checksum(&made->inputs);
  if (!inputs_keep(&made->inputs, why, why_size)) return false;
  return !with_bounds ||
         expected_solve_rows(&made->expected, &made->inputs, all->rows, all->row_count, why, why_size);
}

static bool make(properties *all, altered_kind kind, const workload *w, const source *from, bool with_bounds,
                 char *why, size_t why_size) {
  return begin(all, kind, w, from, why, why_size) && finish(all, kind, with_bounds, why, why_size);
}

/* ---- What the properties change ---- */

static bool make_front(properties *all, char *why, size_t why_size) {
  return begin(all, AT_THE_FRONT, &all->original->workload, &whole, why, why_size) &&
         inputs_move_to_front(&all->of[AT_THE_FRONT].inputs, why, why_size) &&
         finish(all, AT_THE_FRONT, false, why, why_size);
}

static bool make_ones(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.epsilon = 0;
  if (!begin(all, ONES, &w, &whole, why, why_size)) return false;
  const inputs *in = &all->of[ONES].inputs;
  const attn_problem *p = &in->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->kv_heads; h++)
      for (int64_t j = 0; j < p->key_length; j++)
        for (int64_t e = 0; e < p->value_dim; e++) row_at(in->tensors.value, &p->value, b, h, j)[e] = 1;
  return finish(all, ONES, true, why, why_size);
}

static bool sees(const inputs *in, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attn_problem *p = &in->problem;
  const attn_range range = attn_visible_keys(p, b, i);
  if (j < range.first || j >= range.end) return false;
  return !p->mask.type ||
         in->tensors.mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j] != 0;
}

/* Of every head, the keys that its first query head's row i cannot see. Where rows see everything there are
 * none, and a whole head is taken instead: other heads cannot see it. Returns false when there is no other. */
static bool choose_hidden(const properties *all, int set, bool *chosen) {
  const inputs *in = all->original;
  const attn_problem *p = &in->problem;
  const int64_t heads = p->batch * p->kv_heads, group = p->query_heads / p->kv_heads;
  const int64_t i = (int64_t)(draw(all, 1, (uint64_t)set) % (uint64_t)p->query_length);
  bool any = false;
  for (int64_t n = 0; n < heads * p->key_length; n++) {
    const int64_t head = n / p->key_length;
    chosen[n] = !sees(in, head / p->kv_heads, head % p->kv_heads * group, i, n % p->key_length);
    any = any || chosen[n];
  }
  if (any && set < SETS_OF_HIDDEN_KEYS - 1) return true;
  if (heads < 2) return any;
  const int64_t taken = (int64_t)(draw(all, 2, (uint64_t)set) % (uint64_t)heads);
  for (int64_t n = 0; n < heads * p->key_length; n++) chosen[n] = n / p->key_length == taken;
  return true;
}

/* Rows that see none of the chosen keys; false when there are none. */
static bool find_untouched(const inputs *in, const bool *chosen, bool *untouched) {
  const attn_problem *p = &in->problem;
  bool any = false;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    const bool *keys = chosen + (at.b * p->kv_heads + at.h / (p->query_heads / p->kv_heads)) * p->key_length;
    untouched[n] = true;
    for (int64_t j = 0; j < p->key_length && untouched[n]; j++)
      untouched[n] = !(keys[j] && sees(in, at.b, at.h, at.i, j));
    any = any || untouched[n];
  }
  return any;
}

static void overwrite_key(const inputs *in, int64_t b, int64_t h, int64_t j, float number) {
  const attn_problem *p = &in->problem;
  float *key = row_at(in->tensors.key, &p->key, b, h, j),
        *value = row_at(in->tensors.value, &p->value, b, h, j);
  for (int64_t d = 0; d < p->head_dim; d++) key[d] = number;
  for (int64_t e = 0; e < p->value_dim; e++) value[e] = number;
}

static void overwrite(const inputs *in, const bool *chosen, float number) {
  const attn_problem *p = &in->problem;
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->key_length; n++)
    if (chosen[n])
      overwrite_key(in, n / p->key_length / p->kv_heads, n / p->key_length % p->kv_heads, n % p->key_length,
                    number);
}

static bool make_hidden(properties *all, int set, char *why, size_t why_size) {
  static const float numbers[SETS_OF_HIDDEN_KEYS] = {NAN, 1e30f, INFINITY};
  const attn_problem *p = &all->original->problem;
  bool *chosen = calloc((size_t)(p->batch * p->kv_heads * p->key_length) + 1, sizeof *chosen);
  all->untouched[set] = calloc((size_t)(p->batch * p->query_heads * p->query_length) + 1, sizeof(bool));
  bool had_memory = chosen && all->untouched[set];
  if (had_memory && choose_hidden(all, set, chosen) &&
      find_untouched(all->original, chosen, all->untouched[set])) {
    had_memory = begin(all, HIDDEN_KEYS + set, &all->original->workload, &whole, why, why_size);
    if (had_memory) {
      overwrite(&all->of[HIDDEN_KEYS + set].inputs, chosen, numbers[set]);
      had_memory = finish(all, HIDDEN_KEYS + set, false, why, why_size);
    }
  }
  free(chosen);
  return had_memory;
}

/* Without scores there is no limit on the left. */
static bool make_bands(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = false;
  if (!make(all, FULL, &w, &whole, false, why, why_size)) return false;
  w.right = w.key_length - 1 + (int64_t)(draw(all, 3, 0) % 2);
  if (reference_function_of(w.function)->has_scores)
    w.left = w.query_length - 1 + (int64_t)(draw(all, 3, 1) % 2);
  return make(all, WIDE, &w, &whole, false, why, why_size);
}

static bool make_groups(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const source repeated = {.group = w.query_heads / w.kv_heads};
  const source alone = {.query_head = all->lone_head, .kv_head = all->lone_head / repeated.group, .group = 1};
  if (w.query_heads == 1) return true;
  if (repeated.group > 1) {
    w.kv_heads = w.query_heads;
    if (!make(all, REPEATED, &w, &repeated, false, why, why_size)) return false;
  }
  w.query_heads = w.kv_heads = 1;
  return make(all, ALONE, &w, &alone, false, why, why_size);
}

static bool make_order(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = w.has_lengths = false;
  int64_t *order = malloc(((size_t)w.key_length + 1) * sizeof *order);
  bool had_memory = order && make(all, PLAIN, &w, &whole, true, why, why_size);
  for (int64_t j = 0; had_memory && j < w.key_length; j++) { /* Fisher and Yates */
    const int64_t other = (int64_t)(draw(all, 4, (uint64_t)j) % (uint64_t)(j + 1));
    if (other < j) order[j] = order[other];
    order[other] = j;
  }
  const source reordered = {.group = 1, .order = order};
  had_memory = had_memory && make(all, REORDERED, &w, &reordered, true, why, why_size);
  free(order);
  return had_memory;
}

/* By the bias: its numbers are rounded so that the sum is exact. */
static void shift_bias(const properties *all, const inputs *level, const inputs *shifted, double *shift_of) {
  const attn_problem *p = &level->problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    float *row = row_at(level->tensors.bias, &p->bias, at.b, at.h, at.i);
    float *shifted_row = row_at(shifted->tensors.bias, &p->bias, at.b, at.h, at.i);
    /* The same constant for all rows that share this one: drawn by where it lies. */
    const uint64_t place = (uint64_t)(row - floats(level->tensors.bias));
    const double shift = (double)(draw(all, 5, place) % 129) / 4 - 16;
    for (int64_t j = 0; j < p->key_length; j++) {
      row[j] = rintf(row[j] * 16) / 16;
      shifted_row[j] = row[j] + (float)shift;
    }
    for (int64_t r = 0; r < all->row_count; r++)
      if (all->rows[r] == n) shift_of[r] = shift;
  }
}

/* By the keys' first feature, which is 0 and then the same number in all of them. */
static void shift_keys(const properties *all, const inputs *level, const inputs *shifted, double *shift_of) {
  const attn_problem *p = &level->problem;
  const bool usual = fabs(p->scale) > 0x1p-40 && fabs(p->scale) < 0x1p40;
  const float feature = usual ? (float)(((double)(draw(all, 6, 0) % 65) / 4 - 8) / p->scale) : 1;
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->key_length; n++) {
    const int64_t b = n / p->key_length / p->kv_heads, h = n / p->key_length % p->kv_heads;
    row_at(level->tensors.key, &p->key, b, h, n % p->key_length)[0] = 0;
    row_at(shifted->tensors.key, &p->key, b, h, n % p->key_length)[0] = feature;
  }
  for (int64_t r = 0; r < all->row_count; r++) {
    const row_place at = row_place_of(p, all->rows[r]);
    shift_of[r] = p->scale * row_at(level->tensors.query, &p->query, at.b, at.h, at.i)[0] * feature;
  }
}

static bool make_shift(properties *all, char *why, size_t why_size) {
  const workload *w = &all->original->workload;
  if (!reference_function_of(w->function)->has_scores || w->sink || (w->softcap > 0 && !w->bias.present))
    return true;
  if (!begin(all, LEVEL, w, &whole, why, why_size) || !begin(all, SHIFTED, w, &whole, why, why_size))
    return false;
  (w->bias.present ? shift_bias : shift_keys)(all, &all->of[LEVEL].inputs, &all->of[SHIFTED].inputs,
                                              all->shifts);
  return finish(all, LEVEL, true, why, why_size) && finish(all, SHIFTED, true, why, why_size);
}

static bool make_layouts(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.layout = LAYOUT_BHTD;
  if (!make(all, BY_HEADS, &w, &whole, false, why, why_size)) return false;
  w.layout = LAYOUT_BTHD;
  return make(all, BY_POSITIONS, &w, &whole, false, why, why_size);
}

/* The first `keys` keys from `first` on. */
static workload cut(const workload *of, int64_t first, int64_t keys) {
  workload w = *of;
  w.key_length = keys;
  w.wants_lse = true;
  w.wants_weights = false;
  if (w.left != ATTN_UNLIMITED || w.right != ATTN_UNLIMITED) w.offset -= first;
  for (int64_t b = 0; b < w.batch; b++) {
    if (w.has_offsets) w.offsets[b] -= first;
    if (!w.has_lengths) continue;
    w.lengths[b] -= first;
    if (w.lengths[b] < 0) w.lengths[b] = 0;
    if (w.lengths[b] > keys) w.lengths[b] = keys;
  }
  return w;
}

/* A key of zeros has a score of 0, to which the bias adds the sink; and its value is zero. */
static bool make_sink_key(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (!w.sink || w.fill == FILL_NONFINITE || w.fill == FILL_LARGEST) return true;
  const attn_problem *given = &all->original->problem;
  const float *sink = all->original->tensors.sink;
  w.sink = w.wants_weights = w.has_offsets = w.has_lengths = false;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.key_length++;
  w.bias.present = w.bias.head = true;
  if (!begin(all, SINK_KEY, &w, &whole, why, why_size)) return false;
  const inputs *in = &all->of[SINK_KEY].inputs;
  const attn_problem *p = &in->problem;
  const int64_t last = given->key_length;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    float *bias = row_at(in->tensors.bias, &p->bias, at.b, at.h, at.i);
    for (int64_t j = 0; !given->bias.type && j < last; j++) bias[j] = 0;
    bias[last] = sink[at.h * given->sink.head];
    if (p->mask.type)
      ((uint8_t *)(uintptr_t)
           in->tensors.mask)[at.b * p->mask.batch + at.h * p->mask.head + at.i * p->mask.position + last] = 1;
  }
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->kv_heads; h++) {
      memset(row_at(in->tensors.key, &p->key, b, h, last), 0, (size_t)p->head_dim * sizeof(float));
      memset(row_at(in->tensors.value, &p->value, b, h, last), 0, (size_t)p->value_dim * sizeof(float));
    }
  return finish(all, SINK_KEY, true, why, why_size);
}

/* One key/value head of one entry, with the query heads that share it: all that the bits of their rows may depend
 * on. */
static bool make_isolated(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const int64_t group = w.query_heads / w.kv_heads;
  all->isolated_entry = (int64_t)(draw(all, 9, 0) % (uint64_t)w.batch);
  all->isolated_head = (int64_t)(draw(all, 9, 1) % (uint64_t)w.kv_heads);
  const source from = {.entry = all->isolated_entry,
                       .query_head = all->isolated_head * group,
                       .kv_head = all->isolated_head,
                       .group = 1};
  if (w.batch == 1 && w.kv_heads == 1) return true;
  w.batch = w.kv_heads = 1;
  w.query_heads = group;
  if (w.has_offsets) w.offsets[0] = w.offsets[all->isolated_entry];
  if (w.has_lengths) w.lengths[0] = w.lengths[all->isolated_entry];
  return make(all, ISOLATED, &w, &from, false, why, why_size);
}

/* One query position, as it is decoded. */
static bool make_decoded(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (w.query_length == 1) return true;
  all->decoded_query = (int64_t)(draw(all, 10, 0) % (uint64_t)w.query_length);
  const source from = {.query = all->decoded_query, .group = 1};
  w.query_length = 1;
  w.offset += all->decoded_query;
  if (w.offset > ATTN_FARTHEST) return true;
  for (int64_t b = 0; w.has_offsets && b < w.batch; b++) {
    w.offsets[b] += all->decoded_query;
    if (w.offsets[b] > ATTN_FARTHEST) return true;
  }
  return make(all, DECODED, &w, &from, false, why, why_size);
}

static bool make_halves(properties *all, char *why, size_t why_size) {
  const workload *w = &all->original->workload;
  if (!reference_function_of(w->function)->has_scores || w->key_length < 2) return true;
  const int64_t first = 1 + (int64_t)(draw(all, 7, 0) % (uint64_t)(w->key_length - 1));
  const workload before = cut(w, 0, first);
  workload behind = cut(w, first, w->key_length - first);
  behind.sink = false; /* it counts once */
  const source rest = {.key = first, .group = 1};
  if (behind.offset < -ATTN_FARTHEST) return true;
  for (int64_t b = 0; b < w->batch; b++)
    if (w->has_offsets && behind.offsets[b] < -ATTN_FARTHEST) return true;
  return make(all, FIRST_HALF, &before, &whole, true, why, why_size) &&
         make(all, SECOND_HALF, &behind, &rest, true, why, why_size);
}

/* A kernel that knows its inputs again by where they begin, or by what stands there, must not take these for the
 * original's. */
static bool make_other(properties *all, char *why, size_t why_size) {
  if (!begin(all, OTHER, &all->original->workload, &whole, why, why_size)) return false;
  inputs *in = &all->of[OTHER].inputs;
  in->workload.seed ^= 1;
  inputs_draw(in);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_layout *layout = tensor_layout(&in->problem, id);
    void *first = (void *)(uintptr_t)tensor_data(&in->tensors, id);
    if (!tensor_table[id].written && first && tensor_elements(&in->problem, id) > 0)
      memcpy(first, tensor_data(&all->original->tensors, id),
             (size_t)tensor_shape_of(&in->problem, id).width * element_type_of(layout->type)->bytes);
  }
  return finish(all, OTHER, true, why, why_size);
}

/* Nor one that knows a problem again by that. */
static bool make_rescaled(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.scale = all->original->problem.scale * 0.75;
  w.epsilon += 0.25;
  if (w.fill == FILL_EXACT || w.fill == FILL_POWERS) return true; /* which go with a scale */
  return make(all, RESCALED, &w, &whole, true, why, why_size);
}

/* Every third key of a head. */
static bool is_biased(const properties *all, int64_t b, int64_t kv_head, int64_t j) {
  const attn_problem *p = &all->original->problem;
  return draw(all, 11, (uint64_t)((b * p->kv_heads + kv_head) * p->key_length + j)) % 3 == 0;
}

/* Hides them, and of one query in eight all keys. */
static void bias_away(const properties *all, const inputs *in) {
  const attn_problem *p = &in->problem;
  const bool given = all->original->problem.bias.type;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    const int64_t kv_head = at.h / (p->query_heads / p->kv_heads);
    const bool hidden = draw(all, 12, (uint64_t)at.i) % 8 == 0;
    float *bias = row_at(in->tensors.bias, &p->bias, at.b, at.h, at.i);
    for (int64_t j = 0; j < p->key_length; j++)
      if (hidden || is_biased(all, at.b, kv_head, j))
        bias[j] = -INFINITY;
      else if (!given)
        bias[j] = 0;
  }
}

/* Large numbers stand in for others, so that a bias that only pushes a score down lets it be seen; but the scores that
 * they make are finite, and so -inf hides them. */
static bool make_biased(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const double scale = fabs(all->original->problem.scale);
  if (!reference_function_of(w.function)->has_scores || w.fill >= FILL_POWERS || scale > 0x1p6) return true;
  w.bias = (workload_axes){true, true, true, true};
  if (!begin(all, BIASED, &w, &whole, why, why_size)) return false;
  bias_away(all, &all->of[BIASED].inputs);
  if (!finish(all, BIASED, true, why, why_size) || !begin(all, UNSEEN, &w, &whole, why, why_size))
    return false;
  const inputs *in = &all->of[UNSEEN].inputs;
  const attn_problem *p = &in->problem;
  bias_away(all, in);
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->key_length; n++) {
    const int64_t b = n / p->key_length / p->kv_heads, h = n / p->key_length % p->kv_heads;
    const int64_t j = n % p->key_length;
    if (is_biased(all, b, h, j)) overwrite_key(in, b, h, j, 1e20f);
  }
  return finish(all, UNSEEN, false, why, why_size);
}

/* ---- The original's rows ---- */

static void find_least_and_most(properties *all, int64_t r) {
  const inputs *in = all->original;
  const attn_problem *p = &in->problem;
  const row_place at = row_place_of(p, all->rows[r]);
  float *least = all->least + r * p->value_dim, *most = all->most + r * p->value_dim;
  const float *bias = p->bias.type ? row_at(in->tensors.bias, &p->bias, at.b, at.h, at.i) : NULL;
  for (int64_t e = 0; e < p->value_dim; e++) least[e] = most[e] = NAN;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!sees(in, at.b, at.h, at.i, j) || (bias && bias[j] == -INFINITY)) continue;
    const float *value = row_at(in->tensors.value, &p->value, at.b, at.h / (p->query_heads / p->kv_heads), j);
    for (int64_t e = 0; e < p->value_dim; e++) {
      least[e] = fminf(least[e], value[e]); /* what is not NaN */
      most[e] = fmaxf(most[e], value[e]);
    }
  }
  /* With an epsilon or a sink the weights sum to less than one. */
  if (!reference_function_of(p->function)->has_scores || p->sink.type)
    for (int64_t e = 0; e < p->value_dim; e++) {
      least[e] = fminf(least[e], 0);
      most[e] = fmaxf(most[e], 0);
    }
}

static bool sample_rows(properties *all, const expected *known) {
  const attn_problem *p = &all->original->problem;
  int64_t count = known->rows;
  if (count > SAMPLED_ROWS) count = SAMPLED_ROWS;
  const size_t values = (size_t)count * (size_t)p->value_dim + 1;
  all->row_count = count;
  all->rows = calloc((size_t)count + 1, sizeof *all->rows);
  all->solved = calloc((size_t)count + 1, sizeof(reference_row *));
  all->shifts = calloc((size_t)count + 1, sizeof *all->shifts);
  all->least = calloc(values, sizeof *all->least);
  all->most = calloc(values, sizeof *all->most);
  if (!all->rows || !all->solved || !all->shifts || !all->least || !all->most) return false;
  for (int64_t r = 0; r < count; r++) {
    const int64_t n = count > 1 ? r * (known->rows - 1) / (count - 1) : 0;
    all->rows[r] = known->positions[n];
    all->solved[r] = &known->solved[n];
    find_least_and_most(all, r);
  }
  if (count > 0) all->lone_head = row_place_of(p, all->rows[draw(all, 8, 0) % (uint64_t)count]).h;
  return true;
}

static bool make_all(properties *all, char *why, size_t why_size) {
  for (int set = 0; set < SETS_OF_HIDDEN_KEYS; set++)
    if (!make_hidden(all, set, why, why_size)) return false;
  return make_front(all, why, why_size) && make_ones(all, why, why_size) && make_bands(all, why, why_size) &&
         make_groups(all, why, why_size) && make_order(all, why, why_size) &&
         make_shift(all, why, why_size) && make_layouts(all, why, why_size) &&
         make_halves(all, why, why_size) && make_isolated(all, why, why_size) &&
         make_decoded(all, why, why_size) && make_sink_key(all, why, why_size) &&
         make_other(all, why, why_size) && make_rescaled(all, why, why_size) &&
         make_biased(all, why, why_size);
}

properties *properties_prepare(inputs *in, const expected *known, char *why, size_t why_size) {
  properties *all = calloc(1, sizeof *all);
  snprintf(why, why_size, "no memory for the inputs of the properties");
  if (!all) return NULL;
  all->original = in;
  all->checksum = inputs_checksum(in);
  /* A problem without rows or keys has nothing to change. */
  if (sample_rows(all, known) &&
      (known->rows == 0 || in->problem.key_length == 0 || make_all(all, why, why_size)))
    return all;
  properties_destroy(all);
  return NULL;
}

void properties_destroy(properties *all) {
  for (int n = 0; n < ALTERED; n++) {
    inputs_destroy(&all->of[n].inputs);
    expected_destroy(&all->of[n].expected);
  }
  for (int set = 0; set < SETS_OF_HIDDEN_KEYS; set++) free(all->untouched[set]);
  free(all->rows);
  free(all->solved);
  free(all->shifts);
  free(all->least);
  free(all->most);
  free(all);
}

void properties_exchange(properties *all) {
  altered *other = &all->of[OTHER];
  const uint64_t checksum = all->checksum;
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (tensor_table[id].written) continue;
    unsigned char *ours = all->original->buffers[id].data, *theirs = other->inputs.buffers[id].data;
    for (size_t n = 0; n < all->original->buffers[id].bytes; n++) {
      const unsigned char byte = ours[n];
      ours[n] = theirs[n];
      theirs[n] = byte;
    }
  }
  all->checksum = other->checksum;
  other->checksum = checksum;
}

void properties_rescale(properties *all, bool rescaled) {
  const attn_problem with = workload_problem(rescaled ? &all->of[RESCALED].inputs.workload
                                                      : (const workload *)&all->original->workload);
  all->original->problem.scale = with.scale;
  all->original->problem.epsilon = with.epsilon;
}

void properties_undo_exchange(properties *all) {
  altered *other = &all->of[OTHER];
  const uint64_t checksum = all->checksum;
  inputs_restore(all->original);
  inputs_restore(&other->inputs);
  all->checksum = other->checksum;
  other->checksum = checksum;
}
