/* How far a correct float32 kernel of linear attention can be from the reference: bound.c says the rest. Weights may be of
 * either sign, so what rounds is in proportion to the sizes of the products phi(q_d) phi(k_jd), which weights of one sign are
 * the sums of. */
#include <math.h>
#include <string.h>

#include "exact.h"
#include "feature_map.h"
#include "linear_state.h"
#include "rows.h"
#include "sums.h"

/* Relative error of phi(x): x + 1 rounds once; the exponential may be taken as 2^(x log2 e), and is
 * nothing to speak of below -88. */
double reference_phi_error(const attn_problem *problem, double x) {
  if (problem->feature_map != ATTN_ELU1) return 0;
  return x > 0 ? UNIT : EXPONENTIAL + 2 * UNIT * (x > -88 ? -x : 88);
}

/* What is found of a key once, and noted. */
typedef struct linear_products {
  double undecayed; /* sum_d |phi(q_d) phi(k_d)| */
  double features;  /* an upper bound of sum_d |phi(k_d)| */
  double relative;  /* the largest relative error of a product phi(q_d) phi(k_d) */
} linear_products;

typedef struct linear_key {
  double size;           /* the sum of products times the decay */
  double relative;       /* as above, and what two such errors make */
  double decayed[FORMS]; /* relative error of the decay */
  double underflow;      /* absolute error of the weight where features or products vanish */
} linear_key;

/* An upper bound of sum_d |phi(x_d)|. */
static double sum_of_features(const float *vector, int64_t head_dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < head_dim; d++) sum += 1 + fabs((double)vector[d]);
  return sum;
}

/* What all keys of a row share. */
typedef struct linear_view {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, kv_head;
  const float *query;
  double queries;    /* sum_of_features of the query */
  int64_t decay_end; /* keys that decay; 0: none does */
} linear_view;

static const float *key_of(const linear_view *view, int64_t j) {
  return reference_vector(view->tensors->key, view->problem->key, view->b, view->kv_head, j);
}

static const float *value_of(const linear_view *view, int64_t j) {
  return reference_vector(view->tensors->value, view->problem->value, view->b, view->kv_head, j);
}

/* A decay is a product of gates, each an exponential within 2 ulp of a number times log2(e), or an exponential of a
 * sum of these numbers. What products round is counted with the other sums'. log: the sum, none of which is above 0. */
double reference_decay_error(int form, double gates, double log) {
  if (gates <= 0) return 0;
  return bound_grown(gates * EXPONENTIAL - (2 * UNIT + reference_chain_error(form, gates)) * log);
}

static linear_products survey_key(const linear_view *view, const reference_row *row, int64_t j) {
  const attn_problem *p = view->problem;
  const float *key = key_of(view, j);
  linear_products found = {.features = sum_of_features(key, p->head_dim)};
  for (int64_t d = 0; d < p->head_dim; d++) {
    const double relative = reference_phi_error(p, view->query[d]) + reference_phi_error(p, key[d]);
    if (relative > found.relative) found.relative = relative;
    found.undecayed += fabs(row->features[d] * reference_phi(p, key[d]));
  }
  memcpy(row->notes + REFERENCE_NOTES * j, &found, sizeof found);
  return found;
}

static linear_key key_of_notes(const linear_view *view, const reference_row *row, int64_t j) {
  linear_products found;
  memcpy(&found, row->notes + REFERENCE_NOTES * j, sizeof found);
  linear_key key = {.size = found.undecayed * exp(row->scores[j]),
                    .relative = found.relative + found.relative * found.relative,
                    .underflow = FLUSHED * (view->queries + found.features)};
  if (key.size > 0)
    for (int form = WORST; form < FORMS; form++)
      key.decayed[form] = reference_decay_error(form, (double)(view->decay_end - 1 - j), row->scores[j]);
  return key;
}

typedef struct linear_row {
  double seen;
  double normaliser;        /* by which is divided: the sum of the weights and epsilon, or 1 */
  double beside;            /* of the size of what is there beside weights: epsilon, and what a state adds */
  double sizes;             /* of the weights, undecayed */
  double repeated_products; /* the most of a key */
  double largest_value;
  double state; /* the largest sum of products with the initial state */
  bool overflows, finite;
} linear_row;

/* Products phi(q_d) phi(k_jd) that are the one before, and may round as it did. */
static double count_repeated(const float *query, const float *key, int64_t head_dim) {
  int repeated = 0;
#pragma omp simd reduction(+ : repeated)
  for (int64_t d = 1; d < head_dim; d++) repeated += (query[d] == query[d - 1]) & (key[d] == key[d - 1]);
  return repeated;
}

/* ---- the initial state: D keys more, whose weights are phi(q_d) and whose values are rows of the state ---- */

/* As far as it has faded, before the rounding of which nothing is lost. */
typedef struct linear_state {
  double log, decay;
  double relative[FORMS]; /* the largest error of a feature and its decay */
  double size, undecayed; /* of what it adds to the normaliser */
  double largest;         /* of what it adds to an element of the numerator, undecayed, at most */
  bool finite;
} linear_state;

static linear_state survey_state(const linear_view *view) {
  const attn_problem *p = view->problem;
  linear_state found = {.finite = true};
  for (int64_t t = 0; t < view->decay_end; t++) found.log += reference_decay(p, view->b, view->kv_head, t);
  found.decay = exp(found.log);
  double own = 0;
  for (int64_t d = 0; d < p->head_dim; d++) {
    const double feature = fabs(reference_phi(p, view->query[d]));
    const double sum = reference_state_sum(p, view->b, view->kv_head, d);
    own = fmax(own, reference_phi_error(p, view->query[d]));
    found.undecayed += feature * fabs(sum);
    found.largest += feature * bound_largest(reference_state_row(p, view->b, view->kv_head, d), p->value_dim);
    found.finite = found.finite && isfinite(sum);
  }
  found.size = found.undecayed * found.decay;
  for (int form = WORST; form < FORMS; form++) {
    const double faded =
        found.decay > 0 ? reference_decay_error(form, (double)view->decay_end, found.log) : 0;
    found.relative[form] = own + faded * (1 + own);
  }
  return found;
}

/* Products of a query and the state that are the one before. */
static double count_repeated_of_state(const linear_view *view) {
  const attn_problem *p = view->problem;
  double repeated = 0;
  for (int64_t d = 1; d < p->head_dim; d++) {
    const float *row = reference_state_row(p, view->b, view->kv_head, d),
                *before = reference_state_row(p, view->b, view->kv_head, d - 1);
    bool alike = reference_state_sum(p, view->b, view->kv_head, d) ==
                 reference_state_sum(p, view->b, view->kv_head, d - 1);
    for (int64_t e = 0; e < p->value_dim && !alike; e++) alike = row[e] == before[e] && row[e] != 0;
    repeated += alike && view->query[d] == view->query[d - 1];
  }
  return repeated;
}

/* Adds its part of the output's bounds: sum_d a_d r |S_d - o z_d| + c a_d (1 + r) |S_d|, of which the first is what numerator and
 * divisor share, and of sums that are not divided a_d r |S_d|. Returns what may vanish of the normaliser. */
static double add_state(const linear_view *view, reference_row *row, const linear_state *state,
                        const chain_errors *chains, double divisor) {
  const attn_problem *p = view->problem;
  double vanished = 0;
  for (int64_t d = 0; d < p->head_dim; d++) {
    const float *values = reference_state_row(p, view->b, view->kv_head, d);
    const double sum = reference_state_sum(p, view->b, view->kv_head, d);
    const double weight = fabs(reference_phi(p, view->query[d])) * state->decay / divisor;
    const double absolute = FLUSHED * (2 + fabs((double)view->query[d])) / divisor;
    vanished += absolute * (1 + fabs(sum));
    for (int form = WORST; form < FORMS; form++) {
      const double error = weight * state->relative[form];
      double *bound = bound_of_output(row, form);
      for (int64_t e = 0; e < p->value_dim; e++) {
        const double value = values[e], off = p->unnormalised ? value : value - row->output[e] * sum;
        bound[e] += error * fabs(off) + chains->numerator[form] * (weight + error) * fabs(value) +
                    absolute * (1 + fabs(value));
      }
    }
  }
  return vanished;
}

/* ---- rows ---- */

static linear_row survey(const linear_view *view, const reference_row *row) {
  const attn_problem *p = view->problem;
  linear_row found = {.normaliser = p->epsilon, .beside = p->epsilon, .finite = isfinite(view->queries)};
  double features = 0, of_state = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!row->visible[j]) continue;
    const linear_products key = survey_key(view, row, j);
    found.seen++;
    found.finite = found.finite && isfinite(row->weights[j]) && isfinite(key.features);
    found.normaliser += row->weights[j];
    found.sizes += key.undecayed;
    features += key.features;
    found.repeated_products =
        fmax(found.repeated_products, count_repeated(view->query, key_of(view, j), p->head_dim));
    found.largest_value = fmax(found.largest_value, bound_largest(value_of(view, j), p->value_dim));
  }
  if (p->states.state.type) {
    const linear_state state = survey_state(view);
    found.finite = found.finite && state.finite;
    for (int64_t d = 0; d < p->head_dim; d++) {
      const float *values = reference_state_row(p, view->b, view->kv_head, d);
      found.normaliser +=
          reference_phi(p, view->query[d]) * state.decay * reference_state_sum(p, view->b, view->kv_head, d);
      of_state = fmax(of_state, bound_largest(values, p->value_dim));
      of_state = fmax(of_state, fabs(reference_state_sum(p, view->b, view->kv_head, d)));
    }
    of_state = fmax(of_state, fmax(state.largest, state.undecayed));
    found.state = state.largest;
    found.beside += state.size;
    found.repeated_products += count_repeated_of_state(view);
  }
  /* States hold sums of phi(k) v, numerators sums of w v. */
  found.overflows =
      !(fmax(features, found.sizes + p->epsilon) * fmax(1, found.largest_value) + of_state <= LARGEST);
  if (p->unnormalised) found.normaliser = 1;
  return found;
}

/* As bound_add_key; of what is not divided nothing is shared with a divisor. size: of the weight. */
static void add_key(const attn_problem *problem, reference_row *row, const float *value, double size,
                    const double error[FORMS], const chain_errors *chains, double absolute) {
  const double none[FORMS] = {0};
  if (!problem->unnormalised) {
    bound_add_key(problem, row, value, 1, size, error, chains, absolute);
    return;
  }
  bound_add_key(problem, row, value, 1, 0, none, chains, absolute);
  for (int form = WORST; form < FORMS; form++) {
    const double own = error[form] + chains->numerator[form] * (size + error[form]);
    for (int64_t e = 0; e < problem->value_dim; e++)
      bound_of_output(row, form)[e] += own * fabs((double)value[e]);
  }
}

/* Of what is not divided. */
static void finish_sums(const attn_problem *problem, reference_row *row, double underflow) {
  for (int form = WORST; form < FORMS; form++) {
    double *bounds = bound_of_output(row, form);
    for (int64_t e = 0; e < problem->value_dim; e++) {
      const double o = fabs(row->output[e]);
      double bound = bounds[e] + 4 * UNIT * (o + bounds[e]) + underflow;
      if (o > LARGEST || isnan(bound)) bound = INFINITY;
      bounds[e] = isfinite(row->output[e]) ? bound : 0;
    }
  }
}

/* Where rounding can make the divisor 0, or of the other sign, nothing is known, of whatever the reference made. */
static void allow_anything(const attn_problem *problem, reference_row *row) {
  for (int form = WORST; form < FORMS; form++)
    for (int64_t e = 0; e < problem->value_dim; e++) bound_of_output(row, form)[e] = INFINITY;
}

/* Gates above 1: of these nothing is said. */
static bool has_rising(const linear_view *view) {
  for (int64_t t = 0; t < view->decay_end; t++)
    if (reference_decay(view->problem, view->b, view->kv_head, t) > 0) return true;
  return false;
}

static void bound_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                      int64_t i, reference_row *row) {
  bound_outputs(problem, row, 0);
  row->exact = reference_exact_linear(problem, tensors, b, h, i, row);
  if (row->exact) return;
  const float *query = reference_vector(tensors->query, problem->query, b, h, i);
  const linear_view view = {problem,
                            tensors,
                            b,
                            reference_kv_head(problem, h),
                            query,
                            sum_of_features(query, problem->head_dim),
                            problem->decay.type ? reference_decay_end(problem, b, i) : 0};
  const linear_row found = survey(&view, row);
  const bool has_state = problem->states.state.type;
  if (found.seen == 0 && !has_state) return;
  if (found.overflows || !found.finite || has_rising(&view)) {
    bound_outputs(problem, row, INFINITY);
    return;
  }

  const double alike = bound_alike_weights(problem, row, found.seen, found.beside);
  chain_errors chains =
      bound_chains(found.seen + (double)(problem->head_dim + view.decay_end + has_state) + 8, alike);
  /* Products that repeat round alike, whichever sum they are in. */
  for (int form = PROBABLE; form < FORMS; form++) {
    const double repeated = found.repeated_products * UNIT;
    chains.numerator[form] = fmin(chains.numerator[WORST], chains.numerator[form] + repeated);
    chains.denominator[form] = fmin(chains.denominator[WORST], chains.denominator[form] + repeated);
  }
  const double divisor = fabs(found.normaliser);
  const double epsilon_part = problem->unnormalised ? 0 : problem->epsilon / divisor;
  weight_sums sums = {.sizes = epsilon_part};
  for (int form = WORST; form < FORMS; form++) sums.kept[form] = 1 - epsilon_part * UNIT;
  double vanished = 0;
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (!row->visible[j]) continue;
    const float *value = value_of(&view, j);
    const linear_key key = key_of_notes(&view, row, j);
    const double size = key.size / divisor, absolute = key.underflow / divisor;
    double error[FORMS];
    for (int form = WORST; form < FORMS; form++) {
      error[form] = size * (key.relative + key.decayed[form] * (1 + key.relative));
      sums.grown[form] += error[form] + absolute;
      sums.kept[form] -= error[form] + absolute;
    }
    sums.sizes += size;
    vanished += absolute;
    add_key(problem, row, value, size, error, &chains, absolute);
  }
  bound_add_alike(
      problem, tensors,
      &(numerator_terms){b, h, i, found.seen, divisor, found.state / divisor, alike > 0 || has_state}, row);
  if (has_state) {
    const linear_state state = survey_state(&view);
    const double absolute = add_state(&view, row, &state, &chains, divisor);
    for (int form = WORST; form < FORMS; form++) {
      const double error = state.size / divisor * state.relative[form];
      sums.grown[form] += error + absolute;
      sums.kept[form] -= error + absolute;
    }
    sums.sizes += state.size / divisor;
    vanished += absolute;
  }
  if (sums.sizes <= 1 + 1e-9) sums.sizes = 1; /* of one sign, but for the reference's own roundings */
  const double underflow = vanished / FLUSHED * SUBNORMAL + 4 * SUBNORMAL;
  if (problem->unnormalised)
    finish_sums(problem, row, underflow);
  else if (sums.kept[WORST] <= chains.denominator[WORST] * (sums.sizes + sums.grown[WORST]))
    allow_anything(problem, row);
  else
    bound_finish(problem, row, &chains, &sums, 4 * UNIT * epsilon_part + vanished, underflow);
}

void reference_linear_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row) {
  bound_row(problem, tensors, b, h, i, row);
  if (!problem->unnormalised && problem->feature_map != ATTN_IDENTITY) return;
  /* Infinities of either sign may meet on one way to a sum and not on another. */
  for (int form = WORST; form <= PROBABLE; form++)
    for (int64_t e = 0; e < problem->value_dim; e++)
      if (!isfinite(row->output[e]) && bound_of_output(row, form)[e] == 0)
        bound_of_output(row, form)[e] = -INFINITY;
}
