/* The table of features: each row goes through a problem line and back, is seen in the problem that the line poses,
 * and can be left out again. A row that is added needs an example here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "problem/check.h"
#include "problem/features.h"
#include "problem/random_problem.h"

/* Of each row: a part of a line that says it, and a line without it. */
static const struct {
  const char *what, *part, *plain;
} examples[] = {
    {"a band", "window:3", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"an offset", "offsets:1,-2", "full/B:2/H:4/Hkv:4/D:64/T:9"},
    {"key lengths", "lengths:5,0", "full/B:2/H:4/Hkv:4/D:64/T:9"},
    {"a scale", "scale:0.5", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a softcap", "softcap:2", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"an epsilon", "epsilon:0.5", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a mask", "mask:bq", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a bias", "bias:h", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"sinks", "sink", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a log-sum-exp", "lse", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"weights", "weights", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"query lengths", "qlengths:5,0", "full/B:2/H:4/Hkv:4/D:64/T:9"},
    {"a pattern", "see:local:2,inf+dilated:sqrt,2+random:1,4,3", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"documents", "docs:3,shuffled", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a block mask", "blocks:2,3,0.25,bh", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"listed keys", "topk:4", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"ALiBi slopes", "alibi", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a relative table", "relative:3", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"T5 buckets", "t5:8,20,one", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a rotary embedding", "rope:interleaved,6", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a feature map", "phi:relu", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a decay", "decay", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"an initial state", "state", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a final state", "final_state", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"sums without a normaliser", "unnormalised", "linear/full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"general scores", "general", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"additive scores", "additive", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"dropout", "dropout:0.25,bq", "full/B:1/H:4/Hkv:4/D:64/T:9"},
    {"a memory", "memory", "layer/full/B:1/H:4/Hkv:4/D:64/M:24/T:9"},
    {"biases of projections", "biases", "layer/full/B:1/H:4/Hkv:4/D:64/M:24/T:9"},
};

static size_t example_of(const feature_row *row) {
  size_t n = 0;
  while (n < sizeof examples / sizeof *examples && strcmp(examples[n].what, row->what) != 0) n++;
  if (n == sizeof examples / sizeof *examples) fail_msg("there is no example of %s", row->what);
  return n;
}

static workload parse(const char *text) {
  workload w;
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why)) fail_msg("'%s': %s", text, why);
  return w;
}

static workload with_feature(const feature_row *row) {
  char text[256];
  const size_t n = example_of(row);
  snprintf(text, sizeof text, "%s/%s", examples[n].plain, examples[n].part);
  return parse(text);
}

static void each_bit_belongs_to_one_row(void **state) {
  (void)state;
  uint64_t all = 0;
  for (int n = 0; n < FEATURES; n++) {
    const feature_row *row = &feature_table[n];
    assert_true(__builtin_popcountll(row->bit) <= 1 && !(all & row->bit));
    all |= row->bit;
    assert_true(row->what && row->functions);
    assert_true(!row->bit == !row->refusal);
    for (int other = 0; other < n; other++) {
      const char *key = feature_table[other].key, *refusal = feature_table[other].refusal;
      if (row->key && key) assert_string_not_equal(row->key, key);
      if (row->refusal && refusal) assert_string_not_equal(row->refusal, refusal);
    }
  }
  assert_true(all ==
              (ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
               ATTN_WEIGHTS | ATTN_SINK | ATTN_QUERY_LENGTHS | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS |
               ATTN_TOPK | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_FEATURE_MAP |
               ATTN_UNNORMALISED | ATTN_DECAY | ATTN_STATE | ATTN_FINAL_STATE | ATTN_DROPOUT | ATTN_GENERAL |
               ATTN_ADDITIVE | ATTN_MEMORY | ATTN_PROJECTION_BIAS));
}

static void each_feature_goes_through_a_line(void **state) {
  (void)state;
  for (int n = 0; n < FEATURES; n++) {
    const feature_row *row = &feature_table[n];
    const workload w = with_feature(row);
    const char *part = examples[example_of(row)].part;
    char name[WORKLOAD_NAME_BYTES], again[WORKLOAD_NAME_BYTES], plain[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    if (!strstr(name, part)) fail_msg("'%s' is not in %s", part, name);
    if (row->key && strncmp(part, row->key, strlen(row->key)) != 0)
      fail_msg("'%s' does not begin with %s", part, row->key);
    const workload back = parse(name);
    workload_name(&back, again);
    assert_string_equal(name, again);
    const workload without = parse(examples[example_of(row)].plain);
    workload_name(&without, plain);
    assert_string_not_equal(name, plain);
  }
}

static void each_feature_is_seen_in_its_problem_and_no_other(void **state) {
  (void)state;
  for (int n = 0; n < FEATURES; n++) {
    const workload w = with_feature(&feature_table[n]);
    const workload without = parse(examples[example_of(&feature_table[n])].plain);
    const attn_problem problem = workload_problem(&w), plain = workload_problem(&without);
    char why[256] = "";
    assert_true(features_of(&problem) == feature_table[n].bit && problem.features == feature_table[n].bit);
    assert_true(features_of(&plain) == 0 && plain.features == 0);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s", why);
  }
}

static void an_offset_for_all_entries_is_an_offset(void **state) {
  (void)state;
  const workload w = parse("band:inf,0,3/T:9"), none = parse("band:inf,0,0/T:9");
  const attn_problem problem = workload_problem(&w), plain = workload_problem(&none);
  assert_true(problem.features == (ATTN_BAND | ATTN_OFFSET) && plain.features == ATTN_BAND);
}

static void what_is_left_out_is_gone(void **state) {
  (void)state;
  for (int n = 0; n < FEATURES; n++) {
    workload w = with_feature(&feature_table[n]);
    char name[WORKLOAD_NAME_BYTES];
    feature_leave_out(&feature_table[n], &w);
    workload_name(&w, name);
    assert_string_equal(name, examples[example_of(&feature_table[n])].plain);
    assert_true(workload_problem(&w).features == 0);
  }
}

static void a_function_that_has_no_use_for_a_feature_is_refused_with_it(void **state) {
  (void)state;
  int refused = 0;
  for (int n = 0; n < FEATURES; n++)
    for (int function = ATTN_SOFTMAX; function <= ATTN_LINEAR; function++) {
      if (!feature_table[n].bit || feature_table[n].functions >> function & 1) continue;
      if (feature_table[n].bit == ATTN_MEMORY) continue; /* the keys of other functions: test_workload.c */
      char why[256] = "";
      workload w = with_feature(&feature_table[n]);
      w.function = (attn_function)function;
      const attn_problem problem = workload_problem(&w);
      assert_false(check_problem(&problem, why, sizeof why));
      if (!strstr(why, "has no use for") || !strstr(why, feature_table[n].what))
        fail_msg("%s: %s", feature_table[n].what, why);
      refused++;
    }
  assert_int_equal(refused, 25);
}

static void random_problems_have_every_feature(void **state) {
  (void)state;
  uint64_t seen = 0, all = 0;
  for (int n = 0; n < FEATURES; n++) all |= feature_table[n].bit;
  for (int64_t n = 0; n < 500; n++) {
    const workload w = random_problem(4, n);
    const attn_problem problem = workload_problem(&w);
    assert_true(problem.features == features_of(&problem));
    seen |= problem.features;
  }
  assert_true(seen == all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_bit_belongs_to_one_row),
      cmocka_unit_test(each_feature_goes_through_a_line),
      cmocka_unit_test(each_feature_is_seen_in_its_problem_and_no_other),
      cmocka_unit_test(an_offset_for_all_entries_is_an_offset),
      cmocka_unit_test(what_is_left_out_is_gone),
      cmocka_unit_test(a_function_that_has_no_use_for_a_feature_is_refused_with_it),
      cmocka_unit_test(random_problems_have_every_feature),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
