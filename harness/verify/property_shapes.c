/* Problems that are asked otherwise of the same numbers: under another band or layout, with other heads, with some of
 * the keys or queries, in another order or at other addresses. */
#include <stdlib.h>
#include <string.h>

#include "property_copies.h"
#include "reference/reference.h"

static bool make_front(properties *all, char *why, size_t why_size) {
  return property_begin(all, AT_THE_FRONT, &all->original->workload, &property_whole, why, why_size) &&
         inputs_move_to_front(&all->of[AT_THE_FRONT].inputs, why, why_size) &&
         property_finish(all, AT_THE_FRONT, false, why, why_size);
}

/* Without scores there is no limit on the left. */
static bool make_bands(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = false;
  if (!property_make(all, FULL, &w, &property_whole, false, why, why_size)) return false;
  w.right = w.key_length - 1 + (int64_t)(property_draw(all, 3, 0) % 2);
  if (reference_function_of(w.function)->has_scores)
    w.left = w.query_length - 1 + (int64_t)(property_draw(all, 3, 1) % 2);
  return property_make(all, WIDE, &w, &property_whole, false, why, why_size);
}

static bool make_groups(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const source repeated = {.group = w.query_heads / w.kv_heads};
  const source alone = {.query_head = all->lone_head, .kv_head = all->lone_head / repeated.group, .group = 1};
  if (w.query_heads == 1) return true;
  if (repeated.group > 1) {
    w.kv_heads = w.query_heads;
    if (!property_make(all, REPEATED, &w, &repeated, false, why, why_size)) return false;
  }
  w.query_heads = w.kv_heads = 1;
  return property_make(all, ALONE, &w, &alone, false, why, why_size);
}

/* As a bias of the problem's type can have them: SINK_KEY makes one of each. */
static void round_sinks(const inputs *in) {
  const element_type *type = element_type_of(in->problem.query.type);
  unsigned char rounded[sizeof(double)];
  for (int64_t h = 0; in->problem.sink.type && h < in->problem.query_heads; h++) {
    const number_row sink = row_at(in, TENSOR_SINK, (row_place){.h = h});
    type->store(rounded, row_number(sink, 0));
    row_set(sink, 0, type->load(rounded));
  }
}

static bool make_unlimited(properties *all, altered_kind kind, const workload *w, const source *from,
                           char *why, size_t why_size) {
  if (!property_begin(all, kind, w, from, why, why_size)) return false;
  round_sinks(&all->of[kind].inputs);
  return property_finish(all, kind, true, why, why_size);
}

static bool make_order(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.left = w.right = ATTN_UNLIMITED;
  w.offset = 0;
  w.has_offsets = w.has_lengths = false;
  property_leave_out_pattern(&w);
  property_leave_out_position(&w);
  property_leave_out_rope(&w);
  int64_t *order = malloc(((size_t)w.key_length + 1) * sizeof *order);
  bool had_memory = order && make_unlimited(all, PLAIN, &w, &property_whole, why, why_size);
  for (int64_t j = 0; had_memory && j < w.key_length; j++) { /* Fisher and Yates */
    const int64_t other = (int64_t)(property_draw(all, 4, (uint64_t)j) % (uint64_t)(j + 1));
    if (other < j) order[j] = order[other];
    order[other] = j;
  }
  const source reordered = {.group = 1, .order = order};
  had_memory = had_memory && make_unlimited(all, REORDERED, &w, &reordered, why, why_size);
  free(order);
  return had_memory;
}

static bool make_layouts(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.layout = LAYOUT_BHTD;
  if (!property_make(all, BY_HEADS, &w, &property_whole, false, why, why_size)) return false;
  w.layout = LAYOUT_BTHD;
  return property_make(all, BY_POSITIONS, &w, &property_whole, false, why, why_size);
}

/* The first `keys` keys from `first` on. */
static workload cut(const workload *of, int64_t first, int64_t keys) {
  workload w = *of;
  w.key_length = keys;
  w.wants_lse = true;
  w.wants_weights = false;
  const attn_problem p = workload_problem(of);
  const bool has_place = attn_has_position_bias(&p) || p.rope_cos.type;
  if (w.left != ATTN_UNLIMITED || w.right != ATTN_UNLIMITED || has_place) w.offset -= first;
  for (int64_t b = 0; b < w.batch; b++) {
    if (w.has_offsets) w.offsets[b] -= first;
    if (!w.has_lengths) continue;
    w.lengths[b] -= first;
    if (w.lengths[b] < 0) w.lengths[b] = 0;
    if (w.lengths[b] > keys) w.lengths[b] = keys;
  }
  return w;
}

/* One key/value head of one entry, with the query heads that share it: all that the bits of their rows may depend
 * on. */
static bool make_isolated(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  const int64_t group = w.query_heads / w.kv_heads;
  all->isolated_entry = (int64_t)(property_draw(all, 9, 0) % (uint64_t)w.batch);
  all->isolated_head = (int64_t)(property_draw(all, 9, 1) % (uint64_t)w.kv_heads);
  const source from = {.entry = all->isolated_entry,
                       .query_head = all->isolated_head * group,
                       .kv_head = all->isolated_head,
                       .group = 1};
  if (w.batch == 1 && w.kv_heads == 1) return true;
  w.batch = w.kv_heads = 1;
  w.query_heads = group;
  if (w.has_offsets) w.offsets[0] = w.offsets[all->isolated_entry];
  if (w.has_lengths) w.lengths[0] = w.lengths[all->isolated_entry];
  if (w.has_query_lengths) w.query_lengths[0] = w.query_lengths[all->isolated_entry];
  return property_make(all, ISOLATED, &w, &from, false, why, why_size);
}

/* One query position, as it is decoded. */
static bool make_decoded(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  if (w.query_length == 1) return true;
  all->decoded_query = (int64_t)(property_draw(all, 10, 0) % (uint64_t)w.query_length);
  const source from = {.query = all->decoded_query, .group = 1};
  w.query_length = 1;
  for (int64_t b = 0; w.has_query_lengths && b < w.batch; b++)
    w.query_lengths[b] = w.query_lengths[b] > all->decoded_query;
  w.offset += all->decoded_query;
  if (w.offset > ATTN_FARTHEST) return true;
  for (int64_t b = 0; w.has_offsets && b < w.batch; b++) {
    w.offsets[b] += all->decoded_query;
    if (w.offsets[b] > ATTN_FARTHEST) return true;
  }
  return property_make(all, DECODED, &w, &from, false, why, why_size);
}

/* No query is left at a position that has no place, or no angle. */
static bool stands_in_tables(const workload *w) {
  const int64_t least = w->rope == ROPE_NONE ? -ATTN_FARTHEST : 0;
  bool stands = w->has_offsets || w->offset >= least;
  for (int64_t b = 0; w->has_offsets && b < w->batch; b++) stands = stands && w->offsets[b] >= least;
  return stands;
}

/* Of keys behind the first query there is no half with a rotary embedding, for which it would stand before 0. */
static int64_t keys_before(const properties *all, const workload *w) {
  int64_t most = w->key_length - 1, least = w->offset;
  for (int64_t b = 0; w->has_offsets && b < w->batch; b++)
    if (b == 0 || w->offsets[b] < least) least = w->offsets[b];
  if (w->rope != ROPE_NONE && least > 0 && least < most) most = least;
  return 1 + (int64_t)(property_draw(all, 7, 0) % (uint64_t)most);
}

static bool make_halves(properties *all, char *why, size_t why_size) {
  workload whole = all->original->workload, *w = &whole;
  if (!reference_function_of(w->function)->has_scores || w->key_length < 2) return true;
  const int64_t first = keys_before(all, w);
  source start = property_whole, rest = {.key = first, .group = 1};
  property_pattern_to_mask(all, w, &start);
  rest.with_pattern = start.with_pattern;
  const workload before = cut(w, 0, first);
  workload behind = cut(w, first, w->key_length - first);
  behind.sink = false; /* it counts once */
  if (!stands_in_tables(&behind)) return true;
  return property_make(all, FIRST_HALF, &before, &start, true, why, why_size) &&
         property_make(all, SECOND_HALF, &behind, &rest, true, why, why_size);
}

/* A kernel that knows its inputs again by where they begin, or by what stands there, must not take these for the
 * original's. */
static bool make_other(properties *all, char *why, size_t why_size) {
  if (!property_begin(all, OTHER, &all->original->workload, &property_whole, why, why_size)) return false;
  inputs *in = &all->of[OTHER].inputs;
  in->workload.seed ^= 1;
  inputs_draw(in);
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (tensor_is_written(&in->problem, id) || tensor_elements(&in->problem, id) == 0) continue;
    const row_place first = {0};
    const number_row given = row_at(all->original, id, first);
    memcpy(row_at(in, id, first).first, given.first,
           (size_t)tensor_shape_of(&in->problem, id).width * given.type->bytes);
  }
  return property_finish(all, OTHER, true, why, why_size);
}

/* Nor one that knows a problem again by that. */
static bool make_rescaled(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.scale = all->original->problem.scale * 0.75;
  w.epsilon += 0.25;
  if (w.fill == FILL_EXACT || w.fill == FILL_POWERS) return true; /* which go with a scale */
  return property_make(all, RESCALED, &w, &property_whole, true, why, why_size);
}

/* The terms in another order, the one term that is a band as one, and all of the pattern as a mask. */
static bool make_pattern(properties *all, char *why, size_t why_size) {
  const workload *w = &all->original->workload;
  workload turned = *w, band = *w, mask = *w;
  const attn_problem *p = &all->original->problem;
  source as_mask = property_whole;
  for (int64_t n = 0; n < w->term_count; n++) turned.terms[n] = w->terms[w->term_count - 1 - n];
  if (w->term_count > 1 && !property_make(all, TURNED, &turned, &property_whole, false, why, why_size))
    return false;
  const bool is_band = p->term_count == 1 && p->terms[0].kind == ATTN_LOCAL && !w->document_length &&
                       !w->blocks.present && !w->topk && w->left == ATTN_UNLIMITED &&
                       w->right == ATTN_UNLIMITED;
  band.term_count = 0;
  band.left = p->terms[0].a;
  band.right = p->terms[0].b;
  if (is_band && !property_make(all, AS_BAND, &band, &property_whole, false, why, why_size)) return false;
  return !property_pattern_to_mask(all, &mask, &as_mask) ||
         property_make(all, AS_MASK, &mask, &as_mask, true, why, why_size);
}

bool property_make_shapes(properties *all, char *why, size_t why_size) {
  return make_front(all, why, why_size) && make_bands(all, why, why_size) &&
         make_groups(all, why, why_size) && make_order(all, why, why_size) &&
         make_layouts(all, why, why_size) && make_halves(all, why, why_size) &&
         make_isolated(all, why, why_size) && make_decoded(all, why, why_size) &&
         make_other(all, why, why_size) && make_rescaled(all, why, why_size) &&
         make_pattern(all, why, why_size);
}

/* ---- of the backward pass ---- */

static bool make_gradient_layouts(properties *all, char *why, size_t why_size) {
  workload w = all->original->workload;
  w.layout = LAYOUT_BHTD;
  if (!property_make(all, BY_HEADS, &w, &property_whole, false, why, why_size)) return false;
  w.layout = LAYOUT_BTHD;
  return property_make(all, BY_POSITIONS, &w, &property_whole, false, why, why_size);
}

/* Where no key is seen for where it stands. Those that are made of x change places with its rows. */
static bool make_reordered_gradients(properties *all, char *why, size_t why_size) {
  const attn_problem *p = &all->original->problem;
  source from = property_whole;
  from.turns_queries = tensors_are_of_layer(p) && !p->key.type;
  if (p->left != ATTN_UNLIMITED || p->right != ATTN_UNLIMITED || p->key_lengths || attn_has_pattern(p) ||
      attn_has_position_bias(p) || p->rope_cos.type || p->decay.type ||
      (from.turns_queries && p->query_lengths))
    return true;
  int64_t *order = malloc(((size_t)p->key_length + 1) * sizeof *order);
  for (int64_t j = 0; order && j < p->key_length; j++) order[j] = p->key_length - 1 - j;
  from.order = order;
  const bool made =
      order && property_make(all, REORDERED, &all->original->workload, &from, false, why, why_size);
  free(order);
  return made;
}

bool property_make_gradients(properties *all, char *why, size_t why_size) {
  return make_gradient_layouts(all, why, why_size) && make_reordered_gradients(all, why, why_size);
}
