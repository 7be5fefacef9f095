/* What a mask costs whose hidden keys lie together: how much of the time of the same attention without a mask it takes, in turn.
 * Random hides each key with 3 in 10 and thus no whole tile; causal hides all keys behind a query's own, and padding the
 * first half of the keys; added is the causal one as a bias of -inf. Prints the median of the ratios with its 95 % interval. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/statistics.h"
#include "base/timer.h"
#include "problem/types.h"
#include "run/runner.h"
#include "variants/elements.h"
#include "numbers.h"

enum { ROUNDS = 31, HEADS = 4, LENGTH = 2048, DIM = 64 };

extern const attn_variant attn_fused;

typedef enum mask_kind { RANDOM, CAUSAL, PADDING, ADDED, KINDS } mask_kind;
static const char *const names[KINDS] = {"random", "causal", "padding", "added"};

static uint8_t shows(mask_kind kind, int64_t i, int64_t j) {
  switch (kind) {
    case RANDOM: return random_bits(2, (uint64_t)(i * LENGTH + j)) % 10 < 7;
    case PADDING: return j >= LENGTH / 2;
    default: return j <= i;
  }
}

static double seconds_of(const attn_call *call) {
  const double start = wall_seconds();
  runner_invoke(call);
  return wall_seconds() - start;
}

/* A mask, or a bias, of [T, T] for all heads. */
static void compare(attn_type type, mask_kind kind) {
  const size_t all = (size_t)HEADS * LENGTH * DIM, pairs = (size_t)LENGTH * LENGTH;
  float *x[4], *bias = numbers(pairs);
  uint8_t *mask = (uint8_t *)numbers(pairs / sizeof(float));
  for (int n = 0; n < 4; n++) {
    x[n] = numbers(all);
    for (size_t i = 0; type != ATTN_FLOAT32 && i < all; i++) attn_store(x[n], type, (int64_t)i, x[n][i]);
  }
  for (int64_t i = 0; i < LENGTH; i++)
    for (int64_t j = 0; j < LENGTH; j++) {
      mask[i * LENGTH + j] = shows(kind, i, j);
      attn_store(bias, type, i * LENGTH + j, mask[i * LENGTH + j] ? 0 : -INFINITY);
    }
  attn_problem problem = {.batch = 1, .query_heads = HEADS, .kv_heads = HEADS, .scale = 1 / sqrt(DIM)};
  problem.query_length = problem.key_length = LENGTH;
  problem.head_dim = problem.value_dim = DIM;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.key = problem.value = problem.output = attn_packed(type, HEADS, LENGTH, DIM);
  attn_problem masked = problem;
  masked.features |= kind == ADDED ? ATTN_BIAS : ATTN_MASK;
  *(kind == ADDED ? &masked.bias : &masked.mask) =
      (attn_layout){.type = kind == ADDED ? type : ATTN_UINT8, .position = LENGTH};
  const attn_tensors tensors = {
      .query = x[0], .key = x[1], .value = x[2], .output = x[3], .mask = mask, .bias = bias};
  const run_setup setup = {.variant = &attn_fused, .threads = 1};
  float *workspaces[2] = {numbers(runner_workspace_bytes(&setup, &problem) / sizeof(float) + 1),
                          numbers(runner_workspace_bytes(&setup, &masked) / sizeof(float) + 1)};
  const attn_call plain = runner_call(&setup, &problem, &tensors, workspaces[0]),
                  call = runner_call(&setup, &masked, &tensors, workspaces[1]);
  double shares[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    const double before = seconds_of(&plain);
    shares[r] = seconds_of(&call) / before;
  }
  const interval share = statistics_median_interval(shares, ROUNDS, 0.95);
  char name[80], spread[32];
  snprintf(name, sizeof name, "mask %s over none, fused, %s, D %d, T %d, 1 thread", names[kind],
           element_type_of(type)->name, DIM, LENGTH);
  snprintf(spread, sizeof spread, "[%.3f, %.3f]", share.low, share.high);
  printf("%-62s %6.3f %-16s\n", name, share.estimate, spread);
  for (int n = 0; n < 4; n++) free(x[n]);
  for (int n = 0; n < 2; n++) free(workspaces[n]);
  free(bias);
  free(mask);
}

int main(void) {
  static const attn_type types[] = {ATTN_FLOAT32, ATTN_BFLOAT16};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (mask_kind kind = 0; kind < KINDS; kind++) compare(types[t], kind);
  return 0;
}
