/* The gradients of softmax attention (gradient.h), and their bounds: README.md, "The backward pass". */
#include "gradient.h"

#include <math.h>

#include "narrow.h"
#include "roundings.h"
#include "rows.h"

enum { BOUNDS = PROBABLE + 1 };

/* A number, and how far a right kernel may be off. */
typedef struct bounded {
  double value, error[BOUNDS];
} bounded;

/* What a pair of a query and a key comes to. */
typedef struct pair_terms {
  bool counts;    /* the key is seen, with a score above -inf */
  bounded weight; /* p */
  bounded met;    /* and what dropout leaves of it */
  bounded score;  /* the gradient of the score, g */
  bounded dot;    /* and of what the softcap was made of, x */
} pair_terms;

static int64_t row_number(const attn_problem *problem, int64_t b, int64_t h, int64_t i) {
  return (b * problem->query_heads + h) * problem->query_length + i;
}

void reference_give(const attn_problem *problem, const attn_tensors *tensors, reference_given *given) {
  const bool is_linear = problem->function == ATTN_LINEAR_BACKWARD;
  if (is_linear) reference_linear_give(problem, tensors, given);
  for (int64_t b = 0; b < problem->batch; b++)
    for (int64_t h = 0; h < problem->query_heads; h++)
      for (int64_t i = 0; i < problem->query_length; i++) {
        const int64_t n = row_number(problem, b, h, i);
        const float *output = reference_vector(tensors->output, problem->output, b, h, i);
        const float *grad = reference_vector(problem->output_grad_data, problem->output_grad, b, h, i);
        if (!is_linear) given->lse[n] = *reference_vector(tensors->lse, problem->lse, b, h, i);
        given->delta[n] = given->delta_size[n] = 0;
        for (int64_t e = 0; e < problem->value_dim; e++) {
          given->delta[n] += (double)grad[e] * output[e];
          given->delta_size[n] += fabs((double)grad[e] * output[e]);
        }
      }
}

static double dot(const float *x, const float *y, int64_t count, double *size) {
  double sum = 0;
  *size = 0;
  for (int64_t d = 0; d < count; d++) {
    sum += (double)x[d] * y[d];
    *size += fabs((double)x[d] * y[d]);
  }
  return sum;
}

/* A row that is multiplied by a gradient: as it is given, or of a query or a key as it is rotated at its position. */
typedef struct vector {
  const float *x;
  int64_t position; /* -1: as it is given */
} vector;

static reference_feature feature_of(const attn_problem *problem, vector of, int64_t d) {
  if (of.position >= 0) return reference_rotated(problem, of.position, of.x, d);
  return (reference_feature){of.x[d], fabs((double)of.x[d])};
}

static vector query_of(const attn_problem *problem, const attn_tensors *tensors, const reference_pair *at) {
  return (vector){reference_vector(tensors->query, problem->query, at->b, at->h, at->i),
                  problem->rope_features > 0 ? reference_query_position(problem, at->b, at->i) : -1};
}

static vector key_of(const attn_problem *problem, const attn_tensors *tensors, const reference_pair *at) {
  const int64_t kv_head = reference_kv_head(problem, at->h);
  return (vector){reference_vector(tensors->key, problem->key, at->b, kv_head, at->j),
                  problem->rope_features > 0 ? at->j : -1};
}

/* exp(score - lse). The score is off by what the forward pass allows; log-sum-exp and score are scaled by log2(e) in kernels in
 * base 2, and the log-sum-exp may itself be a rounded one. */
static bounded weight_of(const attn_problem *problem, const attn_tensors *tensors, const reference_pair *at,
                         double score, double lse) {
  const double exponent = score - lse;
  bounded weight = {.value = exp(exponent)};
  double off[BOUNDS];
  reference_score_errors(problem, tensors, at, score, off);
  for (int form = WORST; form < BOUNDS; form++) {
    const double t =
        off[form] + UNIT * (4 * fabs(lse) + 2 * fabs(score) + 4 * fabs(exponent)) + 2 * EXPONENTIAL;
    weight.error[form] = bound_weight_error(weight.value, exponent, t) + FLUSHED;
  }
  return weight;
}

/* The derivative of the softcap, 1 - tanh^2. The tanh is off by what the score is off, which holds the tanh's own error. */
static bounded slope_of(const attn_problem *problem, const attn_tensors *tensors, const reference_pair *at,
                        double scaled, double score) {
  bounded slope = {.value = 1};
  if (problem->softcap <= 0) return slope;
  const double t = tanh(scaled / problem->softcap);
  slope.value = 1 - t * t;
  double of_score[BOUNDS];
  reference_score_errors(problem, tensors, at, score, of_score);
  for (int form = WORST; form < BOUNDS; form++) {
    const double off = of_score[form] / problem->softcap;
    slope.error[form] = fmin(1, off * (2 * fabs(t) + off) + 3 * UNIT);
  }
  return slope;
}

static bounded product_of(bounded x, bounded y) {
  bounded product = {.value = x.value * y.value};
  for (int form = WORST; form < BOUNDS; form++) {
    const double most = (fabs(x.value) + x.error[form]) * (fabs(y.value) + y.error[form]);
    product.error[form] = (fabs(x.value) + x.error[form]) * y.error[form] + x.error[form] * fabs(y.value) +
                          2 * UNIT * most + 2 * SUBNORMAL;
    if (most > LARGEST || isnan(product.error[form])) product.error[form] = INFINITY;
  }
  return product;
}

/* times what dropout multiplies by: this number, off by its own error (bound.c, dropout_error), and the product rounds. */
static bounded kept_of(const attn_problem *problem, const reference_pair *at) {
  bounded kept = {.value = reference_kept(problem, at->b, at->h, at->i, at->j)};
  const double p = problem->dropout_p;
  for (int form = WORST; form < BOUNDS; form++)
    kept.error[form] = p > 0 ? UNIT * (1 + p / (1 - p)) * kept.value : 0;
  return kept;
}

/* kept do_i . v_j - delta_i: both are chains of products; one may begin with the other. */
static bounded gap_of(const attn_problem *problem, const attn_tensors *tensors, const reference_given *given,
                      const reference_pair *at) {
  const int64_t n = row_number(problem, at->b, at->h, at->i), kv_head = reference_kv_head(problem, at->h);
  const float *grad = reference_vector(problem->output_grad_data, problem->output_grad, at->b, at->h, at->i);
  const float *value = reference_vector(tensors->value, problem->value, at->b, kv_head, at->j);
  const double Dv = (double)problem->value_dim;
  double size;
  const bounded kept = kept_of(problem, at);
  bounded gap = {.value = kept.value * dot(grad, value, problem->value_dim, &size) - given->delta[n]};
  const double dropped = problem->keep.type ? (kept.error[WORST] + UNIT * kept.value) * size : 0;
  /* Factors and sums that units for 16 bits take for 0. */
  const double flush = reference_rounding_of(problem->value.type).flushed;
  double flushed = 0;
  for (int64_t e = 0; flush > 0 && e < problem->value_dim; e++)
    flushed += flush * kept.value * (1 + fabs((double)grad[e]) + fabs((double)value[e]));
  size = size * kept.value + given->delta_size[n];
  for (int form = WORST; form < BOUNDS; form++) {
    gap.error[form] = reference_chain_error(form, Dv + 3) * size + dropped +
                      2 * (Dv + 1) * SUBNORMAL * fmax(1, kept.value) + flushed;
    if (!(size <= LARGEST)) gap.error[form] = INFINITY;
  }
  return gap;
}

static pair_terms terms_of(const attn_problem *problem, const attn_tensors *tensors,
                           const reference_given *given, const reference_pair *at) {
  pair_terms terms = {.counts = reference_sees(problem, tensors, at->b, at->h, at->i, at->j)};
  if (!terms.counts) return terms;
  const vector query = query_of(problem, tensors, at), key = key_of(problem, tensors, at);
  double products = 0;
  for (int64_t d = 0; d < problem->head_dim; d++)
    products += feature_of(problem, query, d).value * feature_of(problem, key, d).value;
  const double scaled = problem->scale * products;
  double score = problem->softcap > 0 ? problem->softcap * tanh(scaled / problem->softcap) : scaled;
  if (problem->bias.type)
    score += (double)reference_vector(tensors->bias, problem->bias, at->b, at->h, at->i)[at->j];
  score += reference_position(problem, at->b, at->h, at->i, at->j).sum;
  terms.counts = score != -INFINITY;
  if (!terms.counts) return terms;
  const double lse = given->lse[row_number(problem, at->b, at->h, at->i)];
  terms.weight = weight_of(problem, tensors, at, score, lse);
  terms.met = problem->keep.type ? product_of(terms.weight, kept_of(problem, at)) : terms.weight;
  terms.score = product_of(terms.weight, gap_of(problem, tensors, given, at));
  for (int form = WORST; form < BOUNDS; form++) terms.score.error[form] += FLUSHED; /* as a weight is */
  terms.dot = product_of(terms.score, slope_of(problem, tensors, at, scaled, score));
  return terms;
}

/* ---- sums over pairs ---- */

static void clear(reference_gradient *to, int64_t width) {
  for (int64_t d = 0; d < width; d++) {
    to->values[d] = to->worst[d] = to->probabilistic[d] = to->sizes[d] = 0;
    if (to->rounded) to->rounded[d] = 0;
  }
}

/* What the bound of a sum needs to know of all of it. */
typedef struct chain {
  double terms;              /* that are added */
  double factor;             /* that all are multiplied by, before or behind the sum */
  reference_rounding narrow; /* of the tensors' elements, that x may be rounded to */
  double
      previous; /* the term before, of the first feature that is not zero: who repeats it rounds as it did */
  double repeated;
} chain;

static double *bound_of(const reference_gradient *to, int form) {
  return form == WORST ? to->worst : to->probabilistic;
}

/* What x may be off when it is rounded to 16 bits first: all terms alike, if they are. */
static void add_rounded(reference_gradient *to, int64_t d, const chain *chain, bounded x, double size) {
  const double most = fabs(x.value) + x.error[WORST];
  if (!to->rounded || chain->narrow.unit == 0) return;
  to->rounded[d] += fabs(chain->factor) * (chain->narrow.unit * most + chain->narrow.absolute) * size;
  if (most > chain->narrow.largest) to->rounded[d] = INFINITY;
}

/* to += factor * x * vector, and what all roundings of the chain make of this term. A vector that was rotated is off by two. */
static void add_terms(const attn_problem *problem, reference_gradient *to, int64_t width, const chain *chain,
                      bounded x, vector vector) {
  const double factor = fabs(chain->factor), own = vector.position >= 0 ? 2 * UNIT : 0;
  double chains[BOUNDS];
  for (int form = WORST; form < BOUNDS; form++) chains[form] = reference_chain_error(form, chain->terms + 4);
  for (int64_t d = 0; d < width; d++) {
    const reference_feature feature = feature_of(problem, vector, d);
    const double size = feature.size;
    add_rounded(to, d, chain, x, size);
    to->values[d] += chain->factor * x.value * feature.value;
    for (int form = WORST; form < BOUNDS; form++) {
      const double most = (fabs(x.value) + x.error[form]) * size;
      double *bound = bound_of(to, form);
      bound[d] += factor * (x.error[form] * size + (chains[form] + own) * most) +
                  4 * SUBNORMAL * (1 + factor) * (1 + size);
      if (form == PROBABLE) to->sizes[d] += factor * most;
      bound[d] += chain->narrow.flushed * (1 + factor) * (1 + size + fabs(x.value));
      if (most * fmax(1, factor) * chain->terms > LARGEST) bound[d] = INFINITY;
    }
  }
}

/* Terms that repeat their predecessor round the same way each time. */
static void note_repeats(chain *chain, double term) {
  chain->repeated += fabs(term - chain->previous) <= chain->terms * UNIT * fabs(term);
  chain->previous = term;
}

/* Sums whose truth is no number have no bound. */
static void finish(reference_gradient *to, int64_t width, const chain *chain) {
  for (int64_t d = 0; d < width; d++) {
    to->probabilistic[d] = fmin(to->worst[d], to->probabilistic[d] + chain->repeated * UNIT * to->sizes[d]);
    for (int form = WORST; form < BOUNDS; form++) {
      double *bound = bound_of(to, form);
      if (isnan(bound[d]) || fabs(to->values[d]) > LARGEST) bound[d] = INFINITY;
      if (!isfinite(to->values[d])) bound[d] = 0;
    }
  }
}

/* What is computed is rounded to the type of the gradient. One without a term is 0 in every type. */
static void round_to(attn_type type, int64_t width, reference_gradient *to) {
  const reference_rounding narrow = reference_rounding_of(type);
  for (int64_t d = 0; narrow.unit > 0 && d < width; d++) {
    if (to->worst[d] == 0) continue;
    for (int form = WORST; form < BOUNDS; form++)
      bound_of(to, form)[d] = reference_rounded(bound_of(to, form)[d], to->values[d], narrow);
    if (to->rounded) to->rounded[d] *= 1 + narrow.unit;
  }
}

/* The gradient of what was rotated at a position becomes that of what is given: sizes are what the sums' terms come
 * to, each of which may be turned before it is added. */
static void turn_back(const attn_problem *problem, int64_t position, reference_gradient *to) {
  for (int64_t d = 0; d < problem->rope_features; d++) {
    int64_t pair;
    bool is_first;
    const int64_t partner = reference_partner(problem, d, &pair, &is_first);
    if (!is_first) continue;
    if (to->rounded) {
      const double own = to->rounded[d], other = to->rounded[partner];
      to->rounded[d] = reference_turned(problem, position, true, own, other, true, pair).size;
      to->rounded[partner] = reference_turned(problem, position, true, other, own, false, pair).size;
    }
    const double a = to->values[d], b = to->values[partner];
    const double a_size = to->sizes[d], b_size = to->sizes[partner];
    to->values[d] = reference_turned(problem, position, true, a, b, true, pair).value;
    to->values[partner] = reference_turned(problem, position, true, b, a, false, pair).value;
    to->sizes[d] = reference_turned(problem, position, true, a_size, b_size, true, pair).size;
    to->sizes[partner] = reference_turned(problem, position, true, b_size, a_size, false, pair).size;
    for (int form = WORST; form < BOUNDS; form++) {
      double *bound = bound_of(to, form);
      const double own = bound[d], other = bound[partner];
      bound[d] = reference_turned(problem, position, true, own, other, true, pair).size +
                 3 * UNIT * to->sizes[d] + 4 * SUBNORMAL;
      bound[partner] = reference_turned(problem, position, true, other, own, false, pair).size +
                       3 * UNIT * to->sizes[partner] + 4 * SUBNORMAL;
      if (isnan(bound[d]) || isnan(bound[partner])) bound[d] = bound[partner] = INFINITY;
    }
  }
}

void reference_query_gradient(const attn_problem *problem, const attn_tensors *tensors,
                              const reference_given *given, int64_t b, int64_t h, int64_t i,
                              reference_gradient *to) {
  if (problem->function == ATTN_LINEAR_BACKWARD) {
    reference_linear_query_gradient(problem, tensors, given, b, h, i, to);
    round_to(problem->query_grad.type, problem->head_dim, to);
    return;
  }
  chain chain = {
      .factor = problem->scale, .narrow = reference_rounding_of(problem->key.type), .previous = (double)NAN};
  reference_pair at = {b, h, i, 0};
  clear(to, problem->head_dim);
  for (at.j = 0; at.j < problem->key_length; at.j++)
    chain.terms += reference_sees(problem, tensors, b, h, i, at.j);
  for (at.j = 0; at.j < problem->key_length; at.j++) {
    const pair_terms terms = terms_of(problem, tensors, given, &at);
    if (!terms.counts) continue;
    const vector key = key_of(problem, tensors, &at);
    note_repeats(&chain, terms.dot.value * feature_of(problem, key, 0).value);
    add_terms(problem, to, problem->head_dim, &chain, terms.dot, key);
  }
  finish(to, problem->head_dim, &chain);
  turn_back(problem, reference_query_position(problem, b, i), to);
  round_to(problem->query_grad.type, problem->head_dim, to);
}

void reference_key_gradients(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t b, int64_t kv_head, int64_t j,
                             reference_gradient *key, reference_gradient *value) {
  if (problem->function == ATTN_LINEAR_BACKWARD) {
    reference_linear_key_gradients(problem, tensors, given, b, kv_head, j, key, value);
    round_to(problem->key_grad.type, problem->head_dim, key);
    round_to(problem->value_grad.type, problem->value_dim, value);
    return;
  }
  const int64_t group = problem->query_heads / problem->kv_heads, first = kv_head * group;
  const reference_rounding of_queries = reference_rounding_of(problem->query.type);
  const reference_rounding of_output = reference_rounding_of(problem->output_grad.type);
  chain of_key = {.factor = problem->scale, .narrow = of_queries, .previous = (double)NAN},
        of_value = {.factor = 1, .narrow = of_output, .previous = (double)NAN};
  reference_pair at = {b, 0, 0, j};
  clear(key, problem->head_dim);
  clear(value, problem->value_dim);
  for (at.h = first; at.h < first + group; at.h++)
    for (at.i = 0; at.i < problem->query_length; at.i++)
      of_key.terms = of_value.terms += reference_sees(problem, tensors, b, at.h, at.i, j);
  for (at.h = first; at.h < first + group; at.h++)
    for (at.i = 0; at.i < problem->query_length; at.i++) {
      const pair_terms terms = terms_of(problem, tensors, given, &at);
      if (!terms.counts) continue;
      const vector query = query_of(problem, tensors, &at);
      const float *grad = reference_vector(problem->output_grad_data, problem->output_grad, b, at.h, at.i);
      note_repeats(&of_key, terms.dot.value * feature_of(problem, query, 0).value);
      if (problem->value_dim > 0) note_repeats(&of_value, terms.met.value * grad[0]);
      add_terms(problem, key, problem->head_dim, &of_key, terms.dot, query);
      add_terms(problem, value, problem->value_dim, &of_value, terms.met, (vector){grad, -1});
    }
  finish(key, problem->head_dim, &of_key);
  turn_back(problem, j, key);
  finish(value, problem->value_dim, &of_value);
  round_to(problem->key_grad.type, problem->head_dim, key);
  round_to(problem->value_grad.type, problem->value_dim, value);
}

void reference_bias_gradient(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t b, int64_t h, int64_t i,
                             reference_gradient *to) {
  static const float one = 1;
  const attn_layout *bias = &problem->bias;
  const int64_t ends[] = {bias->batch == 0 ? problem->batch : b + 1,
                          bias->head == 0 ? problem->query_heads : h + 1,
                          bias->position == 0 ? problem->query_length : i + 1};
  const int64_t terms_of_each = (ends[0] - b) * (ends[1] - h) * (ends[2] - i);
  clear(to, problem->key_length);
  for (int64_t j = 0; j < problem->key_length; j++) {
    /* What is a sum may be one of numbers of 16 bits. */
    const attn_type added = terms_of_each > 1 ? problem->bias_grad.type : ATTN_FLOAT32;
    chain chain = {.terms = (double)terms_of_each,
                   .factor = 1,
                   .narrow = reference_rounding_of(added),
                   .previous = (double)NAN};
    reference_gradient element = {to->values + j, to->worst + j, to->probabilistic + j, to->sizes + j,
                                  to->rounded ? to->rounded + j : NULL};
    reference_pair at = {b, h, i, j};
    for (at.b = b; at.b < ends[0]; at.b++)
      for (at.h = h; at.h < ends[1]; at.h++)
        for (at.i = i; at.i < ends[2]; at.i++) {
          const pair_terms terms = terms_of(problem, tensors, given, &at);
          if (!terms.counts) continue;
          note_repeats(&chain, terms.score.value);
          add_terms(problem, &element, 1, &chain, terms.score, (vector){&one, -1});
        }
    finish(&element, 1, &chain);
  }
  round_to(problem->bias_grad.type, problem->key_length, to);
}

void reference_sink_gradient(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t h, reference_gradient *to) {
  static const float one = 1;
  chain chain = {
      .terms = (double)(problem->batch * problem->query_length), .factor = -1, .previous = (double)NAN};
  clear(to, 1);
  for (int64_t b = 0; b < problem->batch; b++)
    for (int64_t i = 0; i < problem->query_length; i++) {
      const int64_t n = row_number(problem, b, h, i);
      const double sink = reference_sink(problem, tensors, b, h, i), exponent = sink - given->lse[n];
      if (sink == -INFINITY) continue;
      bounded weight = {.value = exp(exponent)}, delta = {.value = given->delta[n]};
      for (int form = WORST; form < BOUNDS; form++) {
        const double t =
            UNIT * (3 * fabs(sink) + 4 * fabs(given->lse[n]) + 4 * fabs(exponent)) + 2 * EXPONENTIAL;
        weight.error[form] = bound_weight_error(weight.value, exponent, t) + FLUSHED;
        delta.error[form] =
            reference_chain_error(form, (double)problem->value_dim + 2) * given->delta_size[n] +
            (double)problem->value_dim * SUBNORMAL;
        if (!(given->delta_size[n] <= LARGEST)) delta.error[form] = INFINITY;
      }
      const bounded term = product_of(weight, delta);
      note_repeats(&chain, term.value);
      add_terms(problem, to, 1, &chain, term, (vector){&one, -1});
    }
  finish(to, 1, &chain);
}

/* Of the five products: scores, gradients of the weights, and of queries, keys and values. */
static double operations(const attn_problem *problem, double visible_pairs) {
  return 2 * (3 * (double)problem->head_dim + 2 * (double)problem->value_dim) * visible_pairs;
}

static double largest_weight(const attn_problem *problem) {
  (void)problem;
  return 1;
}

const reference_function reference_backward = {
    .name = "backward",
    .computes = "computes the backward pass",
    .operations = operations,
    .largest_weight = largest_weight,
    .has_scores = true,
    .forward = ATTN_SOFTMAX,
    .backward = ATTN_SOFTMAX_BACKWARD,
};
