/* The variants of the two sides of the gate: whose code is the same, and what of the base's the head lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "gate/gate.h"

static void a_variant_is_identical_wherever_its_name_stands(void **state) {
  (void)state;
  static char names[8192];
  static gate_set set;
  char why[512];
  variant_list variants = {0};
  assert_true(variant_list_add(&variants, ATTN_BUILD_DIR "/attnbench_variants.so", why, sizeof why));
  snprintf(names, sizeof names, "%*sfused", (int)sizeof names - 8, "some_variant ");
  const gate_options options = {.identical = names};
  gate_set_fill(&set, &variants, &variants, &options);
  assert_true(set.count > 0);
  for (size_t n = 0; n < set.count; n++)
    assert_int_equal(set.benchmarks[n].identical, strcmp(set.benchmarks[n].variant, "fused") == 0);
  variant_list_destroy(&variants);
}

/* A list of variants of these names, for which nothing is loaded. */
static variant_list named(attn_variant *storage, const attn_variant **pointers, const char *const *names) {
  variant_list list = {.variants = pointers};
  for (; names[list.count]; list.count++) {
    storage[list.count] = (attn_variant){.name = names[list.count]};
    pointers[list.count] = &storage[list.count];
  }
  return list;
}

static void a_variant_that_the_head_lacks_is_found_and_can_be_accepted(void **state) {
  (void)state;
  static const char *const base_names[] = {"naive", "fused", "linear", NULL};
  static const char *const head_names[] = {"naive", "merged", "linear", NULL};
  attn_variant storage[2][3];
  const attn_variant *pointers[2][3];
  const variant_list base = named(storage[0], pointers[0], base_names);
  const variant_list head = named(storage[1], pointers[1], head_names);
  const struct {
    const char *accepted;
    bool accepts;
  } cases[] = {{"time all no", false},
               {"variants linear no", false},
               {"variants merged it is another name", false},
               {"variants fused it is called merged now", true},
               {"variants all tidied up", true}};
  const gate_times none = {.measured = false};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const gate_options options = {.accepted = &cases[n].accepted, .accepted_count = 1};
    gate_findings findings = {0};
    assert_true(gate_find_missing(&base, &head, &options, &findings));
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].kind, GATE_VARIANTS);
    assert_string_equal(findings.items[0].variant, "fused");
    assert_non_null(strstr(findings.items[0].text, "new there: merged"));
    assert_int_equal(gate_decide(&findings, &none, true), cases[n].accepts ? GATE_PASS : GATE_REGRESSION);
    gate_findings_destroy(&findings);
    assert_true(gate_find_missing(&head, &head, &options, &findings));
    assert_int_equal(findings.count, 0);
  }
}

static const char *takes_whole_tiles(const attn_call *call) {
  return call->problem->query_length % 64 ? "takes whole tiles" : NULL;
}

static const char *takes_24_features(const attn_call *call) {
  return call->problem->head_dim != 24 ? "takes 24 features" : NULL;
}

static const char *takes_24_features_of_few(const attn_call *call) {
  return call->problem->key_length > 100 ? "takes 100 keys" : takes_24_features(call);
}

/* What only the base takes is compared with nothing, and what is not promised is not verified. */
static void a_variant_that_takes_or_promises_less_is_found(void **state) {
  (void)state;
  const attn_variant then = {.name = "mine",
                             .features = ATTN_BAND | ATTN_LSE,
                             .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16,
                             .traits = ATTN_BATCH_INVARIANT | ATTN_FLOAT32_WEIGHTS,
                             .time_exponent = 2};
  attn_variant heads[8];
  for (size_t n = 0; n < sizeof heads / sizeof *heads; n++) heads[n] = then;
  heads[0].features = ATTN_BAND;
  heads[1].types = 1u << ATTN_BFLOAT16;
  heads[2].traits = ATTN_FLOAT32_WEIGHTS;
  heads[3].traits = ATTN_BATCH_INVARIANT;
  heads[4].traits |= ATTN_FREE_BITS;
  heads[5].traits |= ATTN_FINITE;
  heads[6].unsupported = takes_whole_tiles;
  heads[7].features |= ATTN_OFFSET; /* more is no finding */
  heads[7].traits |= ATTN_DECODE_INVARIANT;
  static const char *const words[] = {
      "gives no log-sum-exp, and did in the base",
      "does not take float32, and did in the base",
      "promised the same bits in any company in the base, and is no longer held to it",
      "promised weights that are not rounded to 16 bits in the base",
      "promised the same bits in each run, layout and number of threads in the base",
      "was held to NaN, infinity and numbers whose products overflow in the base",
      "does not take full/B:1/H:4/Hkv:4/D:64/T:60, and did in the base",
      NULL};
  for (size_t n = 0; n < sizeof heads / sizeof *heads; n++) {
    const attn_variant *of_base = &then, *of_head = &heads[n];
    const variant_list base = {.variants = &of_base, .count = 1}, head = {.variants = &of_head, .count = 1};
    const gate_options options = {.base_count = 0};
    gate_findings findings = {0};
    assert_true(gate_find_less(&base, &head, &options, &findings));
    assert_int_equal(findings.count, words[n] != NULL);
    if (words[n] && !strstr(findings.items[0].text, words[n]))
      fail_msg("%s: %s", words[n], findings.items[0].text);
    gate_findings_destroy(&findings);
  }
}

static const char *takes_no_weights(const attn_call *call) {
  return call->problem->weights.type != ATTN_ABSENT ? "keeps no weights" : NULL;
}

static size_t count_lost(const attn_variant *then, uint64_t lost) {
  const attn_variant now = {.name = then->name,
                            .features = then->features & ~lost,
                            .types = then->types,
                            .traits = then->traits,
                            .unsupported = takes_no_weights};
  const attn_variant *of_head = &now;
  const variant_list base = {.variants = &then, .count = 1}, head = {.variants = &of_head, .count = 1};
  const gate_options options = {.base_count = 0};
  gate_findings findings = {0};
  assert_true(gate_find_less(&base, &head, &options, &findings));
  const size_t count = findings.count;
  gate_findings_destroy(&findings);
  return count;
}

/* It is offered all that version 1 knew, and says of a problem alone that it does not take it. */
static void what_one_of_version_1_never_took_is_not_lost(void **state) {
  (void)state;
  char why[512];
  variant_list variants = {0};
  assert_true(variant_list_add(&variants, ATTN_BUILD_DIR "/tests/plugins/version_1.so", why, sizeof why));
  const attn_variant *old = variants.variants[0];
  assert_int_equal(count_lost(old, ATTN_WEIGHTS), 0);
  assert_int_equal(count_lost(old, ATTN_LSE), 1);
  assert_int_equal(count_lost(old, ATTN_WEIGHTS | ATTN_LSE), 1);
  variant_list_destroy(&variants);
  /* Who declares them loses them. */
  const attn_variant declares = {.name = "mine",
                                 .features = ATTN_LSE | ATTN_WEIGHTS | ATTN_DOCUMENTS,
                                 .types = 1u << ATTN_FLOAT16,
                                 .unsupported = takes_no_weights};
  assert_int_equal(count_lost(&declares, ATTN_WEIGHTS), 1);
  assert_int_equal(count_lost(&declares, ATTN_DOCUMENTS), 1);
}

/* Nor is it lost where none of the usual problems is taken. */
static void a_narrow_variant_that_takes_less_is_found(void **state) {
  (void)state;
  const attn_variant then = {.name = "mine", .types = 1u << ATTN_FLOAT32, .unsupported = takes_24_features};
  attn_variant now = then;
  now.unsupported = takes_24_features_of_few;
  const attn_variant *of_base = &then, *of_head = &now;
  const variant_list base = {.variants = &of_base, .count = 1}, head = {.variants = &of_head, .count = 1};
  const gate_options options = {.base_count = 0};
  gate_findings findings = {0};
  assert_true(gate_find_less(&base, &head, &options, &findings));
  assert_int_equal(findings.count, 1);
  if (!strstr(findings.items[0].text, "/D:24/")) fail_msg("%s", findings.items[0].text);
  gate_findings_destroy(&findings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_variant_is_identical_wherever_its_name_stands),
      cmocka_unit_test(a_variant_that_the_head_lacks_is_found_and_can_be_accepted),
      cmocka_unit_test(a_variant_that_takes_or_promises_less_is_found),
      cmocka_unit_test(what_one_of_version_1_never_took_is_not_lost),
      cmocka_unit_test(a_narrow_variant_that_takes_less_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
