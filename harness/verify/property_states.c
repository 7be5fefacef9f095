/* See property_states.h. */
#include "property_states.h"

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

/* The final state's rows as the initial state of another problem's, from the numbers of a reference. */
static void hand_over_truth(const gradients *from, const inputs *to) {
  for (int64_t n = 0; n < from->count; n++) {
    const gradient_row *row = &from->rows[n];
    const number_row given = row_at(to, initials[row->tensor == TENSOR_FINAL_STATE_SUM], row->at);
    for (int64_t e = 0; e < row->width; e++) row_set(given, e, row->of.values[e]);
  }
}

/* The same from what a run has written. */
static void hand_over(const inputs *from, const inputs *to) {
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

/* How far the rows of a head's final state may be off, and by how much they are rounded when they are handed over: [D, Dv], [D]. */
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
  const bool good = all->effects && state && widened_create(&widened, &second->inputs, false);
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
  if (p->function != ATTN_LINEAR || p->left != ATTN_UNLIMITED || p->key_length < 2 ||
      products > most_products)
    return true;
  const int64_t cut = cut_of(all);
  const source rest = {.key = cut, .group = 1};
  const workload before = part_of(all, 0, cut), behind = part_of(all, cut, p->key_length - cut);
  if (!property_make(all, FIRST_PART, &before, &property_whole, false, why, why_size) ||
      !property_begin(all, SECOND_PART, &behind, &rest, why, why_size))
    return false;
  snprintf(why, why_size, "no memory for the states of the properties");
  all->handed = gradients_solve(&all->of[FIRST_PART].inputs, 0);
  if (!all->handed) return false;
  hand_over_truth(all->handed, &all->of[SECOND_PART].inputs);
  return property_finish(all, SECOND_PART, true, why, why_size) && find_effects(all);
}

/* Whether a row of the whole sees all that its first part has of keys. */
static bool sees_first_part(const property_check *t, row_place at) {
  const attn_problem *p = &t->all->original->problem;
  const int64_t cut = t->all->of[FIRST_PART].inputs.problem.key_length;
  const int64_t keys = p->key_lengths && p->key_lengths[at.b] < cut ? p->key_lengths[at.b] : cut;
  return attn_visible_keys(p, at.b, at.i).end >= keys;
}

static const gradient_row *find_row(const gradients *of, const gradient_row *row) {
  for (int64_t n = 0; n < of->count; n++) {
    const gradient_row *found = &of->rows[n];
    if (found->tensor == row->tensor && found->at.b == row->at.b && found->at.h == row->at.h &&
        found->at.i == row->at.i)
      return found;
  }
  return NULL;
}

static bool hold_state_row(property_check *t, const inputs *a, const inputs *b, const gradient_row *row,
                           const double *bounds, const gradient_row *more, double times, const char *when) {
  const number_row one = row_at(a, row->tensor, row->at), other = row_at(b, row->tensor, row->at);
  for (int64_t e = 0; e < row->width; e++) {
    const double x = row_number(one, e), y = row_number(other, e);
    const double bound = times * fabs(bounds[e]) + (more ? fabs(more->of.probabilistic[e]) : 0);
    if (!isfinite(row->of.values[e]) || !isfinite(bound)) continue;
    t->compared++;
    if (fabs(x - y) <= bound) continue;
    return check_fails(t, "%s, %s[b %lld, h %lld, %lld, %lld] is %.9g instead of %.9g within %.3g", when,
                       tensor_table[row->tensor].name, (long long)row->at.b, (long long)row->at.h,
                       (long long)row->at.i, (long long)e, y, x, bound);
  }
  return true;
}

/* Of a sum of two parts no bound is larger than that of the whole, and what the first handed over may be off by its own. */
void property_hold_parts(property_check *t) {
  static const char when[] = "cut in two with the state handed over";
  const properties *all = t->all;
  const altered *first = check_altered(t, FIRST_PART), *second = check_altered(t, SECOND_PART);
  if (!first || !second || !check_run_original(t, t->setup.threads, RUN_POISONED) ||
      !check_run_altered(t, first))
    return;
  hand_over(&first->inputs, &second->inputs);
  ((altered *)(uintptr_t)second)->checksum = inputs_checksum(&second->inputs);
  const bool ran = inputs_keep((inputs *)(uintptr_t)&second->inputs, t->why, t->why_size);
  if (!ran) t->had_memory = false;
  if (!ran || !check_run_altered(t, second)) return;
  const int64_t width = second->inputs.problem.value_dim;
  for (int64_t r = 0; r < all->row_count && !t->failed; r++) {
    const row_place at = check_row(t, r);
    const reference_row *one = all->solved[r], *other = &second->expected.solved[r];
    for (int64_t e = 0; e < width && sees_first_part(t, at); e++) {
      const double bound = one->output_bound_probabilistic[e] + other->output_bound_probabilistic[e] +
                           all->effects[r * width + e];
      if (check_is_finite(one, e) && check_is_finite(other, e) && isfinite(bound))
        check_near(t, r, "output", e, check_number(&second->inputs, TENSOR_OUTPUT, at, e),
                   check_number(all->original, TENSOR_OUTPUT, at, e), bound, when);
    }
  }
  for (int64_t n = 0; all->states && n < all->states->count && !t->failed; n++) {
    const gradient_row *row = &all->states->rows[n];
    hold_state_row(t, all->original, &second->inputs, row, row->of.probabilistic, find_row(all->handed, row),
                   2, when);
  }
}

void property_hold_near_states(property_check *t, const altered *a, const altered *b, const char *when) {
  const gradients *one = a->expected.states, *other = b->expected.states;
  for (int64_t n = 0; one && other && n < one->count && !t->failed; n++)
    hold_state_row(t, &a->inputs, &b->inputs, &one->rows[n], one->rows[n].of.probabilistic,
                   find_row(other, &one->rows[n]), 1, when);
}

void property_hold_same_states(property_check *t, const inputs *a, row_place first, const inputs *b,
                               const char *when) {
  for (int n = 0; n < 2 && !t->failed; n++) {
    const tensor_shape s = tensor_shape_of(&b->problem, finals[n]);
    if (!tensor_layout(&b->problem, finals[n])->type || !tensor_layout(&a->problem, finals[n])->type)
      continue;
    for (int64_t r = 0; r < s.batch * s.heads * s.length && !t->failed; r++) {
      const row_place at = {r / s.length / s.heads, r / s.length % s.heads, r % s.length};
      const row_place from = {first.b + at.b, first.h + at.h, at.i};
      t->compared++;
      if (!check_same_bits(row_at(a, finals[n], from), row_at(b, finals[n], at), s.width))
        check_fails(t, "%s, %s has other bits in b %lld, h %lld, row %lld", when,
                    tensor_table[finals[n]].name, (long long)from.b, (long long)from.h, (long long)from.i);
    }
  }
}
