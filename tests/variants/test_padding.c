/* A query that is padding, from which many hide all keys by the lowest number there is, has no finite bound of its gradients: its
 * log-sum-exp is that number too. They are numbers, and spoil none that are summed with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "variants/tile/tile.h"
#include "run_once.h"

extern const attn_variant attn_fused_backward, attn_naive_backward;

enum { LENGTH = 70, PADDING = 33 };

typedef struct sequence {
  float query[LENGTH], key[LENGTH], value[LENGTH], output[LENGTH], lse[LENGTH], bias[LENGTH * LENGTH];
  float output_grad[LENGTH], query_grad[LENGTH], key_grad[LENGTH], value_grad[LENGTH];
  float bias_grad[LENGTH * LENGTH];
} sequence;

static void fill(sequence *of) {
  for (int n = 0; n < LENGTH * LENGTH; n++) of->bias[n] = n / LENGTH == PADDING ? -FLT_MAX : 0;
  for (int n = 0; n < LENGTH; n++) {
    of->query[n] = of->key[n] = of->value[n] = of->output[n] = of->output_grad[n] = 1;
    of->lse[n] = 1 + logf(LENGTH);
  }
  of->lse[PADDING] = -FLT_MAX;
}

static void hold(const attn_variant *variant, const char *isa) {
  static sequence of;
  fill(&of);
  attn_problem problem = {.function = ATTN_SOFTMAX_BACKWARD,
                          .batch = 1,
                          .query_heads = 1,
                          .kv_heads = 1,
                          .query_length = LENGTH,
                          .key_length = LENGTH,
                          .head_dim = 1,
                          .value_dim = 1,
                          .scale = 1,
                          .left = ATTN_UNLIMITED,
                          .right = ATTN_UNLIMITED,
                          .output_grad_data = of.output_grad,
                          .query_grad_data = of.query_grad,
                          .key_grad_data = of.key_grad,
                          .value_grad_data = of.value_grad,
                          .bias_grad_data = of.bias_grad};
  problem.query = problem.key = problem.value = problem.output = attn_packed(ATTN_FLOAT32, 1, LENGTH, 1);
  problem.output_grad = problem.query_grad = problem.key_grad = problem.value_grad = problem.query;
  problem.bias = problem.bias_grad = attn_packed(ATTN_FLOAT32, 1, LENGTH, LENGTH);
  problem.lse = attn_packed(ATTN_FLOAT32, 1, LENGTH, 1);
  run_once(variant, isa, &problem,
           (attn_tensors){.query = of.query,
                          .key = of.key,
                          .value = of.value,
                          .bias = of.bias,
                          .output = of.output,
                          .lse = of.lse});
  for (int n = 0; n < LENGTH; n++)
    if (!isfinite(of.query_grad[n]) || !isfinite(of.key_grad[n]) || !isfinite(of.value_grad[n]))
      fail_msg("%s with %s: gradients of position %d are %g, %g, %g", variant->name, isa, n,
               (double)of.query_grad[n], (double)of.key_grad[n], (double)of.value_grad[n]);
}

static void a_query_that_is_padding_spoils_no_gradient(void **state) {
  (void)state;
  hold(&attn_naive_backward, "portable");
  for (const char *const *isa = tile_instruction_sets(); *isa; isa++) hold(&attn_fused_backward, *isa);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_query_that_is_padding_spoils_no_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
