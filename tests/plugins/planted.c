/* Softmax attention that is right but for a fault in a corner, one for each variant: what a random search
 * has to find and to shrink.
 *   edge      leaves out the last key where a tile of 64 keys has just one
 *   overrun   reads one value too many where Dv is 3 more than a multiple of 4
 *   unwritten gives up where its workspace, to which nobody has written, begins with a zero: only valgrind's
 *             memcheck can see it, since a poisoned workspace holds none */
#include "attention.h"

#include <math.h>

typedef enum fault { EDGE, OVERRUN, NO_FAULT } fault;

static const float *at(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i,
                      fault fault) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const float *q = at(t->query, p->query, b, h, i);
  float *o = (float *)(uintptr_t)at(t->output, p->output, b, h, i);
  attn_range keys = attn_visible_keys(p, b, i);
  if (fault == EDGE && keys.end > 64 && keys.end % 64 == 1) keys.end--;
  double sum = 0, top = -INFINITY;
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t j = keys.first; j < keys.end; j++) {
      const float *k = at(t->key, p->key, b, kv, j), *v = at(t->value, p->value, b, kv, j);
      double score = 0;
      for (int64_t d = 0; d < p->head_dim; d++) score += (double)q[d] * k[d];
      score *= p->scale;
      if (fault == OVERRUN && p->value_dim % 4 == 3) (void)*(const volatile float *)(v + p->value_dim);
      if (pass == 0) {
        top = isnan(score) ? score : fmax(top, score);
        continue;
      }
      const double weight = exp(score - top);
      sum += weight;
      for (int64_t e = 0; e < p->value_dim; e++)
        o[e] = (float)(o[e] + (sum > 0 ? weight / sum : sum) * (v[e] - (double)o[e]));
    }
}

static void solve(const attn_call *call, fault fault) {
  const attn_problem *p = call->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) solve_row(p, &call->tensors, b, h, i, fault);
}

static void run_edge(const attn_call *call) { solve(call, EDGE); }

static void run_overrun(const attn_call *call) { solve(call, OVERRUN); }

static size_t one_float(const attn_call *call) {
  (void)call;
  return sizeof(float);
}

static void run_unwritten(const attn_call *call) {
  if (*(const float *)call->workspace != 0) solve(call, NO_FAULT);
}

#define VARIANT(which, needed, function_run)                                                                 \
  static const attn_variant which = {.name = #which,                                                         \
                                     .summary = "right but for a corner",                                    \
                                     .function = ATTN_SOFTMAX,                                               \
                                     .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS,                 \
                                     .types = 1u << ATTN_FLOAT32,                                            \
                                     .time_exponent = 2,                                                     \
                                     .workspace_size = (needed),                                             \
                                     .run = (function_run)}
VARIANT(edge, NULL, run_edge);
VARIANT(overrun, NULL, run_overrun);
VARIANT(unwritten, one_float, run_unwritten);
static const attn_variant *const variants[] = {&edge, &overrun, &unwritten};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 3, variants, NULL};
