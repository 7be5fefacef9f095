/* The help: what it shows of which command. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "command_line.h"
#include "option_table.h"
#include "problem/features.h"

static void put_help(command about, char *text, size_t size) {
  FILE *out = fmemopen(text, size, "w");
  assert_non_null(out);
  options_help(about, out);
  assert_int_equal(fclose(out), 0);
}

static bool has_line_of(const char *help, const char *name) {
  char start[80];
  snprintf(start, sizeof start, "\n  %s ", name);
  return strstr(help, start) != NULL;
}

static void the_help_of_a_command_has_its_options_and_no_others(void **state) {
  (void)state;
  static char help[32768];
  size_t count;
  const option_row *rows = option_rows(&count);
  for (unsigned n = 0; n < COMMAND_COUNT; n++) {
    if (n == COMMAND_HELP) continue;
    put_help((command)n, help, sizeof help);
    assert_true(strlen(help) < sizeof help - 1 && strstr(help, option_command((command)n)->name));
    for (size_t i = 0; i < count; i++) {
      bool taken = false;
      for (size_t other = 0; other < count; other++)
        taken = taken || (strcmp(rows[i].name, rows[other].name) == 0 && rows[other].commands >> n & 1);
      if (has_line_of(help, rows[i].name) != taken)
        fail_msg("%s in the help of %s:\n%s", rows[i].name, option_command((command)n)->name, help);
    }
  }
}

static void the_help_of_all_hides_what_the_program_runs_of_itself(void **state) {
  (void)state;
  static char help[32768];
  put_help(COMMAND_HELP, help, sizeof help);
  assert_non_null(strstr(help, "\nbench, verify, fuzz and list\n  --plugin "));
  assert_non_null(strstr(help, "gate --help lists its options"));
  static const char *const absent[] = {"gate-measure", "count-instructions", "--itself", "--quads",
                                       "\n  --head FILE.so"};
  for (size_t n = 0; n < sizeof absent / sizeof *absent; n++)
    if (strstr(help, absent[n])) fail_msg("the help has %s", absent[n]);
}

static void help_is_about_the_command_that_is_named(void **state) {
  (void)state;
  static const struct {
    const char *line;
    command about;
  } cases[] = {{"help", COMMAND_HELP},
               {"--help", COMMAND_HELP},
               {"--threads 2 -h", COMMAND_HELP},
               {"benhc --help", COMMAND_HELP},
               {"bench --help", COMMAND_BENCH},
               {"verify --frobnicate -h", COMMAND_VERIFY},
               {"gate --head a.so --help", COMMAND_GATE},
               {"gate-measure --help", COMMAND_GATE_MEASURE},
               {"help gate", COMMAND_GATE},
               {"help problem", COMMAND_PROBLEM},
               {"problem --help", COMMAND_PROBLEM},
               {"help help", COMMAND_HELP}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    options options;
    parse_line_well(&options, cases[n].line);
    assert_int_equal(options.command, COMMAND_HELP);
    if (options.about != cases[n].about) fail_msg("'%s'", cases[n].line);
    options_destroy(&options);
  }
}

/* Every part that a line may have is in the grammar. */
static void the_grammar_has_every_part(void **state) {
  (void)state;
  static const char *const parts[] = {
      "Hkv:",   "Dv:",   "Tq:",      "Tk:", "window:W", "band:LEFT", "causal_bottom_right",
      "linear", "f32",   "bf16",     "f16", "out:f32",  "layout:",   "fill:",
      "seed:",  "mixed", "nonfinite"};
  static char help[32768];
  put_help(COMMAND_PROBLEM, help, sizeof help);
  for (size_t n = 0; n < sizeof parts / sizeof *parts; n++)
    if (!strstr(help, parts[n])) fail_msg("help problem lacks %s:\n%s", parts[n], help);
  for (int n = 0; n < FEATURES; n++)
    if (feature_table[n].key && !strstr(help, feature_table[n].key))
      fail_msg("help problem lacks %s", feature_table[n].key);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_help_of_a_command_has_its_options_and_no_others),
      cmocka_unit_test(the_help_of_all_hides_what_the_program_runs_of_itself),
      cmocka_unit_test(help_is_about_the_command_that_is_named),
      cmocka_unit_test(the_grammar_has_every_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
