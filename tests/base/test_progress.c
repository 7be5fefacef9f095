/* How far a run is, said where there is no terminal. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"

/* What three calls in a row write to stderr, `seconds` after the line before them. */
static void write_three(bool quiet, double seconds, char *text, size_t size) {
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(stderr);
  const int before = dup(STDERR_FILENO);
  assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
  progress shown = progress_begin(quiet);
  shown.drawn -= seconds;
  for (size_t n = 3; n < 6; n++) progress_show(&shown, n, 80, 75, "fused/full/T:64");
  progress_end(&shown);
  fflush(stderr);
  assert_true(dup2(before, STDERR_FILENO) >= 0);
  close(before);
  rewind(file);
  text[fread(text, 1, size - 1, file)] = '\0';
  fclose(file);
}

static void without_a_terminal_a_line_is_printed_every_ten_seconds(void **state) {
  (void)state;
  char text[512];
  write_three(false, 11, text, sizeof text);
  if (strncmp(text, "3 of 80  ", 9) != 0 || !strstr(text, "about 1:15 left  fused/full/T:64\n"))
    fail_msg("%s", text);
  assert_int_equal(strcspn(text, "\n"), strlen(text) - 1); /* the second is not due yet */
  assert_null(strpbrk(text, "\r\033"));
  write_three(false, 8, text, sizeof text);
  assert_string_equal(text, "");
  write_three(true, 11, text, sizeof text);
  assert_string_equal(text, "");
}

static void a_dumb_terminal_is_told_by_its_name(void **state) {
  (void)state;
  const char *was = getenv("TERM");
  char *kept = was ? strdup(was) : NULL;
  setenv("TERM", "dumb", 1);
  assert_true(terminal_is_dumb());
  setenv("TERM", "xterm-256color", 1);
  assert_false(terminal_is_dumb());
  unsetenv("TERM");
  assert_false(terminal_is_dumb());
  if (kept) setenv("TERM", kept, 1);
  free(kept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_terminal_a_line_is_printed_every_ten_seconds),
      cmocka_unit_test(a_dumb_terminal_is_told_by_its_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
