/* How many tanh a second additive scores take, as a share of what the machine takes in registers
 * (harness/machine/tanh_loops.c): runs fused on a problem of one head, a tanh for each feature of each pair, with its
 * softmax and values, and that loop in turn. Prints the median of the ratio with its 95 % interval. More than 1 is no
 * error: powers of queries and keys are taken once, not for each pair. Usage: additive_share T D ISA */
#include <math.h>
#include <string.h>

#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "machine/peak_loops.h"
#include "run/runner.h"
#include "numbers.h"

enum { ROUNDS = 21, MOST_KEYS = 16384, MOST_FEATURES = 1024, LOOP_ROUNDS = 200000 };

extern const attn_variant attn_fused;

static double tanhs_per_second(const tanh_loops *loops) {
  const double start = wall_seconds();
  loops->take(LOOP_ROUNDS);
  return loops->tanhs_per_round * LOOP_ROUNDS / (wall_seconds() - start);
}

/* That of an instruction set; NULL: there is none, or this processor does not have it. */
static const tanh_loops *find(const tanh_loops *loops, size_t count, const char *isa) {
  for (size_t n = 0; n < count; n++)
    if (strcmp(loops[n].name + strlen("tanh "), isa) == 0) return &loops[n];
  return NULL;
}

int main(int count, char **argument) {
  const char *end = "";
  int64_t T = 0, D = 0;
  if (count != 4 || !text_integer(argument[1], 1, MOST_KEYS, &end, &T) || *end ||
      !text_integer(argument[2], 1, MOST_FEATURES, &end, &D) || *end) {
    fprintf(stderr, "usage: additive_share T D ISA, T from 1 to %d and D to %d\n", MOST_KEYS, MOST_FEATURES);
    return 2;
  }
  tanh_loops available[PEAK_MAX_LOOPS];
  const tanh_loops *loops = find(available, tanh_loops_available(available), argument[3]);
  if (!loops) return 1;
  attn_problem problem = {.features = ATTN_ADDITIVE, .batch = 1, .query_heads = 1, .kv_heads = 1};
  problem.scale = 1 / sqrt((double)D);
  problem.query_length = problem.key_length = T;
  problem.head_dim = problem.value_dim = D;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.key = problem.value = problem.output = attn_packed(ATTN_FLOAT32, 1, T, D);
  problem.additive = (attn_layout){ATTN_FLOAT32, 0, D, 0};
  const size_t size = (size_t)(T * D);
  float *query = numbers(size), *key = numbers(size), *value = numbers(size), *output = numbers(size),
        *weights = numbers((size_t)D);
  problem.additive_data = weights;
  const run_setup setup = {.variant = &attn_fused, .threads = 1, .isa = argument[3]};
  float *workspace = numbers(runner_workspace_bytes(&setup, &problem) / sizeof(float));
  const attn_tensors tensors = {.query = query, .key = key, .value = value, .output = output};
  const attn_call call = runner_call(&setup, &problem, &tensors, workspace);
  const double tanhs = (double)(T * T * D);
  double shares[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    const double peak = tanhs_per_second(loops), start = wall_seconds();
    runner_invoke(&call);
    shares[r] = tanhs / (wall_seconds() - start) / peak;
  }
  const interval share = statistics_median_interval(shares, ROUNDS, 0.95);
  printf("%.3f [%.3f, %.3f]\n", share.estimate, share.low, share.high);
  float *const all[] = {query, key, value, output, weights, workspace};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
  return 0;
}
