/* A kernel that takes little, as kernels outside do: causal, packed, 80 features, lengths of whole tiles. Built with WRONG its
 * heads read the wrong keys, with SLOW it does all work four times, with CRASHES it does so when it is asked what it takes, with
 * TILE=64 it takes longer tiles, with AVX512 it has what valgrind does not know. */
#include <math.h>
#include <stdlib.h>

#include "attention.h"

#ifndef TILE
#define TILE 16
#endif
enum { FEATURES = 80 };

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
#ifdef CRASHES
  exit(0);
#endif
  if (p->head_dim != FEATURES || p->value_dim != FEATURES) return "takes 80 features alone";
  if (p->query_length != p->key_length || p->query_length % TILE) return "takes whole tiles alone";
  if (p->left != ATTN_UNLIMITED || p->right != 0) return "is causal";
  if (p->query.position != p->query_heads * FEATURES || p->key.position != p->kv_heads * FEATURES)
    return "takes packed tensors alone";
  return NULL;
}

static const float *at(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static float solve_row(const attn_call *call, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  int64_t kv = h / (p->query_heads / p->kv_heads);
#ifdef WRONG
  kv = h % p->kv_heads ? kv - 1 : kv;
#endif
  const float *q = at(t->query, p->query, b, h, i);
  float *o = (float *)at(t->output, p->output, b, h, i), max = -INFINITY, sum = 0;
  for (int64_t d = 0; d < FEATURES; d++) o[d] = 0;
  for (int64_t j = 0; j <= i; j++) {
    const float *k = at(t->key, p->key, b, kv, j), *v = at(t->value, p->value, b, kv, j);
    float score = 0;
    for (int64_t d = 0; d < FEATURES; d++) score += (float)p->scale * q[d] * k[d];
    const float before = max;
    max = fmaxf(max, score);
    const float keep = expf(before - max), weight = expf(score - max);
    sum = sum * keep + weight;
    for (int64_t d = 0; d < FEATURES; d++) o[d] = o[d] * keep + weight * v[d];
  }
  for (int64_t d = 0; d < FEATURES; d++) o[d] /= sum;
  return sum;
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  volatile float work = 0;
#ifdef AVX512
  __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30" ::: "memory");
#endif
#ifdef SLOW
  const int times = 4;
#else
  const int times = 1;
#endif
  for (int n = 0; n < times; n++)
    for (int64_t b = 0; b < p->batch; b++)
      for (int64_t h = 0; h < p->query_heads; h++)
        for (int64_t i = 0; i < p->query_length; i++) work = solve_row(call, b, h, i);
  (void)work;
}

static const attn_variant particular = {.name = "particular",
                                        .summary = "",
                                        .function = ATTN_SOFTMAX,
                                        .features = ATTN_BAND,
                                        .types = 1u << ATTN_FLOAT32,
                                        .time_exponent = 2,
                                        .unsupported = unsupported,
                                        .run = run};
static const attn_variant *const variants[] = {&particular};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
