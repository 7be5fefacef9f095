/* See small_bench.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "small_bench.h"
#include "variants/elements.h"

void small_bench_solve(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  const attn_type type = p->query.type;
  float output[64];
  assert_true(p->value_dim <= 64);
  for (int64_t row = 0; row < p->query_heads * p->query_length; row++) {
    const int64_t head = row / p->query_length;
    float sum = 0;
    memset(output, 0, sizeof output);
    for (int64_t j = 0; j < p->key_length; j++) {
      const int64_t key = head * p->key_length + j;
      float score = 0;
      for (int64_t d = 0; d < p->head_dim; d++)
        score +=
            attn_load(t->query, type, row * p->head_dim + d) * attn_load(t->key, type, key * p->head_dim + d);
      const float weight = expf(score * (float)p->scale);
      sum += weight;
      for (int64_t d = 0; d < p->value_dim; d++)
        output[d] += weight * attn_load(t->value, type, key * p->value_dim + d);
    }
    for (int64_t d = 0; d < p->value_dim; d++)
      attn_store(t->output, p->output.type, row * p->value_dim + d, output[d] / sum);
  }
}

const bench_options small_bench_options = {.threads = 1,
                                           .isa = "portable",
                                           .min_time = 1e-4,
                                           .min_warmup_time = 1e-4,
                                           .repetitions = 5,
                                           .precision = 0.01,
                                           .point_limit = 10,
                                           .point_budget = 0.05,
                                           .random_interleaving = true,
                                           .seed = 1,
                                           .quiet = true};

size_t small_bench_add(bench_point *points, size_t count, const attn_variant *variant, int lengths) {
  for (int n = 0; n < lengths; n++) {
    bench_point *point = &points[count++];
    *point = (bench_point){.variant = variant, .workload = workload_default()};
    point->workload.query_heads = point->workload.kv_heads = 1;
    point->workload.head_dim = point->workload.value_dim = 4;
    point->workload.query_length = point->workload.key_length = 32 << n;
  }
  return count;
}

void small_bench_run(const bench_point *points, size_t count, const bench_options *options, report *report) {
  char why[256] = "";
  if (!bench_run(points, count, options, report, why, sizeof why)) fail_msg("nothing was measured: %s", why);
}
