/* Keys in parts, each with a state of its own: what must survive when the parts are joined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "variants/attention.h"
#include "variants/tile/tile.h"

enum { HEADS = 2, KEYS = 8192, DIM = 16, MOST_QUERIES = 20 };

extern const attn_variant attn_fused;

static float query[HEADS * MOST_QUERIES * DIM], output[HEADS * MOST_QUERIES * DIM], lse[HEADS * MOST_QUERIES];
static float key[HEADS * KEYS * DIM], value[HEADS * KEYS * DIM];
static uint8_t shown[KEYS];

static attn_problem make_problem(int64_t queries) {
  attn_problem problem = {
      .batch = 1, .query_heads = HEADS, .kv_heads = HEADS, .scale = 1, .mask = {.type = ATTN_UINT8}};
  problem.query_length = queries;
  problem.key_length = KEYS;
  problem.head_dim = problem.value_dim = DIM;
  problem.left = problem.right = ATTN_UNLIMITED;
  problem.query = problem.output = attn_packed(ATTN_FLOAT32, HEADS, queries, DIM);
  problem.key = problem.value = attn_packed(ATTN_FLOAT32, HEADS, KEYS, DIM);
  problem.lse = attn_packed(ATTN_FLOAT32, HEADS, queries, 1);
  for (size_t n = 0; n < sizeof query / sizeof *query; n++) query[n] = 1;
  for (size_t n = 0; n < sizeof key / sizeof *key; n++) key[n] = value[n] = 0.5f;
  return problem;
}

static void solve(const attn_problem *problem, int threads, const char *isa) {
  attn_call call = {
      .size = sizeof call,
      .variant = &attn_fused,
      .problem = problem,
      .tensors = {.query = query, .key = key, .value = value, .mask = shown, .output = output, .lse = lse},
      .threads = threads,
      .isa = isa};
  call.workspace = aligned_alloc(64, attn_fused.workspace_size(&call) / 64 * 64 + 64);
  assert_non_null(call.workspace);
  memset(output, 7, sizeof output);
  attn_fused.run(&call);
  free(call.workspace);
}

/* Calls a check for few and for many query rows, each instruction set, a thread for all parts and two for some. */
static void with_each(void (*check)(const attn_problem *, int threads, const char *isa)) {
  static const int64_t queries[] = {1, MOST_QUERIES};
  for (size_t q = 0; q < sizeof queries / sizeof *queries; q++)
    for (const char *const *isa = tile_instruction_sets(); *isa; isa++)
      for (int threads = 1; threads <= 2; threads++) {
        const attn_problem problem = make_problem(queries[q]);
        check(&problem, threads, *isa);
      }
}

/* All scores of the row are NaN, so that its maximum stays -inf in the part that sees keys as in those that do not. */
static void check_nan(const attn_problem *problem, int threads, const char *isa) {
  for (int64_t seen = 0; seen < KEYS; seen += KEYS / 4) {
    memset(shown, 0, sizeof shown);
    shown[seen] = 1;
    query[0] = NAN;
    solve(problem, threads, isa);
    for (int e = 0; e < DIM; e++) assert_true(isnan(output[e]));
    assert_true(isnan(lse[0]));
    for (int64_t n = DIM; n < HEADS * problem->output.head; n++) assert_true(output[n] == 0.5f);
  }
}

static void a_row_of_nan_scores_is_nan_whichever_part_it_sees(void **state) {
  (void)state;
  with_each(check_nan);
}

static void check_nothing(const attn_problem *problem, int threads, const char *isa) {
  memset(shown, 0, sizeof shown);
  solve(problem, threads, isa);
  for (int64_t n = 0; n < HEADS * problem->output.head; n++) assert_true(output[n] == 0);
  for (int64_t n = 0; n < HEADS * problem->lse.head; n++) assert_true(lse[n] == -INFINITY);
}

static void a_row_that_sees_nothing_in_any_part_is_zero(void **state) {
  (void)state;
  with_each(check_nothing);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_of_nan_scores_is_nan_whichever_part_it_sees),
      cmocka_unit_test(a_row_that_sees_nothing_in_any_part_is_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
