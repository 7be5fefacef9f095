/* Kernels that end their process, or never end, and one that is right and comes after them: each of the first is named
 * in the report, and the last is judged all the same. With ATTN_TEST_ENDS_AT_LOAD the object ends it when it is loaded. */
#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void load(void) {
  if (getenv("ATTN_TEST_ENDS_AT_LOAD")) exit(0);
}

static void crash(const attn_call *call) {
  (void)call;
  float *volatile nowhere = (float *)8; /* volatile itself: the compiler is not to see where it points */
  *nowhere = 1;
}

static void leave(const attn_call *call) {
  (void)call;
  exit(0);
}

static void hang(const attn_call *call) {
  (void)call;
  for (;;) pause();
}

static const float *at(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static double score(const attn_problem *p, const float *q, const float *k) {
  double sum = 0;
  for (int64_t d = 0; d < p->head_dim; d++) sum += (double)q[d] * k[d];
  return sum * p->scale;
}

static void solve_row(const attn_call *call, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const attn_range keys = attn_visible_keys(p, b, i);
  const float *q = at(t->query, p->query, b, h, i);
  float *o = (float *)(uintptr_t)at(t->output, p->output, b, h, i);
  double sums[p->value_dim + 1], top = -INFINITY; /* of weighted values, and of weights */
  for (int64_t e = 0; e <= p->value_dim; e++) sums[e] = 0;
  for (int64_t j = keys.first; j < keys.end; j++) top = fmax(top, score(p, q, at(t->key, p->key, b, kv, j)));
  for (int64_t j = keys.first; j < keys.end; j++) {
    const double weight = exp(score(p, q, at(t->key, p->key, b, kv, j)) - top);
    const float *value = at(t->value, p->value, b, kv, j);
    for (int64_t e = 0; e < p->value_dim; e++) sums[e] += weight * value[e];
    sums[p->value_dim] += weight;
  }
  for (int64_t e = 0; e < p->value_dim; e++)
    o[e] = keys.first < keys.end ? (float)(sums[e] / sums[p->value_dim]) : 0;
}

static void solve(const attn_call *call) {
  const attn_problem *p = call->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) solve_row(call, b, h, i);
}

#define VARIANT(variant, words, does)                                                                        \
  static const attn_variant variant = {.name = #variant,                                                     \
                                       .summary = (words),                                                   \
                                       .function = ATTN_SOFTMAX,                                             \
                                       .types = 1u << ATTN_FLOAT32,                                          \
                                       .time_exponent = 2,                                                   \
                                       .run = (does)}
VARIANT(crashing, "writes to an address that nobody owns", crash);
VARIANT(leaving, "calls exit(0)", leave);
VARIANT(hanging, "never returns", hang);
VARIANT(lasting, "is right", solve);

static const attn_variant *const variants[] = {&crashing, &leaving, &hanging, &lasting};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 4, variants, NULL};
