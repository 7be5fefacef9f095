/* check_problem: what is sound passes, what is not is refused with a sentence that has the numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "problem/check.h"
#include "problem/features.h"
#include "problem/workload.h"

static attn_problem sound(void) {
  const workload w = workload_default();
  return workload_problem(&w);
}

/* With the set of features that its other fields make. */
static void refuses(attn_problem *problem, const char *words) {
  char reason[256] = "";
  problem->features = features_of(problem);
  assert_false(check_problem(problem, reason, sizeof reason));
  if (!strstr(reason, words)) fail_msg("'%s' is not in: %s", words, reason);
}

static void accepts(attn_problem *problem) {
  char reason[256] = "";
  problem->features = features_of(problem);
  if (!check_problem(problem, reason, sizeof reason)) fail_msg("refused: %s", reason);
}

static void empty_and_broadcast_problems_are_sound(void **state) {
  (void)state;
  attn_problem p = sound();
  accepts(&p);
  p.query_length = 0;
  accepts(&p);
  p = sound();
  p.key_length = 0;
  accepts(&p);
  p = sound();
  p.batch = 0;
  accepts(&p);
  p = sound();
  p.right = 0;
  p.offset = -5000; /* sees nothing anywhere */
  accepts(&p);
  p = sound();
  p.mask = (attn_layout){ATTN_UINT8, 0, 0, 0};
  accepts(&p);
}

static void sizes_that_make_no_sense_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.query_heads = 6;
  refuses(&p, "query_heads 6 is not a multiple of kv_heads 4");
  p = sound();
  p.batch = -1;
  refuses(&p, "batch is -1");
  p = sound();
  p.head_dim = 0;
  refuses(&p, "head_dim is 0");
  p = sound();
  p.kv_heads = 0;
  refuses(&p, "kv_heads is 0: it must be 1 to");
  p = sound();
  p.key_length = INT64_MAX;
  refuses(&p, "key_length is 9223372036854775807");
}

static void numbers_that_make_no_sense_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.scale = NAN;
  refuses(&p, "scale is");
  p = sound();
  p.softcap = -1;
  refuses(&p, "softcap is -1");
  p = sound();
  p.epsilon = INFINITY;
  refuses(&p, "epsilon is inf");
  p = sound();
  p.function = (attn_function)9;
  refuses(&p, "function is 9");
}

static void types_that_a_tensor_cannot_have_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.query.type = (attn_type)7;
  refuses(&p, "the type of query is 7: it must be float32 or bfloat16 or float16");
  p = sound();
  p.key.type = (attn_type)-1;
  refuses(&p, "the type of key is -1");
  p = sound();
  p.value.type = ATTN_ABSENT;
  refuses(&p, "the type of value is 0: it must be float32");
  p = sound();
  p.output.type = ATTN_UINT8;
  refuses(&p, "the type of output is 4");
  p = sound();
  p.mask.type = ATTN_FLOAT32;
  refuses(&p, "the type of mask is 1: it must be uint8");
  p = sound();
  p.lse.type = ATTN_BFLOAT16;
  refuses(&p, "the type of lse is 2: it must be float32");
  p = sound();
  p.query.type = p.key.type = p.value.type = p.output.type = ATTN_BFLOAT16;
  accepts(&p);
}

static void a_layer_has_its_weights_and_no_heads_of_its_own(void **state) {
  (void)state;
  workload w = workload_default();
  w.function = ATTN_LAYER;
  w.model_dim = 24;
  const attn_problem layer = workload_problem(&w);
  attn_problem p = layer;
  accepts(&p);
  p.value = p.query;
  refuses(&p, "value is given: a layer projects its own");
  p = layer;
  p.layer.w_v.type = ATTN_ABSENT;
  refuses(&p, "the type of w_v is 0: it must be float32");
  p = layer;
  p.layer.b_q = p.layer.w_q;
  refuses(&p, "b_k is not given, and b_q is given: projections have all four biases or none");
  p = layer;
  p.key_length = 7;
  refuses(&p, "key_length 7 is not query_length 1024 without a memory");
  p.key = p.query;
  accepts(&p);
  p = layer;
  p.layer.model_dim = 0;
  refuses(&p, "model_dim is 0: it must be 1");
  p = sound();
  p.layer.model_dim = 8;
  refuses(&p, "model_dim is 8: only a layer has one");
  p = sound();
  p.layer.w_o = layer.layer.w_o;
  refuses(&p, "w_o is given: only a layer has it");
}

static void a_set_of_features_that_is_not_the_problems_own_is_refused(void **state) {
  (void)state;
  char reason[256] = "";
  attn_problem p = sound();
  p.right = 0;
  assert_false(check_problem(&p, reason, sizeof reason));
  assert_non_null(strstr(reason, "features lacks a band, which the problem uses"));
  p = sound();
  p.features = ATTN_BIAS;
  assert_false(check_problem(&p, reason, sizeof reason));
  assert_non_null(strstr(reason, "features has a bias, which the problem does not use"));
}

static void bands_and_lengths_out_of_range_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.left = -1;
  refuses(&p, "left is -1");
  p = sound();
  p.right = ATTN_UNLIMITED - 1;
  refuses(&p, "or ATTN_UNLIMITED");
  p = sound();
  p.offset = INT64_MIN;
  refuses(&p, "offset is");
  const int64_t offsets[] = {INT64_MAX}, lengths[] = {1025};
  p = sound();
  p.offsets = offsets;
  refuses(&p, "offsets[0] is");
  p = sound();
  p.key_lengths = lengths;
  refuses(&p, "key_lengths[0] is 1025: it must be 0 to key_length 1024");
}

static void addresses_beyond_int64_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.key.head = INT64_MAX / 2;
  refuses(&p, "key of");
  p = sound();
  p.query.position = INT64_MIN;
  refuses(&p, "query of");
  p = sound(); /* every tensor is small, their scores are not */
  p.query_length = p.key_length = INT64_C(1) << 31;
  p.query = p.key = p.value = (attn_layout){ATTN_FLOAT32, 0, 0, 0};
  p.output = attn_packed(ATTN_FLOAT32, 4, p.query_length, 64);
  refuses(&p, "the scores of");
}

static void output_rows_that_overlap_are_refused(void **state) {
  (void)state;
  attn_problem p = sound();
  p.output.head = 0;
  refuses(&p, "output rows overlap");
  p = sound();
  p.output.position = 63;
  refuses(&p, "the position stride of 63 is less than the 64 elements within it");
  p = sound();
  p.lse.type = ATTN_FLOAT32;
  p.lse.position = 0;
  refuses(&p, "lse rows overlap");
  p = sound();
  p.output.batch = 0; /* one entry: never stepped over */
  accepts(&p);
  p.output = (attn_layout){ATTN_FLOAT32, INT64_C(4) * 64 * 1024, 64, INT64_C(4) * 64}; /* [B, T, H, D] */
  accepts(&p);
}

static void linear_attention_takes_only_its_own_parts(void **state) {
  (void)state;
  attn_problem p = sound();
  p.function = ATTN_LINEAR;
  accepts(&p);
  p.mask.type = ATTN_UINT8;
  refuses(&p, "no use for a mask");
  p.mask.type = ATTN_ABSENT;
  p.lse.type = ATTN_FLOAT32;
  refuses(&p, "no use for a log-sum-exp");
}

static void a_reason_is_cut_to_its_buffer(void **state) {
  (void)state;
  attn_problem p = sound();
  p.batch = -1;
  char reason[8] = "-------";
  assert_false(check_problem(&p, reason, 6));
  assert_string_equal(reason, "batch");
  assert_false(check_problem(&p, NULL, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(empty_and_broadcast_problems_are_sound),
      cmocka_unit_test(sizes_that_make_no_sense_are_refused),
      cmocka_unit_test(numbers_that_make_no_sense_are_refused),
      cmocka_unit_test(types_that_a_tensor_cannot_have_are_refused),
      cmocka_unit_test(a_layer_has_its_weights_and_no_heads_of_its_own),
      cmocka_unit_test(a_set_of_features_that_is_not_the_problems_own_is_refused),
      cmocka_unit_test(bands_and_lengths_out_of_range_are_refused),
      cmocka_unit_test(addresses_beyond_int64_are_refused),
      cmocka_unit_test(output_rows_that_overlap_are_refused),
      cmocka_unit_test(linear_attention_takes_only_its_own_parts),
      cmocka_unit_test(a_reason_is_cut_to_its_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
