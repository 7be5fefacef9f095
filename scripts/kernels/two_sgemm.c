/* How much of blas' time its two products take alone: runs the variant and the bare sgemm calls of its
 * shapes, whole heads, in turn and prints the median of their ratio with its 95 % interval.
 * Usage: two_sgemm T D */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/statistics.h"
#include "base/text.h"
#include "base/timer.h"
#include "run/runner.h"
#include "numbers.h"

enum { ROUNDS = 41, MOST_KEYS = 16384, MOST_FEATURES = 1024 };

extern const attn_variant attn_blas;

static void sgemm(CBLAS_TRANSPOSE transposed, int rows, int columns, int depth, float factor, const float *a,
                  const float *b, int b_pitch, float *c) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, transposed, rows, columns, depth, factor, a, depth, b, b_pitch, 0,
              c, columns);
}

int main(int count, char **argument) {
  const char *end = "";
  int64_t length = 0, width = 0;
  if (count != 3 || !text_integer(argument[1], 1, MOST_KEYS, &end, &length) || *end ||
      !text_integer(argument[2], 1, MOST_FEATURES, &end, &width) || *end) {
    fprintf(stderr, "usage: two_sgemm T D, T from 1 to %d and D to %d\n", MOST_KEYS, MOST_FEATURES);
    return 2;
  }
  const int T = (int)length, D = (int)width;
  attn_problem problem = {.batch = 1, .query_heads = 1, .kv_heads = 1, .scale = 1 / sqrt(D)};
  problem.query_length = problem.key_length = T;
  problem.head_dim = problem.value_dim = D;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.key = problem.value = problem.output = attn_packed(ATTN_FLOAT32, 1, T, D);
  const size_t size = (size_t)T * (size_t)D;
  float *query = numbers(size), *key = numbers(size), *value = numbers(size), *output = numbers(size);
  const run_setup setup = {.variant = &attn_blas, .threads = 1};
  float *workspace =
      numbers(runner_workspace_bytes(&setup, &problem) / sizeof(float) + (size_t)T * (size_t)T);
  const attn_tensors tensors = {.query = query, .key = key, .value = value, .output = output};
  const attn_call call = runner_call(&setup, &problem, &tensors, workspace);
  double shares[ROUNDS];
  openblas_set_num_threads(1);
  for (int r = 0; r < ROUNDS; r++) {
    const double start = wall_seconds();
    runner_invoke(&call);
    const double middle = wall_seconds();
    sgemm(CblasTrans, T, T, D, (float)problem.scale, query, key, D, workspace);
    sgemm(CblasNoTrans, T, D, T, 1, workspace, value, D, output);
    shares[r] = (wall_seconds() - middle) / (middle - start);
  }
  const interval share = statistics_median_interval(shares, ROUNDS, 0.95);
  printf("%.3f [%.3f, %.3f]\n", share.estimate, share.low, share.high);
  float *const all[] = {query, key, value, output, workspace};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) free(all[n]);
  return 0;
}
