/* What verify says of kernels with a known mistake (tests/adversary), and how many of these mistakes it names. The
 * hints were improved on these kernels: that it names them is no estimate of how often it names others', but a guard
 * against losing what is known. An estimate is what `scripts/mutants.sh build --hints` counts over the planted
 * faults. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shell.h"

/* Each on a problem on which it is wrong; of what kind the mistake is. */
static const struct {
  const char *plugin, *kernel, *problem, *kind;
} mistakes[] = {
    {"numbers", "score_scaled_twice", "full/B:1/H:2/D:32/T:40", "scale"},
    {"numbers", "score_default_scale", "causal/B:1/H:2/D:32/T:40/scale:0.4", "scale"},
    {"numbers", "score_scale_without_sign", "causal/B:1/H:2/D:32/T:40/scale:-0.4", "scale"},
    {"numbers", "score_softcap_after_bias", "causal/B:1/H:2/D:32/T:40/softcap:0.5/bias:hq", "softcap"},
    {"numbers", "score_bias_is_scaled", "full/B:2/H:2/D:32/T:40/bias:hq", "bias"},
    {"numbers", "score_bias_of_first_entry", "full/B:2/H:2/D:32/T:40/bias:bq", "bias"},
    {"numbers", "score_bias_of_first_query", "full/B:2/H:2/D:32/T:40/bias:q", "bias"},
    {"numbers", "max_missing", "full/B:1/H:2/D:32/T:40/fill:saturated", "maximum"},
    {"numbers", "max_rescales_nothing", "full/B:1/H:2/D:32/T:200/fill:rising", "maximum"},
    {"numbers", "max_rescales_sum", "full/B:1/H:2/D:32/T:200/fill:rising", "maximum"},
    {"numbers", "max_rescales_output", "full/B:1/H:2/D:32/T:200/fill:rising", "maximum"},
    {"numbers", "exp_off_by_1e3", "full/B:1/H:2/D:32/T:40", "precision"},
    {"numbers", "exp_schraudolph", "full/B:1/H:2/D:32/T:40", "precision"},
    {"numbers", "round_weights_to_bfloat16", "full/B:1/H:2/D:32/T:40", "precision"},
    {"numbers", "round_with_epsilon", "full/B:1/H:2/D:32/T:40/fill:saturated/scale:1e-9", "sum"},
    {"numbers", "keys_one_dropped", "full/B:1/H:1/D:16/Tq:4/Tk:4097", "keys"},
    {"numbers", "keys_one_doubled", "full/B:1/H:1/D:16/Tq:4/Tk:4097", "keys"},
    {"numbers", "keys_last_dropped", "full/B:1/H:1/D:16/Tq:4/Tk:2050", "keys"},
    {"shapes", "mask_lengths_ignored", "full/B:2/H:2/D:16/T:40/lengths:20,33", "lengths"},
    {"shapes", "mask_causal_strict", "causal/B:1/H:2/D:16/T:40", "band"},
    {"shapes", "mask_window_wider", "window:6/B:1/H:2/D:16/T:40", "band"},
    {"shapes", "mask_of_first_head", "full/B:1/H:4/D:16/T:40/mask:hq", "mask"},
    {"shapes", "mask_hidden_row_is_nan", "causal_bottom_right/B:1/H:2/D:16/Tq:40/Tk:20", "empty"},
    {"shapes", "mask_hidden_row_is_mean", "causal_bottom_right/B:1/H:2/D:16/Tq:40/Tk:20", "empty"},
    {"shapes", "heads_modulo", "full/B:1/H:8/Hkv:2/D:16/T:20", "heads"},
    {"shapes", "heads_power_of_two", "full/B:1/H:6/Hkv:2/D:16/T:20", "heads"},
    {"shapes", "size_features_by_4", "full/B:1/H:1/D:131/T:20", "features"},
    {"shapes", "size_values_to_300", "full/B:1/H:1/D:16/Dv:310/T:20", "columns"},
};

enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* Whether the hint is of this kind; what verify said is in shell_output. */
static bool names(size_t n) {
  char command[2048], words[64];
  snprintf(command, sizeof command,
           "%s/attnbench verify --own=false --plugin %s/tests/adversary/wrong_%s.so --variant %s --problem "
           "%s --threads 2 --run-limit 60",
           ATTN_BUILD_DIR, ATTN_BUILD_DIR, mistakes[n].plugin, mistakes[n].kernel, mistakes[n].problem);
  if (shell(command) != 1) fail_msg("%s passes: %s", mistakes[n].kernel, shell_output);
  snprintf(words, sizeof words, "      hint: %s: ", mistakes[n].kind);
  return strstr(shell_output, words) != NULL;
}

static void two_thirds_of_the_mistakes_are_named(void **state) {
  (void)state;
  int named = 0;
  for (size_t n = 0; n < MISTAKES; n++) {
    const bool is_named = names(n);
    named += is_named;
    if (is_named) continue;
    const char *hint = strstr(shell_output, "      hint: ");
    print_message("%s (%s) is not named:%.*s\n", mistakes[n].kernel, mistakes[n].kind,
                  hint ? (int)strcspn(hint + 6, "\n") : 9, hint ? hint + 5 : " no hint ");
  }
  print_message("the hint names %d of %d\n", named, MISTAKES);
  if (3 * named < 2 * MISTAKES) fail_msg("the hint names %d of %d mistakes", named, MISTAKES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(two_thirds_of_the_mistakes_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
