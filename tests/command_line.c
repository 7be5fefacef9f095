#include "command_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

bool parse_line(options *options, const char *line, char *why, size_t why_size) {
  static char words[1024];
  static char *argv[64];
  int argc = 0;
  snprintf(words, sizeof words, "attnbench %s", line);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
  return options_parse(options, argc, argv, why, why_size);
}

void parse_line_well(options *options, const char *line) {
  char why[512] = "";
  if (!parse_line(options, line, why, sizeof why)) fail_msg("'%s' was refused: %s", line, why);
}
