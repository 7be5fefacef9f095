/* Each property can fail: for each there is a fault here that this property sees, and a right kernel passes all.
 * The kernel is faulty_kernel.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "problem/check.h"
#include "run/heap_calls.h"
#include "run/thread_watch.h"
#include "verify/properties.h"
#include "verify/verify.h"
#include "faulty_kernel.h"

static const attn_variant *kernel_of(const char *text) {
  return strncmp(text, "linear/", 7) == 0 ? &faulty_linear_kernel : &faulty_kernel;
}

static property_verdict verdict_on(const attn_variant *variant, const char *text, fault fault,
                                   unsigned wanted) {
  workload w;
  inputs in;
  expected known;
  property_verdict verdict = {0};
  char why[512] = "";
  const run_setup setup = {.variant = variant, .threads = 2};
  faulty_plant(NO_FAULT);
  if (!workload_parse(text, &w, why, sizeof why) || !inputs_create(&in, &w, false, why, sizeof why) ||
      !expected_solve(&known, &in, 0, why, sizeof why))
    fail_msg("%s: %s", text, why);
  properties *prepared = properties_prepare(&in, &known, why, sizeof why);
  faulty_plant(fault);
  if (!prepared || !properties_hold(prepared, &setup, wanted, &verdict, why, sizeof why))
    fail_msg("%s: %s", text, why);
  faulty_plant(NO_FAULT);
  properties_destroy(prepared);
  expected_destroy(&known);
  inputs_destroy(&in);
  return verdict;
}

static property_verdict verdict_of(const char *text, fault fault, unsigned wanted) {
  return verdict_on(kernel_of(text), text, fault, wanted);
}

static const char *const types[] = {"", "/bf16", "/f16", "/bf16/out:f32", "/f16/out:f32"};

enum { TYPES = sizeof types / sizeof *types };

static const struct {
  fault fault;
  property property;
  const char *problem, *words;
  const char *kinds; /* of which the hint is one; NULL: it says nothing */
} faults[] = {
    {OTHER_BITS_EACH_TIME, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "other bits", NULL},
    {WORKSPACE_READ, PROPERTY_WORKSPACE, "full/B:1/H:1/D:8/T:20", "a workspace full of bytes 0x00", NULL},
    {THREAD_DEPENDENT, PROPERTY_THREADS, "full/B:1/H:1/D:8/T:20", "with 1 thread than with 2", NULL},
    {ALLOCATES, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20", "malloc first, 1 call", NULL},
    {THREADS_IGNORED, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20",
     "uses 2 threads at a time, and was given 1", NULL},
    {PRINTS, PROPERTY_SIDE_EFFECTS, "full/B:1/H:1/D:8/T:20", "writes to stdout inside run: 'a row '", NULL},
    {OUTPUT_OVERRUN, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "writes beyond", NULL},
    {WRONG_WHERE_ALIGNED, PROPERTY_EDGES, "full/B:1/H:1/D:8/T:20", "with buffers elsewhere, output[", NULL},
    {INPUT_CHANGED, PROPERTY_REPEAT, "full/B:1/H:1/D:8/T:20", "changes its inputs", NULL},
    {LAST_VALUE_LEFT_OUT, PROPERTY_ONES, "full/B:1/H:2/D:8/T:20", "with values of one, output[", "keys"},
    {WEIGHTS_ALL_OF_ONE, PROPERTY_ONES, "full/B:1/H:2/D:8/T:20/weights", "the sum of weights[", "sum"},
    {BEYOND_ITS_VALUES, PROPERTY_BETWEEN, "causal/B:1/H:2/D:8/T:20", "between the values", "sum"},
    {HIDDEN_VALUE_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys", "hidden"},
    {HIDDEN_KEY_READ, PROPERTY_HIDDEN, "full/B:1/H:2/D:8/T:20/lengths:10", "has other bits", "hidden"},
    {HIDDEN_PARTNER_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys", "hidden"},
    {WRONG_KV_HEAD, PROPERTY_HIDDEN, "full/B:1/H:4/Hkv:2/D:8/T:20", "in keys that it cannot see", "hidden"},
    {LEFT_BY_ONE, PROPERTY_WIDE, "full/B:1/H:2/D:8/T:20/seed:2", "a band as wide", "band"},
    {RIGHT_BY_ONE, PROPERTY_WIDE, "full/B:1/H:2/D:8/T:20/seed:2", "a band as wide", "band"},
    {WRONG_KV_HEAD, PROPERTY_GROUPS, "full/B:2/H:4/Hkv:2/D:8/T:20", "repeated for each head", "heads"},
    {FIRST_KEY_TWICE, PROPERTY_ORDER, "causal/B:1/H:2/D:8/T:20", "in another order", "keys"},
    {CLAMPED_SCORES, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:200/scale:4/bias:hq", "a constant added", "maximum"},
    {LSE_WITHOUT_MAXIMUM, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:20/bias:hq/lse",
     "a constant added to its scores, lse[", "lse"},
    {LSE_WITHOUT_MAXIMUM, PROPERTY_SHIFT, "full/B:1/H:2/D:8/T:20/lse", "a constant added to its scores, lse[",
     "lse"},
    {LAYOUT_DEPENDENT, PROPERTY_LAYOUT, "full/B:1/H:2/D:8/T:20", "in [B, T, H, D]", "rows"},
    {LSE_BASE_2, PROPERTY_HALVES, "full/B:1/H:2/D:8/T:20/lse", "against its two halves", "lse"},
    {OFFSET_IGNORED, PROPERTY_HALVES, "causal/B:1/H:2/D:8/T:20", "against its two halves", "alignment"},
    {COMPANY_DEPENDENT, PROPERTY_COMPANY, "full/B:2/H:4/Hkv:2/D:8/T:20", "without the rest of the batch",
     "heads"},
    {COMPANY_DEPENDENT, PROPERTY_COMPANY, "full/B:1/H:4/Hkv:2/D:8/T:20", "has other bits", "heads"},
    {SINK_TWICE, PROPERTY_SINK, "causal/B:2/H:3/D:8/T:20/sink/lse", "with a key for its sink", "sink sum"},
    {DECODED_OTHERWISE, PROPERTY_DECODED, "causal/B:1/H:2/D:8/T:20", "decoded alone, row b 0", "rows"},
    {BIAS_CLAMPED, PROPERTY_BIAS, "causal/B:1/H:2/D:8/T:20", "with a bias of -inf, output[", "bias"},
    {BIAS_ONLY_PUSHES_DOWN, PROPERTY_BIAS, "full/B:1/H:2/D:8/T:20/lse",
     "with large numbers in keys that a bias", "bias"},
    {KEYS_REMEMBERED_BY_ADDRESS, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20",
     "with other contents where others were", NULL},
    {VALUES_REMEMBERED_BY_SHAPE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output[",
     NULL},
    {INPUTS_WHERE_THEY_WERE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output[", NULL},
    /* Of local terms what lies between the first and the last key is seen, and that is what the kernel asks. */
    {LAST_TERM_FORGOTTEN, PROPERTY_PATTERN, "full/B:1/H:2/D:8/T:20/see:local:3,0+local:1,4",
     "with the terms of its pattern in another order", "pattern"},
    {TERM_BY_ONE, PROPERTY_PATTERN, "full/B:1/H:2/D:8/T:20/see:local:3,1", "with a band for the local term",
     "pattern"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/alibi",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/alibi",
     "with a bias for its positions, output[", "bias"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/relative:4",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/relative:4",
     "with a bias for its positions, output[", "bias"},
    {ROPE_OF_QUERIES_ALONE, PROPERTY_ROPE, "full/B:1/H:2/D:8/T:20/rope:half",
     "with all positions shifted, output[", "rope"},
    {ROPE_OF_QUERIES_ALONE, PROPERTY_ROPE, "causal_bottom_right/B:1/H:2/D:9/Tq:5/Tk:20/rope:interleaved,6",
     "with all positions shifted, output[", "rope"},
    {SLOPES_TURNED, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/t5:8,20",
     "with a bias for its positions, output[", "bias"},
    {DISTANCE_WITHOUT_OFFSET, PROPERTY_POSITION, "full/B:1/H:2/D:8/T:20/offsets:7/t5:8,20,one",
     "with a bias for its positions, output[", "bias"},
    {MATRIX_AND_MORE, PROPERTY_GENERAL, "full/B:1/H:2/D:8/T:20/general/fill:normal",
     "with matrices of one for its general scores", "features scale sum keys maximum"},
    {TANH_OF_EACH, PROPERTY_ADDITIVE, "full/B:1/H:2/D:8/T:20/additive/fill:normal",
     "with a vector moved from its keys to its queries", "features scale sum keys maximum"},
    {STATE_FORGOTTEN, PROPERTY_PARTS, "linear/causal/B:1/H:2/D:8/T:20",
     "cut in two with the state handed over, output[", "state"},
    {LAST_KEY_NOT_LEFT, PROPERTY_PARTS, "linear/full/B:1/H:2/D:8/Dv:5/T:20/state/unnormalised",
     "cut in two with the state handed over, output[", "state"},
    {DROPS_BY_P, PROPERTY_DROPOUT, "full/B:1/H:2/D:8/T:20/dropout:0.3",
     "with a keep mask of ones and a p of 0", "sum"},
};

static void expect_fault(size_t n, const char *type) {
  char problem[WORKLOAD_NAME_BYTES];
  const unsigned bit = 1u << faults[n].property;
  const char *name = property_name(faults[n].property);
  snprintf(problem, sizeof problem, "%s%s", faults[n].problem, type);
  const property_verdict right = verdict_of(problem, NO_FAULT, bit);
  if (right.failed || right.checked != bit)
    fail_msg("'%s' without a fault on %s: checked %u, %s", name, problem, right.checked,
             right.failed ? right.problem : "passed");
  const property_verdict wrong = verdict_of(problem, faults[n].fault, bit);
  if (!wrong.failed) fail_msg("'%s' does not see fault %d on %s", name, (int)faults[n].fault, problem);
  if (!strstr(wrong.problem, faults[n].words) || strncmp(wrong.problem, name, strlen(name)) != 0)
    fail_msg("'%s' is not in: %s", faults[n].words, wrong.problem);
  const char *kinds = faults[n].kinds;
  if (kinds ? !wrong.hint.kind[0] || !strstr(kinds, wrong.hint.kind) : wrong.hint.kind[0] != '\0')
    fail_msg("the hint is '%s: %s', not of %s: %s", wrong.hint.kind, wrong.hint.words,
             kinds ? kinds : "no kind", wrong.problem);
}

/* In float32, and in one of the other types in turn; `make test-full`: in each. */
static void each_fault_is_seen_by_its_property(void **state) {
  (void)state;
  const bool all = getenv("ATTN_TEST_FULL") != NULL;
  for (size_t type = 0; type < TYPES; type++) {
    unsigned seen = 0;
    for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
      seen |= 1u << faults[n].property;
      if (!all && type > 0 && n % (TYPES - 1) != type - 1) continue;
      if (faults[n].fault == ALLOCATES && !heap_calls_are_seen()) continue;
      if (faults[n].fault == THREADS_IGNORED && !threads_are_seen()) continue;
      /* No key of float16 has a score of 1e9. */
      if (faults[n].fault == BIAS_ONLY_PUSHES_DOWN && strncmp(types[type], "/f16", 4) == 0) continue;
      expect_fault(n, types[type]);
    }
    assert_int_equal(seen, PROPERTIES_ALL);
  }
}

/* A guard page stands before each buffer, so the kernel crashes; with the buffers at the back it does not. */
static void a_read_before_a_buffer_faults(void **state) {
  (void)state;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
    if (!freopen("/dev/null", "w", stderr)) _exit(2);
    verdict_of("full/B:1/H:1/D:8/T:20", READS_BEFORE_ITS_QUERY, 1u << PROPERTY_REPEAT);
    verdict_of("full/B:1/H:1/D:8/T:20", READS_BEFORE_ITS_QUERY, 1u << PROPERTY_EDGES);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool all_are_held(const unsigned checked[TYPES]) {
  return checked[ATTN_FLOAT32] == PROPERTIES_ALL && checked[ATTN_BFLOAT16] == PROPERTIES_ALL &&
         checked[ATTN_FLOAT16] == PROPERTIES_ALL;
}

static void a_right_kernel_keeps_every_property(void **state) {
  (void)state;
  unsigned checked[TYPES] = {0};
  const int64_t least = getenv("ATTN_TEST_FULL") ? 140 : 15;
  for (int64_t n = 0; n < least || (n < 140 && !all_are_held(checked)); n++) {
    const workload w = properties_problem(3, n);
    const attn_problem problem = workload_problem(&w);
    char name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    unsigned *own = &checked[problem.query.type];
    const unsigned wanted = n < least ? PROPERTIES_ALL : PROPERTIES_ALL & ~*own;
    if (runner_refusal(kernel_of(name), &problem) || !wanted) continue;
    const property_verdict verdict = verdict_of(name, NO_FAULT, wanted);
    if (verdict.failed) fail_msg("%s: %s", name, verdict.problem);
    *own |= verdict.checked;
  }
  assert_int_equal(checked[ATTN_FLOAT32], PROPERTIES_ALL);
  assert_int_equal(checked[ATTN_BFLOAT16], PROPERTIES_ALL);
  assert_int_equal(checked[ATTN_FLOAT16], PROPERTIES_ALL);
}

static void what_is_not_promised_is_not_held(void **state) {
  (void)state;
  const unsigned promises = 1u << PROPERTY_COMPANY | 1u << PROPERTY_DECODED;
  attn_variant modest = faulty_kernel;
  modest.traits = 0;
  assert_int_equal(verdict_on(&modest, "full/B:2/H:2/D:8/T:20", COMPANY_DEPENDENT, promises).checked, 0);
  modest.traits = ATTN_BATCH_INVARIANT;
  assert_int_equal(verdict_on(&modest, "full/B:2/H:2/D:8/T:20", DECODED_OTHERWISE, promises).checked,
                   1u << PROPERTY_COMPANY);
}

static void free_bits_are_held_to_the_bounds(void **state) {
  (void)state;
  static const fault of_bits[] = {OTHER_BITS_EACH_TIME, THREAD_DEPENDENT, LAYOUT_DEPENDENT,
                                  COMPANY_DEPENDENT};
  static const struct {
    fault fault;
    property property;
    const char *problem, *words;
  } beyond[] = {
      {HIDDEN_VALUE_TIMES_ZERO, PROPERTY_HIDDEN, "causal/B:1/H:2/D:8/T:20", "with NaN in keys"},
      {WRONG_KV_HEAD, PROPERTY_HIDDEN, "full/B:1/H:4/Hkv:2/D:8/T:20", "in keys that it cannot see"},
      {VALUES_REMEMBERED_BY_SHAPE, PROPERTY_STATE, "full/B:1/H:2/D:8/T:20", "with other contents, output["}};
  attn_variant free_one = faulty_kernel;
  free_one.traits = ATTN_FREE_BITS | ATTN_BATCH_INVARIANT;
  for (size_t n = 0; n < sizeof of_bits / sizeof *of_bits; n++) {
    const property_verdict verdict =
        verdict_on(&free_one, "full/B:2/H:4/Hkv:2/D:8/T:20", of_bits[n], PROPERTIES_ALL);
    if (verdict.failed || !verdict.checked) fail_msg("fault %d: %s", (int)of_bits[n], verdict.problem);
  }
  for (size_t n = 0; n < sizeof beyond / sizeof *beyond; n++) {
    const property_verdict verdict =
        verdict_on(&free_one, beyond[n].problem, beyond[n].fault, 1u << beyond[n].property);
    if (!strstr(verdict.problem, beyond[n].words))
      fail_msg("fault %d: %s", (int)beyond[n].fault, verdict.problem);
  }
}

static void who_takes_finite_numbers_alone_sees_no_other(void **state) {
  (void)state;
  attn_variant finite = faulty_kernel;
  finite.traits = ATTN_FINITE;
  const property_verdict lucky =
      verdict_on(&finite, "causal/B:1/H:2/D:8/T:20", HIDDEN_VALUE_TIMES_ZERO, 1u << PROPERTY_HIDDEN);
  assert_int_equal(lucky.failed, 0);
  assert_int_equal(lucky.checked, 1u << PROPERTY_HIDDEN);
  assert_int_not_equal(
      verdict_on(&finite, "full/B:1/H:4/Hkv:2/D:8/T:20", WRONG_KV_HEAD, 1u << PROPERTY_HIDDEN).failed, 0);
}

/* One minus the weight of such a sink is 0 in double precision, and the output is not. */
static void a_sink_may_take_all_but_the_last_places(void **state) {
  (void)state;
  const char *heavy = "full/B:1/H:2/Hkv:1/D:9/Dv:1/T:1/sink/weights/fill:heavy";
  for (int seed = 0; seed < 20; seed++) {
    char problem[WORKLOAD_NAME_BYTES];
    snprintf(problem, sizeof problem, "%s/seed:%d", heavy, seed);
    const property_verdict verdict = verdict_of(problem, NO_FAULT, 1u << PROPERTY_ONES);
    if (verdict.failed) fail_msg("%s: %s", problem, verdict.problem);
    assert_int_equal(verdict.checked, 1u << PROPERTY_ONES);
  }
}

static void problems_without_rows_or_keys_say_nothing(void **state) {
  (void)state;
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Tq:0/Tk:7", NO_FAULT, PROPERTIES_ALL).checked, 0);
  assert_int_equal(verdict_of("full/B:0/H:2/D:8/T:7", NO_FAULT, PROPERTIES_ALL).failed, 0);
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Tq:5/Tk:0/lse", NO_FAULT, PROPERTIES_ALL).failed, 0);
  assert_int_equal(verdict_of("full/B:2/H:2/D:8/Dv:0/T:5/lse", NO_FAULT, PROPERTIES_ALL).failed, 0);
}

static void random_problems_are_sound_and_small(void **state) {
  (void)state;
  for (int64_t n = 0; n < 2000; n++) {
    const workload w = properties_problem(9, n);
    const attn_problem problem = workload_problem(&w);
    char why[256] = "", name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s: %s", name, why);
    assert_true(properties_can_be_held(&w));
  }
}

/* What the subcommand says of this one kernel on one problem; to be freed. */
static char *said_of(const attn_variant *variant, const char *problem, fault fault, int status) {
  const char *origins[] = {"./mine.so"};
  const variant_list list = {.variants = &variant, .origins = origins, .count = 1};
  verify_options options = {.problems = &problem, .problem_count = 1, .threads = 2, .seed = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  faulty_plant(fault);
  assert_int_equal(verify_all(&list, &options, out), status);
  faulty_plant(NO_FAULT);
  fclose(out);
  return text;
}

static void what_is_unchecked_is_said(void **state) {
  (void)state;
  attn_variant modest = faulty_kernel;
  free(said_of(&modest, "full/B:1/H:2/D:16/T:20", THREAD_DEPENDENT, 1));
  modest.traits = ATTN_FREE_BITS | ATTN_FINITE;
  char *text = said_of(&modest, "full/B:1/H:2/D:16/T:20", THREAD_DEPENDENT, 0);
  if (!strstr(text,
              "Unchecked, as kernel says of itself: the same bits again, with other threads and in other "
              "layouts; NaN, infinity and what overflows\n"))
    fail_msg("%s", text);
  free(text);
  text = said_of(&modest, "full/B:1/H:2/D:16/T:20/fill:nonfinite", NO_FAULT, 2);
  if (!strstr(text, "skipped 1: takes finite numbers alone (1)")) fail_msg("%s", text);
  free(text);
}

/* The subcommand on this one kernel, with a fault that nothing but a property can see. */
static void a_failure_is_printed_with_the_command_that_repeats_it(void **state) {
  (void)state;
  const attn_variant *variants[] = {&faulty_kernel};
  const char *origins[] = {"./mine.so"}, *problem = "full/B:1/H:2/D:16/T:20";
  const variant_list list = {.variants = variants, .origins = origins, .count = 1};
  verify_options options = {.problems = &problem,
                            .problem_count = 1,
                            .threads = 2,
                            .seed = 1,
                            .plugins = origins,
                            .plugin_count = 1};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  faulty_plant(LAYOUT_DEPENDENT);
  assert_int_equal(verify_all(&list, &options, out), 1);
  faulty_plant(NO_FAULT);
  fclose(out);
  if (!strstr(text, "FAILED: layout: in [B, T, H, D], row b 0, h 0, i 0 has other bits\n") ||
      !strstr(text, "reproduce: attnbench verify --variant kernel --problem 'full/B:1/H:2/Hkv:2/D:16/T:20' "
                    "--threads 2 --plugin './mine.so'\n") ||
      !strstr(text, "26 properties held on 1 problem: "))
    fail_msg("%s", text);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_read_before_a_buffer_faults), /* first: OpenMP's threads do not survive a fork */
      cmocka_unit_test(each_fault_is_seen_by_its_property),
      cmocka_unit_test(a_right_kernel_keeps_every_property),
      cmocka_unit_test(what_is_not_promised_is_not_held),
      cmocka_unit_test(free_bits_are_held_to_the_bounds),
      cmocka_unit_test(who_takes_finite_numbers_alone_sees_no_other),
      cmocka_unit_test(what_is_unchecked_is_said),
      cmocka_unit_test(a_sink_may_take_all_but_the_last_places),
      cmocka_unit_test(problems_without_rows_or_keys_say_nothing),
      cmocka_unit_test(random_problems_are_sound_and_small),
      cmocka_unit_test(a_failure_is_printed_with_the_command_that_repeats_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
