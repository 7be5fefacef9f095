/* The command line. What there is to say stands in option_table.h; whether a variant, a preset or a shape
 * exists is not looked at here. */
#ifndef ATTN_HARNESS_OPTIONS_H
#define ATTN_HARNESS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "option_table.h"

/* Fills *options, which options_destroy empties also after a failure. False, with the reason in words,
 * when the command line is wrong. Texts in *options point into argv, which must stay. */
bool options_parse(options *options, int argc, char **argv, char *why, size_t why_size);
void options_destroy(options *options);

/* Every command and every option with its default (COMMAND_HELP), or those of one command. */
void options_help(command about, FILE *out);

#endif
