/* Which inputs the properties have, and what of the original they look at. */
#include "property_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradients.h"
#include "property_parts.h"
#include "reference/rows.h"

enum { SAMPLED_ROWS = 24 };

static void find_least_and_most(properties *all, int64_t r) {
  const inputs *in = all->original;
  const attn_problem *p = &in->problem;
  const row_place at = row_place_of(p, all->rows[r]);
  double *least = all->least + r * p->value_dim, *most = all->most + r * p->value_dim;
  for (int64_t e = 0; e < p->value_dim; e++) least[e] = most[e] = (double)NAN;
  for (int64_t j = 0; j < p->key_length && property_averages(p); j++) {
    const double bias = p->bias.type ? row_number(row_at(in, TENSOR_BIAS, at), j) : 0;
    if (!property_sees(in, at, j) || bias + reference_position(p, at.b, at.h, at.i, j).sum == -INFINITY)
      continue;
    const row_place key = {at.b, at.h / (p->query_heads / p->kv_heads), j};
    const number_row value = row_at(in, TENSOR_VALUE, key);
    for (int64_t e = 0; e < p->value_dim; e++) {
      least[e] = fmin(least[e], row_number(value, e)); /* what is not NaN */
      most[e] = fmax(most[e], row_number(value, e));
    }
  }
  /* With an epsilon or a sink the weights sum to less than one. */
  if (!reference_function_of(p->function)->has_scores || p->sink.type)
    for (int64_t e = 0; e < p->value_dim && property_averages(p); e++) {
      least[e] = fmin(least[e], 0);
      most[e] = fmax(most[e], 0);
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
  if (count > 0) all->lone_head = row_place_of(p, all->rows[property_draw(all, 8, 0) % (uint64_t)count]).h;
  return true;
}

properties *properties_prepare(inputs *in, const expected *known, char *why, size_t why_size) {
  properties *all = calloc(1, sizeof *all);
  snprintf(why, why_size, "no memory for the inputs of the properties");
  if (!all) return NULL;
  all->original = in;
  all->checksum = inputs_checksum(in);
  all->gradients = known->gradients;
  all->states = known->states;
  /* A problem without rows or keys has nothing to change. */
  if (known->gradients ? property_make_gradients(all, why, why_size)
                       : sample_rows(all, known) && (known->rows == 0 || in->problem.key_length == 0 ||
                                                     (property_make_shapes(all, why, why_size) &&
                                                      property_make_numbers(all, why, why_size) &&
                                                      property_make_parts(all, why, why_size))))
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
  free(all->effects);
  gradients_destroy(all->handed);
  free(all->least);
  free(all->most);
  free(all);
}

void properties_exchange(properties *all) {
  altered *other = &all->of[OTHER];
  const uint64_t checksum = all->checksum;
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (tensor_is_written(&all->original->problem, id)) continue;
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
