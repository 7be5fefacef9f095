/* A variant of a team with a bug that one rank alone has, and only where it and the keys are enough: what fuzzing is to find, and
 * shrinking to make small. Each rank has its queries and all keys, and nothing is sent. */
#include <stdlib.h>

#include "team.h"

static attn_slicing own(const attn_call *call) {
  (void)call;
  return ATTN_CONTIGUOUS;
}

static attn_slicing all(const attn_call *call) {
  (void)call;
  return ATTN_WHOLE;
}

/* For the gate: what a rank is said to send. */
#ifndef SENT_BYTES
#define SENT_BYTES 0
#endif
static uint64_t sent_bytes(const attn_call *call) { return (uint64_t)(call->rank == 1) * SENT_BYTES; }

enum { ENOUGH_KEYS = 6 };

static int64_t keys_of(const attn_call *call) {
  const int64_t keys = call->problem->key_length;
  return call->rank == 2 && keys >= ENOUGH_KEYS ? keys - 1 : keys;
}

static const float *row_of(const void *tensor, const attn_layout *layout, int64_t b, int64_t h, int64_t n) {
  return (const float *)tensor + b * layout->batch + h * layout->head + n * layout->position;
}

static double score_of(const attn_call *call, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attn_problem *p = call->problem;
  const float *query = row_of(call->tensors.query, &p->query, b, h, i);
  const float *key = row_of(call->tensors.key, &p->key, b, h / (p->query_heads / p->kv_heads), j);
  double score = 0;
  for (int64_t d = 0; d < p->head_dim; d++) score += (double)query[d] * (double)key[d];
  return score * p->scale;
}

static void solve_row(const attn_call *call, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = call->problem;
  float *output =
      (float *)call->tensors.output + b * p->output.batch + h * p->output.head + i * p->output.position;
  const int64_t keys = keys_of(call);
  double most = -INFINITY, sum = 0;
  for (int64_t j = 0; j < keys; j++) most = fmax(most, score_of(call, b, h, i, j));
  for (int64_t j = 0; j < keys; j++) sum += exp(score_of(call, b, h, i, j) - most);
  for (int64_t e = 0; e < p->value_dim; e++) {
    double value = 0;
    for (int64_t j = 0; j < keys; j++)
      value += exp(score_of(call, b, h, i, j) - most) / sum *
               (double)row_of(call->tensors.value, &p->value, b, h / (p->query_heads / p->kv_heads), j)[e];
    output[e] = (float)value;
  }
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_slice queries = attn_slice_of(ATTN_CONTIGUOUS, p->query_length, call->rank, call->ranks);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++)
      for (int64_t i = 0; i < attn_slice_length(&queries); i++) solve_row(call, b, h, i);
}

static const attn_variant forgets = {.name = "forgets_on_rank_2",
                                     .summary = "rank 2 forgets the last of six keys or more",
                                     .function = ATTN_SOFTMAX,
                                     .types = 1 << ATTN_FLOAT32,
                                     .place = ATTN_TEAM,
                                     .traits = ATTN_FINITE,
                                     .time_exponent = 2,
                                     .run = run};

static const attn_variant *const variants[] = {&forgets};
static const attn_team_member member = {
    .variant = &forgets, .queries = own, .keys = all, .sent_bytes = sent_bytes};
const attn_team_member *const attn_team_members[] = {&member, NULL};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, attn_team_sizes};
