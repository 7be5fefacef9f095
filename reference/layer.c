/* A layer of attention (layer.h): projections, softmax attention by head, the projection of what comes out; and the bounds of
 * README.md, "A layer", whose symbols these are. */
#include "layer.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "alike.h"
#include "roundings.h"
#include "rows.h"

enum { BOUNDS = PROBABLE + 1 };

/* ---- projections ---- */

static const float *matrix_row(const float *data, attn_layout layout, int64_t row) {
  return data + row * layout.position;
}

static double bias_of(const float *data, attn_layout layout, int64_t feature) {
  return layout.type ? (double)data[feature] : 0;
}

static reference_size size_of(const float *x, int64_t count) {
  reference_size size = {0, 0, 0};
  for (int64_t m = 0; m < count; m++) {
    size.norm += (double)x[m] * x[m];
    size.repeats += m > 0 && x[m] == x[m - 1] && x[m] != 0;
  }
  size.norm = sqrt(size.norm);
  return size;
}

/* The relative errors of a chain of M products and a bias, by form. */
typedef struct chains {
  double of[BOUNDS], terms;
} chains;

static chains chains_of(double terms) {
  chains all = {.terms = terms};
  for (int form = WORST; form < BOUNDS; form++) all.of[form] = reference_chain_error(form, terms);
  return all;
}

/* Of products with one vector, as far as they go by it: a feature with weights of some norm is off by chain (norm +
 * |bias|) + least, by Cauchy and Schwarz for the sum of the products' sizes. */
typedef struct projection_errors {
  double norm, chain[BOUNDS], least;
} projection_errors;

/* weights: with the most repeats of any row. */
static projection_errors errors_of(const chains *all, reference_size x, double weights_repeat) {
  projection_errors errors = {.norm = x.norm, .least = 2 * all->terms * SUBNORMAL};
  errors.chain[WORST] = all->of[WORST];
  errors.chain[PROBABLE] = fmin(all->of[WORST], all->of[PROBABLE] + fmin(weights_repeat, x.repeats) * UNIT);
  return errors;
}

static inline double projection_error(const projection_errors *by, int form, reference_size w) {
  return by->chain[form] * (w.norm * by->norm + w.bias) + by->least;
}

static int64_t kv_features(const attn_problem *p) { return p->kv_heads * p->head_dim; }
static int64_t kv_values(const attn_problem *p) { return p->kv_heads * p->value_dim; }

size_t reference_layer_room(const attn_problem *p) {
  const size_t M = (size_t)p->layer.model_dim, N = (size_t)(kv_features(p) + kv_values(p));
  const size_t rows = (size_t)(p->query_heads * p->head_dim) + N, keys = (size_t)(p->batch * p->key_length);
  return M * N + keys * N + 3 * (rows + keys) + keys;
}

static void read_weights(const float *data, attn_layout layout, const float *bias_data, attn_layout bias,
                         int64_t rows, int64_t M, double *transposed, reference_size *sizes) {
  for (int64_t r = 0; r < rows; r++) {
    const float *row = matrix_row(data, layout, r);
    sizes[r] = size_of(row, M);
    sizes[r].bias = fabs(bias_of(bias_data, bias, r));
    if (r > 0) sizes[r].repeats = fmax(sizes[r].repeats, sizes[r - 1].repeats);
    for (int64_t m = 0; transposed && m < M; m++) transposed[m * rows + r] = row[m];
  }
}

void reference_layer_begin(const attn_problem *p, double *room, reference_layer *to) {
  const int64_t M = p->layer.model_dim, K = kv_features(p), V = kv_values(p);
  const int64_t keys = p->batch * p->key_length, Q = p->query_heads * p->head_dim;
  to->w_k = room, room += M * K;
  to->w_v = room, room += M * V;
  to->keys = room, room += keys * K;
  to->values = room, room += keys * V;
  to->repeats = room, room += keys;
  to->of_w_q = (reference_size *)(void *)room;
  to->of_w_k = to->of_w_q + Q;
  to->of_w_v = to->of_w_k + K;
  to->of_memory = to->of_w_v + V;
  read_weights(p->layer.w_q_data, p->layer.w_q, p->layer.b_q_data, p->layer.b_q, Q, M, NULL, to->of_w_q);
  read_weights(p->layer.w_k_data, p->layer.w_k, p->layer.b_k_data, p->layer.b_k, K, M, to->w_k, to->of_w_k);
  read_weights(p->layer.w_v_data, p->layer.w_v, p->layer.b_v_data, p->layer.b_v, V, M, to->w_v, to->of_w_v);
}

/* x itself where there is no memory. */
static const float *memory_of(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t j) {
  return p->key.type ? reference_vector(tensors->key, p->key, b, 0, j)
                     : reference_vector(tensors->query, p->query, b, 0, j);
}

/* to [count, width] = bias + x W, a few features at a time, which then stay where they are added up. */
static void project(const float *const x[], int64_t count, int64_t M, const double *weights, int64_t width,
                    const float *bias_data, attn_layout bias, double *to) {
  enum { FEATURES_AT_ONCE = 64 };
  for (int64_t first = 0; first < width; first += FEATURES_AT_ONCE) {
    const int64_t features = width - first < FEATURES_AT_ONCE ? width - first : FEATURES_AT_ONCE;
    double sums[REFERENCE_KEYS_AT_ONCE][FEATURES_AT_ONCE];
    for (int64_t n = 0; n < count; n++)
      for (int64_t d = 0; d < features; d++) sums[n][d] = bias_of(bias_data, bias, first + d);
    for (int64_t m = 0; m < M; m++)
      for (int64_t n = 0; n < count; n++) {
        const double factor = x[n][m];
        const double *restrict row = weights + m * width + first;
        double *restrict sum = sums[n];
        for (int64_t d = 0; d < features; d++) sum[d] += factor * row[d];
      }
    for (int64_t n = 0; n < count; n++)
      memcpy(to + n * width + first, sums[n], (size_t)features * sizeof **sums);
  }
}

void reference_layer_project(const attn_problem *p, const attn_tensors *tensors, const reference_layer *layer,
                             int64_t b, int64_t first) {
  const int64_t M = p->layer.model_dim, left = p->key_length - first;
  const int64_t count = left < REFERENCE_KEYS_AT_ONCE ? left : REFERENCE_KEYS_AT_ONCE;
  const int64_t at = b * p->key_length + first;
  const float *x[REFERENCE_KEYS_AT_ONCE];
  for (int64_t n = 0; n < count; n++) {
    x[n] = memory_of(p, tensors, b, first + n);
    layer->of_memory[at + n] = size_of(x[n], M);
  }
  project(x, count, M, layer->w_k, kv_features(p), p->layer.b_k_data, p->layer.b_k,
          layer->keys + at * kv_features(p));
  project(x, count, M, layer->w_v, kv_values(p), p->layer.b_v_data, p->layer.b_v,
          layer->values + at * kv_values(p));
}

/* The same norm is taken for the same vector: where that is wrong the bound is wider than it need be. */
void reference_layer_finish(const attn_problem *p, const reference_layer *layer) {
  enum { REMEMBERED = 1024 };
  for (int64_t b = 0; b < p->batch; b++) {
    double known[REMEMBERED] = {0};
    for (int64_t j = 0; j < p->key_length; j++) {
      const double norm = layer->of_memory[b * p->key_length + j].norm;
      uint64_t bits;
      memcpy(&bits, &norm, sizeof bits);
      double *slot = &known[bits * UINT64_C(0x9e3779b97f4a7c15) >> 54];
      layer->repeats[b * p->key_length + j] = *slot == norm && norm != 0;
      *slot = norm;
    }
  }
}

/* ---- a head ---- */

/* What is added up of independent errors: their sum in the worst case, the root of their squares' sum with probability. */
typedef struct total {
  double sum, squares;
} total;

static void add_error(total *to, double error) {
  to->sum += error;
  to->squares += error * error;
}

static double total_of(const total *of, int form) { return form == WORST ? of->sum : sqrt(of->squares); }

/* What is added up of a feature over the keys. */
typedef struct feature {
  double
      weighed; /* what weights are off by, times what that moves the output by; and the chain's roundings */
  total projected; /* what the values' projections leave, of keys that are like no other, */
  double repeated; /* and of the others, whose roundings are the same */
  double largest;  /* that a value is off by */
  double values;   /* of their sizes */
} feature;

/* A head of a row at work. */
typedef struct head {
  const attn_problem *problem;
  const attn_tensors *tensors;
  const reference_layer *layer;
  int64_t b, h, i, kv_head;
  chains projections, products;                           /* of M and a bias, of D */
  double *query, *query_error[BOUNDS];                    /* [D] */
  float *query_size, *key_size;                           /* [D] at most, error included */
  double *scores, *weights, *error, *score_error[BOUNDS]; /* [Tk]; -inf: hidden; error: of a weight */
  feature *features;                                      /* [Dv] */
  double seen, sink, largest, upper, records, lse;        /* upper: what rounding can make of the largest */
  double alike; /* what roundings of the weights' sum have in common */
} head;

static size_t head_room(const attn_problem *p) {
  return 4 * (size_t)p->head_dim + 5 * (size_t)p->key_length +
         (size_t)p->value_dim * (sizeof(feature) / sizeof(double));
}

static double *place_head(const attn_problem *p, double *room, head *of) {
  const int64_t D = p->head_dim, Tk = p->key_length;
  of->query = room, room += D;
  for (int form = WORST; form < BOUNDS; form++) of->query_error[form] = room, room += D;
  of->query_size = (float *)(void *)room;
  of->key_size = of->query_size + D, room += D;
  of->scores = room, room += Tk;
  of->weights = room, room += Tk;
  of->error = room, room += Tk;
  for (int form = WORST; form < BOUNDS; form++) of->score_error[form] = room, room += Tk;
  of->features = (feature *)(void *)room;
  return room + p->value_dim * (int64_t)(sizeof(feature) / sizeof(double));
}

static const double *key_of(const head *of, int64_t j) {
  return of->layer->keys + (of->b * of->problem->key_length + j) * kv_features(of->problem) +
         of->kv_head * of->problem->head_dim;
}

static const double *value_of(const head *of, int64_t j) {
  return of->layer->values + (of->b * of->problem->key_length + j) * kv_values(of->problem) +
         of->kv_head * of->problem->value_dim;
}

static reference_size memory_size(const head *of, int64_t j) {
  return of->layer->of_memory[of->b * of->problem->key_length + j];
}

/* A float that is no less. */
static inline float no_less(double number) { return (float)(number * (1 + 0x1p-22)) + FLT_MIN; }

/* The repeats that any row of weights has: they were counted up. */
static double most_repeats(const reference_size *of, int64_t rows) {
  return rows > 0 ? of[rows - 1].repeats : 0;
}

static void project_query(head *of) {
  const attn_problem *p = of->problem;
  const int64_t M = p->layer.model_dim;
  const float *x = reference_vector(of->tensors->query, p->query, of->b, 0, of->i);
  const projection_errors errors = errors_of(&of->projections, size_of(x, M),
                                             most_repeats(of->layer->of_w_q, p->query_heads * p->head_dim));
  for (int64_t d = 0; d < p->head_dim; d++) {
    const int64_t r = of->h * p->head_dim + d;
    const float *w = matrix_row(p->layer.w_q_data, p->layer.w_q, r);
    const double bias = bias_of(p->layer.b_q_data, p->layer.b_q, r);
    of->query[d] = bias;
    for (int64_t m = 0; m < M; m++) of->query[d] += (double)w[m] * x[m];
    for (int form = WORST; form < BOUNDS; form++)
      of->query_error[form][d] = projection_error(&errors, form, of->layer->of_w_q[r]);
    of->query_size[d] = no_less(fabs(of->query[d]) + of->query_error[WORST][d]);
  }
}

static double score_of(const head *of, int64_t j) {
  const attn_problem *p = of->problem;
  const double *key = key_of(of, j);
  double score = 0;
  for (int64_t d = 0; d < p->head_dim; d++) score += of->query[d] * key[d];
  score *= p->scale;
  if (p->softcap > 0) score = p->softcap * tanh(score / p->softcap);
  if (p->bias.type) score += (double)reference_vector(of->tensors->bias, p->bias, of->b, of->h, of->i)[j];
  return score + reference_position(p, of->b, of->h, of->i, j).sum;
}

/* What the projections leave in a score: of scale (q + q') (k + k') - q k. */
static double projected_score_error(const head *of, int form, const double *key,
                                    const projection_errors *errors) {
  const int64_t D = of->problem->head_dim;
  const reference_size *w = of->layer->of_w_k + of->kv_head * D;
  total projected = {0, 0};
  for (int64_t d = 0; d < D; d++) {
    const double error = projection_error(errors, form, w[d]);
    add_error(&projected, of->query_error[form][d] * (fabs(key[d]) + error));
    add_error(&projected, fabs(of->query[d]) * error);
  }
  return fabs(of->problem->scale) * total_of(&projected, form);
}

static void find_score_error(head *of, int64_t j) {
  const attn_problem *p = of->problem;
  const double *key = key_of(of, j);
  const projection_errors errors =
      errors_of(&of->projections, memory_size(of, j), most_repeats(of->layer->of_w_k, kv_features(p)));
  const reference_pair at = {of->b, of->h, of->i, j};
  double own[BOUNDS];
  for (int64_t d = 0; d < p->head_dim; d++)
    of->key_size[d] = no_less(
        fabs(key[d]) + projection_error(&errors, WORST, of->layer->of_w_k[of->kv_head * p->head_dim + d]));
  reference_vectors_score_errors(p, of->tensors, &at, of->query_size, of->key_size, of->scores[j],
                                 of->products.of, own);
  for (int form = WORST; form < BOUNDS; form++)
    of->score_error[form][j] = projected_score_error(of, form, key, &errors) + own[form];
}

static bool counts(const head *of, int64_t j) { return of->scores[j] != -INFINITY; }

/* A score joins the largest of those before it. */
static void survey(head *of, double score, double error, double *running) {
  of->seen++;
  of->largest = fmax(of->largest, score);
  of->upper = fmax(of->upper, score + error);
  of->records += score + error > *running;
  *running = fmax(*running, score - error);
}

static void find_weights(head *of) {
  const attn_problem *p = of->problem;
  double running = -INFINITY, sum = 0;
  alike_terms terms;
  of->seen = of->records = 0;
  of->largest = of->upper = -INFINITY;
  for (int64_t j = 0; j < p->key_length; j++) {
    of->scores[j] = reference_sees(p, of->tensors, of->b, of->h, of->i, j) ? score_of(of, j) : -INFINITY;
    if (!counts(of, j)) continue;
    find_score_error(of, j);
    survey(of, of->scores[j], of->score_error[WORST][j], &running);
  }
  of->sink = reference_sink(p, of->tensors, of->b, of->h, of->i);
  if (of->sink != -INFINITY) survey(of, of->sink, 3 * UNIT * fabs(of->sink), &running);
  for (int64_t j = 0; j < p->key_length; j++)
    sum += of->weights[j] = counts(of, j) ? exp(of->scores[j] - of->largest) : 0;
  if (of->sink != -INFINITY) sum += exp(of->sink - of->largest);
  of->lse = of->largest + log(sum);
  alike_begin(&terms, of->seen, 1);
  for (int64_t j = 0; j < p->key_length; j++) {
    if (!counts(of, j)) continue;
    of->weights[j] /= sum;
    alike_add(&terms, of->weights[j]);
  }
  of->alike = alike_excess(&terms);
}

/* t of a score that is off by so much. */
static double exponent_error(const head *of, int form, double score, double error, double worst) {
  const double rescales = fmax(ceil(of->seen / 16), of->records);
  return error + UNIT * (fabs(of->largest) + fabs(score)) + 4 * UNIT * (of->upper - score + worst) +
         (1 + (form == WORST ? rescales : sqrt(rescales))) * EXPONENTIAL * (1 + 4 * EXPONENTIAL);
}

static void find_output(const head *of, double *output) {
  const attn_problem *p = of->problem;
  for (int64_t e = 0; e < p->value_dim; e++) output[e] = 0;
  for (int64_t j = 0; j < p->key_length; j++)
    for (int64_t e = 0; counts(of, j) && e < p->value_dim; e++)
      output[e] += of->weights[j] * value_of(of, j)[e];
}

/* The weights of a head as they may be off. */
typedef struct weight_sums {
  double chain, absolute, grown, smallest, of_sink;
} weight_sums;

/* Fills error, of each weight. */
static weight_sums bound_weights(const head *of, int form) {
  const double rescales = fmax(ceil(of->seen / 16), of->records);
  const chains chain = chains_of(of->seen + 2 * rescales + 1);
  weight_sums sums = {.absolute = (rescales + 4) * FLUSHED};
  double kept = 0;
  sums.chain = fmin(chain.of[WORST], chain.of[form] + (form == PROBABLE ? of->alike * UNIT : 0));
  for (int64_t j = 0; j < of->problem->key_length; j++) {
    if (!counts(of, j)) continue;
    const double exponent = of->scores[j] - of->lse;
    const double t =
        exponent_error(of, form, of->scores[j], of->score_error[form][j], of->score_error[WORST][j]);
    of->error[j] = bound_weight_error(of->weights[j], exponent, t);
    sums.grown += of->error[j];
    kept += of->weights[j] * bound_kept(t);
  }
  if (of->sink != -INFINITY) {
    const double own = 3 * UNIT * fabs(of->sink), t = exponent_error(of, form, of->sink, own, own);
    sums.of_sink = bound_weight_error(exp(of->sink - of->lse), of->sink - of->lse, t);
    sums.grown += sums.of_sink;
    kept += exp(of->sink - of->lse - t);
  }
  sums.smallest = kept * (1 - sums.chain);
  return sums;
}

static void add_key(const head *of, int form, int64_t j, const weight_sums *sums, const double *output) {
  const attn_problem *p = of->problem;
  const double *value = value_of(of, j), error = of->error[j], weight = of->weights[j] + error;
  const double own = sums->chain * weight + sums->absolute;
  const double repeats = of->layer->repeats[of->b * p->key_length + j];
  const reference_size *w = of->layer->of_w_v + of->kv_head * p->value_dim;
  const projection_errors errors =
      errors_of(&of->projections, memory_size(of, j), most_repeats(of->layer->of_w_v, kv_values(p)));
  for (int64_t e = 0; e < p->value_dim; e++) {
    const double off = projection_error(&errors, form, w[e]), size = fabs(value[e]) + off;
    feature *to = &of->features[e];
    to->weighed += error * fabs(value[e] - output[e]) + own * size;
    to->largest = to->largest > off ? to->largest : off;
    to->values += size;
    to->repeated += repeats * weight * off;
    add_error(&to->projected, (1 - repeats) * weight * off);
  }
}

/* How far the output of the head may be off. */
static void bound_output(const head *of, int form, const double *output, double *bound) {
  const attn_problem *p = of->problem;
  const weight_sums sums = bound_weights(of, form);
  for (int64_t e = 0; e < p->value_dim; e++) of->features[e] = (feature){.weighed = 0};
  for (int64_t j = 0; j < p->key_length; j++)
    if (counts(of, j)) add_key(of, form, j, &sums, output);
  for (int64_t e = 0; e < p->value_dim; e++) {
    const feature *by = &of->features[e];
    const double o = fabs(output[e]);
    double off = by->weighed + 2 * sums.grown * by->largest + total_of(&by->projected, form) + by->repeated;
    off += o * (sums.of_sink + sums.chain * (1 + sums.grown) + of->seen * sums.absolute);
    bound[e] = sums.smallest > 0 ? off / sums.smallest : INFINITY;
    bound[e] += 4 * UNIT * (o + bound[e]) + 4 * (of->seen + 4) * SUBNORMAL;
    if (!(by->values <= LARGEST) || isnan(bound[e])) bound[e] = INFINITY;
  }
}

/* ---- a row ---- */

size_t reference_layer_row_room(const attn_problem *p) {
  return head_room(p) + 3 * (size_t)(p->query_heads * p->value_dim);
}

/* outputs [H Dv], and how far each may be off. */
static void solve_heads(head *of, double *outputs, double *const errors[BOUNDS]) {
  const attn_problem *p = of->problem;
  for (of->h = 0; of->h < p->query_heads; of->h++) {
    const int64_t first = of->h * p->value_dim;
    of->kv_head = reference_kv_head(p, of->h);
    project_query(of);
    find_weights(of);
    const bool sees = of->seen > (of->sink != -INFINITY);
    if (sees) find_output(of, outputs + first);
    for (int form = WORST; sees && form < BOUNDS; form++)
      bound_output(of, form, outputs + first, errors[form] + first);
    for (int64_t e = first; !sees && e < first + p->value_dim; e++)
      outputs[e] = errors[WORST][e] = errors[PROBABLE][e] = 0;
  }
}

void reference_layer_row(const attn_problem *p, const attn_tensors *tensors, const reference_layer *layer,
                         int64_t b, int64_t i, double *room, reference_gradient *to) {
  const int64_t features = p->query_heads * p->value_dim;
  const int64_t of_kv_head = p->kv_heads > 0 ? features / p->kv_heads : 0;
  head of = {.problem = p,
             .tensors = tensors,
             .layer = layer,
             .b = b,
             .i = i,
             .projections = chains_of((double)p->layer.model_dim + 1),
             .products = chains_of((double)p->head_dim)};
  double *outputs = place_head(p, room, &of);
  double *const errors[BOUNDS] = {outputs + features, outputs + 2 * features};
  const chains last = chains_of((double)features + 1);
  solve_heads(&of, outputs, errors);
  for (int64_t m = 0; m < p->layer.model_dim; m++) {
    const float *w = matrix_row(p->layer.w_o_data, p->layer.w_o, m);
    const double bias = bias_of(p->layer.b_o_data, p->layer.b_o, m);
    double value = bias, repeated = 0, previous = 0;
    for (int64_t n = 0; n < features; n++) {
      const double term = (double)w[n] * outputs[n];
      value += term;
      repeated += term != 0 && term == previous;
      previous = term;
    }
    for (int form = WORST; form < BOUNDS; form++) {
      double size = fabs(bias), *bound = form == WORST ? &to->worst[m] : &to->probabilistic[m];
      total attended = {0, 0};
      for (int64_t first = 0; first < features; first += of_kv_head) { /* heads of one share its roundings */
        double error = 0;
        for (int64_t n = first; n < first + of_kv_head; n++) {
          error += fabs((double)w[n]) * errors[form][n];
          size += fabs((double)w[n]) * (fabs(outputs[n]) + errors[form][n]);
        }
        add_error(&attended, error);
      }
      const double chain = fmin(last.of[WORST], last.of[form] + (form == PROBABLE ? repeated * UNIT : 0));
      *bound = total_of(&attended, form) + chain * size + 2 * last.terms * SUBNORMAL;
      if (isnan(*bound) || !(size <= LARGEST)) *bound = INFINITY;
      if (!isfinite(value)) *bound = 0;
    }
    to->values[m] = value;
    to->probabilistic[m] = fmin(to->probabilistic[m], to->worst[m]);
  }
}

/* ---- what it costs ---- */

static double operations(const attn_problem *p, double visible_pairs) {
  const double of_queries = (double)p->query_heads * ((double)p->head_dim + (double)p->value_dim);
  const double of_keys = (double)p->kv_heads * ((double)p->head_dim + (double)p->value_dim);
  const double rows =
      (double)p->query_length * of_queries + (double)p->key_length * of_keys; /* W_Q and W_O, W_K and W_V */
  return reference_softmax.operations(p, visible_pairs) +
         2 * (double)p->batch * (double)p->layer.model_dim * rows;
}

static double largest_weight(const attn_problem *problem) {
  (void)problem;
  return 1;
}

const reference_function reference_layers = {
    .name = "layer",
    .computes = "computes a layer",
    .operations = operations,
    .largest_weight = largest_weight,
    .has_scores = true,
    .forward = ATTN_LAYER,
    .backward = ATTN_LAYER,
};
