/* See shell.h. */
#define _GNU_SOURCE
#include "tests/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

char shell_output[1 << 18];

int shell(const char *command) {
  char *line;
  assert_true(asprintf(&line, "{ %s; } 2>&1", command) > 0);
  FILE *from = popen(line, "r");
  assert_non_null(from);
  shell_output[fread(shell_output, 1, sizeof shell_output - 1, from)] = '\0';
  const int status = pclose(from);
  free(line);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void shell_expect(const char *command, int status, const char *words) {
  const int ended = shell(command);
  if (ended == status && (!words || strstr(shell_output, words))) return;
  fprintf(stderr, "%s\n", shell_output); /* of a message cmocka shows 1024 characters */
  fail_msg("%s: status %d, expected %d and '%s'; what there was is above", command, ended, status,
           words ? words : "");
}
