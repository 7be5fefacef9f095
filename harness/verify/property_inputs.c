/* Each of the inputs is made of a changed workload, whose own numbers are then replaced by those of the original
 * problem, so that everything but the change is the same. */
#include "property_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { SAMPLED_ROWS = 24 };

/* Which key/value row, and which head, of the original a row of the copy is. */
typedef struct key_map {
  int64_t group;        /* heads of the copy to one key/value head of the original */
  int64_t first;        /* key 0 of the copy */
  const int64_t *order; /* or: each key of the copy; NULL: one after the other */
} key_map;

static const key_map same_keys = {1, 0, NULL};

static uint64_t draw(const properties *all, uint64_t purpose, uint64_t n) {
  return random_bits(random_mixed(all->original->workload.seed) + purpose, n);
}

/* ---- Copies ---- */

/* The copies are ours to change. */
static float *floats(const void *data) { return (float *)(uintptr_t)data; }

static float *row_at(const void *data, const attn_strides *s, int64_t b, int64_t h, int64_t i) {
  return floats(data) + b * s->batch + h * s->head + i * s->position;
}

static int64_t key_of(const key_map *map, int64_t j) { return map->order ? map->order[j] : map->first + j; }

static void copy_queries(const properties *all, inputs *to, bool alone) {
  const attn_problem *p = &to->problem, *from = &all->original->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++)
        memcpy(row_at(to->tensors.query, &p->query, b, h, i),
               row_at(all->original->tensors.query, &from->query, b, alone ? all->lone_head : h, i),
               (size_t)p->head_dim * sizeof(float));
}

static void copy_keys(const properties *all, inputs *to, const key_map *map, bool alone) {
  const attn_problem *p = &to->problem, *from = &all->original->problem;
  const attn_tensors *given = &all->original->tensors;
  const int64_t lone = alone ? all->lone_head / (from->query_heads / from->kv_heads) : 0;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->kv_heads; h++)
      for (int64_t j = 0; j < p->key_length; j++) {
        const int64_t head = alone ? lone : h / map->group, key = key_of(map, j);
        memcpy(row_at(to->tensors.key, &p->key, b, h, j), row_at(given->key, &from->key, b, head, key),
               (size_t)p->head_dim * sizeof(float));
        memcpy(row_at(to->tensors.value, &p->value, b, h, j),
               row_at(given->value, &from->value, b, head, key), (size_t)p->value_dim * sizeof(float));
      }
}

/* Axes that a mask or bias does not vary over are written once for each place on them, with the same numbers. */
static void copy_mask_and_bias(const properties *all, inputs *to, const key_map *map, bool alone) {
  const attn_problem *p = &to->problem, *from = &all->original->problem;
  const attn_tensors *given = &all->original->tensors;
  if (!p->has_mask && !p->has_bias) return;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) {
        const int64_t head = alone ? all->lone_head : h;
        uint8_t *mask = (uint8_t *)(uintptr_t)to->tensors.mask + b * p->mask.batch + h * p->mask.head +
                        i * p->mask.position;
        const uint8_t *given_mask =
            given->mask + b * from->mask.batch + head * from->mask.head + i * from->mask.position;
        float *bias = row_at(to->tensors.bias, &p->bias, b, h, i);
        const float *given_bias = row_at(given->bias, &from->bias, b, head, i);
        for (int64_t j = 0; j < p->key_length; j++) {
          if (p->has_mask) mask[j] = given_mask[key_of(map, j)];
          if (p->has_bias) bias[j] = given_bias[key_of(map, j)];
        }
      }
}

/* Until finish the inputs may be changed further. */
static bool begin(properties *all, altered_kind kind, const workload *w, const key_map *map, char *why,
                  size_t why_size) {
  altered *made = &all->of[kind];
  if (!inputs_create(&made->inputs, w, false, why, why_size)) return false;
  made->made = true;
  copy_queries(all, &made->inputs, kind == ALONE);
  copy_keys(all, &made->inputs, map, kind == ALONE);
  copy_mask_and_bias(all, &made->inputs, map, kind == ALONE);
  return true;
}

static bool finish(properties *all, altered_kind kind, bool with_bounds, char *why, size_t why_size) {
  altered *made = &all->of[kind];
  made->checksum = inputs_checksum(&made->inputs);
  return !with_bounds ||
         expected_solve_rows(&made->expected, &made->inputs, all->rows, all->row_count, why, why_size);
}

static bool make(properties *all, altered_kind kind, const workload *w, const key_map *map, bool with_bounds,
                 char *why, size_t why_size) {
  return begin(all, kind, w, map, why, why_size) && finish(all, kind, with_bounds, why, why_size);
}

/* ---- What the properties change ---- */

static bool make_front(properties *all, char *why, size_t why_size) {
  return begin(all, AT_THE_FRONT, &all->original->workload, &same_keys, why, why_size) &&
         inputs_move_to_front(&all->of[AT_THE_FRONT].inputs, why, why_size) &&
         finish(all, AT_THE_FRONT, false, why, why_size);
}

static bool make_ones(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.epsilon = 0;
  if (!begin(all, ONES, &w, &same_keys, why, why_size)) return false;
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
  return !p->has_mask ||
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

static void overwrite(const inputs *in, const bool *chosen, float number) {
  const attn_problem *p = &in->problem;
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->key_length; n++) {
    if (!chosen[n]) continue;
    const int64_t b = n / p->key_length / p->kv_heads, h = n / p->key_length % p->kv_heads;
    float *key = row_at(in->tensors.key, &p->key, b, h, n % p->key_length);
    float *value = row_at(in->tensors.value, &p->value, b, h, n % p->key_length);
    for (int64_t d = 0; d < p->head_dim; d++) key[d] = number;
    for (int64_t e = 0; e < p->value_dim; e++) value[e] = number;
  }
}

static bool make_hidden(properties *all, int set, char *why, size_t why_size) {
  static const float numbers[SETS_OF_HIDDEN_KEYS] = {NAN, 1e30f, INFINITY};
  const attn_problem *p = &all->original->problem;
  bool *chosen = calloc((size_t)(p->batch * p->kv_heads * p->key_length) + 1, sizeof *chosen);
  all->untouched[set] = calloc((size_t)(p->batch * p->query_heads * p->query_length) + 1, sizeof(bool));
  bool had_memory = chosen && all->untouched[set];
  if (had_memory && choose_hidden(all, set, chosen) &&
      find_untouched(all->original, chosen, all->untouched[set])) {
    had_memory = begin(all, HIDDEN_KEYS + set, &all->original->workload, &same_keys, why, why_size);
    if (had_memory) {
      overwrite(&all->of[HIDDEN_KEYS + set].inputs, chosen, numbers[set]);
      had_memory = finish(all, HIDDEN_KEYS + set, false, why, why_size);
    }
  }
  free(chosen);
  return had_memory;
}

/* Linear attention knows no limit on the left. */
static bool make_bands(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = false;
  if (!make(all, FULL, &w, &same_keys, false, why, why_size)) return false;
  w.right = w.key_length - 1 + (int64_t)(draw(all, 3, 0) % 2);
  if (w.function == ATTN_SOFTMAX) w.left = w.query_length - 1 + (int64_t)(draw(all, 3, 1) % 2);
  return make(all, WIDE, &w, &same_keys, false, why, why_size);
}

static bool make_groups(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const key_map map = {w.query_heads / w.kv_heads, 0, NULL};
  if (w.query_heads == 1) return true;
  if (map.group > 1) {
    w.kv_heads = w.query_heads;
    if (!make(all, REPEATED, &w, &map, false, why, why_size)) return false;
  }
  w.query_heads = w.kv_heads = 1;
  return make(all, ALONE, &w, &same_keys, false, why, why_size);
}

static bool make_order(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = w.has_lengths = false;
  int64_t *order = malloc(((size_t)w.key_length + 1) * sizeof *order);
  bool had_memory = order && make(all, PLAIN, &w, &same_keys, true, why, why_size);
  for (int64_t j = 0; had_memory && j < w.key_length; j++) { /* Fisher and Yates */
    const int64_t other = (int64_t)(draw(all, 4, (uint64_t)j) % (uint64_t)(j + 1));
    if (other < j) order[j] = order[other];
    order[other] = j;
  }
  const key_map map = {1, 0, order};
  had_memory = had_memory && make(all, REORDERED, &w, &map, true, why, why_size);
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
  if (w->function == ATTN_LINEAR || (w->softcap > 0 && !w->bias.present)) return true;
  if (!begin(all, LEVEL, w, &same_keys, why, why_size) || !begin(all, SHIFTED, w, &same_keys, why, why_size))
    return false;
  (w->bias.present ? shift_bias : shift_keys)(all, &all->of[LEVEL].inputs, &all->of[SHIFTED].inputs,
                                              all->shifts);
  return finish(all, LEVEL, true, why, why_size) && finish(all, SHIFTED, true, why, why_size);
}

static bool make_layouts(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.layout = LAYOUT_BHTD;
  if (!make(all, BY_HEADS, &w, &same_keys, false, why, why_size)) return false;
  w.layout = LAYOUT_BTHD;
  return make(all, BY_POSITIONS, &w, &same_keys, false, why, why_size);
}

/* The first `keys` keys from `first` on. */
static workload cut(const workload *whole, int64_t first, int64_t keys) {
  workload w = *whole;
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

static bool make_halves(properties *all, char *why, size_t why_size) {
  const workload *whole = &all->original->workload;
  if (whole->function == ATTN_LINEAR || whole->key_length < 2) return true;
  const int64_t first = 1 + (int64_t)(draw(all, 7, 0) % (uint64_t)(whole->key_length - 1));
  const workload before = cut(whole, 0, first), behind = cut(whole, first, whole->key_length - first);
  const key_map map = {1, first, NULL};
  if (behind.offset < -ATTN_FARTHEST) return true;
  for (int64_t b = 0; b < whole->batch; b++)
    if (whole->has_offsets && behind.offsets[b] < -ATTN_FARTHEST) return true;
  return make(all, FIRST_HALF, &before, &same_keys, true, why, why_size) &&
         make(all, SECOND_HALF, &behind, &map, true, why, why_size);
}

/* ---- The original's rows ---- */

static void find_least_and_most(properties *all, int64_t r) {
  const inputs *in = all->original;
  const attn_problem *p = &in->problem;
  const row_place at = row_place_of(p, all->rows[r]);
  float *least = all->least + r * p->value_dim, *most = all->most + r * p->value_dim;
  const float *bias = p->has_bias ? row_at(in->tensors.bias, &p->bias, at.b, at.h, at.i) : NULL;
  for (int64_t e = 0; e < p->value_dim; e++) least[e] = most[e] = NAN;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!sees(in, at.b, at.h, at.i, j) || (bias && bias[j] == -INFINITY)) continue;
    const float *value = row_at(in->tensors.value, &p->value, at.b, at.h / (p->query_heads / p->kv_heads), j);
    for (int64_t e = 0; e < p->value_dim; e++) {
      least[e] = fminf(least[e], value[e]); /* what is not NaN */
      most[e] = fmaxf(most[e], value[e]);
    }
  }
  /* With an epsilon the weights of linear attention sum to less than one. */
  if (p->function == ATTN_LINEAR)
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
         make_halves(all, why, why_size);
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
