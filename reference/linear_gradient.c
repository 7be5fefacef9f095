/* The gradients of linear attention (gradient.h), pair by pair, never by the states that variants keep and that this must check.
 * Their bounds: README.md, "The backward pass of linear attention". */
#include "linear_gradient.h"

#include <math.h>

#include "rows.h"

enum { BOUNDS = LINEAR_BOUNDS };

/* ---- the normalisers ---- */

/* One feature of keys, added up. */
typedef struct feature_sum {
  double value, size, repeated, error[BOUNDS];
} feature_sum;

/* By the gate of a key, those before it. Each is off by as much as a decay by it, whose logarithm is part of a sum of so many. */
static void fade_features(double log, double gates, feature_sum *sum) {
  const double gate = exp(log);
  for (int form = WORST; form < BOUNDS && log > -INFINITY; form++) {
    const double off = EXPONENTIAL - (2 * UNIT + reference_chain_error(form, gates)) * log;
    const double more = (gate > 0 ? gate * bound_grown(off) : 0) + FLUSHED;
    sum->error[form] = gate * sum->error[form] + more * (sum->size + sum->error[form]);
  }
  for (int form = WORST; form < BOUNDS && log == -INFINITY; form++) sum->error[form] = 0;
  sum->value *= gate;
  sum->size *= gate;
  sum->repeated *= gate;
}

static void add_feature(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t kv_head,
                        int64_t j, int64_t d, bool decays, feature_sum *sum) {
  if (decays) fade_features(reference_decay(problem, b, kv_head, j), (double)problem->key_length, sum);
  const double x = reference_vector(tensors->key, problem->key, b, kv_head, j)[d];
  const double before = j > 0 ? reference_vector(tensors->key, problem->key, b, kv_head, j - 1)[d] : NAN;
  const linear_feature key = linear_feature_of(problem, x);
  sum->value += key.value;
  sum->size += linear_size_of(key);
  for (int form = WORST; form < BOUNDS; form++) sum->error[form] += key.error;
  if (linear_repeats(x, before, (double)problem->key_length)) sum->repeated += sum->size;
}

/* Adds feature d of a query, times the same of all its keys, to a row's normaliser. */
static void add_to_normaliser(const attn_problem *problem, reference_given *given, int64_t n,
                              linear_feature query, const feature_sum *keys, double seen, bool repeated) {
  const double size = linear_size_of(query) * keys->size;
  const double gates = problem->decay.type ? seen : 0; /* by which products round as well */
  given->normaliser[n] += query.value * keys->value;
  given->normaliser_size[n] += size;
  for (int form = WORST; form < BOUNDS; form++)
    given->normaliser_error[form][n] +=
        linear_size_of(query) * keys->error[form] + query.error * keys->size +
        reference_chain_error(form, seen + gates + (double)problem->head_dim + 8) *
            (size + linear_size_of(query) * keys->error[form]) +
        (seen + gates + 1) * (1 + linear_size_of(query)) * SUBNORMAL;
  given->normaliser_error[PROBABLE][n] += UNIT * linear_size_of(query) * keys->repeated;
  if (repeated) given->normaliser_error[PROBABLE][n] += UNIT * given->normaliser_size[n];
}

/* A sum of keys that begins at the first, or the initial state, goes on from row to row; but of keys that decay,
 * only where none is ahead of its query. */
static void add_feature_of_head(const attn_problem *problem, const attn_tensors *tensors,
                                reference_given *given, int64_t b, int64_t h, int64_t d) {
  const int64_t kv_head = reference_kv_head(problem, h);
  const bool decays = problem->decay.type, goes_on = !decays || problem->right == 0;
  const double state = reference_state_sum(problem, b, kv_head, d);
  feature_sum from_first = {.value = state, .size = fabs(state)};
  int64_t reached = 0;
  for (int64_t i = 0; i < problem->query_length; i++) {
    const float *query = reference_vector(tensors->query, problem->query, b, h, i);
    const linear_keys_seen seen = linear_keys_of(problem, b, i);
    const int64_t decay_end = decays ? reference_decay_end(problem, b, i) : 0;
    const bool is_own = seen.first > 0 || !goes_on;
    feature_sum own = {.value = state, .size = fabs(state)};
    for (; !is_own && reached < seen.end; reached++)
      add_feature(problem, tensors, b, kv_head, reached, d, decays, &from_first);
    for (int64_t j = seen.first; is_own && j < seen.end; j++)
      add_feature(problem, tensors, b, kv_head, j, d, j < decay_end, &own);
    add_to_normaliser(problem, given, linear_row_number(problem, b, h, i),
                      linear_feature_of(problem, query[d]), is_own ? &own : &from_first,
                      (double)(seen.end - seen.first), d > 0 && query[d] == query[d - 1]);
  }
}

/* Errors become relative; infinite where nothing can be said. */
static void finish_normaliser(const attn_problem *problem, reference_given *given, int64_t n) {
  const double normaliser = given->normaliser[n] += problem->epsilon;
  if (problem->unnormalised) {
    given->normaliser[n] = 1;
    given->normaliser_error[WORST][n] = given->normaliser_error[PROBABLE][n] = 0;
    return;
  }
  for (int form = WORST; form < BOUNDS; form++) {
    double *error = &given->normaliser_error[form][n];
    const double share = (*error + 2 * UNIT * problem->epsilon) / fabs(normaliser);
    *error = share < 0.5 ? share / (1 - share) + 3 * UNIT : INFINITY;
    if (!(given->normaliser_size[n] <= LARGEST && fabs(normaliser) >= 1 / LARGEST)) *error = INFINITY;
  }
  given->normaliser_error[PROBABLE][n] =
      fmin(given->normaliser_error[PROBABLE][n], given->normaliser_error[WORST][n]);
}

void reference_linear_give(const attn_problem *problem, const attn_tensors *tensors, reference_given *given) {
  for (int64_t b = 0; b < problem->batch; b++)
    for (int64_t h = 0; h < problem->query_heads; h++) {
      const int64_t first = linear_row_number(problem, b, h, 0);
      for (int64_t n = first; n < first + problem->query_length; n++)
        given->normaliser[n] = given->normaliser_size[n] = given->normaliser_error[WORST][n] =
            given->normaliser_error[PROBABLE][n] = 0;
      for (int64_t d = 0; d < problem->head_dim; d++) add_feature_of_head(problem, tensors, given, b, h, d);
      for (int64_t n = first; n < first + problem->query_length; n++) finish_normaliser(problem, given, n);
    }
}

/* ---- pairs ---- */

/* A query, a key that it sees, and the value. log: of what it fades by. */
typedef struct pair {
  const float *query, *key, *value, *output_grad;
  double normaliser, normaliser_error[BOUNDS]; /* the errors are relative */
  double gap, gap_size; /* output_grad . (value - output), and the sum of the sizes of the products */
  double underflow;     /* what products that vanish may come to, of any of the sums */
  double gates;         /* by which it fades */
  linear_fade fade;
} pair;

static double sum_of_sizes(const float *x, int64_t count) {
  double sum = 0;
  for (int64_t n = 0; n < count; n++) sum += fabs((double)x[n]);
  return sum;
}

static pair pair_of(const attn_problem *problem, const attn_tensors *tensors, const reference_given *given,
                    reference_pair at, double log) {
  const int64_t kv_head = reference_kv_head(problem, at.h), n = linear_row_number(problem, at.b, at.h, at.i);
  pair found = {.query = reference_vector(tensors->query, problem->query, at.b, at.h, at.i),
                .key = reference_vector(tensors->key, problem->key, at.b, kv_head, at.j),
                .value = reference_vector(tensors->value, problem->value, at.b, kv_head, at.j),
                .output_grad =
                    reference_vector(problem->output_grad_data, problem->output_grad, at.b, at.h, at.i),
                .normaliser = given->normaliser[n],
                .gap = problem->unnormalised ? 0 : -given->delta[n],
                .gap_size = problem->unnormalised ? 0 : given->delta_size[n]};
  for (int form = WORST; form < BOUNDS; form++)
    found.normaliser_error[form] = given->normaliser_error[form][n];
  for (int64_t e = 0; e < problem->value_dim; e++) {
    const double product = (double)found.output_grad[e] * found.value[e];
    found.gap += product;
    found.gap_size += fabs(product);
  }
  const int64_t behind = problem->decay.type ? reference_decay_end(problem, at.b, at.i) - 1 - at.j : 0;
  found.gates = behind > 0 ? (double)behind : 0;
  found.fade = linear_fade_of(found.gates, log);
  found.underflow = 8 * SUBNORMAL * (double)(problem->value_dim + problem->head_dim) * (1 + found.gates) *
                    (1 + sum_of_sizes(found.value, problem->value_dim)) *
                    (1 + sum_of_sizes(found.output_grad, problem->value_dim)) *
                    (1 + 1 / fabs(found.normaliser));
  return found;
}

static double *bound_of(const reference_gradient *to, int form) {
  return form == WORST ? to->worst : to->probabilistic;
}

static void clear(reference_gradient *to, int64_t width) {
  for (int64_t d = 0; d < width; d++) to->values[d] = to->worst[d] = to->probabilistic[d] = to->sizes[d] = 0;
}

/* What a sum over pairs adds of one of them, but for the factor 1 / normaliser. */
typedef struct term {
  double value;
  double size; /* of what it is the sum of */
  double
      factor; /* of one of two that are multiplied: over the normaliser it may overflow where the other is 0 */
  double error;  /* which may be the same in all terms */
  bool repeated; /* the term before was the same */
} term;

/* By what errors, values and sizes of a pair's terms go into the bounds of the sums that they are terms of, so many each. */
typedef struct shares {
  double terms, of_error[BOUNDS], of_value[BOUNDS], of_size[BOUNDS];
} shares;

/* Of a pair that fades, what products with gates round is counted with the sums. */
static shares shares_of(const pair *of, double terms) {
  const double normaliser = fabs(of->normaliser), fade = of->fade.value;
  shares by = {.terms = terms};
  for (int form = WORST; form < BOUNDS; form++) {
    const double off = of->normaliser_error[form], fade_error = of->fade.error[form];
    by.of_error[form] = (fade + fade_error) * (1 + off) / normaliser;
    by.of_value[form] = (fade_error * (1 + off) + fade * off) / normaliser;
    by.of_size[form] = reference_chain_error(form, terms + of->gates) * by.of_error[form];
  }
  return by;
}

static void add_term(reference_gradient *to, int64_t d, term term, const pair *of, const shares *by) {
  const double normaliser = fabs(of->normaliser), fade = of->fade.value;
  to->values[d] += fade * term.value / of->normaliser;
  to->sizes[d] += fade * term.size / normaliser;
  const bool may_overflow =
      !(fmax(fmax(term.size, term.factor), 1) * fmax(1, 1 / normaliser) * by->terms <= LARGEST);
  for (int form = WORST; form < BOUNDS; form++) {
    double *bound = bound_of(to, form) + d;
    *bound += term.error * by->of_error[form] + fabs(term.value) * by->of_value[form] +
              term.size * by->of_size[form] + of->underflow;
    if (may_overflow) *bound = INFINITY;
  }
  if (term.repeated) to->probabilistic[d] += UNIT * to->sizes[d];
}

/* Sums whose truth is no number, or whose normaliser may be none, have no bound, nor have those of gates above 1. */
static void finish(reference_gradient *to, int64_t d, linear_feature of, bool rises) {
  const double value = to->values[d];
  to->values[d] = of.slope * value;
  to->probabilistic[d] = fmin(to->worst[d], to->probabilistic[d]);
  for (int form = WORST; form < BOUNDS; form++) {
    double *bound = bound_of(to, form) + d;
    *bound =
        *bound * (fabs(of.slope) + of.slope_error) + fabs(value) * (of.slope_error + UNIT * fabs(of.slope));
    if (value != 0) *bound += SUBNORMAL;
    if (isnan(*bound) || rises || !(fabs(value) <= LARGEST)) *bound = INFINITY;
  }
  if (!isfinite(to->values[d])) to->values[d] = 0;
}

static const linear_feature itself = {.slope = 1};

/* Of the initial state of a head, all that products with it may come to. */
static double size_of_state(const attn_problem *problem, int64_t b, int64_t kv_head) {
  double size = 1;
  for (int64_t d = 0; d < problem->head_dim; d++)
    size += fabs(reference_state_sum(problem, b, kv_head, d)) +
            sum_of_sizes(reference_state_row(problem, b, kv_head, d), problem->value_dim);
  return size;
}

/* What a query sees of the initial state, as of a key: gates that all of it has faded by, whose logarithms sum to
 * log; size: of what it meets there. */
static pair state_of(const attn_problem *problem, const reference_given *given, int64_t b, int64_t h,
                     int64_t i, double log, double size) {
  const int64_t n = linear_row_number(problem, b, h, i);
  const double gates = problem->decay.type ? (double)reference_decay_end(problem, b, i) : 0;
  pair found = {.output_grad = reference_vector(problem->output_grad_data, problem->output_grad, b, h, i),
                .normaliser = given->normaliser[n],
                .gates = gates,
                .fade = linear_fade_of(gates, log)};
  for (int form = WORST; form < BOUNDS; form++)
    found.normaliser_error[form] = given->normaliser_error[form][n];
  found.underflow = 8 * SUBNORMAL * (double)(problem->value_dim + problem->head_dim) * (1 + gates) * size *
                    (1 + sum_of_sizes(found.output_grad, problem->value_dim)) *
                    (1 + 1 / fabs(found.normaliser));
  return found;
}

/* The state is exact as given: its features are sums of which nothing is known but the number. */
static void add_state(const attn_problem *problem, const reference_given *given, int64_t b, int64_t h,
                      int64_t i, const pair *of, double terms, reference_gradient *to) {
  const int64_t n = linear_row_number(problem, b, h, i), kv_head = reference_kv_head(problem, h);
  const shares by = shares_of(of, terms);
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const float *row = reference_state_row(problem, b, kv_head, d);
    const double sum = reference_state_sum(problem, b, kv_head, d);
    term term = {.value = -given->delta[n] * sum, .size = given->delta_size[n] * fabs(sum)};
    if (problem->unnormalised) term.value = term.size = 0;
    for (int64_t e = 0; e < problem->value_dim; e++) {
      term.value += (double)of->output_grad[e] * row[e];
      term.size += fabs((double)of->output_grad[e] * row[e]);
    }
    add_term(to, d, term, of, &by);
  }
}

/* ---- the gradients ---- */

void reference_linear_query_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t h, int64_t i,
                                     reference_gradient *to) {
  const float *query = reference_vector(tensors->query, problem->query, b, h, i), *before = NULL;
  const int64_t kv_head = reference_kv_head(problem, h);
  const int64_t decay_end = problem->decay.type ? reference_decay_end(problem, b, i) : 0;
  const bool rises = linear_rises(problem, b, kv_head);
  double seen = 0, log = 0; /* of the decays behind the key */
  clear(to, problem->head_dim);
  for (int64_t j = 0; j < problem->key_length; j++) seen += reference_sees(problem, tensors, b, h, i, j);
  for (int64_t j = problem->key_length - 1; j >= 0; j--) {
    const double behind = log;
    if (j < decay_end) log += reference_decay(problem, b, kv_head, j);
    if (!reference_sees(problem, tensors, b, h, i, j)) continue;
    const pair of = pair_of(problem, tensors, given, (reference_pair){b, h, i, j}, behind);
    const shares by = shares_of(&of, seen + (double)problem->value_dim + 8);
    for (int64_t d = 0; d < problem->head_dim; d++) {
      const linear_feature key = linear_feature_of(problem, of.key[d]);
      const term term = {.value = of.gap * key.value,
                         .size = of.gap_size * linear_size_of(key),
                         .factor = of.gap_size,
                         .error = fabs(of.gap) * key.error,
                         .repeated = before && linear_repeats(of.key[d], before[d], seen)};
      add_term(to, d, term, &of, &by);
    }
    before = of.key;
  }
  if (problem->states.state.type) {
    const pair of = state_of(problem, given, b, h, i, log, size_of_state(problem, b, kv_head));
    add_state(problem, given, b, h, i, &of, seen + (double)problem->value_dim + 9, to);
  }
  for (int64_t d = 0; d < problem->head_dim; d++) finish(to, d, linear_feature_of(problem, query[d]), rises);
}

/* The weight of a key, by its features' products. */
static term weight_of(const attn_problem *problem, const pair *of) {
  term weight = {0};
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const linear_feature query = linear_feature_of(problem, of->query[d]),
                         key = linear_feature_of(problem, of->key[d]);
    weight.value += query.value * key.value;
    weight.size += linear_size_of(query) * linear_size_of(key);
    weight.error += linear_size_of(query) * key.error + query.error * linear_size_of(key);
  }
  return weight;
}

static void add_pair(const attn_problem *problem, const pair *of, const pair *before, double seen,
                     reference_gradient *key, reference_gradient *value) {
  const shares by_key = shares_of(of, seen + (double)problem->value_dim + 8),
               by_value = shares_of(of, seen + (double)problem->head_dim + 8);
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const linear_feature query = linear_feature_of(problem, of->query[d]);
    const term term = {.value = of->gap * query.value,
                       .size = of->gap_size * linear_size_of(query),
                       .factor = of->gap_size,
                       .error = fabs(of->gap) * query.error,
                       .repeated = before && linear_repeats(of->query[d], before->query[d], seen)};
    add_term(key, d, term, of, &by_key);
  }
  const term weight = weight_of(problem, of);
  const double alike = UNIT * linear_repeated_features(of->key, problem->head_dim);
  for (int64_t e = 0; e < problem->value_dim; e++) {
    const double grad = of->output_grad[e];
    const term term = {.value = weight.value * grad,
                       .size = weight.size * fabs(grad),
                       .factor = fmax(weight.size, fabs(grad)),
                       .error = (weight.error + alike * weight.size) * fabs(grad),
                       .repeated = before && linear_repeats(grad, before->output_grad[e], seen)};
    add_term(value, e, term, of, &by_value);
  }
}

void reference_linear_key_gradients(const attn_problem *problem, const attn_tensors *tensors,
                                    const reference_given *given, int64_t b, int64_t kv_head, int64_t j,
                                    reference_gradient *key, reference_gradient *value) {
  const int64_t group = problem->query_heads / problem->kv_heads, first = kv_head * group;
  const float *features = reference_vector(tensors->key, problem->key, b, kv_head, j);
  const bool rises = linear_rises(problem, b, kv_head);
  double seen = 0;
  pair of, before;
  bool has_before = false;
  clear(key, problem->head_dim);
  clear(value, problem->value_dim);
  for (int64_t h = first; h < first + group; h++)
    for (int64_t i = 0; i < problem->query_length; i++) seen += reference_sees(problem, tensors, b, h, i, j);
  for (int64_t h = first; h < first + group; h++) {
    double log = 0; /* of the decays from behind the key to the query's own */
    int64_t reached = j + 1;
    for (int64_t i = 0; i < problem->query_length; i++) {
      const int64_t decay_end = problem->decay.type ? reference_decay_end(problem, b, i) : 0;
      for (; reached < decay_end; reached++) log += reference_decay(problem, b, kv_head, reached);
      if (!reference_sees(problem, tensors, b, h, i, j)) continue;
      of = pair_of(problem, tensors, given, (reference_pair){b, h, i, j}, log);
      add_pair(problem, &of, has_before ? &before : NULL, seen, key, value);
      before = of;
      has_before = true;
    }
  }
  for (int64_t d = 0; d < problem->head_dim; d++)
    finish(key, d, linear_feature_of(problem, features[d]), rises);
  for (int64_t e = 0; e < problem->value_dim; e++) finish(value, e, itself, rises);
}

/* ---- of an initial state ---- */

/* Of all queries of the heads that share it, from the first on; what each has with feature d of its own goes to
 * elements: those of the output's gradient, or the delta that the sum meets. */
static void add_queries(const attn_problem *problem, const attn_tensors *tensors,
                        const reference_given *given, int64_t b, int64_t kv_head, int64_t d, bool of_sum,
                        reference_gradient *to) {
  const int64_t group = problem->query_heads / problem->kv_heads, first = kv_head * group;
  const int64_t width = of_sum ? 1 : problem->value_dim, to_first = of_sum ? d : 0;
  const double terms = (double)(group * problem->query_length + problem->value_dim + 8);
  const float *before = NULL;
  for (int64_t h = first; h < first + group; h++) {
    double log = 0;
    int64_t reached = 0;
    for (int64_t i = 0; i < problem->query_length; i++) {
      const int64_t decay_end = problem->decay.type ? reference_decay_end(problem, b, i) : 0;
      for (; reached < decay_end; reached++) log += reference_decay(problem, b, kv_head, reached);
      const pair of = state_of(problem, given, b, h, i, log, 1);
      const shares by = shares_of(&of, terms);
      const float *features = reference_vector(tensors->query, problem->query, b, h, i);
      const linear_feature query = linear_feature_of(problem, features[d]);
      const int64_t n = linear_row_number(problem, b, h, i);
      for (int64_t e = 0; e < width; e++) {
        const double x = of_sum ? -given->delta[n] : (double)of.output_grad[e];
        const double size = of_sum ? given->delta_size[n] : fabs(x);
        const term term = {.value = query.value * x,
                           .size = linear_size_of(query) * size,
                           .factor = fmax(linear_size_of(query), size),
                           .error = query.error * fabs(x),
                           .repeated = before && linear_repeats(features[d], before[d], terms)};
        add_term(to, to_first + e, term, &of, &by);
      }
      before = features;
    }
  }
}

void reference_linear_state_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t kv_head, int64_t d,
                                     reference_gradient *to) {
  const bool rises = linear_rises(problem, b, kv_head);
  clear(to, problem->value_dim);
  add_queries(problem, tensors, given, b, kv_head, d, false, to);
  for (int64_t e = 0; e < problem->value_dim; e++) finish(to, e, itself, rises);
}

void reference_linear_state_sum_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                         const reference_given *given, int64_t b, int64_t kv_head,
                                         reference_gradient *to) {
  const bool rises = linear_rises(problem, b, kv_head);
  clear(to, problem->head_dim);
  for (int64_t d = 0; d < problem->head_dim; d++)
    add_queries(problem, tensors, given, b, kv_head, d, true, to);
  for (int64_t d = 0; d < problem->head_dim; d++) finish(to, d, itself, rises);
}

/* Each key joins a state of D x Dv and each query another; queries are multiplied with the one, keys and values with
 * the other. */
static double operations(const attn_problem *problem, double visible_pairs) {
  (void)visible_pairs;
  return 2 * (double)problem->head_dim * (double)problem->value_dim * (double)problem->batch *
         (3 * (double)problem->kv_heads * (double)problem->key_length +
          2 * (double)problem->query_heads * (double)problem->query_length);
}

/* phi(q).phi(k) with elements of size 1. */
static double largest_weight(const attn_problem *problem) { return 4 * (double)problem->head_dim; }

const reference_function reference_linear_backward = {
    .name = "linear_backward",
    .computes = "computes the backward pass of linear attention",
    .operations = operations,
    .largest_weight = largest_weight,
    .has_states = true,
    .forward = ATTN_LINEAR,
    .backward = ATTN_LINEAR_BACKWARD,
};
