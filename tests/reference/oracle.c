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

static bool hidden(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t offset = p->offsets ? p->offsets[b] : p->offset;
  const bool too_old = p->left != ATTN_UNLIMITED && j < i + offset - p->left;
  const bool too_new = p->right != ATTN_UNLIMITED && j > i + offset + p->right;
  const bool absent = p->key_lengths && j >= p->key_lengths[b];
  const bool masked =
      p->mask.type && !x->mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j];
  return too_old || too_new || absent || masked;
}

static quad phi(quad x) { return x > 0 ? x + 1 : expq(x); }

/* The logarithm of the weight for softmax, the weight itself for linear attention. */
static quad term(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t kv_head = h * p->kv_heads / p->query_heads;
  const float *q = at(x->query, p->query, b, h, i), *k = at(x->key, p->key, b, kv_head, j);
  quad dot = 0;
  for (int64_t d = 0; d < p->head_dim; d++)
    dot += p->function == ATTN_LINEAR ? phi(q[d]) * phi(k[d]) : (quad)q[d] * k[d];
  if (p->function == ATTN_LINEAR) return dot;
  quad score = (quad)p->scale * dot;
  if (p->softcap > 0) score = p->softcap * tanhq(score / p->softcap);
  if (p->bias.type) score += at(x->bias, p->bias, b, h, i)[j];
  const int64_t position = i + (p->offsets ? p->offsets[b] : p->offset);
  const quad apart = position > j ? position - j : j - position;
  if (p->alibi.type) score -= p->alibi_data[h * p->alibi.head] * apart;
  return score;
}

void oracle_row(const attn_problem *p, const attn_tensors *x, int64_t b, int64_t h, int64_t i, double *output,
                double *lse) {
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
  if (sink) sum += expq(*sink);
  if (p->function == ATTN_LINEAR)
    sum += (quad)p->epsilon;
  else
    *lse = seen || sink ? (double)logq(sum) : -INFINITY;
  for (int64_t e = 0; e < p->value_dim; e++) {
    quad total = 0;
    for (int64_t j = 0; j < p->key_length; j++)
      if (!hidden(p, x, b, h, i, j)) total += weights[j] * at(x->value, p->value, b, kv_head, j)[e];
    output[e] = seen ? (double)(total / sum) : 0;
  }
}
