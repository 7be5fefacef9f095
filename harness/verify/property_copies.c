/* The inputs of the properties as copies of the original problem's, or of parts of it, under a changed workload: its own
 * numbers are replaced by those of the original, so that everything but the change is the same. */
#include "property_copies.h"

#include <string.h>

#include "base/random.h"
#include "problem/features.h"
#include "reference/sees.h"

uint64_t property_draw(const properties *all, uint64_t purpose, uint64_t n) {
  return random_bits(random_mixed(all->original->workload.seed) + purpose, n);
}

bool property_sees(const inputs *in, row_place row, int64_t j) {
  return attn_sees(&in->problem, &in->tensors, row.b, row.h, row.i, j);
}

static int64_t key_of(const source *from, int64_t j) { return from->order ? from->order[j] : from->key + j; }

/* Where an index of the copy lies on an axis of the original, by the letter that tensors.h has for it. */
static int64_t original_index(const properties *all, const source *from, char axis, int64_t n) {
  switch (axis) {
    case 'B': return from->entry + n;
    case 'H': return from->query_head + n;
    case 'K': return from->kv_head + n / from->group;
    case 'q': return from->turns_queries ? key_of(from, n) : from->query + n;
    case 'k': return key_of(from, n);
    case 'u': return from->query / all->original->problem.block_q + n;
    case 'p': return from->key + n; /* keys and queries stand so much nearer to the beginning */
    default: return n;
  }
}

/* One input of the copy. Axes that it does not vary over are written once for each place on them, with the same
 * numbers. */
static void copy_tensor(const properties *all, inputs *to, tensor_id id, const source *from) {
  const char *axes = tensor_axes(to->problem.function, id);
  const tensor_shape shape = tensor_shape_of(&to->problem, id);
  const size_t bytes = element_type_of(tensor_layout(&to->problem, id)->type)->bytes;
  const int64_t keys = all->original->problem.key_length; /* the copy may have more */
  for (int64_t b = 0; b < shape.batch; b++)
    for (int64_t h = 0; h < shape.heads; h++)
      for (int64_t n = 0; n < shape.length; n++) {
        if (axes[2] == 'k' && key_of(from, n) >= keys) continue;
        const number_row copy = row_at(to, id, (row_place){b, h, n});
        const row_place place = {original_index(all, from, axes[0], b), original_index(all, from, axes[1], h),
                                 original_index(all, from, axes[2], n)};
        const number_row given = row_at(all->original, id, place);
        if (axes[3] != 'k') memcpy(copy.first, given.first, (size_t)shape.width * bytes);
        for (int64_t x = 0; axes[3] == 'k' && x < shape.width && key_of(from, x) < keys; x++)
          memcpy(row_element(copy, x), row_element(given, original_index(all, from, axes[3], x)), bytes);
      }
}

/* The mask of a copy without the pattern: what the original's pattern and query lengths let through as well. */
static void hide_as_pattern(const properties *all, inputs *to, const source *from) {
  const attn_problem *p = &to->problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    uint8_t *mask = row_element(row_at(to, TENSOR_MASK, at), 0);
    for (int64_t j = 0; j < p->key_length; j++)
      mask[j] = reference_pattern_shows(&all->original->problem, from->entry + at.b, from->query_head + at.h,
                                        from->query + at.i, key_of(from, j)) &&
                (!all->original->problem.mask.type || mask[j] != 0);
  }
}

/* Whether the original has all keys of the copy. */
static bool has_all_keys(const properties *all, const source *from, int64_t count) {
  for (int64_t j = 0; j < count; j++)
    if (key_of(from, j) >= all->original->problem.key_length) return false;
  return true;
}

/* Draws what the original has not. */
static void fill_inputs(const properties *all, inputs *to, const source *from) {
  const bool has_keys = has_all_keys(all, from, to->problem.key_length);
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (tensor_is_written(&to->problem, id) || !tensor_layout(&to->problem, id)->type) continue;
    const bool given = all->original->buffers[id].mapping;
    if (!given || !has_keys) inputs_draw_tensor(to, id);
    if (given) copy_tensor(all, to, id, from);
  }
  if (attn_has_pattern(&all->original->problem) && !attn_has_pattern(&to->problem) && from->with_pattern)
    hide_as_pattern(all, to, from);
}

static void leave_out(workload *w, uint64_t features) {
  for (const feature_row *row = feature_table; row < feature_table + FEATURES; row++)
    if (row->bit & features) feature_leave_out(row, w);
}

void property_leave_out_pattern(workload *w) {
  leave_out(w, ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK);
}

void property_leave_out_position(workload *w) {
  leave_out(w, ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_DECAY);
}

void property_leave_out_rope(workload *w) { leave_out(w, ATTN_ROPE); }
void property_leave_out_general(workload *w) { leave_out(w, ATTN_GENERAL); }

void property_leave_out_dropout(workload *w) { leave_out(w, ATTN_DROPOUT); }

bool property_pattern_to_mask(const properties *all, workload *w, source *from) {
  from->with_pattern = attn_has_pattern(&all->original->problem);
  if (from->with_pattern) w->mask = (workload_axes){true, true, true, true};
  property_leave_out_pattern(w);
  return from->with_pattern;
}

bool property_begin(properties *all, altered_kind kind, const workload *w, const source *from, char *why,
                    size_t why_size) {
  altered *made = &all->of[kind];
  if (!inputs_create_undrawn(&made->inputs, w, false, why, why_size)) return false;
  made->made = true;
  fill_inputs(all, &made->inputs, from);
  return true;
}

bool property_finish(properties *all, altered_kind kind, bool with_bounds, char *why, size_t why_size) {
  altered *made = &all->of[kind];
  made->checksum = inputs_checksum(&made->inputs);
  if (!inputs_keep(&made->inputs, why, why_size)) return false;
  return !with_bounds ||
         expected_solve_rows(&made->expected, &made->inputs, all->rows, all->row_count, why, why_size);
}

bool property_make(properties *all, altered_kind kind, const workload *w, const source *from,
                   bool with_bounds, char *why, size_t why_size) {
  return property_begin(all, kind, w, from, why, why_size) &&
         property_finish(all, kind, with_bounds, why, why_size);
}
