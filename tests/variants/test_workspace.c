/* How large workspaces are: no room for a copy of what has an element for each pair, where growth as T is said; and enough for each part
 * of a rank's work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "variants/attention.h"
#include "variants/team/block.h"
#include "variants/tile/tile.h"

enum { HEADS = 2, DIM = 16, LENGTH = 1024 };

extern const attn_variant attn_fused_backward;

static attn_problem problem_of(attn_type type, int64_t heads, int64_t queries, int64_t keys, int64_t dim) {
  attn_problem problem = {.batch = 1,
                          .query_heads = heads,
                          .kv_heads = heads,
                          .query_length = queries,
                          .key_length = keys,
                          .head_dim = dim,
                          .value_dim = dim,
                          .scale = 1,
                          .left = ATTN_UNLIMITED,
                          .right = ATTN_UNLIMITED};
  problem.query = problem.output = attn_packed(type, heads, queries, dim);
  problem.key = problem.value = attn_packed(type, heads, keys, dim);
  return problem;
}

static attn_problem backward_problem(attn_type type) {
  attn_problem problem = problem_of(type, HEADS, LENGTH, LENGTH, DIM);
  problem.function = ATTN_SOFTMAX_BACKWARD;
  problem.output_grad = problem.query_grad = problem.key_grad = problem.value_grad = problem.query;
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

/* A band and lengths at which stripes of a key more, or with a key more to the left, begin to need more. */
static attn_problem striped_problem(attn_type type, int64_t left) {
  attn_problem problem = problem_of(type, 1, 400, 4095, 64);
  problem.left = left;
  problem.right = 0;
  problem.features = ATTN_BAND | ATTN_OFFSET;
  return problem;
}

static schedule_shape full_tiles(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

static size_t needed(const attn_call *call, const block_part *part) {
  attn_problem problem = *call->problem;
  const block_band band = block_band_of(&problem, problem.offset, part);
  problem.query_length = part->n;
  problem.key_length = part->m;
  problem.offset = band.offset, problem.left = band.left, problem.right = band.right;
  problem.features |= ATTN_LSE;
  problem.output = attn_packed(ATTN_FLOAT32, 1, part->n, problem.value_dim);
  problem.lse = attn_packed(ATTN_FLOAT32, 1, part->n, 1);
  attn_call inner = *call;
  inner.problem = &problem;
  inner.ranks = 1;
  return schedule_workspace_size(&inner, full_tiles);
}

static void stripes_have_room_at_any_offset(void **state) {
  (void)state;
  enum { RANKS = 2, LEFT = 864, ROOM = 1 << 26 };
  char *room = malloc(ROOM); /* of which nothing is touched */
  assert_non_null(room);
  for (int n = 0; n < RANKS * RANKS; n++)
    for (int parts = 1; parts <= 2; parts++) {
      const int rank = n % RANKS;
      attn_problem problem = striped_problem(parts == 1 ? ATTN_BFLOAT16 : ATTN_FLOAT16, RANKS * LEFT / parts);
      problem.offset = 2000 + n / RANKS;
      const attn_call call = {.size = sizeof call,
                              .problem = &problem,
                              .threads = 1,
                              .isa = "emulated_amx",
                              .ranks = RANKS,
                              .rank = rank};
      const attn_slice queries = attn_slice_of(ATTN_STRIPED, problem.query_length, rank, RANKS);
      block_memory memory = {.base = room};
      const block_scratch scratch = block_scratch_take(&memory, &call, &queries, ATTN_STRIPED);
      const size_t taken = (size_t)(room + memory.used - (char *)scratch.workspace);
      for (int other = 0; other < RANKS; other++) {
        const attn_slice keys = attn_slice_of(ATTN_STRIPED, problem.key_length, other, RANKS);
        const block_part part = block_part_of(&queries, 0, &keys, 0);
        assert_true(needed(&call, &part) <= taken);
      }
    }
  free(room);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stripes_have_room_at_any_offset),
      cmocka_unit_test(a_bias_of_any_type_takes_no_workspace_of_the_backward_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
