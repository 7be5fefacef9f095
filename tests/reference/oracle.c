/* Quadruple precision: __float128 with libquadmath on x86-64; on aarch64 long double is as wide. */
#include "tests/reference/oracle.h"

#include <assert.h>
#include <math.h>

#ifdef __x86_64__
__extension__ typedef __float128 quad;
/* Declared here because clang does not find gcc's quadmath.h. */
quad expq(quad);
quad logq(quad);
quad tanhq(quad);
#else
typedef long double quad;
#define expq expl
#define logq logl
#define tanhq tanhl
#endif

static const float *at(const void *tensor, attn_layout s, int64_t b, int64_t h, int64_t t) {
  return (const float *)tensor + (b * s.batch + h * s.head + t * s.position);
}

/* One element that is read as something else. */
static const float *moved;
static quad moved_by;

/* Those that are read, while somebody wants to know, and the gradients by them. */
enum { MOST_ELEMENTS = 4096 };
static struct element {
  const float *x;
  quad gradient;
  bool read;
} elements[MOST_ELEMENTS];
static size_t element_count;
static bool collects;

static struct element *find(const float *x) {
  size_t n = 0;
  while (n < element_count && elements[n].x != x) n++;
  return &elements[n];
}

static void collect(const float *x) {
  struct element *found = find(x);
  if (found == elements + element_count) {
    assert(element_count < MOST_ELEMENTS);
    *found = (struct element){.x = x};
    element_count++;
  }
  found->read = true;
}

static quad number(const float *element) {
  if (collects) collect(element);
  return *element + (element == moved ? moved_by : 0);
}

static bool hidden(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t offset = p->offsets ? p->offsets[b] : p->offset;
  const bool too_old = p->left != ATTN_UNLIMITED && j < i + offset - p->left;
  const bool too_new = p->right != ATTN_UNLIMITED && j > i + offset + p->right;
  const bool absent = p->key_lengths && j >= p->key_lengths[b];
  const bool masked =
      p->mask.type && !x->mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j];
  return too_old || too_new || absent || masked;
}

/* A feature of a query or a key, turned by row `at` of the tables: of a pair the first is a cos - b sin, the second b
 * cos + a sin. */
static quad feature(const attn_problem *p, const float *x, int64_t at, int64_t d) {
  const int64_t R = p->rope_cos.type ? p->rope_features : 0;
  if (R < 2 || d >= R) return number(x + d);
  const int64_t n = p->rope_interleaved ? d / 2 : d % (R / 2);
  const int64_t first = p->rope_interleaved ? 2 * n : n, second = p->rope_interleaved ? 2 * n + 1 : n + R / 2;
  const quad cosine = p->rope_cos_data[at * p->rope_cos.position + n],
             sine = p->rope_sin_data[at * p->rope_sin.position + n];
  return d == first ? number(x + first) * cosine - number(x + second) * sine
                    : number(x + second) * cosine + number(x + first) * sine;
}

/* What a weight is multiplied by. */
static quad kept(const attn_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (!p->keep.type) return 1;
  return p->keep_data[b * p->keep.batch + h * p->keep.head + i * p->keep.position + j]
             ? 1 / (1 - (quad)p->dropout_p)
             : 0;
}

static quad phi(const attn_problem *p, quad x) {
  if (p->feature_map == ATTN_ELU1) return x > 0 ? x + 1 : expq(x);
  return p->feature_map == ATTN_IDENTITY || x > 0 ? x : 0;
}

static int64_t t5_bucket(const attn_problem *p, int64_t ahead) {
  const int64_t behind = ahead < 0 ? -ahead : 0, half = p->t5_both ? p->t5_buckets / 2 : p->t5_buckets;
  const int64_t far = p->t5_both && ahead > 0 ? ahead : behind, exact = half / 2;
  int64_t bucket = far;
  if (far >= exact) {
    const quad share = logq((quad)far / exact) / logq((quad)p->t5_distance / exact);
    const quad steps = share * (half - exact) + (quad)1e-25;
    bucket = steps >= half - exact ? half - 1 : exact + (int64_t)steps;
  }
  return p->t5_both && ahead > 0 ? half + bucket : bucket;
}

/* The logarithm of the weight for softmax, the weight itself for linear attention. */
static quad term(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t kv_head = h * p->kv_heads / p->query_heads;
  const float *q = at(x->query, p->query, b, h, i), *k = at(x->key, p->key, b, kv_head, j);
  const int64_t position = i + (p->offsets ? p->offsets[b] : p->offset);
  quad dot = 0;
  for (int64_t d = 0; p->general.type && d < p->head_dim; d++)
    for (int64_t e = 0; e < p->head_dim; e++)
      dot += feature(p, q, position, d) * at(p->general_data, p->general, 0, h, d)[e] * feature(p, k, j, e);
  for (int64_t d = 0; p->additive.type && d < p->head_dim; d++)
    dot += at(p->additive_data, p->additive, 0, h, 0)[d] *
           tanhq(feature(p, q, position, d) + feature(p, k, j, d));
  for (int64_t d = 0; !p->general.type && !p->additive.type && d < p->head_dim; d++)
    dot += p->function == ATTN_LINEAR ? phi(p, number(q + d)) * phi(p, number(k + d))
                                      : feature(p, q, position, d) * feature(p, k, j, d);
  const int64_t own = i + (p->offsets ? p->offsets[b] : p->offset);
  const int64_t keys = p->key_lengths ? p->key_lengths[b] : p->key_length;
  quad decayed = 0;
  for (int64_t t = j + 1; p->decay.type && t <= own && t < keys; t++)
    decayed += number(at(p->decay_data, p->decay, b, kv_head, 0) + t);
  if (p->function == ATTN_LINEAR) return dot * expq(decayed);
  quad score = (quad)p->scale * dot;
  if (p->softcap > 0) score = p->softcap * tanhq(score / p->softcap);
  if (p->bias.type) score += number(at(x->bias, p->bias, b, h, i) + j);
  const quad apart = position > j ? position - j : j - position;
  if (p->alibi.type) score -= p->alibi_data[h * p->alibi.head] * apart;
  if (p->relative.type) {
    const int64_t reach = p->relative_distance, distance = j - position;
    const int64_t place = distance > reach ? 2 * reach : distance < -reach ? 0 : reach + distance;
    score += (p->relative_data + h * p->relative.head)[place];
  }
  if (p->t5.type) score += (p->t5_data + h * p->t5.head)[t5_bucket(p, j - position)];
  return score;
}

/* By what row d of the initial state is multiplied. */
static quad of_state(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i,
                     int64_t d) {
  const int64_t kv_head = h * p->kv_heads / p->query_heads;
  const int64_t own = i + (p->offsets ? p->offsets[b] : p->offset);
  const int64_t keys = p->key_lengths ? p->key_lengths[b] : p->key_length;
  quad decayed = 0;
  for (int64_t t = 0; p->decay.type && t <= own && t < keys; t++)
    decayed += number(at(p->decay_data, p->decay, b, kv_head, 0) + t);
  return phi(p, number(at(x->query, p->query, b, h, i) + d)) * expq(decayed);
}

void oracle_final_state(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t kv_head, int64_t d,
                        double *values, double *sum) {
  const int64_t keys = p->key_lengths ? p->key_lengths[b] : p->key_length;
  const attn_linear_states *s = &p->states;
  for (int64_t e = 0; e <= p->value_dim; e++) {
    quad total = 0, fade = 1;
    for (int64_t j = keys - 1; j >= 0; j--) {
      const quad value = e < p->value_dim ? number(at(x->value, p->value, b, kv_head, j) + e) : 1;
      total += fade * phi(p, number(at(x->key, p->key, b, kv_head, j) + d)) * value;
      if (p->decay.type) fade *= expq(at(p->decay_data, p->decay, b, kv_head, 0)[j]);
    }
    if (s->state.type && e < p->value_dim) total += fade * at(s->state_data, s->state, b, kv_head, d)[e];
    if (s->state_sum.type && e == p->value_dim)
      total += fade * at(s->state_sum_data, s->state_sum, b, kv_head, 0)[d];
    *(e < p->value_dim ? &values[e] : sum) = (double)total;
  }
}

static void solve_row(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i,
                      quad *output, quad *lse) {
  assert(p->key_length <= ORACLE_MAX_KEYS);
  const int64_t kv_head = h * p->kv_heads / p->query_heads;
  quad weights[ORACLE_MAX_KEYS], sum = 0;
  const float *sink = p->sink.type ? &x->sink[h * p->sink.head] : NULL;
  int64_t seen = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    weights[j] = 0;
    if (hidden(p, x, b, h, i, j)) continue;
    seen++;
    /* No shift: a quadruple holds e^11000. */
    weights[j] = p->function == ATTN_LINEAR ? term(p, x, b, h, i, j) : expq(term(p, x, b, h, i, j));
    sum += weights[j];
  }
  if (sink) sum += expq(number(sink));
  for (int64_t d = 0; p->states.state.type && d < p->head_dim; d++) {
    seen = 1;
    if (p->states.state_sum.type)
      sum += of_state(p, x, b, h, i, d) *
             number(at(p->states.state_sum_data, p->states.state_sum, b, kv_head, 0) + d);
  }
  if (p->function == ATTN_LINEAR)
    sum += (quad)p->epsilon;
  else
    *lse = seen || sink ? logq(sum) : (quad)-INFINITY;
  for (int64_t e = 0; e < p->value_dim; e++) {
    quad total = 0;
    for (int64_t j = 0; j < p->key_length; j++)
      if (!hidden(p, x, b, h, i, j))
        total += kept(p, b, h, i, j) * weights[j] * number(at(x->value, p->value, b, kv_head, j) + e);
    for (int64_t d = 0; p->states.state.type && d < p->head_dim; d++)
      total +=
          of_state(p, x, b, h, i, d) * number(at(p->states.state_data, p->states.state, b, kv_head, d) + e);
    output[e] = p->unnormalised ? total : seen ? total / sum : 0;
  }
}

void oracle_row(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, double *output,
                double *lse) {
  quad exact[ORACLE_MAX_VALUE_DIM], exact_lse = 0;
  assert(p->value_dim <= ORACLE_MAX_VALUE_DIM);
  solve_row(p, x, b, h, i, exact, &exact_lse);
  for (int64_t e = 0; e < p->value_dim; e++) output[e] = (double)exact[e];
  if (p->function != ATTN_LINEAR) *lse = (double)exact_lse;
}

/* What a row adds to the sum that gradients are of. */
static quad loss(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i) {
  quad output[ORACLE_MAX_VALUE_DIM], lse, sum = 0;
  solve_row(p, x, b, h, i, output, &lse);
  for (int64_t e = 0; e < p->value_dim; e++)
    sum += output[e] * at(p->output_grad_data, p->output_grad, b, h, i)[e];
  return sum;
}

/* By what the row reads. A step of 1e-10 leaves errors of 1e-20 of third derivatives, and of 1e-24 of what a quadruple rounds. */
static void add_gradients(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i) {
  const quad step = (quad)1e-10;
  for (size_t n = 0; n < element_count; n++) elements[n].read = false;
  collects = true;
  loss(p, x, b, h, i);
  collects = false;
  for (size_t n = 0; n < element_count; n++) {
    if (!elements[n].read) continue;
    moved = elements[n].x;
    moved_by = step;
    const quad above = loss(p, x, b, h, i);
    moved_by = -step;
    elements[n].gradient += (above - loss(p, x, b, h, i)) / (2 * step);
  }
  moved = NULL;
}

void oracle_find_gradients(const attn_problem *p, const attn_tensors *x) {
  element_count = 0;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) add_gradients(p, x, b, h, i);
}

double oracle_gradient(const float *element) {
  const struct element *found = find(element);
  return found < elements + element_count ? (double)found->gradient : 0;
}
