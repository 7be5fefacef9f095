/* A query whose normaliser is 0 has no finite gradients of values to give: those that it sees say so, in its tile and before it,
 * and those that it does not see know nothing of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "variants/tile/tile.h"
#include "run_once.h"

extern const attn_variant attn_linear_backward, attn_naive_linear_backward;

enum { LENGTH = 150, VALUE_DIM = 5, WITHOUT_FEATURE = 77 };

static void run(const attn_variant *variant, const char *isa, const float *query, float *value_grad) {
  static float ones[LENGTH * VALUE_DIM], key[LENGTH], query_grad[LENGTH], key_grad[LENGTH];
  for (int n = 0; n < LENGTH * VALUE_DIM; n++) ones[n] = 1;
  for (int j = 0; j < LENGTH; j++) {
    key[j] = 1;
    query_grad[j] = key_grad[j] = 0;
  }
  attn_problem problem = {.function = ATTN_LINEAR_BACKWARD,
                          .batch = 1,
                          .query_heads = 1,
                          .kv_heads = 1,
                          .query_length = LENGTH,
                          .key_length = LENGTH,
                          .head_dim = 1,
                          .value_dim = VALUE_DIM,
                          .scale = 1,
                          .left = ATTN_UNLIMITED,
                          .feature_map = ATTN_RELU,
                          .output_grad_data = ones,
                          .query_grad_data = query_grad,
                          .key_grad_data = key_grad,
                          .value_grad_data = value_grad};
  problem.query = problem.key = problem.query_grad = problem.key_grad =
      attn_packed(ATTN_FLOAT32, 1, LENGTH, 1);
  problem.value = problem.output = problem.output_grad = problem.value_grad =
      attn_packed(ATTN_FLOAT32, 1, LENGTH, VALUE_DIM);
  run_once(variant, isa, &problem, (attn_tensors){.query = query, .key = key, .value = ones, .output = ones});
}

static void hold(const attn_variant *variant, const char *isa) {
  float query[LENGTH], value_grad[LENGTH * VALUE_DIM];
  for (int i = 0; i < LENGTH; i++) query[i] = i == WITHOUT_FEATURE ? -1 : 1;
  run(variant, isa, query, value_grad);
  for (int n = 0; n < LENGTH * VALUE_DIM; n++)
    if (isfinite(value_grad[n]) == (n / VALUE_DIM <= WITHOUT_FEATURE))
      fail_msg("%s with %s: value_grad[%d, %d] is %g", variant->name, isa, n / VALUE_DIM, n % VALUE_DIM,
               (double)value_grad[n]);
}

static void a_normaliser_of_0_reaches_the_values_that_are_seen_and_no_other(void **state) {
  (void)state;
  hold(&attn_naive_linear_backward, "portable");
  for (const char *const *isa = tile_instruction_sets(); *isa; isa++) hold(&attn_linear_backward, *isa);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_normaliser_of_0_reaches_the_values_that_are_seen_and_no_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
