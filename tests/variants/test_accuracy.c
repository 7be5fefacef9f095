/* Every variant of our own is about as accurate as naive, on every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/statistics.h"
#include "variants/tile/tile.h"
#include "verify/verify.h"
#include "own_variants.h"

enum { MOST_VARIANTS = 64, MOST_CASES = 96 };

/* Errors as shares of their bounds: of a variant, and of naive on the same problems. */
typedef struct accuracy {
  double own[MOST_CASES], naive[MOST_CASES];
  size_t count;
} accuracy;

/* The largest share of all instruction sets. */
static double error_share(const attn_variant *variant, inputs *in, const expected *known) {
  double largest = 0;
  for (const char *const *isa = own_variants.tables[0]->instruction_sets(); *isa; isa++) {
    char why[256];
    verdict verdict;
    if (tile_refusal(*isa, in->problem.query.type)) continue;
    const run_setup setup = {.variant = variant, .isa = *isa, .threads = 2};
    const bool ran = verify_run_against(&setup, in, known, false, &verdict, why, sizeof why);
    if (!ran) fail_msg("%s", why);
    if (!verdict.passed) fail_msg("%s with %s: %s", variant->name, *isa, verdict.problem);
    largest = fmax(largest, verdict.bound_share);
  }
  return largest;
}

/* Those of all variants of a function on the same numbers. Returns naive's, or takes it from the caller. */
static double note_shares(workload w, attn_function function, double naive, accuracy accuracies[]) {
  char why[256];
  inputs in;
  expected known;
  w.function = function;
  if (!inputs_create(&in, &w, false, why, sizeof why) || !expected_solve(&known, &in, 100, why, sizeof why))
    fail_msg("%s", why);
  for (size_t v = 0; v < own_variants.count; v++) {
    if (own_variants.variants[v]->function != function ||
        runner_refusal(own_variants.variants[v], &in.problem))
      continue;
    const double share = error_share(own_variants.variants[v], &in, &known);
    if (v == 0) naive = share;
    accuracies[v].naive[accuracies[v].count] = naive;
    accuracies[v].own[accuracies[v].count++] = share;
  }
  expected_destroy(&known);
  inputs_destroy(&in);
  return naive;
}

/* A share says how much was lost of what float32 may lose, so that even linear attention, another function
 * with another bound, can be held against naive. One problem says little: its largest error is in one of its
 * rows. An exponential with a relative error of 1e-5, which the bounds let pass, is seen here. */
static void no_variant_errs_twice_as_much_as_naive(void **state) {
  (void)state;
  static const char *const problems[] = {
      "full/B:1/H:4/D:64/T:130",         "full/B:1/H:4/Hkv:2/D:128/T:300/fill:normal",
      "full/B:1/H:4/Hkv:1/D:80/T:520",   "full/B:1/H:4/Hkv:1/D:64/Tq:1/Tk:3000/fill:normal",
      "causal/B:1/H:4/D:128/T:130",      "causal/B:1/H:4/Hkv:2/D:64/T:300/fill:normal",
      "causal/B:1/H:4/Hkv:1/D:64/T:130", "causal/B:1/H:4/D:40/T:400/fill:normal"};
  static accuracy accuracies[MOST_VARIANTS];
  assert_string_equal(own_variants.variants[0]->name, "naive");
  for (int n = 0; n < MOST_CASES; n++) {
    char why[256];
    workload w;
    if (!workload_parse(problems[(size_t)n % (sizeof problems / sizeof *problems)], &w, why, sizeof why))
      fail_msg("%s", why);
    w.seed = (uint64_t)n;
    const double naive = note_shares(w, ATTN_SOFTMAX, NAN, accuracies);
    note_shares(w, ATTN_LINEAR, naive, accuracies);
  }
  for (size_t v = 0; v < own_variants.count; v++) {
    const accuracy *a = &accuracies[v];
    double own = 0, naive = 0;
    const attn_function function = own_variants.variants[v]->function;
    if (function != ATTN_SOFTMAX && function != ATTN_LINEAR) continue; /* they have other bounds */
    assert_true(a->count > 0);
    for (size_t n = 0; n < a->count; n++) {
      own = fmax(own, a->own[n]);
      naive = fmax(naive, a->naive[n]);
    }
    const double own_median = statistics_median(a->own, a->count);
    const double naive_median = statistics_median(a->naive, a->count);
    if (!(own <= 2 * naive && own_median <= 2 * naive_median))
      fail_msg("%s has errors of %.3g of their bounds, median %.3g; naive of %.3g, median %.3g",
               own_variants.variants[v]->name, own, own_median, naive, naive_median);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_variant_errs_twice_as_much_as_naive),
  };
  return cmocka_run_group_tests(tests, own_variants_load, own_variants_unload);
}
