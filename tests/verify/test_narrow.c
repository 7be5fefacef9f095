/* The bound of 16 bits admits kernels that round their weights, on inputs that hurt, and sees what is wrong; one key among
 * thousands by the exact probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/types.h"
#include "run/plugins.h"
#include "verify/verify.h"

static variant_list list;

static inputs inputs_of(const char *text) {
  char why[256];
  workload w;
  inputs in;
  if (!workload_parse_sound(text, &w, why, sizeof why)) fail_msg("%s", why);
  if (!inputs_create(&in, &w, false, why, sizeof why)) fail_msg("%s: %s", text, why);
  return in;
}

static verdict judge(const char *name, inputs *in) {
  const run_setup setup = {.variant = variant_list_find(&list, name), .threads = 1};
  char why[256] = "there is no such variant";
  verdict verdict = {0};
  if (!setup.variant || !verify_run(&setup, in, 0, &verdict, why, sizeof why)) fail_msg("%s: %s", name, why);
  return verdict;
}

/* The larger share of both bounds. */
static double share_of(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static double share_of(const char *name, const char *format, ...) {
  char text[WORKLOAD_NAME_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  inputs in = inputs_of(text);
  const verdict verdict = judge(name, &in);
  inputs_destroy(&in);
  return fmax(verdict.bound_share, verdict.probabilistic_share);
}

/* How many draws: `make test-full` takes more. */
static int draws(int few, int many) { return getenv("ATTN_TEST_FULL") ? many : few; }

static const char *const types[] = {"bf16", "f16", "bf16/out:f32", "f16/out:f32"};
/* The plugin's kernels are too plain for what is not finite; variants meet that in the grid. */
static const char *const fills[] = {"uniform",   "normal", "heavy",   "dominant",     "equal",
                                    "saturated", "rising", "falling", "cancellation", "around_one",
                                    "denormal",  "huge",   "zeros",   "powers",       "largest"};

static void rounding_the_weights_is_admitted(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
      for (int seed = 1; seed <= draws(1, 4); seed++) {
        const double right = share_of(
            "right", "causal_bottom_right/B:1/H:2/Hkv:1/D:24/Dv:9/Tq:20/Tk:400/lse/%s/fill:%s/seed:%d",
            types[t], fills[f], seed);
        if (!(right <= 1)) fail_msg("%s, fill:%s, seed:%d: %g", types[t], fills[f], seed, right);
      }
}

/* The exact probe is not for these: it wants weights that are powers of two, which a division spoils. */
static void rounding_normalised_weights_is_admitted(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int seed = 1; seed <= draws(3, 8); seed++)
      assert_true(share_of("normalises_first", "full/B:1/H:2/D:16/Tq:20/Tk:300/lse/%s/fill:normal/seed:%d",
                           types[t], seed) <= 1);
}

/* Equal weights round alike wherever they stand: four distinct keys, again and again, and values that add up. */
static void keys_that_repeat_are_admitted(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int seed = 1; seed <= draws(3, 12); seed++) {
      char text[128];
      snprintf(text, sizeof text, "full/B:1/H:1/D:16/Tq:16/Tk:4096/%s/seed:%d", types[t], seed);
      inputs in = inputs_of(text);
      const size_t row = (size_t)in.problem.head_dim * 2;
      unsigned char *keys = (unsigned char *)(uintptr_t)in.tensors.key;
      const element_type *type = element_type_of(in.problem.value.type);
      for (size_t j = 4; j < 4096; j++) memcpy(keys + j * row, keys + j % 4 * row, row);
      for (int64_t n = 0; n < in.problem.key_length * in.problem.value_dim; n++)
        type->store((unsigned char *)(uintptr_t)in.tensors.value + 2 * n,
                    1 + 0.1 * type->load((const unsigned char *)in.tensors.value + 2 * n));
      const verdict verdict = judge("right", &in);
      if (!verdict.passed) fail_msg("%s: %s", text, verdict.problem);
      inputs_destroy(&in);
    }
}

/* By the output alone, and in each row, for there is one: what one key's fault is of the bound, at least 20. */
static void see_any_key(const char *text) {
  static const char *const faults[] = {"drops_last_key", "drops_a_key",      "doubles_a_key",
                                       "drops_a_value",  "last_value_twice", "swaps_pairs"};
  inputs in = inputs_of(text);
  if (!judge("right", &in).passed) fail_msg("%s: the right one fails", text);
  for (size_t n = 0; n < sizeof faults / sizeof *faults; n++) {
    const double wrong = judge(faults[n], &in).exact_share;
    if (!(wrong > 20)) fail_msg("%s: %s has %g", text, faults[n], wrong);
  }
  inputs_destroy(&in);
}

static void any_key_is_seen_among_thousands(void **state) {
  (void)state;
  static const char *const probed[] = {"f32", "bf16", "f16", "bf16/out:f32", "f16/out:f32"};
  static const int lengths[] = {512, 4096, 16384, 65536};
  for (size_t t = 0; t < sizeof probed / sizeof *probed; t++)
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
      for (int seed = 1; seed <= draws(1, 10); seed++) {
        char text[WORKLOAD_NAME_BYTES];
        snprintf(text, sizeof text, "full/B:1/H:1/D:64/Tq:1/Tk:%d/%s/fill:exact/seed:%d", lengths[n],
                 probed[t], seed);
        see_any_key(text);
      }
}

/* What the checks say of a kernel, each as a share. */
static verdict verdict_of(const char *name, const char *text) {
  inputs in = inputs_of(text);
  const verdict verdict = judge(name, &in);
  inputs_destroy(&in);
  return verdict;
}

static void the_root_mean_square_shows_what_hides_below_the_bound(void **state) {
  (void)state;
  static const struct {
    const char *name, *problem;
  } hidden[] = {
      {"truncates_output", "full/B:1/H:2/D:64/Tq:128/Tk:256/bf16"},
      {"truncates_output", "full/B:1/H:1/D:64/Tq:64/Tk:4096/bf16/fill:around_one"},
      {"truncates_output", "full/B:1/H:2/D:64/Tq:128/Tk:256/f16"},
      {"truncates_weights", "full/B:1/H:2/D:64/Tq:128/Tk:256/bf16"},
      {"truncates_weights", "full/B:1/H:1/D:64/Tq:64/Tk:4096/bf16/fill:around_one"},
      {"truncates_weights", "full/B:1/H:2/D:64/Tq:128/Tk:256/f16"},
      {"rounds_sums", "full/B:1/H:2/D:64/Tq:128/Tk:1024/bf16"},
      {"rounds_sums", "full/B:1/H:2/D:64/Tq:128/Tk:1024/f16"},
  };
  for (size_t n = 0; n < sizeof hidden / sizeof *hidden; n++) {
    const verdict right = verdict_of("right", hidden[n].problem),
                  wrong = verdict_of(hidden[n].name, hidden[n].problem);
    if (!right.passed) fail_msg("right on %s: %s", hidden[n].problem, right.problem);
    if (wrong.passed || !strstr(wrong.problem, "root mean square"))
      fail_msg("%s on %s: %g of the bounds, %g of the root mean square; '%s'", hidden[n].name,
               hidden[n].problem, fmax(wrong.bound_share, wrong.probabilistic_share), wrong.mean_square_share,
               wrong.problem);
    assert_true(fmax(wrong.bound_share, wrong.probabilistic_share) < 1);
  }
}

/* Of 4096 keys one weighs about as much as 6 bounds of the log-sum-exp, or more where scores differ more. */
static void one_key_of_4096_shows_in_the_log_sum_exp(void **state) {
  (void)state;
  static const char *const fills_seen[] = {"uniform", "normal"}, *const all_types[] = {"f32", "bf16", "f16"};
  for (size_t t = 0; t < sizeof all_types / sizeof *all_types; t++)
    for (size_t n = 0; n < sizeof fills_seen / sizeof *fills_seen; n++) {
      char text[WORKLOAD_NAME_BYTES];
      snprintf(text, sizeof text, "full/B:1/H:2/D:64/Tq:32/Tk:4096/lse/fill:%s/%s", fills_seen[n],
               all_types[t]);
      const verdict right = verdict_of("right", text), dropped = verdict_of("drops_last_key", text);
      if (!(right.lse_share < 1) || !(dropped.lse_share > 6))
        fail_msg("%s: the right one has %g, without a key %g", text, right.lse_share, dropped.lse_share);
      assert_false(dropped.passed);
    }
}

/* The same numbers, which a kernel may give that has not promised to keep its weights in float32. */
static void who_promises_more_is_held_to_it(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    char text[WORKLOAD_NAME_BYTES];
    snprintf(text, sizeof text, "full/B:1/H:2/D:64/Tq:64/Tk:256/%s/fill:normal", types[t]);
    const verdict admitted = verdict_of("right", text), broken = verdict_of("rounds_and_denies_it", text);
    if (!admitted.passed || broken.passed)
      fail_msg("%s: '%s', promised otherwise '%s'", text, admitted.problem, broken.problem);
  }
}

static void faults_of_narrow_types_are_seen(void **state) {
  (void)state;
  static const struct {
    const char *name, *problem;
  } cases[] = {{"sums_rounded", "full/B:1/H:2/D:24/Tq:20/Tk:100/lse/%s/fill:normal"},
               {"scales_query", "full/B:1/H:2/D:24/Tq:20/Tk:100/lse/%s/fill:normal"},
               {"rounds_scores", "full/B:1/H:2/D:24/Tq:20/Tk:100/lse/%s/fill:normal"},
               {"truncates_output", "causal/B:1/H:2/D:24/T:30/lse/%s/fill:exact"},
               {"drops_last_key", "full/B:1/H:2/D:24/Tq:20/Tk:60/lse/%s"},
               {"last_value_twice", "full/B:1/H:2/D:24/Tq:20/Tk:60/%s"}};
  for (int t = 0; t < 2; t++)
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
      char text[256];
      const char *at = strstr(cases[n].problem, "%s");
      snprintf(text, sizeof text, "%.*s%s%s", (int)(at - cases[n].problem), cases[n].problem, types[t],
               at + 2);
      const double wrong = share_of(cases[n].name, "%s", text);
      if (!(wrong > 1)) fail_msg("%s on %s has %g", cases[n].name, text, wrong);
    }
}

static int load(void **state) {
  (void)state;
  char why[512];
  if (variant_list_add(&list, ATTN_BUILD_DIR "/tests/plugins/narrow.so", why, sizeof why)) return 0;
  fprintf(stderr, "%s\n", why);
  return -1;
}

static int unload(void **state) {
  (void)state;
  variant_list_destroy(&list);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounding_the_weights_is_admitted),
      cmocka_unit_test(rounding_normalised_weights_is_admitted),
      cmocka_unit_test(keys_that_repeat_are_admitted),
      cmocka_unit_test(any_key_is_seen_among_thousands),
      cmocka_unit_test(the_root_mean_square_shows_what_hides_below_the_bound),
      cmocka_unit_test(one_key_of_4096_shows_in_the_log_sum_exp),
      cmocka_unit_test(who_promises_more_is_held_to_it),
      cmocka_unit_test(faults_of_narrow_types_are_seen),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
