/* See property_states.h. */
#include "property_states.h"

#include <math.h>

#include "gradients.h"
#include "property_parts.h"

static const tensor_id finals[] = {TENSOR_FINAL_STATE, TENSOR_FINAL_STATE_SUM};

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
  property_hand_over(&first->inputs, &second->inputs);
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
