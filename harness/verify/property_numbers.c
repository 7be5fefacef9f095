/* Problems of other numbers, of which it follows what they do to the result: values of one, keys that nobody sees, a
 * constant in the scores, a key for the sink, a bias of -inf. Each is a number of the tensor's own type. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/fills.h"
#include "property_copies.h"
#include "reference/rows.h"

static void set_all(number_row of, int64_t count, double number) {
  for (int64_t n = 0; n < count; n++) row_set(of, n, number);
}

static int64_t query_rows(const attn_problem *p) { return p->batch * p->query_heads * p->query_length; }
static int64_t key_rows(const attn_problem *p) { return p->batch * p->kv_heads * p->key_length; }

static bool make_ones(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (!property_averages(&all->original->problem)) return true;
  w.epsilon = 0;
  property_leave_out_dropout(&w); /* what it leaves does not sum to one */
  if (!property_begin(all, ONES, &w, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[ONES].inputs;
  for (int64_t n = 0; n < key_rows(&in->problem); n++)
    set_all(row_at(in, TENSOR_VALUE, key_place_of(&in->problem, n)), in->problem.value_dim, 1);
  return property_finish(all, ONES, true, why, why_size);
}

/* ---- Keys that some rows cannot see ---- */

/* Of every head, the keys that its first query head's row i cannot see. Where rows see everything there are
 * none, and a whole head is taken instead: other heads cannot see it. Returns false when there is no other. */
static bool choose_hidden(const properties *all, int set, bool *chosen) {
  const inputs *in = all->original;
  const attn_problem *p = &in->problem;
  const int64_t heads = p->batch * p->kv_heads, group = p->query_heads / p->kv_heads;
  const int64_t i = (int64_t)(property_draw(all, 1, (uint64_t)set) % (uint64_t)p->query_length);
  bool any = false;
  for (int64_t n = 0; n < key_rows(p); n++) {
    const row_place key = key_place_of(p, n);
    chosen[n] = !property_sees(in, (row_place){key.b, key.h * group, i}, key.i);
    any = any || chosen[n];
  }
  if (any && set < SETS_OF_HIDDEN_KEYS - 1) return true;
  if (heads < 2) return any;
  const int64_t taken = (int64_t)(property_draw(all, 2, (uint64_t)set) % (uint64_t)heads);
  for (int64_t n = 0; n < key_rows(p); n++) chosen[n] = n / p->key_length == taken;
  return true;
}

/* Rows that see none of the chosen keys; false when there are none. */
static bool find_untouched(const inputs *in, const bool *chosen, bool *untouched) {
  const attn_problem *p = &in->problem;
  bool any = false;
  for (int64_t n = 0; n < query_rows(p); n++) {
    const row_place at = row_place_of(p, n);
    const bool *keys = chosen + (at.b * p->kv_heads + at.h / (p->query_heads / p->kv_heads)) * p->key_length;
    untouched[n] = true;
    for (int64_t j = 0; j < p->key_length && untouched[n]; j++)
      untouched[n] = !(keys[j] && property_sees(in, at, j));
    any = any || untouched[n];
  }
  return any;
}

/* What is too large for the type becomes its largest number, and not infinity. */
static void overwrite(number_row of, int64_t count, double number) {
  set_all(of, count, isfinite(number) ? fmin(number, of.type->largest) : number);
}

static void overwrite_key(const inputs *in, int64_t n, double number) {
  const row_place at = key_place_of(&in->problem, n);
  overwrite(row_at(in, TENSOR_KEY, at), in->problem.head_dim, number);
  overwrite(row_at(in, TENSOR_VALUE, at), in->problem.value_dim, number);
  if (in->problem.decay.type) {
    const row_place head = {at.b, at.h, 0};
    *(float *)(void *)row_element(row_at(in, TENSOR_DECAY, head), at.i) = (float)number;
  }
}

static bool make_hidden(properties *all, int set, char *why, size_t why_size) {
  static const double numbers[SETS_OF_HIDDEN_KEYS] = {(double)NAN, 1e30, (double)INFINITY};
  const attn_problem *p = &all->original->problem;
  bool *chosen = calloc((size_t)key_rows(p) + 1, sizeof *chosen);
  all->untouched[set] = calloc((size_t)query_rows(p) + 1, sizeof(bool));
  bool had_memory = chosen && all->untouched[set];
  if (had_memory && choose_hidden(all, set, chosen) &&
      find_untouched(all->original, chosen, all->untouched[set])) {
    had_memory =
        property_begin(all, HIDDEN_KEYS + set, &all->original->workload, &property_whole, why, why_size);
    for (int64_t n = 0; had_memory && n < key_rows(p); n++)
      if (chosen[n]) overwrite_key(&all->of[HIDDEN_KEYS + set].inputs, n, numbers[set]);
    had_memory = had_memory && property_finish(all, HIDDEN_KEYS + set, false, why, why_size);
  }
  free(chosen);
  return had_memory;
}

/* ---- A constant in the scores ---- */

/* By the bias. Of 16 bits, multiples of an eighth up to 32 are exact: the bias is rounded to these, and what is too
 * large for a constant to be added to it hides its key. */
static void shift_bias(const properties *all, const inputs *level, const inputs *shifted, double *shift_of) {
  const attn_problem *p = &level->problem;
  const unsigned char *first = tensor_data(&level->problem, &level->tensors, TENSOR_BIAS);
  for (int64_t n = 0; n < query_rows(p); n++) {
    const row_place at = row_place_of(p, n);
    const number_row bias = row_at(level, TENSOR_BIAS, at), moved = row_at(shifted, TENSOR_BIAS, at);
    /* The same constant for all rows that share this one: drawn by where it lies. */
    const uint64_t place = (uint64_t)(bias.first - first) / bias.type->bytes;
    const double shift = (double)(property_draw(all, 5, place) % 129) / 4 - 16;
    for (int64_t j = 0; j < p->key_length; j++) {
      const double rounded = rint(row_number(bias, j) * 8) / 8;
      const double whole = isfinite(rounded) && fabs(rounded) > 8 ? -INFINITY : rounded;
      row_set(bias, j, whole);
      row_set(moved, j, whole + shift);
    }
    for (int64_t r = 0; r < all->row_count; r++)
      if (all->rows[r] == n) shift_of[r] = shift;
  }
}

/* By the keys' first feature, which is 0 and then the same number in all of them, as the type has it. */
static void shift_keys(const properties *all, const inputs *level, const inputs *shifted, double *shift_of) {
  const attn_problem *p = &level->problem;
  const double wanted = ((double)(property_draw(all, 6, 0) % 65) / 4 - 8) / p->scale, size = fabs(wanted);
  const element_type *type = element_type_of(p->key.type);
  const bool usual =
      wanted == 0 || (size >= fmax(type->smallest_normal, 0x1p-40) && size <= fmin(type->largest, 0x1p40));
  double feature = 1;
  for (int64_t n = 0; n < key_rows(p); n++) {
    const row_place at = key_place_of(p, n);
    row_set(row_at(level, TENSOR_KEY, at), 0, 0);
    row_set(row_at(shifted, TENSOR_KEY, at), 0, usual ? wanted : 1);
    feature = row_number(row_at(shifted, TENSOR_KEY, at), 0);
  }
  for (int64_t r = 0; r < all->row_count; r++) {
    const row_place at = row_place_of(p, all->rows[r]);
    shift_of[r] = p->scale * row_number(row_at(level, TENSOR_QUERY, at), 0) * feature;
  }
}

static bool make_shift(properties *all, char *why, size_t why_size) {
  const workload *w = &all->original->workload;
  if (!reference_function_of(w->function)->has_scores || w->sink || (w->softcap > 0 && !w->bias.present))
    return true;
  /* A feature of the keys is turned, or meets others of the query, or is added to its own. */
  if ((w->rope != ROPE_NONE || w->general || w->additive) && !w->bias.present) return true;
  if (!property_begin(all, LEVEL, w, &property_whole, why, why_size) ||
      !property_begin(all, SHIFTED, w, &property_whole, why, why_size))
    return false;
  (w->bias.present ? shift_bias : shift_keys)(all, &all->of[LEVEL].inputs, &all->of[SHIFTED].inputs,
                                              all->shifts);
  return property_finish(all, LEVEL, true, why, why_size) &&
         property_finish(all, SHIFTED, true, why, why_size);
}

/* ---- A key for the sink ---- */

/* A key of zeros has a score of 0, to which the bias adds the sink; and its value is zero. An additive score of it is
 * the query's. */
static bool make_sink_key(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (!w.sink || w.additive || w.fill == FILL_NONFINITE || w.fill == FILL_LARGEST) return true;
  const int64_t last = w.key_length++;
  const bool given = w.bias.present;
  w.sink = w.wants_weights = w.has_offsets = w.has_lengths = false;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  property_leave_out_pattern(&w);
  property_leave_out_position(&w);
  property_leave_out_rope(&w);
  w.bias.present = w.bias.head = true;
  if (!property_begin(all, SINK_KEY, &w, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[SINK_KEY].inputs, *plain = &all->of[PLAIN].inputs;
  const attn_problem *p = &in->problem;
  for (int64_t n = 0; n < query_rows(p); n++) {
    const row_place at = row_place_of(p, n);
    const number_row bias = row_at(in, TENSOR_BIAS, at);
    if (!given) set_all(bias, last, 0);
    row_set(bias, last, row_number(row_at(plain, TENSOR_SINK, (row_place){.h = at.h}), 0));
    if (p->mask.type) *row_element(row_at(in, TENSOR_MASK, at), last) = 1;
  }
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->kv_heads; h++) {
      set_all(row_at(in, TENSOR_KEY, (row_place){b, h, last}), p->head_dim, 0);
      set_all(row_at(in, TENSOR_VALUE, (row_place){b, h, last}), p->value_dim, 0);
    }
  return property_finish(all, SINK_KEY, true, why, why_size);
}

/* ---- A bias for what positions add ---- */

static bool make_as_bias(properties *all, char *why, size_t why_size) {
  const attn_problem *p = &all->original->problem;
  workload w = all->original->workload;
  if (!attn_has_position_bias(p)) return true;
  property_leave_out_position(&w);
  w.bias = (workload_axes){true, true, true, true};
  if (!property_begin(all, AS_BIAS, &w, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[AS_BIAS].inputs;
  for (int64_t n = 0; n < query_rows(p); n++) {
    const row_place at = row_place_of(p, n);
    const number_row bias = row_at(in, TENSOR_BIAS, at);
    for (int64_t j = 0; j < p->key_length; j++)
      row_set(bias, j,
              (p->bias.type ? row_number(bias, j) : 0) + reference_position(p, at.b, at.h, at.i, j).sum);
  }
  return property_finish(all, AS_BIAS, true, why, why_size);
}

/* ---- Positions that are all shifted ---- */

/* By a few, or by thousands. */
static bool make_farther(properties *all, char *why, size_t why_size) {
  const attn_problem *p = &all->original->problem;
  /* A matrix between two rotations undoes what they have in common, and so does a sum of both. */
  if (!p->rope_cos.type || p->general.type || p->additive.type) return true;
  if (!property_begin(all, FARTHER, &all->original->workload, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[FARTHER].inputs;
  const int64_t by = 1 + (int64_t)(property_draw(all, 13, 0) % (property_draw(all, 13, 1) % 2 ? 8 : 4096));
  for (int64_t n = 0; n < p->rope_positions; n++)
    for (int64_t pair = 0; pair < p->rope_features / 2; pair++) {
      float cosine, sine;
      fill_angle(n + by, pair, p->rope_features, &cosine, &sine);
      row_set(row_at(in, TENSOR_ROPE_COS, (row_place){.i = n}), pair, cosine);
      row_set(row_at(in, TENSOR_ROPE_SIN, (row_place){.i = n}), pair, sine);
    }
  return property_finish(all, FARTHER, true, why, why_size);
}

/* ---- General scores that are products ---- */

static bool make_general(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (!w.general) return true;
  if (!property_begin(all, BY_ONE, &w, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[BY_ONE].inputs;
  const attn_problem *p = &in->problem;
  for (int64_t n = 0; n < p->query_heads * p->head_dim; n++) {
    const row_place at = {.h = n / p->head_dim, .i = n % p->head_dim};
    for (int64_t e = 0; e < p->head_dim; e++) row_set(row_at(in, TENSOR_GENERAL, at), e, e == at.i);
  }
  if (!property_finish(all, BY_ONE, true, why, why_size)) return false;
  property_leave_out_general(&w);
  return property_make(all, AS_DOT, &w, &property_whole, true, why, why_size);
}

/* ---- A vector that moves from the keys to the queries ---- */

/* Every type has eighths up to 32 exactly; what is too large for it, or no number, becomes 0. */
static double in_eighths(double number) {
  const double rounded = rint(number * 8) / 8;
  return fabs(rounded) <= 16 ? rounded : 0;
}

static void move_rows(const properties *all, tensor_id id, int64_t count, bool of_queries) {
  const attn_problem *p = &all->original->problem;
  for (int64_t n = 0; n < count; n++) {
    const row_place at = of_queries ? row_place_of(p, n) : key_place_of(p, n);
    const number_row level = row_at(&all->of[UNMOVED].inputs, id, at),
                     moved = row_at(&all->of[MOVED].inputs, id, at);
    for (int64_t d = 0; d < p->head_dim; d++) {
      const double by = (double)(property_draw(all, 14, (uint64_t)d) % 129) / 8 - 8;
      const double number = in_eighths(row_number(level, d));
      row_set(level, d, number);
      row_set(moved, d, of_queries ? number + by : number - by);
    }
  }
}

static bool make_moved(properties *all, char *why, size_t why_size) {
  const workload *w = &all->original->workload;
  if (!w->additive || w->rope != ROPE_NONE) return true;
  if (!property_begin(all, UNMOVED, w, &property_whole, why, why_size) ||
      !property_begin(all, MOVED, w, &property_whole, why, why_size))
    return false;
  move_rows(all, TENSOR_QUERY, query_rows(&all->original->problem), true);
  move_rows(all, TENSOR_KEY, key_rows(&all->original->problem), false);
  return property_finish(all, UNMOVED, true, why, why_size) &&
         property_finish(all, MOVED, true, why, why_size);
}

/* ---- Nothing dropped ---- */

static bool make_kept(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (!all->original->problem.keep.type) return true;
  w.dropout_p = 0;
  if (!property_begin(all, ALL_KEPT, &w, &property_whole, why, why_size)) return false;
  const inputs *in = &all->of[ALL_KEPT].inputs;
  for (int64_t n = 0; n < query_rows(&in->problem); n++)
    memset(row_at(in, TENSOR_KEEP, row_place_of(&in->problem, n)).first, 1, (size_t)w.key_length);
  if (!property_finish(all, ALL_KEPT, true, why, why_size)) return false;
  property_leave_out_dropout(&w);
  return property_make(all, UNDROPPED, &w, &property_whole, true, why, why_size);
}

/* ---- A bias of -inf ---- */

/* Every third key of a head. */
static bool is_biased(const properties *all, int64_t b, int64_t kv_head, int64_t j) {
  const attn_problem *p = &all->original->problem;
  return property_draw(all, 11, (uint64_t)((b * p->kv_heads + kv_head) * p->key_length + j)) % 3 == 0;
}

/* Hides them, and of one query in eight all keys. */
static void bias_away(const properties *all, const inputs *in) {
  const attn_problem *p = &in->problem;
  const bool given = all->original->problem.bias.type;
  for (int64_t n = 0; n < query_rows(p); n++) {
    const row_place at = row_place_of(p, n);
    const int64_t kv_head = at.h / (p->query_heads / p->kv_heads);
    const bool hidden = property_draw(all, 12, (uint64_t)at.i) % 8 == 0;
    const number_row bias = row_at(in, TENSOR_BIAS, at);
    for (int64_t j = 0; j < p->key_length; j++)
      if (hidden || is_biased(all, at.b, kv_head, j))
        row_set(bias, j, -INFINITY);
      else if (!given)
        row_set(bias, j, 0);
  }
}

/* Large numbers stand in for others, so that a bias that only pushes a score down lets it be seen; but the scores that
 * they make are finite, and so -inf hides them. */
static bool make_biased(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const double scale = fabs(all->original->problem.scale);
  if (!reference_function_of(w.function)->has_scores || w.fill >= FILL_POWERS || scale > 0x1p6) return true;
  w.bias = (workload_axes){true, true, true, true};
  if (!property_begin(all, BIASED, &w, &property_whole, why, why_size)) return false;
  bias_away(all, &all->of[BIASED].inputs);
  if (!property_finish(all, BIASED, true, why, why_size) ||
      !property_begin(all, UNSEEN, &w, &property_whole, why, why_size))
    return false;
  const inputs *in = &all->of[UNSEEN].inputs;
  bias_away(all, in);
  for (int64_t n = 0; n < key_rows(&in->problem); n++) {
    const row_place key = key_place_of(&in->problem, n);
    if (is_biased(all, key.b, key.h, key.i)) overwrite_key(in, n, 1e20);
  }
  return property_finish(all, UNSEEN, false, why, why_size);
}

bool property_make_numbers(properties *all, char *why, size_t why_size) {
  for (int set = 0; set < SETS_OF_HIDDEN_KEYS; set++)
    if (!make_hidden(all, set, why, why_size)) return false;
  return make_ones(all, why, why_size) && make_shift(all, why, why_size) &&
         make_sink_key(all, why, why_size) && make_as_bias(all, why, why_size) &&
         make_farther(all, why, why_size) && make_kept(all, why, why_size) &&
         make_general(all, why, why_size) && make_moved(all, why, why_size) &&
         make_biased(all, why, why_size);
}
