/* How far a correct float32 kernel can be from the reference, computed from the actual input: a forward
 * error bound for each output element, the log-sum-exp and the weights. README.md in this folder derives
 * it, names the sources, and says which kernels it covers; symbols here are those of the derivation.
 *
 * Every bound comes in two forms. The worst case assumes that all roundings conspire. The probabilistic
 * form (Higham and Mary 2019) lets long sums grow with the square root of their length, which is what
 * makes one lost key among thousands visible. A third form of the output's is no bound: what the roundings' standard
 * deviation comes to, where they are independent, and their largest where they may not be. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "additive.h"
#include "exact.h"
#include "general.h"
#include "gradient.h"
#include "roundings.h"
#include "rows.h"
#include "sums.h"

#define LOG_SMALLEST (-87.4) /* e to this is below the smallest normal float */

/* A bias below which hides all: times log2(e) it would be infinite, and scores of this size that it is added to are lost in it. */
#define LOWEST_BIAS (-0x1.8p127)
#define LARGEST_HIDDEN 0x1p64

/* ---- Softmax ---- */

/* What rounding can add to one score: dot * products + fixed, dot the relative error of a sum of D
 * products. */
typedef struct score_error {
  double products, fixed;
  double repeated; /* products that are the one before, and may round as it did */
  double size;     /* of what a bias is added to */
  bool overflows;
  bool
      exact; /* a power of two, made of such: no way to it rounds, nor to its product with a rounded log2(e) */
} score_error;

/* Half of the scale may be folded into each side. */
static bool is_power_of_four(double scale) {
  int exponent;
  return frexp(fabs(scale), &exponent) == 0.5 && exponent % 2 != 0;
}

static bool is_power_of_two(double product) {
  int exponent;
  return product > 0x1p-100 && frexp(product, &exponent) == 0.5;
}

/* What is added to a score, in any order: each term is off by its own error, sums on the way by what they may be. */
static double error_of_terms(const float *bias, reference_terms position, double score) {
  const double own = bias ? fabs((double)*bias) : 0;
  const int count = position.count + (bias != NULL);
  if (count == 0) return 0;
  return UNIT * (3 * own + position.error + (count - 1) * (own + position.size) + count * fabs(score));
}

/* A query and a key, and their positions. */
typedef struct score_of {
  const float *query, *key;
  int64_t query_position, key_position;
  const reference_general *general; /* the query as keys meet it, where there are general scores; else NULL */
} score_of;

/* Roundings of the products of a score: of general scores each q_d W_de k_e is added up twice. */
static double roundings_of_score(const attn_problem *problem) {
  const double D = (double)problem->head_dim;
  return problem->general.type ? 2 * D + 2 : problem->additive.type ? D + 2 : D;
}

/* The weights may be added up by themselves, and twice as much taken off: three times their sizes meet the chain. */
static score_error error_of_additive(const attn_problem *problem, int64_t h, const score_of *of,
                                     const float *bias, reference_terms position, double score) {
  const reference_pair_of pair = {of->query, of->key, of->query_position, of->key_position};
  const reference_additive_sizes sizes = reference_additive_error(problem, h, pair, UNIT);
  const double cap = problem->softcap, scale = fabs(problem->scale), D = (double)problem->head_dim;
  const double sized = 3 * scale * sizes.weights;
  double factor = 2 * scale;
  if (cap > 0) factor = fmax(factor, factor / cap);
  score_error error = {.products = sized, .repeated = sizes.repeated};
  error.overflows =
      !(3 * sizes.weights <= LARGEST && 3 * sizes.weights * factor <= LARGEST && factor <= LARGEST &&
        cap <= LARGEST && (cap == 0 || cap >= FLT_MIN) && 2 * position.size <= LARGEST);
  error.size = sized + position.size;
  error.fixed = UNIT * (scale * sizes.tanhs + 5 * sized) + 4 * SUBNORMAL * D * (1 + scale);
  if (cap > 0) error.fixed += 2 * UNIT * sized + 12 * UNIT * cap;
  error.fixed += error_of_terms(bias, position, score);
  return error;
}

/* What the error of a score is made of, summed over its features. */
typedef struct score_sums {
  double products, queries, keys;
  double sizes, turned; /* of the products, and of those of rotated features */
  double repeated;      /* products that are the one before */
  double terms;         /* products that are not 0 */
  double small;         /* features below the smallest normal number, 0 among them */
} score_sums;

/* The query's feature d as keys meet it, and the key's. */
static inline reference_feature query_feature(const attn_problem *problem, const score_of *of, int64_t d) {
  return of->general ? (reference_feature){of->general->value[d], of->general->size[d]}
                     : reference_rotated(problem, of->query_position, of->query, d);
}
static inline reference_feature key_feature(const attn_problem *problem, const score_of *of, int64_t d) {
  return reference_rotated(problem, of->key_position, of->key, d);
}

static score_sums sums_of_score(const attn_problem *problem, const score_of *of) {
  score_sums sums = {0};
  double previous = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const reference_feature query = query_feature(problem, of, d), key = key_feature(problem, of, d);
    const double product = fabs(query.value) * fabs(key.value), size = query.size * key.size;
    sums.products += product;
    sums.sizes += size;
    if (d < problem->rope_features || (of->general && problem->rope_features > 0)) sums.turned += size;
    sums.queries += query.size;
    sums.keys += key.size;
    sums.terms += product > 0;
    sums.small += (query.size < FLT_MIN) + (key.size < FLT_MIN);
    sums.repeated += product > 0 && product == previous;
    previous = product;
  }
  return sums;
}

/* Sizes of products of which a unit may take a factor for 0. */
static double flushed_of_score(const attn_problem *problem, const score_of *of) {
  double flushed = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const double query = query_feature(problem, of, d).size, key = key_feature(problem, of, d).size;
    if (query < FLT_MIN || key < FLT_MIN) flushed += query * key;
  }
  return flushed;
}

typedef double two __attribute__((vector_size(16)));
typedef int64_t two_bits __attribute__((vector_size(16)));

/* Two features, the second 0 where there is one; as sizes. */
static inline two sizes_of(const float *x, int64_t count) {
  const two numbers = {x[0], count > 1 ? x[1] : 0};
  return (two)((two_bits)numbers & INT64_MAX);
}

/* The same where features meet as they were given, which every row does with every key: most of the time that a bound
 * takes. What is counted is added up, for of masks that choose between integers gcc makes one branch for each lane. */
static score_sums sums_of_plain_score(int64_t D, const float *query, const float *key) {
  const two_bits one = (two_bits)(two){1, 1};
  two products = {0}, queries = {0}, keys = {0}, terms = {0}, repeated = {0}, small = {0}, before = {0};
  for (int64_t d = 0; d < D; d += 2) {
    const two q = sizes_of(query + d, D - d), k = sizes_of(key + d, D - d), product = q * k;
    const two behind = {before[1], product[0]}, counts = (two)((product > 0) & one);
    products += product;
    queries += q;
    keys += k;
    terms += counts;
    repeated += (two)((product == behind) & (two_bits)counts);
    small += (two)((q < FLT_MIN) & one) + (two)((k < FLT_MIN) & one);
    before = product;
  }
  const double all = products[0] + products[1];
  return (score_sums){.products = all,
                      .queries = queries[0] + queries[1],
                      .keys = keys[0] + keys[1],
                      .sizes = all,
                      .repeated = repeated[0] + repeated[1],
                      .terms = terms[0] + terms[1],
                      .small = small[0] + small[1]};
}

static score_error error_of_score(const attn_problem *problem, const score_of *of, const float *bias,
                                  reference_terms position, double score) {
  const bool plain = !of->general && problem->rope_cos.type == ATTN_ABSENT;
  const score_sums sums =
      plain ? sums_of_plain_score(problem->head_dim, of->query, of->key) : sums_of_score(problem, of);
  /* Whatever cancels in the features of a general query. */
  const double products = of->general ? sums.sizes : sums.products, sizes = sums.sizes;
  const double queries = sums.queries, keys = sums.keys;
  const double cap = problem->softcap;
  /* Kernels in base 2 scale by log2(e) too; under a softcap some divide by the cap first. */
  double factor = 2 * fabs(problem->scale);
  if (cap > 0) factor = fmax(factor, factor / cap);

  score_error error = {0};
  const double scaled = fabs(problem->scale) * products, sized = fabs(problem->scale) * sizes;
  const double ahead = fmax(queries, fmax(keys, sizes));
  error.overflows = !(ahead <= LARGEST && ahead * factor <= LARGEST && factor <= LARGEST && cap <= LARGEST &&
                      (cap == 0 || cap >= FLT_MIN) && 2 * position.size <= LARGEST);
  error.exact = sums.terms == 1 && cap == 0 && problem->rope_features == 0 && !of->general &&
                (!bias || *bias == 0) && position.size == 0 && is_power_of_four(problem->scale) &&
                is_power_of_two(products);
  error.size = sized + position.size;
  if (error.exact) return error;
  error.products = scaled;
  error.repeated = sums.repeated;
  error.fixed = 5 * UNIT * sized; /* the factor, made in float32, and its use; one for u squared */
  /* A rotation rounds twice, of the query and of the key. */
  error.fixed += 4 * UNIT * fabs(problem->scale) * sums.turned;
  if (problem->rope_features > 0) error.fixed += 4 * SUBNORMAL * fabs(problem->scale) * (queries + keys);
  error.fixed +=
      4 * SUBNORMAL * (queries + keys + products + (double)problem->head_dim * (1 + fabs(problem->scale)));
  if (of->general) /* products that vanish, of a query's features or of a key's */
    error.fixed += 4 * SUBNORMAL * (double)problem->head_dim * fabs(problem->scale) *
                   (queries + keys + (double)problem->head_dim);
  /* Units that multiply bfloat16 take denormal numbers for 0, and leave none. */
  if (problem->key.type == ATTN_BFLOAT16)
    error.fixed += fabs(problem->scale) * ((sums.small > 0 ? flushed_of_score(problem, of) : 0) +
                                           (double)problem->head_dim * FLT_MIN);
  if (cap > 0) error.fixed += 2 * UNIT * sized + 12 * UNIT * cap;
  error.fixed += error_of_terms(bias, position, score);
  return error;
}

void reference_vectors_score_errors(const attn_problem *problem, const attn_tensors *tensors,
                                    const reference_pair *pair, const float *query, const float *key,
                                    double score, const double chains[], double errors[]) {
  const float *bias =
      problem->bias.type ? reference_vector(tensors->bias, problem->bias, pair->b, pair->h, pair->i) : NULL;
  const score_of of = {query, key, reference_query_position(problem, pair->b, pair->i), pair->j, NULL};
  const score_error error =
      error_of_score(problem, &of, bias ? bias + pair->j : NULL,
                     reference_position(problem, pair->b, pair->h, pair->i, pair->j), score);
  for (int form = WORST; form <= PROBABLE; form++)
    errors[form] = error.overflows ? INFINITY : chains[form] * error.products + error.fixed;
}

void reference_score_errors(const attn_problem *problem, const attn_tensors *tensors,
                            const reference_pair *pair, double score, double errors[]) {
  double chains[PROBABLE + 1];
  for (int form = WORST; form <= PROBABLE; form++)
    chains[form] = reference_chain_error(form, (double)problem->head_dim);
  reference_vectors_score_errors(
      problem, tensors, pair, reference_vector(tensors->query, problem->query, pair->b, pair->h, pair->i),
      reference_vector(tensors->key, problem->key, pair->b, reference_kv_head(problem, pair->h), pair->j),
      score, chains, errors);
}

/* What the first pass over the keys of a row finds. */
typedef struct softmax_row {
  double dot[FORMS];
  double seen;          /* n, the keys with a score above -inf */
  double largest;       /* the row maximum */
  double largest_upper; /* what rounding can make of it */
  double rescales;      /* how often a running maximum can rise */
  double values;        /* sum over keys of the largest |v| */
  bool overflows;
  bool exact;  /* all scores of keys are, */
  bool hidden; /* or they are one number: see LOWEST_BIAS */
} softmax_row;

typedef struct row_view {
  const float *query, *bias;
  int64_t b, h, i, kv_head;
  double sink; /* -inf: none */
  const reference_general *general;
} row_view;

/* A sink is a score that is given, times log2(e) in kernels in base 2. */
static score_error error_of_sink(double sink) {
  return (score_error){.products = 0, .fixed = 3 * UNIT * fabs(sink), .overflows = 2 * fabs(sink) > LARGEST};
}

static score_error error_of_key(const attn_problem *problem, const attn_tensors *tensors,
                                const row_view *view, const reference_row *row, int64_t j) {
  const float *key = reference_vector(tensors->key, problem->key, view->b, view->kv_head, j);
  const score_of of = {view->query, key, reference_query_position(problem, view->b, view->i), j,
                       view->general};
  if (problem->additive.type)
    return error_of_additive(problem, view->h, &of, view->bias ? view->bias + j : NULL,
                             reference_position(problem, view->b, view->h, view->i, j), row->scores[j]);
  return error_of_score(problem, &of, view->bias ? view->bias + j : NULL,
                        reference_position(problem, view->b, view->h, view->i, j), row->scores[j]);
}

static void note(const reference_row *row, int64_t j, const score_error *error) {
  const double notes[REFERENCE_NOTES] = {error->products, error->fixed, error->repeated};
  memcpy(row->notes + REFERENCE_NOTES * j, notes, sizeof notes);
}

static score_error noted(const reference_row *row, int64_t j) {
  const double *notes = row->notes + REFERENCE_NOTES * j;
  return (score_error){.products = notes[0], .fixed = notes[1], .repeated = notes[2]};
}

/* A row of a query that is padding, which many write as a bias of the lowest number for all keys: whatever is added to that, it
 * stays what it is, and all keys weigh the same. */
static bool is_hidden(const row_view *view, const score_error *error, int64_t j, float *bias) {
  if (!view->bias || view->sink != -INFINITY) return false;
  const bool same = isnan(*bias) || view->bias[j] == *bias;
  *bias = view->bias[j];
  return same && *bias <= LOWEST_BIAS && error->size <= LARGEST_HIDDEN;
}

static softmax_row survey(const attn_problem *problem, const attn_tensors *tensors, const row_view *view,
                          const reference_row *row) {
  softmax_row found = {.largest = -INFINITY, .largest_upper = -INFINITY, .exact = true, .hidden = true};
  float bias = NAN; /* of the key before */
  for (int form = WORST; form < FORMS; form++)
    found.dot[form] = reference_chain_error(form, roundings_of_score(problem));
  double running_lower = -INFINITY, records = 0;
  for (int64_t j = 0; j < problem->key_length; j++) {
    const double score = row->scores[j];
    if (!row->visible[j] || score == -INFINITY) continue;
    const score_error error = error_of_key(problem, tensors, view, row, j);
    note(row, j, &error);
    const double margin = found.dot[WORST] * error.products + error.fixed;
    found.overflows |= error.overflows;
    found.exact &= error.exact;
    found.hidden = found.hidden && is_hidden(view, &error, j, &bias);
    found.seen++;
    found.largest = fmax(found.largest, score);
    found.largest_upper = fmax(found.largest_upper, score + margin);
    if (score + margin > running_lower) records++;
    running_lower = fmax(running_lower, score - margin);
    const float *value = reference_vector(tensors->value, problem->value, view->b, view->kv_head, j);
    found.values += bound_largest(value, problem->value_dim) *
                    fmax(1, reference_kept(problem, view->b, view->h, view->i, j));
  }
  found.hidden = found.hidden && found.seen > 0;
  if (view->sink != -INFINITY) {
    const score_error error = error_of_sink(view->sink);
    found.overflows |= error.overflows;
    found.seen++;
    records++;
    found.largest = fmax(found.largest, view->sink);
    found.largest_upper = fmax(found.largest_upper, view->sink + error.fixed);
  }
  if (found.hidden) found.exact = true, found.largest_upper = found.largest;
  found.rescales = fmax(ceil(found.seen / 16), records);
  found.overflows |= found.values > LARGEST;
  return found;
}

/* t_j: error of the exponent that makes weight j, its exponentials' own errors included. */
static double exponent_error(const softmax_row *found, int form, double score, score_error error) {
  const double dot = found->dot[form] + (form == EXPECTED ? UNIT * error.repeated : 0);
  const double scores = fmin(dot, found->dot[WORST]) * error.products + error.fixed;
  const double worst = found->dot[WORST] * error.products + error.fixed;
  const bool none = found->exact && score == found->largest; /* equal numbers, wherever they round */
  const double shift =
      none ? 0
           : UNIT * (fabs(found->largest) + fabs(score)) + 4 * UNIT * (found->largest_upper - score + worst);
  const double rescales = form == WORST ? found->rescales : sqrt(found->rescales);
  return scores + shift + (1 + rescales) * EXPONENTIAL * (1 + 4 * EXPONENTIAL);
}

static void bound_lse(reference_row *row, const softmax_row *found, const chain_errors *chains,
                      const weight_sums *sums) {
  double bounds[FORMS];
  for (int form = WORST; form < FORMS; form++) {
    const double chain = chains->denominator[form];
    const double up = log1p(sums->grown[form] + chain * (1 + sums->grown[form]));
    const double down = chain < 1 ? -log(sums->kept[form] * (1 - chain)) : INFINITY;
    const double logarithm = fabs(row->lse - found->largest) + found->largest_upper - found->largest;
    bounds[form] =
        fmax(up, down) + UNIT * (8 * logarithm + 4 * fabs(found->largest) + 4 * fabs(row->lse) + 4);
  }
  row->lse_bound = bounds[WORST];
  row->lse_bound_probabilistic = bounds[PROBABLE];
}

/* What dropout adds to a weight, relative: 1 / (1 - p) may be made from a p that is rounded, and rounds; and so does
 * its product with a weight, or with an output. */
static double dropout_error(const attn_problem *problem) {
  if (problem->keep.type == ATTN_ABSENT || problem->dropout_p == 0) return 0;
  return UNIT * (3 + problem->dropout_p / (1 - problem->dropout_p));
}

/* t: the largest exponent error of a weight that does not underflow; dropped: dropout_error. */
static void bound_weights(reference_row *row, const chain_errors *chains, const weight_sums *sums,
                          const double t[FORMS], double dropped) {
  double bounds[FORMS];
  for (int form = WORST; form < FORMS; form++) {
    const double smallest = sums->kept[form] * (1 - chains->denominator[form]);
    bounds[form] = smallest > 0
                       ? (expm1(t[form]) + 1 - smallest) / smallest * (1 + 4 * UNIT) + 4 * UNIT + dropped
                       : INFINITY;
  }
  row->weights_bound = bounds[WORST];
  row->weights_bound_probabilistic = bounds[PROBABLE];
}

/* A sink is a key with a value of zero: what rounding makes of its weight scales the output. */
static void add_sink(const attn_problem *problem, reference_row *row, const softmax_row *found, double sink,
                     weight_sums *sums) {
  if (sink == -INFINITY) return;
  const double weight = exp(sink - row->lse);
  for (int form = WORST; form < FORMS; form++) {
    const double t = exponent_error(found, form, sink, error_of_sink(sink));
    const double error = bound_weight_error(weight, sink - row->lse, t);
    double *bound = bound_of_output(row, form);
    sums->grown[form] += error;
    sums->kept[form] += weight * bound_kept(t);
    for (int64_t e = 0; e < problem->value_dim; e++) bound[e] += error * fabs(row->output[e]);
  }
}

static void set_all_bounds(const attn_problem *problem, reference_row *row, double bound) {
  bound_outputs(problem, row, bound);
  row->lse_bound = row->lse_bound_probabilistic = bound;
  row->weights_bound = row->weights_bound_probabilistic = bound;
}

/* 0/0: nothing hides its keys, and yet none has a score above -inf, which an infinite input has made. */
static bool is_undefined(const attn_problem *problem, const float *bias, int64_t b, int64_t h, int64_t i,
                         const reference_row *row) {
  bool sees_a_key = false;
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (row->scores[j] != -INFINITY) return false; /* NaN too */
    const double added = (bias ? (double)bias[j] : 0) + reference_position(problem, b, h, i, j).sum;
    sees_a_key = sees_a_key || (row->visible[j] && added != -INFINITY);
  }
  return sees_a_key;
}

/* A sink that is NaN or infinite makes the sum NaN. Where keys that the row sees weigh nothing, 0 over that is 0 or NaN. */
static bool is_spoilt(const attn_problem *problem, double sink, const reference_row *row) {
  bool sees_a_key = false;
  for (int64_t j = 0; j < problem->key_length; j++) sees_a_key = sees_a_key || row->visible[j];
  return sees_a_key && !(sink < INFINITY);
}

/* A key whose score is -inf, or that is dropped, may be left out, or count with a weight of zero, which a NaN among its values
 * survives; and so does one that the row's weights are. */
static void admit_zero_times_nan(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                 int64_t h, int64_t i, reference_row *row) {
  for (int64_t j = 0; j < problem->key_length; j++) {
    const bool dropped = row->visible[j] && reference_kept(problem, b, h, i, j) == 0;
    if (!row->visible[j] || (row->scores[j] != -INFINITY && !dropped)) continue;
    const float *value =
        reference_vector(tensors->value, problem->value, b, reference_kv_head(problem, h), j);
    for (int64_t e = 0; e < problem->value_dim; e++)
      if (!isfinite(value[e]) || (dropped && isnan(row->lse))) {
        row->output_bound[e] = -fabs(row->output_bound[e]);
        row->output_bound_probabilistic[e] = -fabs(row->output_bound_probabilistic[e]);
      }
  }
}

static void bound_finite(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                         int64_t i, const float *bias, reference_row *row) {
  row->exact = reference_exact_softmax(problem, tensors, b, h, i, row);
  if (row->exact) return;
  reference_general general;
  if (problem->general.type)
    reference_transform(problem, b, h, i, reference_vector(tensors->query, problem->query, b, h, i),
                        &general);
  const row_view view = {reference_vector(tensors->query, problem->query, b, h, i),
                         bias,
                         b,
                         h,
                         i,
                         reference_kv_head(problem, h),
                         reference_sink(problem, tensors, b, h, i),
                         problem->general.type ? &general : NULL};
  const softmax_row found = survey(problem, tensors, &view, row);
  if (found.overflows) {
    set_all_bounds(problem, row, INFINITY);
    /* Which is relative to the weights: none may be 0, which says that a key is hidden. */
    for (int64_t j = 0; j < problem->key_length; j++)
      if (row->visible[j] && row->weights[j] == 0) row->weights[j] = DBL_TRUE_MIN;
    return;
  }

  const double alike = bound_alike_weights(problem, row, found.seen, exp(view.sink - row->lse));
  const chain_errors chains = bound_chains(found.seen + 2 * found.rescales + 1, alike);
  const double absolute = (found.rescales + 4) * FLUSHED, dropped = dropout_error(problem);
  weight_sums sums = {.sizes = 1};
  double largest_t[FORMS] = {0};
  bool sees_a_key = false;
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (!row->visible[j] || row->scores[j] == -INFINITY) continue;
    score_error scored = {0};
    if (!found.hidden) scored = noted(row, j);
    const double weight = row->weights[j], log_weight = row->scores[j] - row->lse;
    double error[FORMS];
    for (int form = WORST; form < FORMS; form++) {
      const double t = exponent_error(&found, form, row->scores[j], scored);
      error[form] = bound_weight_error(weight, log_weight, t);
      sums.grown[form] += error[form];
      sums.kept[form] += weight * bound_kept(t);
      if (log_weight + t > LOG_SMALLEST) largest_t[form] = fmax(largest_t[form], t);
    }
    const float *value = reference_vector(tensors->value, problem->value, b, view.kv_head, j);
    bound_add_key(problem, row, value, reference_kept(problem, b, h, i, j), weight, error, &chains, absolute);
    sees_a_key = true;
  }
  bound_add_alike(problem, tensors, &(numerator_terms){b, h, i, found.seen, 1, 0, alike > 0}, row);
  add_sink(problem, row, &found, view.sink, &sums);
  if (sees_a_key) /* else the row is zero */
    bound_finish(problem, row, &chains, &sums, found.seen * absolute + dropped,
                 (found.seen + found.rescales + 4) * SUBNORMAL);
  bound_lse(row, &found, &chains, &sums);
  if (found.hidden)
    row->lse_bound = row->lse_bound_probabilistic = INFINITY; /* kernels in base 2 cannot hold it */
  bound_weights(row, &chains, &sums, largest_t, dropped);
  /* As where scores overflow: what underflows may be anything, where rounding decides between keys that are far away. */
  for (int64_t j = 0; j < problem->key_length && isinf(row->weights_bound); j++)
    if (row->visible[j] && row->weights[j] == 0 && row->scores[j] != -INFINITY)
      row->weights[j] = DBL_TRUE_MIN;
}

static void admit_nan(const attn_problem *problem, reference_row *row) {
  for (int64_t e = 0; e < problem->value_dim; e++) {
    row->output_bound[e] = -row->output_bound[e];
    row->output_bound_probabilistic[e] = -row->output_bound_probabilistic[e];
  }
  row->lse_bound = -row->lse_bound;
  row->lse_bound_probabilistic = -row->lse_bound_probabilistic;
  row->weights_bound = -row->weights_bound;
  row->weights_bound_probabilistic = -row->weights_bound_probabilistic;
}

static void bound_softmax(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                          int64_t i, reference_row *row) {
  const float *bias = problem->bias.type ? reference_vector(tensors->bias, problem->bias, b, h, i) : NULL;
  set_all_bounds(problem, row, 0);
  if (isfinite(row->lse)) bound_finite(problem, tensors, b, h, i, bias, row);
  if (is_undefined(problem, bias, b, h, i, row) ||
      is_spoilt(problem, reference_sink(problem, tensors, b, h, i), row))
    admit_nan(problem, row);
}

static void redo_dropout(const attn_problem *problem, int64_t b, int64_t h, int64_t i, reference_row *row) {
  for (int64_t j = 0; j < problem->key_length; j++) {
    if (!row->visible[j] || !isfinite(row->lse)) continue;
    row->weights[j] *= reference_kept(problem, b, h, i, j);
    /* As where scores overflow: 0 times what is no number. */
    if (row->weights[j] == 0 && isinf(row->weights_bound)) row->weights[j] = DBL_TRUE_MIN;
  }
}

void reference_softmax_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                             int64_t i, reference_row *row) {
  /* The sum is that of all weights, whether they are dropped or not: what follows from it needs them. */
  if (problem->keep.type && isfinite(row->lse))
    reference_weigh(reference_sink(problem, tensors, b, h, i), problem->key_length, row);
  bound_softmax(problem, tensors, b, h, i, row);
  if (problem->keep.type) redo_dropout(problem, b, h, i, row);
  admit_zero_times_nan(problem, tensors, b, h, i, row);
}
