/* A kernel that is compiled with -Ofast, and linked without the start file that would set flush-to-zero for the whole
 * process (-nostartfiles): numbers that are not finite do what they do in the instructions, for comparisons with them
 * mean nothing to this compiler. So nothing is compared with infinity, and zeros are told by their bits. */
#include <attention.h>

#include <float.h>
#include <math.h>
#include <string.h>

#ifndef NAME
#define NAME "fast_math"
#endif

static const float *at(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static bool is_zero(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits << 1 == 0;
}

static float score(const attn_problem *p, const float *q, const float *k) {
  float sum = 0;
  for (int64_t d = 0; d < p->head_dim; d++) sum += q[d] * k[d];
  return (float)p->scale * sum;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i) {
  const attn_range keys = attn_visible_keys(p, b, i);
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const float *q = at(t->query, p->query, b, h, i);
  float *o = (float *)(uintptr_t)at(t->output, p->output, b, h, i);
  float max = -FLT_MAX, sum = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    const float s = score(p, q, at(t->key, p->key, b, kv, j));
    if (s > max) max = s;
  }
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
  for (int64_t j = keys.first; j < keys.end; j++) {
    const float *v = at(t->value, p->value, b, kv, j);
    const float w = expf(score(p, q, at(t->key, p->key, b, kv, j)) - max);
    sum += w;
    for (int64_t e = 0; e < p->value_dim; e++) o[e] += w * v[e];
  }
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = is_zero(sum) ? 0 : o[e] / sum;
  if (t->lse)
    t->lse[b * p->lse.batch + h * p->lse.head + i * p->lse.position] =
        is_zero(sum) ? -HUGE_VALF : max + logf(sum);
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
#pragma omp parallel for num_threads(call->threads)
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++)
    solve_row(p, &call->tensors, n / p->query_length / p->query_heads, n / p->query_length % p->query_heads,
              n % p->query_length);
}

static const attn_variant fast_math = {
    .name = NAME,
    .summary = "compiled with -Ofast",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_LSE,
    .types = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&fast_math};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
