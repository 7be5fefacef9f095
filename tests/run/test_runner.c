/* What stands between the suite and a variant: a problem with a part that the variant has never heard of is never
 * given to it, what it is given is what was asked, and timing leaves the inputs as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "problem/features.h"
#include "problem/random_problem.h"
#include "run/runner.h"

static uint64_t all_features(void) {
  uint64_t all = 0;
  for (int n = 0; n < FEATURES; n++) all |= feature_table[n].bit;
  return all;
}

static struct {
  int asked; /* how often unsupported was called */
  attn_call call;
  attn_problem problem;
  int runs;
} seen;

static const char *take_note(const attn_call *call) {
  seen.asked++;
  seen.call = *call;
  return NULL;
}

static size_t ten_bytes_a_thread(const attn_call *call) { return 10 * (size_t)call->threads; }

static void note_call(const attn_call *call) {
  seen.call = *call;
  memcpy(&seen.problem, call->problem, sizeof seen.problem);
  seen.runs++;
}

/* A variant as it would have been built when these were all the features. */
static attn_variant built_with(attn_function function, uint64_t features) {
  return (attn_variant){.name = "older",
                        .summary = "of a test",
                        .function = function,
                        .features = features,
                        .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,
                        .unsupported = take_note,
                        .workspace_size = ten_bytes_a_thread,
                        .run = note_call};
}

static workload parse(const char *text) {
  workload w;
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why)) fail_msg("'%s': %s", text, why);
  return w;
}

static void a_feature_that_a_variant_does_not_know_is_refused_for_it(void **state) {
  (void)state;
  uint64_t refused = 0;
  for (int64_t n = 0; n < 500; n++) {
    const workload w = random_problem(6, n);
    const attn_problem problem = workload_problem(&w);
    for (int row = 0; row < FEATURES; row++) {
      const uint64_t bit = feature_table[row].bit;
      const attn_variant older = built_with(problem.function, all_features() & ~bit);
      seen.asked = 0;
      const char *reason = runner_refusal(&older, &problem);
      if (!(problem.features & bit)) {
        if (reason) fail_msg("refused: %s", reason);
        continue;
      }
      if (!reason || strcmp(reason, feature_table[row].refusal) != 0)
        fail_msg("without %s it says: %s", feature_table[row].what, reason ? reason : "nothing");
      assert_int_equal(seen.asked, 0); /* it has no say in what it does not know */
      refused |= bit;
    }
  }
  assert_true(refused == all_features());
}

static void a_feature_that_the_table_does_not_know_is_refused(void **state) {
  (void)state;
  const workload w = parse("full/T:9");
  attn_problem problem = workload_problem(&w);
  const attn_variant knows_the_table = built_with(ATTN_SOFTMAX, all_features());
  assert_null(runner_refusal(&knows_the_table, &problem));
  problem.features = UINT64_C(1) << 63;
  seen.asked = 0;
  assert_non_null(strstr(runner_refusal(&knows_the_table, &problem), "newer than this program"));
  assert_int_equal(seen.asked, 0);
  problem.features |= ATTN_MASK; /* what has words goes first */
  const attn_variant knows_nothing = built_with(ATTN_SOFTMAX, 0);
  assert_string_equal(runner_refusal(&knows_nothing, &problem), "takes no mask");
}

static void another_function_or_type_is_refused(void **state) {
  (void)state;
  const workload w = parse("full/T:9/mask:q/lse");
  attn_problem problem = workload_problem(&w);
  const attn_variant linear = built_with(ATTN_LINEAR, all_features());
  attn_variant softmax = built_with(ATTN_SOFTMAX, all_features());
  softmax.types = 1u << ATTN_FLOAT32;
  assert_string_equal(runner_refusal(&linear, &problem), "computes linear attention");
  assert_null(runner_refusal(&softmax, &problem)); /* mask and log-sum-exp have one type for all */
  attn_layout *const layouts[] = {&problem.query, &problem.key, &problem.value, &problem.output};
  for (size_t n = 0; n < sizeof layouts / sizeof *layouts; n++) {
    layouts[n]->type = ATTN_BFLOAT16;
    assert_string_equal(runner_refusal(&softmax, &problem), "does not compute in this data type");
    layouts[n]->type = ATTN_FLOAT32;
  }
}

static void a_variant_is_asked_without_tensors(void **state) {
  (void)state;
  const workload w = parse("full/T:9");
  const attn_problem problem = workload_problem(&w);
  const attn_variant variant = built_with(ATTN_SOFTMAX, all_features());
  const attn_tensors none = {0};
  runner_refusal(&variant, &problem);
  assert_ptr_equal(seen.call.variant, &variant);
  assert_ptr_equal(seen.call.problem, &problem);
  assert_memory_equal(&seen.call.tensors, &none, sizeof none);
}

static void a_call_says_all_that_was_asked(void **state) {
  (void)state;
  const workload w = parse("full/H:2/D:4/T:9/lse");
  const attn_variant variant = built_with(ATTN_SOFTMAX, all_features());
  const run_setup setup = {.variant = &variant, .isa = "portable", .threads = 3};
  inputs in;
  run_outcome outcome;
  char why[256];
  assert_true(inputs_create(&in, &w, false, why, sizeof why));
  const run_watch watch = {.workspace = RUN_POISONED, .inputs_checksum = inputs_checksum(&in)};
  assert_int_equal(runner_workspace_bytes(&setup, &in.problem), 30);
  assert_true(runner_run(&setup, &in, &watch, &outcome, why, sizeof why));
  assert_string_equal(outcome.violation, "");
  assert_int_equal(seen.call.size, sizeof(attn_call));
  assert_ptr_equal(seen.call.variant, &variant);
  assert_memory_equal(&seen.problem, &in.problem, sizeof in.problem);
  assert_ptr_not_equal(seen.call.problem, &in.problem); /* who writes to it writes to nobody else's */
  assert_memory_equal(&seen.call.tensors, &in.tensors, sizeof in.tensors);
  assert_int_equal((uintptr_t)seen.call.workspace % 64, 0);
  assert_int_equal(seen.call.threads, 3);
  assert_string_equal(seen.call.isa, "portable");
  assert_null(seen.call.stream);
  inputs_destroy(&in);
}

/* The values that runner_time changes are noted by what the runs find there. */
static float found[8];

static void note_value(const attn_call *call) {
  const float *value = call->tensors.value;
  float sum = 0;
  for (int64_t n = 0; n < call->problem->key_length * call->problem->value_dim; n++) sum += value[n];
  found[seen.runs++ % 8] = sum;
}

static void each_timed_run_has_another_value_and_the_last_is_restored(void **state) {
  (void)state;
  const workload w = parse("causal/H:1/D:4/T:9");
  attn_variant variant = built_with(ATTN_SOFTMAX, all_features());
  variant.run = note_value;
  const run_setup setup = {.variant = &variant, .threads = 1};
  inputs in;
  run_elapsed elapsed;
  unsigned char workspace[64];
  char why[256];
  assert_true(inputs_create(&in, &w, false, why, sizeof why));
  const uint64_t before = inputs_checksum(&in);
  run_batch batch = {.inputs = &in, .workspace = workspace, .iterations = 8, .seed = 5};
  seen.runs = 0;
  assert_true(runner_time(&setup, &batch, &elapsed));
  assert_int_equal(seen.runs, 8);
  for (int n = 1; n < 8; n++)
    for (int other = 0; other < n; other++) assert_true(found[n] != found[other]);
  assert_in_range(batch.changed_row, 0, 8);
  assert_true(inputs_checksum(&in) != before);
  assert_true(runner_restore(&batch, before));
  assert_true(inputs_checksum(&in) == before);
  inputs_destroy(&in);
}

static void where_no_row_sees_a_key_nothing_is_changed(void **state) {
  (void)state;
  static const char *const problems[] = {"full/H:1/D:4/T:9/lengths:0", "full/H:1/D:4/Tq:9/Tk:0",
                                         "full/H:1/D:4/Tq:0/Tk:9", "full/H:1/D:4/Dv:0/T:9",
                                         "band:0,0,-40/H:1/D:4/T:9"};
  attn_variant variant = built_with(ATTN_SOFTMAX, all_features());
  const run_setup setup = {.variant = &variant, .threads = 1};
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
    const workload w = parse(problems[n]);
    inputs in;
    run_elapsed elapsed;
    unsigned char workspace[64];
    char why[256];
    assert_true(inputs_create(&in, &w, false, why, sizeof why));
    const uint64_t before = inputs_checksum(&in);
    run_batch batch = {.inputs = &in, .workspace = workspace, .iterations = 3, .seed = 5};
    assert_true(runner_time(&setup, &batch, &elapsed));
    assert_int_equal(batch.changed_row, -1);
    assert_true(inputs_checksum(&in) == before);
    assert_true(runner_restore(&batch, before));
    assert_true(inputs_checksum(&in) == before);
    inputs_destroy(&in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_feature_that_a_variant_does_not_know_is_refused_for_it),
      cmocka_unit_test(a_feature_that_the_table_does_not_know_is_refused),
      cmocka_unit_test(another_function_or_type_is_refused),
      cmocka_unit_test(a_variant_is_asked_without_tensors),
      cmocka_unit_test(a_call_says_all_that_was_asked),
      cmocka_unit_test(each_timed_run_has_another_value_and_the_last_is_restored),
      cmocka_unit_test(where_no_row_sees_a_key_nothing_is_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
