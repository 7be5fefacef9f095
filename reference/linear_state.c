/* See linear_state.h. README.md derives the bound of the final state. */
#include "linear_state.h"

#include <math.h>

#include "feature_map.h"
#include "roundings.h"
#include "rows.h"

/* ---- the final state ---- */

enum { BOUNDS = PROBABLE + 1, AT_ONCE = 64 };

/* What a value is multiplied by on its way into an element: feature d of a key, which decays; or of the initial
 * state, whose number is the value itself, the decay alone. */
typedef struct factor {
  double feature, decay;
  double relative[BOUNDS]; /* the error of both */
  double vanishes;         /* what a value of 1 loses where products do */
} factor;

/* Elements of the state, side by side, summed from the last key back. */
typedef struct elements {
  double value[AT_ONCE], size[AT_ONCE], undecayed[AT_ONCE], previous[AT_ONCE], repeated[AT_ONCE];
  double error[BOUNDS][AT_ONCE], underflow[AT_ONCE];
} elements;

/* A head, and an element's chain: its relative error. */
typedef struct walk {
  const attn_problem *problem;
  int64_t keys;
  double terms, chain[BOUNDS];
  bool rises; /* gates above 1: of these nothing is said */
} walk;

static walk walk_of(const attn_problem *problem, int64_t b, int64_t kv_head) {
  walk of = {.problem = problem,
             .keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length};
  of.terms = (double)of.keys * (problem->decay.type ? 2 : 1) + 4;
  for (int form = WORST; form < BOUNDS; form++) of.chain[form] = reference_chain_error(form, of.terms);
  for (int64_t t = 0; problem->decay.type && t < of.keys; t++)
    of.rises = of.rises || reference_decay(problem, b, kv_head, t) > 0;
  return of;
}

/* x: of a key, behind which so many gates come, whose logarithms sum to log; NULL: of the initial state. */
static factor factor_of(const walk *of, const float *x, double gates, double log) {
  const attn_problem *p = of->problem;
  const double own = x ? reference_phi_error(p, *x) : 0;
  factor made = {.feature = x ? reference_phi(p, *x) : 1, .decay = exp(log)};
  for (int form = WORST; form < BOUNDS && made.decay > 0 && p->decay.type; form++)
    made.relative[form] = reference_decay_error(form, gates, log);
  for (int form = WORST; form < BOUNDS; form++) made.relative[form] = own + made.relative[form] * (1 + own);
  made.vanishes = FLUSHED * (2 + fabs(made.feature) + (x ? fabs((double)*x) : 0));
  return made;
}

/* Values times one factor, each to its element. */
static void add_terms(const walk *of, const factor *factor, const float *values, int64_t count,
                      elements *to) {
  double share[BOUNDS];
  for (int form = WORST; form < BOUNDS; form++)
    share[form] = factor->relative[form] + of->chain[form] * (1 + factor->relative[form]);
  const double alike = of->terms * UNIT;
#pragma omp simd
  for (int64_t e = 0; e < count; e++) {
    const double value = values[e], term = factor->feature * factor->decay * value, size = fabs(term);
    to->value[e] += term;
    to->size[e] += size;
    to->undecayed[e] += fabs(factor->feature * value);
    to->error[WORST][e] += size * share[WORST];
    to->error[PROBABLE][e] += size * share[PROBABLE];
    to->underflow[e] += factor->vanishes * (1 + fabs(value));
    to->repeated[e] += fabs(term - to->previous[e]) <= alike * size ? 1 : 0;
    to->previous[e] = term;
  }
}

/* What is added again and again rounds alike. Infinities of either sign may meet on one way to a sum and not on another. */
static void finish(const walk *of, const elements *from, int64_t e, reference_gradient *to, int64_t n) {
  double bounds[BOUNDS];
  to->values[n] = from->value[e];
  to->sizes[n] = from->size[e];
  for (int form = WORST; form < BOUNDS; form++) {
    const double alike = form == WORST ? 0 : UNIT * from->repeated[e] * from->size[e];
    bounds[form] = from->error[form][e] + alike + UNIT * fabs(from->value[e]) + from->underflow[e];
    if (!(from->undecayed[e] <= LARGEST) || of->rises) bounds[form] = INFINITY;
    if (!isfinite(from->value[e])) bounds[form] = -INFINITY;
  }
  to->worst[n] = bounds[WORST];
  to->probabilistic[n] = bounds[PROBABLE] > bounds[WORST] ? bounds[WORST] : bounds[PROBABLE];
}

void reference_final_state(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                           int64_t kv_head, int64_t d, reference_gradient *to) {
  const walk of = walk_of(problem, b, kv_head);
  for (int64_t first = 0; first < problem->value_dim; first += AT_ONCE) {
    const int64_t left = problem->value_dim - first, count = left < AT_ONCE ? left : AT_ONCE;
    elements sums = {0};
    double log = 0;
    for (int64_t j = of.keys - 1; j >= 0; j--) {
      const float *value = reference_vector(tensors->value, problem->value, b, kv_head, j) + first;
      const float *key = reference_vector(tensors->key, problem->key, b, kv_head, j);
      const factor factor = factor_of(&of, key + d, (double)(of.keys - 1 - j), log);
      add_terms(&of, &factor, value, count, &sums);
      if (problem->decay.type) log += reference_decay(problem, b, kv_head, j);
    }
    const factor faded = factor_of(&of, NULL, (double)of.keys, log);
    if (problem->states.state.type)
      add_terms(&of, &faded, reference_state_row(problem, b, kv_head, d) + first, count, &sums);
    for (int64_t e = 0; e < count; e++) finish(&of, &sums, e, to, first + e);
  }
}

void reference_final_state_sum(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                               int64_t kv_head, reference_gradient *to) {
  const walk of = walk_of(problem, b, kv_head);
  const float one = 1;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    elements sum = {0};
    double log = 0;
    for (int64_t j = of.keys - 1; j >= 0; j--) {
      const float *key = reference_vector(tensors->key, problem->key, b, kv_head, j);
      const factor factor = factor_of(&of, key + d, (double)(of.keys - 1 - j), log);
      add_terms(&of, &factor, &one, 1, &sum);
      if (problem->decay.type) log += reference_decay(problem, b, kv_head, j);
    }
    const factor faded = factor_of(&of, NULL, (double)of.keys, log);
    const float initial = (float)reference_state_sum(problem, b, kv_head, d); /* as it is given, or 0 */
    if (problem->states.state.type) add_terms(&of, &faded, &initial, 1, &sum);
    finish(&of, &sum, 0, to, d);
  }
}

/* ---- what a state that is off makes of an output ---- */

void reference_state_effect(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, const reference_row *row, const double *state_error,
                            const double *sum_error, double *effect) {
  const int64_t kv_head = reference_kv_head(problem, h), D = problem->head_dim, Dv = problem->value_dim;
  const float *query = reference_vector(tensors->query, problem->query, b, h, i);
  double normaliser = problem->epsilon, off = 0, log = 0;
  const int64_t decay_end = problem->decay.type ? reference_decay_end(problem, b, i) : 0;
  for (int64_t j = problem->key_length - 1; j >= 0; j--) {
    const float *key = reference_vector(tensors->key, problem->key, b, kv_head, j);
    double weight = 0;
    for (int64_t d = 0; d < D; d++)
      weight += reference_phi(problem, query[d]) * reference_phi(problem, key[d]);
    if (reference_sees(problem, tensors, b, h, i, j)) normaliser += weight * exp(log);
    if (j < decay_end) log += reference_decay(problem, b, kv_head, j);
  }
  for (int64_t e = 0; e < Dv; e++) effect[e] = 0;
  for (int64_t d = 0; d < D; d++) {
    const double feature = reference_phi(problem, query[d]) * exp(log);
    normaliser += feature * reference_state_sum(problem, b, kv_head, d);
    off += fabs(feature) * sum_error[d];
    for (int64_t e = 0; e < Dv; e++)
      effect[e] += fabs(feature) * (state_error[d * Dv + e] + fabs(row->output[e]) * sum_error[d]);
  }
  if (problem->unnormalised) return;
  const double left = fabs(normaliser) - off;
  for (int64_t e = 0; e < Dv; e++) effect[e] = left > 0 ? effect[e] / left : INFINITY;
}
