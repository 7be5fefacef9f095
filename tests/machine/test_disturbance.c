/* What disturbs a measurement is counted, and told where it matters. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/disturbance.h"
#include "report/format.h"
#include "base/timer.h"

static void shares_and_steps_lie_where_they_can(void **state) {
  (void)state;
  const disturbance_watch watch = disturbance_begin();
  while (wall_seconds() - watch.wall < 0.1) {
  }
  const disturbance found = disturbance_end(&watch);
  assert_true(found.seconds >= 0.1 && found.involuntary_switches >= 0);
  if (isfinite(found.others_share)) assert_true(found.others_share >= 0 && found.others_share <= 1);
  if (isfinite(found.stolen_share)) assert_true(found.stolen_share >= 0 && found.stolen_share <= 1);
  assert_true(found.clock_step_seconds > 0 && found.clock_step_seconds < 0.01);
}

/* Two processors and a third that is busy. */
static void what_others_do_on_other_processors_does_not_count(void **state) {
  (void)state;
  static char stat[] = "cpu  1000 0 0 300 0 0 0 9 0 0\n"
                       "cpu0 100 1 2 50 3 4 5 6 0 0\n"
                       "cpu1 10 0 0 90 0 0 0 1 0 0\n"
                       "cpu10 890 0 0 10 0 0 0 0 0 0\n"
                       "intr 1 2 3\n";
  static const int ours[] = {0, 1}, missing[] = {0, 2};
  disturbance_watch watch = {0}, none = {0};
  FILE *file = fmemopen(stat, strlen(stat), "r");
  assert_non_null(file);
  disturbance_read_ticks(&watch, file, ours, 2);
  assert_true(watch.busy == 100 + 1 + 2 + 4 + 5 + 10 && watch.stolen == 7);
  assert_true(watch.all == watch.busy + 50 + 3 + 6 + 90 + 1);
  rewind(file);
  disturbance_read_ticks(&none, file, missing, 2);
  assert_true(isnan(none.busy) && isnan(none.all));
  fclose(file);
}

static char *warnings_of(const report *report) {
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  report_warnings(report, "! ", out);
  fclose(out);
  return text;
}

static const report quiet = {
    .machine.optimised = true,
    .disturbance = {60, 60, 0.002, 0.001, 50e-9, 0.05},
};

static void a_quiet_run_has_no_warnings(void **state) {
  (void)state;
  char *text = warnings_of(&quiet);
  assert_string_equal(text, "");
  free(text);
}

static void each_thing_that_spoils_a_run_is_warned_of(void **state) {
  (void)state;
  report spoilt[6] = {quiet, quiet, quiet, quiet, quiet, quiet};
  spoilt[0].machine.optimised = false;
  spoilt[1].machine.frequency_scaling = true;
  spoilt[2].disturbance.others_share = 0.25;
  spoilt[3].disturbance.stolen_share = 0.11;
  spoilt[4].disturbance.involuntary_switches = 6000;
  spoilt[5].disturbance.clock_step_seconds = 1e-3;
  static const char *const words[] = {"not optimised",
                                      "Frequency scaling",
                                      "Other processes took 25%",
                                      "Other virtual machines took 11%",
                                      "interrupted 100 times a second",
                                      "clock steps by 1000000 ns"};
  for (size_t n = 0; n < 6; n++) {
    char *text = warnings_of(&spoilt[n]);
    if (strncmp(text, "! ", 2) != 0 || !strstr(text, words[n]) || text[strlen(text) - 1] != '\n' ||
        strcspn(text, "\n") != strlen(text) - 1)
      fail_msg("'%s' is not one line with '%s'", text, words[n]);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_and_steps_lie_where_they_can),
      cmocka_unit_test(what_others_do_on_other_processors_does_not_count),
      cmocka_unit_test(a_quiet_run_has_no_warnings),
      cmocka_unit_test(each_thing_that_spoils_a_run_is_warned_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
