/* Softmax attention that is right, and asks for Ctrl-C in its eighth run in a process: three points have been run
 * twice each, to be verified, then the first is timed, and the second. Who is asked sees the folder ctrl-c, and
 * leaves another in it once it was pressed; a kernel that raises a signal itself ends by it. */
#define _GNU_SOURCE
#include "attention.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const float *row_of(const void *data, attn_layout s, int64_t b, int64_t h, int64_t i) {
  return (const float *)data + b * s.batch + h * s.head + i * s.position;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  const float *q = row_of(t->query, p->query, b, h, i);
  float *o = (float *)(uintptr_t)row_of(t->output, p->output, b, h, i);
  double sum = 0;
  for (int64_t e = 0; e < p->value_dim; e++) o[e] = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    const float *k = row_of(t->key, p->key, b, kv, j), *v = row_of(t->value, p->value, b, kv, j);
    double score = 0;
    for (int64_t d = 0; d < p->head_dim; d++) score += (double)q[d] * k[d];
    const double weight = exp(score * p->scale);
    sum += weight;
    for (int64_t e = 0; e < p->value_dim; e++) o[e] = (float)(o[e] + weight / sum * (v[e] - (double)o[e]));
  }
}

/* Once: a second Ctrl-C would end the program at once. */
static void ask_for_ctrl_c(void) {
  if (mkdir("ctrl-c", 0777) != 0) return;
  for (int n = 0; n < 1000 && access("ctrl-c/pressed", F_OK) != 0; n++) usleep(10000);
}

static void run(const attn_call *call) {
  static int runs;
  const attn_problem *p = call->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < p->query_length; i++) solve_row(p, &call->tensors, b, h, i);
  if (++runs == 8) ask_for_ctrl_c();
}

static const attn_variant interrupts = {.name = "interrupts",
                                        .summary = "right, until somebody presses Ctrl-C",
                                        .function = ATTN_SOFTMAX,
                                        .types = 1u << ATTN_FLOAT32,
                                        .time_exponent = 2,
                                        .run = run};
static const attn_variant *const variants[] = {&interrupts};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, NULL};
