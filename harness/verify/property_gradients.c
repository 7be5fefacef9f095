/* See property_gradients.h. */
#include "property_gradients.h"

#include <math.h>
#include <string.h>

#include "gradients.h"

static bool same_bits(number_row a, number_row b, int64_t width) {
  return memcmp(a.first, b.first, (size_t)width * a.type->bytes) == 0;
}

void property_hold_gradients_in_layouts(property_check *t) {
  const altered *heads = check_altered(t, BY_HEADS), *positions = check_altered(t, BY_POSITIONS);
  const gradients *all = t->all->gradients;
  if (!heads || !positions || !check_run_altered(t, heads) || !check_run_altered(t, positions)) return;
  for (int64_t n = 0; n < all->count; n++) {
    const gradient_row *row = &all->rows[n];
    t->compared++;
    if (same_bits(row_at(&heads->inputs, row->tensor, row->at),
                  row_at(&positions->inputs, row->tensor, row->at), row->width))
      continue;
    check_fails(t, "in another layout, %s has other bits in row b %lld, h %lld, %lld",
                tensor_table[row->tensor].name, (long long)row->at.b, (long long)row->at.h,
                (long long)row->at.i);
    return;
  }
}

void property_hold_gradients_in_order(property_check *t) {
  const altered *reordered = check_altered(t, REORDERED);
  const gradients *all = t->all->gradients;
  const attn_problem *p = &t->all->original->problem;
  const int64_t keys = p->key_length;
  const bool turns_queries = tensors_are_of_layer(p) && !p->key.type;
  if (!reordered || !check_run_original(t, t->setup.threads, RUN_POISONED) ||
      !check_run_altered(t, reordered))
    return;
  for (int64_t n = 0; n < all->count; n++) {
    const gradient_row *row = &all->rows[n];
    const char *axes = tensor_axes(t->all->original->problem.function, row->tensor);
    row_place there = row->at;
    if (axes[2] == 'k' || (axes[2] == 'q' && turns_queries)) there.i = keys - 1 - there.i;
    const number_row one = row_at(t->all->original, row->tensor, row->at),
                     other = row_at(&reordered->inputs, row->tensor, there);
    for (int64_t d = 0; d < row->width; d++) {
      const double x = row_number(one, d), y = row_number(other, axes[3] == 'k' ? keys - 1 - d : d);
      t->compared++;
      const double bound = 2 * gradient_bound(row, d, t->setup.variant->traits);
      if (isinf(bound) || fabs(x - y) <= bound) continue; /* what may overflow may be no number */
      check_fails(
          t,
          "with the keys%s the other way round, %s[b %lld, h %lld, %lld, %lld] is %.9g instead of %.9g "
          "within %.3g",
          turns_queries ? " and queries" : "", tensor_table[row->tensor].name, (long long)row->at.b,
          (long long)row->at.h, (long long)row->at.i, (long long)d, y, x, bound);
      return;
    }
  }
}
