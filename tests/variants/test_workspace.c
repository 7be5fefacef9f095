/* Workspace that is said to grow as T has no room for a copy of what has an element for each pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "variants/attention.h"
#include "variants/tile/tile.h"

enum { HEADS = 2, DIM = 16, LENGTH = 1024 };

extern const attn_variant attn_fused_backward;

static attn_problem backward_problem(attn_type type) {
  const attn_layout rows = attn_packed(type, HEADS, LENGTH, DIM);
  attn_problem problem = {.function = ATTN_SOFTMAX_BACKWARD,
                          .batch = 1,
                          .query_heads = HEADS,
                          .kv_heads = HEADS,
                          .query_length = LENGTH,
                          .key_length = LENGTH,
                          .head_dim = DIM,
                          .value_dim = DIM,
                          .scale = 1,
                          .left = ATTN_UNLIMITED,
                          .right = ATTN_UNLIMITED};
  problem.query = problem.key = problem.value = problem.output = rows;
  problem.output_grad = problem.query_grad = problem.key_grad = problem.value_grad = rows;
  problem.lse = attn_packed(ATTN_FLOAT32, HEADS, LENGTH, 1);
  return problem;
}

static size_t workspace_of(const attn_problem *problem, const char *isa) {
  const attn_call call = {
      .size = sizeof call, .variant = &attn_fused_backward, .problem = problem, .threads = 2, .isa = isa};
  return attn_fused_backward.workspace_size(&call);
}

static void a_bias_of_any_type_takes_no_workspace_of_the_backward_pass(void **state) {
  (void)state;
  for (const char *const *isa = tile_instruction_sets(); *isa; isa++)
    for (attn_type type = ATTN_FLOAT32; type <= ATTN_FLOAT16; type++) {
      const attn_problem without = backward_problem(type);
      attn_problem with = without;
      with.bias = with.bias_grad = attn_packed(type, HEADS, LENGTH, LENGTH);
      assert_int_equal(workspace_of(&with, *isa), workspace_of(&without, *isa));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_bias_of_any_type_takes_no_workspace_of_the_backward_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
