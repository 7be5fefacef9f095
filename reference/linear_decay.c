/* The gradient of a decay (gradient.h): the sum of g_ij w_ij over all pairs that fade by it, whose queries stand at
 * its key or behind and whose keys lie before it. Of each query that is what it sees of these keys, added up from the
 * decay's own key back and never carried on from another decay's: of a long sequence a few can be had. What each key
 * is to the queries is added up as well, for the bound: README.md, "The backward pass of linear attention". */
#include <math.h>

#include "linear_gradient.h"
#include "rows.h"

enum { AT_ONCE = 128 };

/* What all of the sum goes through, and room for numbers of each key and of each query of all heads that read them.
 * An initial state is key -1, which has no features. */
typedef struct crossing {
  const attn_problem *problem;
  const attn_tensors *tensors;
  const reference_given *given;
  int64_t b, kv_head, t, keys, group, first_query;
  double *fade,
      *most_fade; /* [-1, Tk): by which keys fade to the decay's own and queries from it, and that at most */
  double *of_key,
      *key_size; /* [-1, Tk): what a key is to all queries, and the sum of the sizes that it is the sum of */
  double *of_query, *query_size; /* [group, Tq]: what the keys are to a query */
} crossing;

size_t reference_decay_room(const attn_problem *problem) {
  const int64_t group = problem->kv_heads > 0 ? problem->query_heads / problem->kv_heads : 0;
  return 4 * (size_t)(problem->key_length + 1) + 2 * (size_t)(group * problem->query_length);
}

/* A key with its value, or a query with its output's gradient over the normaliser: features, times elements, of
 * which there is one behind the others where sums are normalised: 1 of a key, -delta of a query. */
typedef struct item {
  const float *features, *elements;
  double last, last_size;
  double factor, most; /* of all, and that at most */
} item;

/* One feature of items times their elements: the sum, the largest that it was, the sum of the sizes, and that at most. */
typedef struct columns {
  double value[AT_ONCE], largest[AT_ONCE], size[AT_ONCE], most[AT_ONCE];
} columns;

/* Columns [first, first + values + rest) of feature d; rest: 1 with the last element. */
typedef struct part {
  int64_t d, first, values, rest;
} part;

/* What comes out, over all parts. */
typedef struct total {
  double value, size, most;
  double features; /* what errors of features come to */
  double keys, queries,
      product; /* of sums over keys, and over queries, the squares of what each rounding may come to; of their product */
  double alike;
} total;

/* Of a state row d, for a key that has but one feature, 1, which is exact. */
static item state_of(const crossing *of, int64_t d) {
  const double sum = reference_state_sum(of->problem, of->b, of->kv_head, d);
  return (item){NULL,         reference_state_row(of->problem, of->b, of->kv_head, d),
                sum,          fabs(sum),
                of->fade[-1], of->most_fade[-1]};
}

static item key_of(const crossing *of, int64_t j, int64_t d) {
  if (j < 0) return state_of(of, d);
  return (item){reference_vector(of->tensors->key, of->problem->key, of->b, of->kv_head, j),
                reference_vector(of->tensors->value, of->problem->value, of->b, of->kv_head, j),
                1,
                1,
                of->fade[j],
                of->most_fade[j]};
}

/* Where the keys begin that a query sees; and its own, or the last that exists. */
static int64_t first_key(const crossing *of, int64_t i) {
  return of->problem->states.state.type ? -1 : linear_keys_of(of->problem, of->b, i).first;
}
static int64_t own_key(const crossing *of, int64_t i) {
  return reference_decay_end(of->problem, of->b, i) - 1;
}

static int64_t row_of(const crossing *of, int64_t h, int64_t i) {
  return linear_row_number(of->problem, of->b, of->kv_head * of->group + h, i);
}

/* h: of the heads that share the key. */
static item query_of(const crossing *of, int64_t h, int64_t i) {
  const int64_t head = of->kv_head * of->group + h, n = row_of(of, h, i), own = own_key(of, i);
  const double normaliser = of->given->normaliser[n];
  return (item){reference_vector(of->tensors->query, of->problem->query, of->b, head, i),
                reference_vector(of->problem->output_grad_data, of->problem->output_grad, of->b, head, i),
                -of->given->delta[n],
                of->given->delta_size[n],
                of->fade[own] / normaliser,
                of->most_fade[own] / fabs(normaliser) * (1 + of->given->normaliser_error[WORST][n])};
}

/* ---- fades ---- */

static void set_fade(const crossing *of, int64_t at, double gates, double log) {
  const linear_fade fade = linear_fade_of(gates, log);
  of->fade[at] = fade.value;
  of->most_fade[at] = fade.value;
  if (gates <= 0 || log == -INFINITY) return;
  /* A pair fades by the product of two: their exponents add up where the chain is that of the longest. */
  const double chain = 2 * UNIT + reference_chain_error(WORST, (double)of->keys);
  of->most_fade[at] = FLUSHED + (fade.value > 0 ? exp(log + gates * EXPONENTIAL - chain * log) : 0);
}

static void set_fades(const crossing *of) {
  double log = 0;
  for (int64_t j = of->t - 1; j >= -1; j--) {
    log += reference_decay(of->problem, of->b, of->kv_head, j + 1);
    set_fade(of, j, (double)(of->t - j), log);
  }
  log = 0;
  for (int64_t s = of->t; s < of->keys; s++) {
    if (s > of->t) log += reference_decay(of->problem, of->b, of->kv_head, s);
    set_fade(of, s, (double)(s - of->t), log);
  }
}

/* ---- sums ---- */

static void add_to_column(columns *to, int64_t e, double factor, double most, double x, double size) {
  const double value = to->value[e] + factor * x;
  to->value[e] = value;
  to->size[e] += fabs(factor) * size;
  to->most[e] += most * size;
  to->largest[e] = fabs(value) > to->largest[e] ? fabs(value) : to->largest[e];
}

static linear_feature feature_of(const attn_problem *problem, const item *of, int64_t d) {
  return of->features ? linear_feature_of(problem, of->features[d]) : (linear_feature){.value = 1};
}

static void add_item(const attn_problem *problem, const item *of, part at, columns *to) {
  const linear_feature feature = feature_of(problem, of, at.d);
  const double factor = of->factor * feature.value, most = of->most * linear_size_of(feature);
  const float *elements = of->elements + at.first;
#pragma omp simd
  for (int64_t e = 0; e < at.values; e++)
    add_to_column(to, e, factor, most, elements[e], fabs((double)elements[e]));
  if (at.rest > 0) add_to_column(to, at.values, factor, most, of->last, of->last_size);
}

/* What columns of the others are to an item. */
static void meet_item(const attn_problem *problem, const item *of, part at, const columns *from,
                      double *number, double *number_size, total *sum) {
  const linear_feature feature = feature_of(problem, of, at.d);
  const float *elements = of->elements + at.first;
  double value = 0, size = 0, most = 0;
#pragma omp simd reduction(+ : value, size, most)
  for (int64_t e = 0; e < at.values; e++) {
    const double x = elements[e];
    value += x * from->value[e];
    size += fabs(x) * from->size[e];
    most += fabs(x) * from->most[e];
  }
  if (at.rest > 0) {
    value += of->last * from->value[at.values];
    size += of->last_size * from->size[at.values];
    most += of->last_size * from->most[at.values];
  }
  *number += of->factor * feature.value * value;
  *number_size += fabs(of->factor * feature.value) * size;
  sum->most += of->most * linear_size_of(feature) * most;
  sum->features += fabs(of->factor) * feature.error * fabs(value);
}

static bool repeats(const item *one, const item *other, int64_t d, double terms) {
  return one->features && linear_repeats(one->features[d], other->features[d], terms);
}

/* From the last query back: it begins to see keys no earlier than one before it does, so keys are added as they come
 * into view. */
static void sum_queries(const crossing *of, part at, columns *keys, total *sum) {
  const attn_problem *p = of->problem;
  const double terms = (double)(p->query_length + of->t);
  double repeated = 0, size = 0;
  int64_t reached = of->t;
  for (int64_t i = p->query_length - 1; i >= of->first_query; i--) {
    for (; reached > first_key(of, i); reached--) {
      const item key = key_of(of, reached - 1, at.d),
                 before = reached < of->t ? key_of(of, reached, at.d) : key;
      add_item(p, &key, at, keys);
      repeated += reached < of->t && repeats(&key, &before, at.d, terms);
    }
    for (int64_t h = 0; h < of->group && reached < of->t; h++) {
      const int64_t n = h * p->query_length + i;
      const item query = query_of(of, h, i),
                 before = i + 1 < p->query_length ? query_of(of, h, i + 1) : query;
      const double size_before = of->query_size[n];
      meet_item(p, &query, at, keys, &of->of_query[n], &of->query_size[n], sum);
      size += of->query_size[n] - size_before;
      repeated += i + 1 < p->query_length && repeats(&query, &before, at.d, terms);
    }
  }
  sum->size += size;
  sum->alike += repeated * size;
}

/* And from the first key on: queries are added as it comes into their view. */
static void sum_keys(const crossing *of, part at, columns *queries, total *sum) {
  const attn_problem *p = of->problem;
  total unused = {0}; /* but for what errors of features come to: the sum is that over queries */
  int64_t reached = of->first_query;
  for (int64_t j = first_key(of, of->first_query); j < of->t; j++) {
    for (; reached < p->query_length && first_key(of, reached) <= j; reached++)
      for (int64_t h = 0; h < of->group; h++) {
        const item query = query_of(of, h, reached);
        add_item(p, &query, at, queries);
      }
    const item key = key_of(of, j, at.d);
    meet_item(p, &key, at, queries, &of->of_key[j], &of->key_size[j], &unused);
  }
  sum->features += unused.features;
}

static void sum_part(const crossing *of, part at, total *sum) {
  columns keys = {0}, queries = {0};
  sum_queries(of, at, &keys, sum);
  sum_keys(of, at, &queries, sum);
  double all_keys = 0, all_queries = 0, product = 0;
#pragma omp simd reduction(+ : all_keys, all_queries, product)
  for (int64_t e = 0; e < at.values + at.rest; e++) {
    const double of_keys = keys.size[e] * queries.largest[e], of_queries = queries.size[e] * keys.largest[e];
    all_keys += of_keys * of_keys;
    all_queries += of_queries * of_queries;
    product += keys.largest[e] * queries.largest[e];
  }
  sum->keys += all_keys;
  sum->queries += all_queries;
  sum->product += product;
}

/* ---- the bound ---- */

/* Numbers of keys, or of queries: what they add up to, their sizes, and the squares of the sizes that each is a sum of. */
typedef struct numbers {
  double sum, sizes, squares;
} numbers;

static void add_number(double number, double size, numbers *to) {
  to->sum += number;
  to->sizes += fabs(number);
  to->squares += size * size;
}

/* Undecayed, the sums of the sizes of what states are made of, which intermediates may come to. */
typedef struct extent {
  double keys, queries, largest_query, repeated_features;
} extent;

static double size_of_item(const attn_problem *problem, const item *of) {
  double x = 1, y = 1;
  for (int64_t d = 0; d < problem->head_dim; d++)
    x += linear_size_of(linear_feature_of(problem, of->features[d]));
  for (int64_t e = 0; e < problem->value_dim; e++) y += fabs((double)of->elements[e]);
  return x * y;
}

static extent extent_of(const crossing *of) {
  extent found = {0};
  for (int64_t d = 0; of->problem->states.state.type && d < of->problem->head_dim; d++) {
    const item row = state_of(of, d);
    found.keys += row.last_size + 1;
    for (int64_t e = 0; e < of->problem->value_dim; e++) found.keys += fabs((double)row.elements[e]);
  }
  for (int64_t j = linear_keys_of(of->problem, of->b, of->first_query).first; j < of->t; j++) {
    const item key = key_of(of, j, 0);
    found.keys += size_of_item(of->problem, &key);
    found.repeated_features =
        fmax(found.repeated_features, linear_repeated_features(key.features, of->problem->head_dim));
  }
  for (int64_t n = 0; n < of->group * of->problem->query_length; n++) {
    const int64_t h = n / of->problem->query_length, i = n % of->problem->query_length;
    if (i < of->first_query || first_key(of, i) >= of->t) continue;
    const item query = query_of(of, h, i);
    const double size =
        size_of_item(of->problem, &query) * (1 + 1 / fabs(of->given->normaliser[row_of(of, h, i)]));
    found.queries += size;
    found.largest_query = fmax(found.largest_query, size);
  }
  return found;
}

/* How far a gate may be off, each by itself and all alike: so are, of all pairs that fade by the decay, those that
 * fade by this gate too. */
static double gate_error(const crossing *of, int64_t s) {
  const double log = reference_decay(of->problem, of->b, of->kv_head, s);
  if (log == -INFINITY) return 0;
  return EXPONENTIAL - (2 * UNIT + reference_chain_error(PROBABLE, (double)of->keys)) * log;
}

static double errors_of_gates(const crossing *of) {
  double error = 0, pairs = 0;
  for (int64_t j = first_key(of, of->first_query); j < of->t; j++) {
    pairs += of->of_key[j];
    error += gate_error(of, j + 1) * fabs(pairs);
  }
  pairs = 0;
  for (int64_t s = of->keys - 1, i = of->problem->query_length - 1; s > of->t; s--) {
    for (; i >= of->first_query && own_key(of, i) >= s; i--)
      for (int64_t h = 0; h < of->group; h++) pairs += of->of_query[h * of->problem->query_length + i];
    error += gate_error(of, s) * fabs(pairs);
  }
  return error;
}

/* Roundings that are independent: the root of the sum of squares of what each comes to. */
static double probable_bound(const crossing *of, const total *sum, const extent *extent) {
  const attn_problem *p = of->problem;
  const int64_t first = first_key(of, of->first_query);
  const double gates = (double)(own_key(of, p->query_length - 1) - first), keys = (double)(of->t - first);
  const double queries = (double)(of->group * (p->query_length - of->first_query));
  const double widths = (double)(p->head_dim + p->value_dim) + 8;
  numbers of_keys = {0}, of_queries = {0};
  double normalisers = 0;
  for (int64_t j = first; j < of->t; j++) add_number(of->of_key[j], of->key_size[j], &of_keys);
  for (int64_t n = 0; n < of->group * p->query_length; n++) {
    if (n % p->query_length < of->first_query || of->query_size[n] == 0) continue;
    add_number(of->of_query[n], of->query_size[n], &of_queries);
    normalisers +=
        of->given->normaliser_error[PROBABLE][row_of(of, n / p->query_length, n % p->query_length)] *
        fabs(of->of_query[n]);
  }
  const double squares = (keys + gates) * sum->keys + (queries + gates) * sum->queries +
                         (keys + gates + widths) * of_queries.squares +
                         (queries + gates + widths) * of_keys.squares +
                         queries * of_queries.sizes * of_queries.sizes +
                         keys * of_keys.sizes * of_keys.sizes + widths * sum->product * sum->product;
  const double all = LAMBDA * UNIT * sqrt(squares) + sum->features + normalisers + errors_of_gates(of) +
                     UNIT * (sum->alike + extent->repeated_features * sum->size);
  return all * (1 + reference_chain_error(PROBABLE, keys + queries + gates + widths));
}

static double worst_bound(const crossing *of, const total *sum) {
  const attn_problem *p = of->problem;
  const double terms = (double)(of->t + of->group * (p->query_length - of->first_query) + of->keys +
                                p->head_dim + p->value_dim + 8);
  return sum->most - sum->size + reference_chain_error(WORST, terms) * sum->most;
}

/* A gate of 0 leaves exactly 0 of each finite pair that it lies between, and nothing to vanish. */
static void finish(const crossing *of, const total *sum, reference_gradient *to) {
  const attn_problem *p = of->problem;
  const extent extent = extent_of(of);
  const bool is_closed = reference_decay(p, of->b, of->kv_head, of->t) == -INFINITY;
  const double widths = (double)(p->head_dim + p->value_dim + of->keys);
  const double vanishes = is_closed ? 0 : (8 * SUBNORMAL * widths + FLUSHED) * extent.keys * extent.queries;
  const bool may_overflow = !(fmax(extent.keys, 1) * fmax(extent.largest_query, 1) <= LARGEST &&
                              extent.queries <= LARGEST && sum->most <= LARGEST);
  double bounds[] = {worst_bound(of, sum), probable_bound(of, sum, &extent)};
  for (int form = WORST; form < LINEAR_BOUNDS; form++) {
    bounds[form] += UNIT * fabs(sum->value) + vanishes;
    if (may_overflow || isnan(bounds[form]) || linear_rises(p, of->b, of->kv_head)) bounds[form] = INFINITY;
  }
  to->values[0] = isfinite(sum->value) ? sum->value : 0;
  to->sizes[0] = sum->size;
  to->worst[0] = bounds[WORST];
  to->probabilistic[0] = fmin(bounds[WORST], bounds[PROBABLE]);
}

/* ---- the gradient ---- */

/* Whether a pair fades by it: a key lies before, and a query behind sees it. */
static bool is_crossed(const crossing *of) {
  for (int64_t i = of->first_query; of->t < of->keys && i < of->problem->query_length; i++)
    if (first_key(of, i) < of->t) return true;
  return false;
}

void reference_linear_decay_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t kv_head, int64_t t,
                                     double *room, reference_gradient *to) {
  const int64_t Tk = problem->key_length, Dv = problem->value_dim,
                own = t - (problem->offsets ? problem->offsets[b] : problem->offset);
  const int64_t group = problem->query_heads / problem->kv_heads, rows = group * problem->query_length;
  const int64_t keys = Tk + 1; /* with the state */
  const crossing of = {problem,
                       tensors,
                       given,
                       b,
                       kv_head,
                       t,
                       problem->key_lengths ? problem->key_lengths[b] : Tk,
                       group,
                       own > 0 ? own : 0,
                       room + 1,
                       room + 1 + keys,
                       room + 1 + 2 * keys,
                       room + 1 + 3 * keys,
                       room + 4 * keys,
                       room + 4 * keys + rows};
  total sum = {0};
  to->values[0] = to->worst[0] = to->probabilistic[0] = to->sizes[0] = 0;
  if (group == 0 || !is_crossed(&of)) return;
  for (size_t n = 0; n < reference_decay_room(problem); n++) room[n] = 0;
  set_fades(&of);
  for (int64_t first = 0; first < Dv + !problem->unnormalised; first += AT_ONCE) {
    const int64_t values = Dv - first < AT_ONCE ? Dv - first : AT_ONCE;
    const int64_t rest = !problem->unnormalised && values < AT_ONCE;
    for (int64_t d = 0; d < problem->head_dim; d++) sum_part(&of, (part){d, first, values, rest}, &sum);
  }
  for (int64_t n = 0; n < rows; n++) sum.value += of.of_query[n];
  finish(&of, &sum, to);
}
