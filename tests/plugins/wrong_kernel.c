/* Softmax attention over packed tensors, with one fault: the last key that a query sees is left out
 * wherever there are two or more. */
#include "attention.h"

#include <math.h>

static void solve_row(const attn_problem *p, const float *q, const float *k, const float *v, attn_range keys,
                      float *o) {
  double sum = 0, top = -INFINITY;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = keys.first; j < keys.end; j++) {
      double score = 0;
      for (int64_t d = 0; d < p->head_dim; d++) score += (double)q[d] * k[j * p->key.position + d];
      score *= p->scale;
      if (pass == 0) {
        top = fmax(top, score);
        continue;
      }
      double weight = exp(score - top);
      sum += weight;
      for (int64_t d = 0; d < p->value_dim; d++)
        o[d] = (float)(o[d] + (weight / sum) * (v[j * p->value.position + d] - (double)o[d]));
    }
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) {
        int64_t group = h / (p->query_heads / p->kv_heads);
        const float *q =
            (const float *)t->query + b * p->query.batch + h * p->query.head + i * p->query.position;
        const float *k = (const float *)t->key + b * p->key.batch + group * p->key.head;
        const float *v = (const float *)t->value + b * p->value.batch + group * p->value.head;
        float *o = (float *)t->output + b * p->output.batch + h * p->output.head + i * p->output.position;
        attn_range keys = attn_visible_keys(p, b, i);
        if (keys.end - keys.first > 1) keys.end--;
        for (int64_t d = 0; d < p->value_dim; d++) o[d] = 0;
        solve_row(p, q, k, v, keys, o);
      }
}

static const attn_variant wrong = {
    .name = "wrong",
    .summary = "forgets the last key",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS,
    .types = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .run = run,
};
static const attn_variant *const variants[] = {&wrong};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
