/* Command lines for tests, given as one string with single spaces. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/* The words live until the next call. */
bool parse_line(options *options, const char *line, char *why, size_t why_size);

/* Fails the test where the line is refused. */
void parse_line_well(options *options, const char *line);

#endif
