/* Linear attention, one output row in double precision (Katharopoulos et al. 2020, section 3.2,
 * equation 4): the sum over keys as it stands, never the factorised state that variants keep and that
 * this must check.
 *
 * A hidden key is never read. A row that sees no key, nor a state, is zero; a row that sees any follows the
 * formula, so a normaliser of 0 gives NaN or infinity. */
#include <math.h>

#include "feature_map.h"
#include "linear_state.h"
#include "rows.h"

/* Adds the initial state, which has faded by all decays up to the query; returns what it adds to the normaliser. */
static double add_state(const attn_problem *problem, int64_t b, int64_t kv_head, const double *features,
                        double decayed, double *output) {
  double normaliser = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const double feature = features[d] * exp(decayed);
    const float *state = reference_state_row(problem, b, kv_head, d);
    normaliser += feature * reference_state_sum(problem, b, kv_head, d);
    for (int64_t e = 0; e < problem->value_dim; e++) output[e] += feature * state[e];
  }
  return normaliser;
}

static void solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                  reference_row *row) {
  const int64_t kv_head = reference_kv_head(problem, h);
  const float *query = reference_vector(tensors->query, problem->query, b, h, i);

  bool sees_a_key = false;
  double normaliser = problem->epsilon, decayed = 0; /* the sum of the decays behind the key */
  const int64_t decay_end = problem->decay.type ? reference_decay_end(problem, b, i) : 0;
  for (int64_t d = 0; d < problem->head_dim; d++) row->features[d] = reference_phi(problem, query[d]);
  for (int64_t e = 0; e < problem->value_dim; e++) row->output[e] = 0;
  for (int64_t j = problem->key_length - 1; j >= 0; j--) {
    row->visible[j] = reference_sees(problem, tensors, b, h, i, j);
    row->weights[j] = 0;
    row->scores[j] = decayed;
    if (j < decay_end) decayed += reference_decay(problem, b, kv_head, j);
    if (!row->visible[j]) continue;
    sees_a_key = true;
    const float *key = reference_vector(tensors->key, problem->key, b, kv_head, j);
    const float *value = reference_vector(tensors->value, problem->value, b, kv_head, j);
    for (int64_t d = 0; d < problem->head_dim; d++)
      row->weights[j] += row->features[d] * reference_phi(problem, key[d]);
    row->weights[j] *= exp(row->scores[j]);
    normaliser += row->weights[j];
    for (int64_t e = 0; e < problem->value_dim; e++) row->output[e] += row->weights[j] * value[e];
  }
  if (problem->states.state.type) {
    sees_a_key = true;
    normaliser += add_state(problem, b, kv_head, row->features, decayed, row->output);
  }
  if (!sees_a_key || problem->unnormalised) return;
  for (int64_t e = 0; e < problem->value_dim; e++) row->output[e] /= normaliser;
}

/* Each key joins a state of D x Dv, and each query row is multiplied with one: pairs do not count. */
static double operations(const attn_problem *problem, double visible_pairs) {
  (void)visible_pairs;
  return 2 * (double)problem->head_dim * (double)problem->value_dim * (double)problem->batch *
         ((double)problem->kv_heads * (double)problem->key_length +
          (double)problem->query_heads * (double)problem->query_length);
}

/* phi(q).phi(k) with elements of size 1. */
static double largest_weight(const attn_problem *problem) { return 4 * (double)problem->head_dim; }

const reference_function reference_linear = {
    .name = "linear",
    .computes = "computes linear attention",
    .solve = solve,
    .bound = reference_linear_bound,
    .operations = operations,
    .largest_weight = largest_weight,
    .has_states = true,
    .forward = ATTN_LINEAR,
    .backward = ATTN_LINEAR_BACKWARD,
};
