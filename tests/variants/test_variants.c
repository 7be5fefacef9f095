/* What every variant of our own must keep to on any problem that it takes, on every instruction set: all
 * properties, drawn by a fixed seed, and the verification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/heap_calls.h"
#include "verify/properties.h"
#include "verify/verify.h"
#include "own_variants.h"

enum {
  PROBLEMS = 6,
  NARROW = 6,
  ALL_PROBLEMS = 40,
  MOST_PROBLEMS = 2000,
  SEED = 20,
  MOST_VARIANTS = 64,
  TYPES = 5
};

/* Then it takes ten times as long, and fewer problems have to do. */
static bool is_instrumented(void) { return !heap_calls_are_seen(); }

static bool is_full(void) { return getenv("ATTN_TEST_FULL") != NULL; }

static int64_t count_texts(const char *const *texts) {
  int64_t count = 0;
  while (texts[count]) count++;
  return count;
}

static void hold(properties *prepared, const workload *w, const attn_variant *variant, const char *isa,
                 unsigned wanted, unsigned *checked) {
  char name[WORKLOAD_NAME_BYTES], why[256];
  property_verdict verdict;
  const run_setup setup = {.variant = variant, .isa = isa, .threads = 2};
  const bool ran = properties_hold(prepared, &setup, wanted, &verdict, why, sizeof why);
  workload_name(w, name);
  if (!ran) fail_msg("%s", why);
  if (verdict.failed) fail_msg("%s with %s on %s: %s", variant->name, isa, name, verdict.problem);
  *checked |= verdict.checked;
}

/* Linear attention has no exponential of a score, no log-sum-exp and no bias; and what is not promised is not held. */
static unsigned expected_of(const attn_variant *variant) {
  unsigned expected = PROPERTIES_ALL;
  if (variant->function != ATTN_SOFTMAX && variant->function != ATTN_LINEAR)
    return 1u << PROPERTY_REPEAT | 1u << PROPERTY_WORKSPACE | 1u << PROPERTY_THREADS |
           1u << PROPERTY_SIDE_EFFECTS | 1u << PROPERTY_LAYOUT | 1u << PROPERTY_ORDER;
  if (variant->function == ATTN_LINEAR)
    expected &= ~(1u << PROPERTY_SHIFT | 1u << PROPERTY_HALVES | 1u << PROPERTY_BIAS);
  if (!(variant->features & ATTN_PATTERN)) expected &= ~(1u << PROPERTY_PATTERN);
  if (!(variant->features & (ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5))) expected &= ~(1u << PROPERTY_POSITION);
  if (!(variant->features & ATTN_ROPE)) expected &= ~(1u << PROPERTY_ROPE);
  if (!(variant->features & ATTN_GENERAL)) expected &= ~(1u << PROPERTY_GENERAL);
  if (!(variant->features & ATTN_ADDITIVE)) expected &= ~(1u << PROPERTY_ADDITIVE);
  if (!(variant->features & ATTN_STATE)) expected &= ~(1u << PROPERTY_PARTS);
  if (!(variant->features & ATTN_DROPOUT)) expected &= ~(1u << PROPERTY_DROPOUT);
  if (!(variant->features & ATTN_SINK)) expected &= ~(1u << PROPERTY_SINK);
  if (!(variant->traits & ATTN_BATCH_INVARIANT)) expected &= ~(1u << PROPERTY_COMPANY);
  if (!(variant->traits & ATTN_DECODE_INVARIANT)) expected &= ~(1u << PROPERTY_DECODED);
  return expected;
}

/* The properties that the variant must have and that have been held on no problem of this type yet. */
static unsigned lacks(const attn_variant *variant, const unsigned checked[TYPES], int type) {
  return variant->types >> type & 1 ? expected_of(variant) & ~checked[type] : 0;
}

/* On one problem, instruction sets in turn; notes what was held of each variant. lacking: only of those that lack something,
 * and but for `make test-full` only what they lack. */
static void hold_all(const workload *w, int64_t turn, bool lacking, unsigned checked[MOST_VARIANTS][TYPES]) {
  inputs in;
  expected known;
  char why[256];
  bool takes[MOST_VARIANTS] = {false}, any = false;
  const attn_problem problem = workload_problem(w);
  for (size_t v = 0; v < own_variants.count; v++) {
    const attn_variant *variant = own_variants.variants[v];
    takes[v] =
        !runner_refusal(variant, &problem) && (!lacking || lacks(variant, checked[v], problem.query.type));
    any = any || takes[v];
  }
  if (!any) return;
  if (!inputs_create(&in, w, false, why, sizeof why) || !expected_solve(&known, &in, 64, why, sizeof why))
    fail_msg("%s", why);
  properties *prepared = properties_prepare(&in, &known, why, sizeof why);
  if (!prepared) fail_msg("%s", why);
  const char *const *sets = own_variants.tables[0]->instruction_sets();
  const int64_t set_count = count_texts(sets);
  if (set_count == 0) {
    fail_msg("there is no instruction set");
    return;
  }
  for (size_t v = 0; v < own_variants.count; v++)
    if (takes[v]) {
      unsigned *own = checked[v];
      const int type = problem.query.type;
      hold(prepared, w, own_variants.variants[v], sets[turn % set_count],
           lacking && !is_full() ? lacks(own_variants.variants[v], own, type) : PROPERTIES_ALL, &own[type]);
    }
  properties_destroy(prepared);
  expected_destroy(&known);
  inputs_destroy(&in);
}

static bool is_complete(unsigned checked[MOST_VARIANTS][TYPES]) {
  for (size_t v = 0; v < own_variants.count; v++)
    for (int type = ATTN_FLOAT32; type <= ATTN_FLOAT16; type++)
      if (lacks(own_variants.variants[v], checked[v], type)) return false;
  return true;
}

/* In each type; problems of 16 bits are small. First all variants on some problems, and then those of which a property has said
 * nothing yet, until none is left: which problems are drawn first changes with whatever can be drawn. */
static void every_property_holds_for_every_variant(void **state) {
  (void)state;
  unsigned checked[MOST_VARIANTS][TYPES] = {{0}};
  const int64_t wide = is_full() ? ALL_PROBLEMS : PROBLEMS, least_narrow = is_full() ? ALL_PROBLEMS : NARROW;
  assert_in_range(own_variants.count, 7, MOST_VARIANTS);
  int64_t n = 0;
  for (int64_t of_float32 = 0, narrow = 0; of_float32 < wide || narrow < least_narrow; n++) {
    const workload w = properties_problem(SEED, n);
    const int64_t turn = w.type ? narrow++ : of_float32++;
    hold_all(&w, turn, turn >= (w.type ? least_narrow : wide), checked);
  }
  for (; n < MOST_PROBLEMS && !is_complete(checked); n++) {
    const workload w = properties_problem(SEED, n);
    hold_all(&w, n, true, checked);
  }
  for (size_t v = 0; v < own_variants.count; v++)
    for (int type = ATTN_FLOAT32; type <= ATTN_FLOAT16; type++)
      for (int number = 0; number < PROPERTIES; number++)
        if (lacks(own_variants.variants[v], checked[v], type) &&
            expected_of(own_variants.variants[v]) >> number & ~checked[v][type] >> number & 1)
          fail_msg("'%s' said nothing of %s in type %d", property_name((property)number),
                   own_variants.variants[v]->name, type);
}

/* A part of the verification that is quick: one in 24 of its problems (`make test-full`: in 12), for which
 * instruction sets take turns. All of them are for `attnbench verify` itself, which `make verify` and the gate run.
 * Its words are shown where it fails. */
static void every_variant_passes_the_verification(void **state) {
  (void)state;
  FILE *said = tmpfile();
  assert_non_null(said);
  const verify_options options = {.every = is_full() ? 12 : 24,
                                  .isa_in_turn = true,
                                  .random_count = is_instrumented() ? 0
                                                  : is_full()       ? 40
                                                                    : 5,
                                  .seed = 1,
                                  .threads = 2,
                                  .fail_fast = true};
  const int status = verify_all(&own_variants, &options, said);
  if (status != 0) {
    char line[1024];
    rewind(said);
    while (fgets(line, sizeof line, said)) fputs(line, stderr);
  }
  fclose(said);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_property_holds_for_every_variant),
      cmocka_unit_test(every_variant_passes_the_verification),
  };
  /* Of what test-full adds, as .ci/run asks for it: its gate poses all of the verification. */
  const char *full = getenv("ATTN_TEST_FULL");
  if (full && strcmp(full, "alone") == 0) cmocka_set_test_filter("every_property_holds_for_every_variant");
  return cmocka_run_group_tests(tests, own_variants_load, own_variants_unload);
}
