/* See property_parts.h. */
#include "property_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradients.h"
#include "problem/widened.h"
#include "reference/linear_state.h"

static const tensor_id finals[] = {TENSOR_FINAL_STATE, TENSOR_FINAL_STATE_SUM},
                       initials[] = {TENSOR_STATE, TENSOR_STATE_SUM};

/* A state has as many elements as keys have products with it: beyond these its reference takes longer than the rest. */
static const double most_products = 3e7;

static int64_t cut_of(const properties *all) {
  return 1 + (int64_t)(property_draw(all, 14, 0) % (uint64_t)(all->original->problem.key_length - 1));
}

/* Keys from `first` on, so many; positions of queries are as far from them as they were. */
static workload part_of(const properties *all, int64_t first, int64_t keys) {
  workload w = all->original->workload;
  const bool has_place = w.right != ATTN_UNLIMITED || w.decay;
  w.key_length = keys;
  if (has_place) w.offset -= first;
  for (int64_t b = 0; b < w.batch; b++) {
    if (w.has_offsets && has_place) w.offsets[b] -= first;
    if (!w.has_lengths) continue;
    w.lengths[b] = w.lengths[b] < first ? 0 : w.lengths[b] - first;
    if (w.lengths[b] > keys) w.lengths[b] = keys;
  }
  if (first > 0)
    w.state = true;
  else
    w.final_state = true;
  return w;
}

/* Whether a query would stand farther before the part's keys than problems go. */
static bool is_too_far(const workload *w) {
  bool is = w->offset < -ATTN_FARTHEST;
  for (int64_t b = 0; w->has_offsets && b < w->batch; b++) is = is || w->offsets[b] < -ATTN_FARTHEST;
  return is;
}

/* The final state's rows as the initial state of another problem's, from the numbers of a reference. */
static void hand_over_reference(const gradients *from, const inputs *to) {
  for (int64_t n = 0; n < from->count; n++) {
    const gradient_row *row = &from->rows[n];
    const number_row given = row_at(to, initials[row->tensor == TENSOR_FINAL_STATE_SUM], row->at);
    for (int64_t e = 0; e < row->width; e++) row_set(given, e, row->of.values[e]);
  }
}

void property_hand_over(const inputs *from, const inputs *to) {
  for (int n = 0; n < 2; n++) {
    const tensor_shape s = tensor_shape_of(&from->problem, finals[n]);
    if (!tensor_layout(&from->problem, finals[n])->type) continue;
    for (int64_t r = 0; r < s.batch * s.heads * s.length; r++) {
      const row_place at = {r / s.length / s.heads, r / s.length % s.heads, r % s.length};
      memcpy(row_at(to, initials[n], at).first, row_at(from, finals[n], at).first,
             (size_t)s.width * sizeof(float));
    }
  }
}

/* How far the rows of a head's final state may be off, and by how much they are rounded when they are handed over:
 * [D, Dv], [D]. */
static void errors_of(const gradients *of, const attn_problem *p, int64_t b, int64_t kv_head, double *state,
                      double *sum) {
  for (int64_t d = 0; d < p->head_dim; d++) sum[d] = 0;
  for (int64_t n = 0; n < of->count; n++) {
    const gradient_row *row = &of->rows[n];
    if (row->at.b != b || row->at.h != kv_head) continue;
    double *to = row->tensor == TENSOR_FINAL_STATE ? state + row->at.i * p->value_dim : sum;
    for (int64_t e = 0; e < row->width; e++)
      to[e] = fabs(row->of.probabilistic[e]) + 0x1p-24 * fabs(row->of.values[e]);
  }
}

static bool find_effects(properties *all) {
  const altered *second = &all->of[SECOND_PART];
  const attn_problem *p = &second->inputs.problem;
  const size_t D = (size_t)p->head_dim, Dv = (size_t)p->value_dim;
  widened widened;
  all->effects = calloc((size_t)all->row_count * Dv + 1, sizeof *all->effects);
  double *state = malloc((D * Dv + D + 1) * sizeof *state);
  const bool good = all->effects && state &&
                    widened_create(&widened, &second->inputs.problem, &second->inputs.tensors, false);
  for (int64_t r = 0; good && r < all->row_count; r++) {
    const row_place at = row_place_of(p, all->rows[r]);
    errors_of(all->handed, p, at.b, at.h / (p->query_heads / p->kv_heads), state, state + D * Dv);
    reference_state_effect(p, &widened.tensors, at.b, at.h, at.i, &second->expected.solved[r], state,
                           state + D * Dv, all->effects + (size_t)r * Dv);
  }
  if (good) widened_destroy(&widened);
  free(state);
  return good;
}

bool property_make_parts(properties *all, char *why, size_t why_size) {
  const attn_problem *p = &all->original->problem;
  const double products = (double)p->batch * (double)p->kv_heads * (double)p->head_dim *
                          (double)p->value_dim * (double)p->key_length;
  if (!reference_function_of(p->function)->has_states || tensors_are_backward(p) ||
      p->left != ATTN_UNLIMITED || p->key_length < 2 || products > most_products)
    return true;
  const int64_t cut = cut_of(all);
  const source rest = {.key = cut, .group = 1};
  const workload before = part_of(all, 0, cut), behind = part_of(all, cut, p->key_length - cut);
  if (is_too_far(&behind)) return true;
  if (!property_make(all, FIRST_PART, &before, &property_whole, false, why, why_size) ||
      !property_begin(all, SECOND_PART, &behind, &rest, why, why_size))
    return false;
  snprintf(why, why_size, "no memory for the states of the properties");
  all->handed = gradients_solve(&all->of[FIRST_PART].inputs, 0);
  if (!all->handed) return false;
  hand_over_reference(all->handed, &all->of[SECOND_PART].inputs);
  return property_finish(all, SECOND_PART, true, why, why_size) && find_effects(all);
}
