/* One row of four keys: one that sees nothing, NaN and infinities, as the headers of the reference say, and bounds
 * where they are at their least or greatest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "tests/reference/row_arrays.h"

enum { KEYS = 4, MOST_DIM = 9 };

typedef struct arena {
  attn_problem problem;
  attn_tensors tensors;
  float query[MOST_DIM], key[KEYS * MOST_DIM], value[KEYS], bias[KEYS];
  uint8_t mask[KEYS], keep[KEYS];
  row_arrays arrays;
  reference_row row;
} arena;

static arena a;

static void fill(float *data, int64_t count, uint64_t stream) {
  for (int64_t n = 0; n < count; n++)
    data[n] = (float)((double)(random_bits(stream, (uint64_t)n) >> 11) * 0x1p-52 - 1);
}

static void pack(void) {
  attn_problem *p = &a.problem;
  p->query = attn_packed(ATTN_FLOAT32, 1, 1, p->head_dim);
  p->key = attn_packed(ATTN_FLOAT32, 1, KEYS, p->head_dim);
  p->value = attn_packed(ATTN_FLOAT32, 1, KEYS, 1);
  p->mask = p->bias = attn_packed(ATTN_ABSENT, 1, 1, KEYS);
  a.tensors =
      (attn_tensors){.query = a.query, .key = a.key, .value = a.value, .mask = a.mask, .bias = a.bias};
  a.row = row_in(&a.arrays);
}

/* One row of four keys, D = Dv = 1. */
static void small_row(attn_function function) {
  a.problem = (attn_problem){.function = function,
                             .batch = 1,
                             .query_heads = 1,
                             .kv_heads = 1,
                             .query_length = 1,
                             .key_length = 4,
                             .head_dim = 1,
                             .value_dim = 1,
                             .scale = 1,
                             .left = ATTN_UNLIMITED,
                             .right = ATTN_UNLIMITED};
  pack();
  fill(a.query, 1, 1);
  fill(a.key, KEYS, 2);
  fill(a.value, KEYS, 3);
  memset(a.bias, 0, sizeof a.bias);
  memset(a.mask, 1, sizeof a.mask);
}

static void solve_small_row(void) { reference_solve(&a.problem, &a.tensors, 0, 0, 0, &a.row); }

static void a_row_that_sees_no_key_is_zero(void **unused) {
  (void)unused;
  const attn_function functions[] = {ATTN_SOFTMAX, ATTN_LINEAR};
  for (int n = 0; n < 2; n++) {
    small_row(functions[n]);
    a.problem.offset = -1;
    a.problem.right = 0;
    a.value[0] = NAN;
    solve_small_row();
    assert_true(a.row.output[0] == 0 && a.row.output_bound[0] == 0);
    if (functions[n] == ATTN_SOFTMAX) assert_true(a.row.lse == -INFINITY);
  }
}

static void a_row_whose_bias_is_all_minus_infinity_is_zero(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.problem.bias.type = ATTN_FLOAT32;
  for (int j = 0; j < 4; j++) a.bias[j] = -INFINITY;
  solve_small_row();
  assert_true(a.row.output[0] == 0 && a.row.lse == -INFINITY && a.row.weights[0] == 0);
}

/* As a query that is padding often has it: whatever its scores are, they are lost in it. */
static void a_row_whose_bias_is_all_the_lowest_number_is_the_mean(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.problem.bias.type = ATTN_FLOAT32;
  double mean = 0;
  for (int j = 0; j < 4; j++) a.bias[j] = -FLT_MAX, mean += (double)a.value[j] / 4;
  solve_small_row();
  assert_true(fabs(a.row.output[0] - mean) < 1e-12 && a.row.output_bound[0] < 1e-5 &&
              a.row.lse_bound == INFINITY);
  assert_true(reference_error_share(0, a.row.output[0], a.row.output_bound[0]) > 100);
  assert_true(reference_error_share(NAN, a.row.output[0], a.row.output_bound[0]) == INFINITY);
  a.bias[3] = -INFINITY; /* which hides its key also here */
  solve_small_row();
  assert_true(a.row.weights[3] == 0 && a.row.output_bound[0] < 1e-5);
  a.bias[3] = -0x1.9p127f; /* rounding decides */
  solve_small_row();
  assert_true(a.row.output_bound[0] == INFINITY);
  for (int j = 0; j < 4; j++) a.bias[j] = -FLT_MAX;
  const float query = a.query[0], key = a.key[0];
  a.query[0] = 0x1p60F, a.key[0] = 0x1p40F; /* a score that is not lost in it */
  solve_small_row();
  assert_true(a.row.output_bound[0] > 1);
  a.query[0] = query, a.key[0] = key;
  static float sink = -FLT_MAX;
  a.problem.sink = attn_packed(ATTN_FLOAT32, 1, 1, 1), a.tensors.sink = &sink;
  solve_small_row();
  assert_true(a.row.output_bound[0] > 1);
  a.problem.sink.type = ATTN_ABSENT;
  for (int j = 0; j < 4; j++)
    a.bias[j] = -0x1p64F; /* times log2(e) it is finite, and rounds beside a score or not */
  solve_small_row();
  assert_true(a.row.output_bound[0] > 1);
  for (int j = 0; j < 4; j++) a.bias[j] = -1e9f; /* some scores are left */
  solve_small_row();
  assert_true(a.row.output_bound[0] > 1);
}

static void a_row_with_no_score_above_minus_infinity_may_be_nan(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.query[0] = -1;
  for (int j = 0; j < 4; j++) a.key[j] = INFINITY;
  solve_small_row();
  assert_true(a.row.output[0] == 0 && a.row.lse == -INFINITY && signbit(a.row.output_bound[0]) &&
              signbit(a.row.lse_bound));
  assert_true(a.row.output_bound[0] == 0 && a.row.lse_bound == 0 && a.row.weights_bound == 0);
  a.problem.bias.type = ATTN_FLOAT32;
  for (int j = 0; j < 4; j++) a.bias[j] = -INFINITY;
  solve_small_row();
  assert_true(a.row.output[0] == 0 && a.row.lse == -INFINITY && a.row.output_bound[0] == 0 &&
              a.row.lse_bound == 0);
  assert_true(!signbit(a.row.output_bound[0]) && !signbit(a.row.lse_bound));
}

/* And where it counts, its weight of zero makes no more of a NaN than a NaN. */
static void a_key_of_score_minus_infinity_may_be_left_out(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.query[0] = -1;
  a.key[2] = INFINITY;
  a.value[2] = NAN;
  solve_small_row();
  assert_true(isfinite(a.row.output[0]) && a.row.weights[2] == 0 && signbit(a.row.output_bound[0]) &&
              isfinite(a.row.output_bound[0]));
  assert_true(reference_error_share(NAN, a.row.output[0], a.row.output_bound[0]) == 0);
  assert_true(reference_error_share(a.row.output[0] + 1, a.row.output[0], a.row.output_bound[0]) > 1);
  assert_false(signbit(a.row.lse_bound));
}

static void hidden_keys_hide_their_nan(void **unused) {
  (void)unused;
  const attn_function functions[] = {ATTN_SOFTMAX, ATTN_LINEAR};
  for (int n = 0; n < 2; n++) {
    small_row(functions[n]);
    a.problem.right = 1; /* keys 0 and 1 */
    solve_small_row();
    const double before = a.row.output[0];
    a.key[2] = a.value[2] = NAN;
    a.key[3] = a.value[3] = INFINITY;
    solve_small_row();
    assert_true(isfinite(before) && a.row.output[0] == before);
    a.problem.right = 2;
    solve_small_row();
    assert_true(isnan(a.row.output[0]) && a.row.output_bound[0] == 0);
  }
}

static void a_score_of_plus_infinity_makes_the_row_nan(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.problem.bias.type = ATTN_FLOAT32;
  a.bias[1] = INFINITY;
  solve_small_row();
  assert_true(isnan(a.row.output[0]) && isnan(a.row.lse));
}

static void scores_beyond_float32_leave_no_bound_but_hide_nothing(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  a.problem.right = 2; /* keys 0 to 2 */
  a.query[0] = a.key[1] = FLT_MAX;
  solve_small_row();
  assert_true(isinf(a.row.weights_bound) && isinf(a.row.output_bound[0]));
  assert_true(a.row.weights[0] > 0 && a.row.weights[2] > 0 && a.row.weights[3] == 0);
}

/* Of a small row with dropout. */
static void keep_all(double dropout_p) {
  a.problem.keep = attn_packed(ATTN_UINT8, 1, 1, 4);
  a.problem.keep_data = a.keep;
  a.problem.dropout_p = dropout_p;
  memset(a.keep, 1, 4);
}

static void a_row_that_sees_no_key_has_the_log_sum_exp_of_its_sink(void **unused) {
  (void)unused;
  static float sink = 2;
  small_row(ATTN_SOFTMAX);
  a.problem.bias.type = ATTN_FLOAT32;
  for (int j = 0; j < 4; j++) a.bias[j] = -INFINITY;
  a.problem.sink = attn_packed(ATTN_FLOAT32, 1, 1, 1);
  a.tensors.sink = &sink;
  solve_small_row();
  assert_true(a.row.lse == 2 && a.row.lse_bound < 1e-5 && a.row.lse_bound_probabilistic < 1e-5);
}

/* Beside such scores the logarithm of a sum vanishes. */
static void weights_of_large_scores_sum_to_one_with_dropout_and_sink(void **unused) {
  (void)unused;
  static float sink = -0x1p120F;
  const double kept = 1 / 0.75;
  small_row(ATTN_SOFTMAX);
  a.query[0] = -0x1p60F;
  for (int j = 0; j < 4; j++) a.key[j] = j < 2 ? 0x1p60F : 0x1p61F;
  keep_all(0.25);
  a.keep[1] = 0;
  solve_small_row();
  assert_true(a.row.weights[0] == kept / 2 && a.row.weights[1] == 0 && a.row.weights[2] == 0);
  assert_true(a.row.weights_bound > 0 && a.row.weights_bound < 1e-5);
  a.problem.sink = attn_packed(ATTN_FLOAT32, 1, 1, 1);
  a.tensors.sink = &sink;
  solve_small_row();
  assert_true(fabs(a.row.weights[0] - kept / 3) < 1e-15 && a.row.weights_bound > 0);
}

static void what_dropout_leaves_may_have_been_flushed_before(void **unused) {
  (void)unused;
  small_row(ATTN_SOFTMAX);
  solve_small_row();
  assert_true(a.row.weights_vanish == FLT_MIN);
  keep_all(0.75);
  solve_small_row();
  assert_true(a.row.weights_vanish == 4 * FLT_MIN);
}

/* A unit for bfloat16 flushes sums of what a key weighs by its largest weight, that of a key which is dropped or of the sink. */
static void sums_may_be_flushed_that_are_small_beside_a_dropped_key_or_a_sink(void **unused) {
  (void)unused;
  static const float keys[] = {0, 30.5F, 0.5F, 0.75F};
  static float sink = 40;
  small_row(ATTN_SOFTMAX);
  a.problem.value.type = a.problem.output.type = ATTN_BFLOAT16;
  a.query[0] = 1;
  memcpy(a.key, keys, sizeof keys);
  for (int j = 0; j < 4; j++) a.value[j] = 0x1p-100F;
  keep_all(0.75);
  a.keep[1] = 0;
  solve_small_row();
  assert_true(a.row.output[0] > 0 && a.row.output[0] < 0x1p-126);
  assert_true(a.row.output_bound[0] > 3 * 4 * 0x1p-126 && a.row.output_bound[0] < 0x1p-120);
  a.problem.keep.type = ATTN_ABSENT;
  a.problem.sink = attn_packed(ATTN_FLOAT32, 1, 1, 1);
  a.tensors.sink = &sink;
  a.key[1] = 0;
  solve_small_row();
  assert_true(a.row.output[0] > 0 && a.row.output[0] < 0x1p-126);
  assert_true(a.row.output_bound[0] > 4 * 0x1p-126 && a.row.output_bound[0] < 0x1p-120);
}

/* Three equal products one after the other; a query's feature that a unit flushes, beside a large key's. Of two
 * features, products that sum to a power of two, which one alone would be. */
static void draw_small_row_of(int64_t D, attn_type type) {
  small_row(ATTN_SOFTMAX);
  a.problem.head_dim = D;
  pack();
  a.problem.key.type = type;
  fill(a.query, D, 1);
  fill(a.key, KEYS * D, 2);
  for (int64_t d = 1; d < D; d++)
    if (d % 3 != 0) {
      a.query[d] = a.query[d - 1];
      for (int64_t j = 0; j < 4; j++) a.key[j * D + d] = a.key[j * D + d - 1];
    }
  a.query[D / 2] = 0x1p-130F;
  a.key[D / 2] = 0x1p100F;
  for (int64_t d = 0; D == 2 && d < 4 * D; d++) a.query[d] = a.key[d] = 1;
}

/* Scores of features that are not turned are bounded in a way of their own, which is quicker. */
static void no_rotation_and_one_of_no_features_have_the_same_bounds(void **unused) {
  (void)unused;
  for (int64_t D = 1; D <= 9; D++)
    for (int narrow = 0; narrow < 2; narrow++) {
      double plain[3];
      draw_small_row_of(D, narrow ? ATTN_BFLOAT16 : ATTN_FLOAT32);
      solve_small_row();
      plain[0] = a.row.output_bound[0], plain[1] = a.row.output_bound_probabilistic[0],
      plain[2] = a.row.output_deviation[0];
      a.problem.rope_cos = a.problem.rope_sin = attn_packed(ATTN_FLOAT32, 1, 4, 1);
      solve_small_row();
      const double general[] = {a.row.output_bound[0], a.row.output_bound_probabilistic[0],
                                a.row.output_deviation[0]};
      for (int n = 0; n < 3; n++)
        if (!(plain[n] > 0 && fabs(plain[n] - general[n]) <= 1e-13 * general[n]))
          fail_msg("D %d, type %d, form %d: %.17g and %.17g", (int)D, narrow, n, plain[n], general[n]);
    }
}

static void shares_tell_nan_infinity_and_error_apart(void **unused) {
  (void)unused;
  assert_true(reference_error_share(NAN, NAN, 0) == 0);
  assert_true(reference_error_share(1, NAN, 0) == INFINITY);
  assert_true(reference_error_share(NAN, 1, 1) == INFINITY);
  assert_true(reference_error_share(INFINITY, 1, 1) == INFINITY);
  assert_true(reference_error_share(INFINITY, INFINITY, 0) == 0);
  assert_true(reference_error_share(NAN, INFINITY, 0) == 0);
  assert_true(reference_error_share(-INFINITY, INFINITY, 0) == INFINITY);
  assert_true(reference_error_share(1, INFINITY, 0) == INFINITY);
  assert_true(reference_error_share(NAN, 1, INFINITY) == 0);
  assert_true(reference_error_share(NAN, 0, -0.0) == 0);
  assert_true(reference_error_share(0, 0, -0.0) == 0);
  assert_true(reference_error_share(-INFINITY, -INFINITY, -0.0) == 0);
  assert_true(reference_error_share(1, 0, -0.0) == INFINITY);
  assert_true(reference_error_share(NAN, 1, -2) == 0);
  assert_true(reference_error_share(1.5, 1, -2) == 0.25);
  assert_true(reference_error_share(INFINITY, 1, -2) == INFINITY);
  assert_true(reference_error_share(2, 2, 0) == 0);
  assert_true(reference_error_share(2, 1, 0) == INFINITY);
  assert_true(reference_error_share(1.5, 1, 2) == 0.25);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_that_sees_no_key_is_zero),
      cmocka_unit_test(a_row_whose_bias_is_all_minus_infinity_is_zero),
      cmocka_unit_test(a_row_whose_bias_is_all_the_lowest_number_is_the_mean),
      cmocka_unit_test(a_row_with_no_score_above_minus_infinity_may_be_nan),
      cmocka_unit_test(a_key_of_score_minus_infinity_may_be_left_out),
      cmocka_unit_test(hidden_keys_hide_their_nan),
      cmocka_unit_test(a_score_of_plus_infinity_makes_the_row_nan),
      cmocka_unit_test(scores_beyond_float32_leave_no_bound_but_hide_nothing),
      cmocka_unit_test(a_row_that_sees_no_key_has_the_log_sum_exp_of_its_sink),
      cmocka_unit_test(weights_of_large_scores_sum_to_one_with_dropout_and_sink),
      cmocka_unit_test(what_dropout_leaves_may_have_been_flushed_before),
      cmocka_unit_test(sums_may_be_flushed_that_are_small_beside_a_dropped_key_or_a_sink),
      cmocka_unit_test(no_rotation_and_one_of_no_features_have_the_same_bounds),
      cmocka_unit_test(shares_tell_nan_infinity_and_error_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
