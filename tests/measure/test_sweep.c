/* Which points a run consists of: what a variant refuses is skipped and not the end, and a problem is one row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "measure/bench.h"
#include "measure/sweep.h"
#include "tests/measure/small_bench.h"

static const char *not_short(const attn_call *call) {
  return call->problem->key_length < 64     ? "needs T of 64 at least"
         : call->problem->key_length == 256 ? "not 256"
                                            : NULL;
}

static const attn_variant any = {
    .name = "any", .summary = "", .types = 1u << ATTN_FLOAT32, .time_exponent = 2, .run = small_bench_solve};
static const attn_variant some = {.name = "some",
                                  .summary = "",
                                  .types = 1u << ATTN_FLOAT32,
                                  .time_exponent = 2,
                                  .unsupported = not_short,
                                  .run = small_bench_solve};
static const attn_variant *variants[] = {&any, &some};
static const char *origins[] = {NULL, NULL};
static const variant_list list = {.variants = variants, .origins = origins, .count = 2};
static char some_name[] = "some";
static text_list only_some = {.items = (char *[]){some_name}, .count = 1}, nothing;

static sweep_request request_for(const text_list *wanted, const text_list *problems, const int64_t *lengths,
                                 size_t count) {
  return (sweep_request){.variants = wanted,
                         .problems = problems,
                         .presets = &nothing,
                         .heads = 1,
                         .head_dim = 4,
                         .window = SWEEP_UNSAID,
                         .lengths = lengths,
                         .length_count = count,
                         .seed = 1};
}

static void lengths_that_are_refused_are_skipped_and_counted(void **state) {
  (void)state;
  static const int64_t lengths[] = {32, 64, 128, 256, 512};
  const sweep_request request = request_for(&only_some, &nothing, lengths, 5);
  sweep sweep;
  report report;
  char why[512];
  if (!sweep_create(&sweep, &request, &list, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(sweep.count, 5);
  assert_string_equal(sweep.notes, "");
  small_bench_run(sweep.points, sweep.count, &small_bench_options, &report);
  assert_int_equal(report.result_count, 5);
  for (size_t n = 0; n < 5; n++) {
    const bool refused = lengths[n] == 32 || lengths[n] == 256;
    assert_int_equal(report.results[n].state, refused ? RESULT_SKIPPED : RESULT_MEASURED);
    if (refused) assert_string_equal(report.results[n].reason, n == 0 ? "needs T of 64 at least" : "not 256");
  }
  assert_int_equal(report.growth_count, 1);
  report_destroy(&report);
  sweep_destroy(&sweep);
}

/* A sweep of all variants shows every line of a showcase; who names the variant asks for the first. */
static void a_showcase_may_have_several_lines(void **state) {
  (void)state;
  static const attn_variant shown = {.name = "some",
                                     .summary = "",
                                     .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16,
                                     .showcase = "full bf16",
                                     .run = small_bench_solve};
  static const attn_variant *one[] = {&shown};
  static const variant_list of_one = {.variants = one, .origins = origins, .count = 1};
  static const int64_t lengths[] = {32, 64};
  const text_list *wanted[] = {&nothing, &only_some};
  for (int named = 0; named < 2; named++) {
    const sweep_request request = request_for(wanted[named], &nothing, lengths, 2);
    sweep sweep;
    char why[512], name[WORKLOAD_NAME_BYTES];
    if (!sweep_create(&sweep, &request, &of_one, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(sweep.count, named ? 2 : 4);
    sweep_point_name(&sweep.points[sweep.count - 1], name);
    assert_int_equal(strstr(name, "/bf16") != NULL, !named);
    sweep_destroy(&sweep);
  }
}

/* All of a line's parts count, and what the command line says goes first. */
static void a_showcase_is_what_is_measured(void **state) {
  (void)state;
  static const attn_variant shown = {.name = "some",
                                     .summary = "",
                                     .features = ATTN_BAND | ATTN_OFFSET | ATTN_PATTERN,
                                     .types = 1u << ATTN_FLOAT32,
                                     .showcase = "causal/Tq:1/Hkv:2/see:first:3",
                                     .run = small_bench_solve};
  static const attn_variant *one[] = {&shown};
  static const variant_list of_one = {.variants = one, .origins = origins, .count = 1};
  static const int64_t lengths[] = {32, 64};
  for (int said = 0; said < 2; said++) {
    sweep_request request = request_for(&only_some, &nothing, lengths, 2);
    sweep sweep;
    char why[512], name[WORKLOAD_NAME_BYTES];
    request.heads = 4;
    request.query_length = said ? 1024 : 0; /* as many as a problem has that says nothing */
    request.kv_heads = said ? 4 : 0;
    if (!sweep_create(&sweep, &request, &of_one, why, sizeof why)) fail_msg("%s", why);
    sweep_point_name(&sweep.points[1], name);
    assert_string_equal(name, said ? "some/causal_bottom_right/B:1/H:4/Hkv:4/D:4/Tq:1024/Tk:64/see:first:3"
                                   : "some/causal_bottom_right/B:1/H:4/Hkv:2/D:4/Tq:1/Tk:64/see:first:3");
    sweep_destroy(&sweep);
  }
}

/* At the longest of the lengths; what two curves share is one point. */
static void batches_and_head_dimensions_are_swept_beside_lengths(void **state) {
  (void)state;
  static const int64_t lengths[] = {64, 128, 512}, batches[] = {1, 2, 4}, head_dims[] = {2, 4, 8};
  static const char *const with_lengths[] = {"B:1/H:1/Hkv:1/D:4/T:64",  "B:1/H:1/Hkv:1/D:4/T:128",
                                             "B:1/H:1/Hkv:1/D:4/T:512", "B:2/H:1/Hkv:1/D:4/T:512",
                                             "B:4/H:1/Hkv:1/D:4/T:512", "B:1/H:1/Hkv:1/D:2/T:512",
                                             "B:1/H:1/Hkv:1/D:8/T:512"};
  static const char *const of_values[] = {"B:1/H:1/Hkv:1/D:2/Dv:4/T:1024", "B:1/H:1/Hkv:1/D:4/T:1024",
                                          "B:1/H:1/Hkv:1/D:8/Dv:4/T:1024"};
  for (int alone = 0; alone < 2; alone++) {
    sweep_request request = request_for(&only_some, &nothing, lengths, alone ? 0 : 3);
    sweep sweep;
    char why[512], name[WORKLOAD_NAME_BYTES];
    request.batches = batches;
    request.batch_count = alone ? 0 : 3;
    request.head_dims = head_dims;
    request.head_dim_count = 3;
    request.value_dim = alone ? 4 : 0;
    if (!sweep_create(&sweep, &request, &list, why, sizeof why)) fail_msg("%s", why);
    assert_string_equal(sweep.notes, "");
    assert_int_equal(sweep.count, alone ? 3 : 7);
    for (size_t n = 0; n < sweep.count; n++) {
      sweep_point_name(&sweep.points[n], name);
      assert_string_equal(name + strlen("some/full/"), alone ? of_values[n] : with_lengths[n]);
    }
    sweep_destroy(&sweep);
  }
}

static void a_variant_that_refuses_all_lengths_is_left_out(void **state) {
  (void)state;
  static const int64_t lengths[] = {16, 32};
  sweep_request request = request_for(&nothing, &nothing, lengths, 2);
  sweep sweep;
  char why[512];
  if (!sweep_create(&sweep, &request, &list, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(sweep.count, 2);
  assert_ptr_equal(sweep.points[0].variant, &any);
  assert_string_equal(sweep.notes, "some cannot solve full/B:1/H:1/Hkv:1/D:4/T:32: needs T of 64 at least\n");
  sweep_destroy(&sweep);
  request.variants = &only_some;
  assert_false(sweep_create(&sweep, &request, &list, why, sizeof why));
  assert_non_null(strstr(why, "nothing is left to measure: some cannot solve"));
}

/* Linear attention has no mask, whatever the variant: that is no mistake of who asks for one, unless nothing else is left. */
static void a_variant_whose_function_has_no_such_part_is_left_out(void **state) {
  (void)state;
  static const attn_variant masked = {.name = "masked",
                                      .summary = "",
                                      .features = ATTN_MASK,
                                      .types = 1u << ATTN_FLOAT32,
                                      .run = small_bench_solve};
  static const attn_variant linear = {.name = "linear",
                                      .summary = "",
                                      .function = ATTN_LINEAR,
                                      .types = 1u << ATTN_FLOAT32,
                                      .run = small_bench_solve};
  static const attn_variant *both[] = {&linear, &masked};
  static const int64_t lengths[] = {16, 32};
  static const char no_use[] = "linear attention has no use for a mask";
  char mask[] = "mask:1";
  const text_list parts = {.items = (char *[]){mask}, .count = 1};
  sweep_request request = request_for(&nothing, &nothing, lengths, 2);
  request.parts = &parts;
  for (size_t count = 1; count <= 2; count++) {
    const variant_list of_both = {.variants = both, .origins = origins, .count = count};
    sweep sweep;
    char why[512] = "";
    const bool made = sweep_create(&sweep, &request, &of_both, why, sizeof why);
    if (made != (count == 2)) fail_msg("of %zu variants: %s", count, why);
    if (!made) {
      assert_memory_equal(why, no_use, strlen(no_use));
      continue;
    }
    assert_int_equal(sweep.count, 2);
    assert_ptr_equal(sweep.points[0].variant, &masked);
    assert_non_null(strstr(sweep.notes, "linear cannot solve linear/full/B:1/H:1/Hkv:1/D:4/T:16/mask:1: "));
    assert_non_null(strstr(sweep.notes, no_use));
    sweep_destroy(&sweep);
  }
}

static void a_problem_that_is_asked_for_twice_is_one_row(void **state) {
  (void)state;
  char one[] = "full/B:1/H:1/D:4/T:64", same[] = "full/B:1/H:1/T:64/D:4",
       other[] = "full/B:1/H:1/D:4/T:64/seed:7";
  const text_list problems = {.items = (char *[]){one, same, other, one}, .count = 4};
  const sweep_request request = request_for(&only_some, &problems, NULL, 0);
  sweep sweep;
  char why[512];
  if (!sweep_create(&sweep, &request, &list, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(sweep.count, 2);
  const char *word = "some/full/B:1/H:1/Hkv:1/D:4/T:64 was asked for more than once, and is measured once\n";
  assert_ptr_equal(strstr(sweep.notes, word), sweep.notes);
  sweep_destroy(&sweep);
}

/* What the command line says of a problem beside its sizes holds at each length. */
static void parts_hold_at_every_length(void **state) {
  (void)state;
  static const int64_t lengths[] = {64, 128};
  static char layout[] = "layout:bthd", band[] = "causal_bottom_right", wrong[] = "layout:bogus",
              lists[] = "lengths:3,4";
  const attn_variant decodes = {.name = "decodes",
                                .summary = "",
                                .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS,
                                .types = 1u << ATTN_FLOAT32,
                                .time_exponent = 1,
                                .run = small_bench_solve};
  const attn_variant *one[] = {&decodes};
  const variant_list only = {.variants = one, .origins = origins, .count = 1};
  const text_list parts = {.items = (char *[]){layout, band}, .count = 2};
  sweep_request request = request_for(&nothing, &nothing, lengths, 2);
  sweep sweep;
  char why[512] = "", name[WORKLOAD_NAME_BYTES];
  request.query_length = 1;
  request.parts = &parts;
  if (!sweep_create(&sweep, &request, &only, why, sizeof why)) fail_msg("%s", why);
  assert_int_equal(sweep.count, 2);
  sweep_point_name(&sweep.points[1], name);
  assert_string_equal(name, "decodes/causal_bottom_right/B:1/H:1/Hkv:1/D:4/Tq:1/Tk:128/layout:bthd");
  sweep_destroy(&sweep);
  char *const refused[] = {wrong, lists};
  for (size_t n = 0; n < 2; n++) {
    const text_list bad = {.items = (char *[]){refused[n]}, .count = 1};
    request.parts = &bad;
    assert_false(sweep_create(&sweep, &request, &only, why, sizeof why));
    assert_non_null(strstr(why, n ? "lengths lists 2 numbers, but B is 1" : "bogus"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_showcase_may_have_several_lines),
      cmocka_unit_test(a_showcase_is_what_is_measured),
      cmocka_unit_test(lengths_that_are_refused_are_skipped_and_counted),
      cmocka_unit_test(batches_and_head_dimensions_are_swept_beside_lengths),
      cmocka_unit_test(a_variant_that_refuses_all_lengths_is_left_out),
      cmocka_unit_test(a_variant_whose_function_has_no_such_part_is_left_out),
      cmocka_unit_test(a_problem_that_is_asked_for_twice_is_one_row),
      cmocka_unit_test(parts_hold_at_every_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
