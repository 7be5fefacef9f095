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

/* Sentences of the help. */
extern const char options_what_for[], options_how_to_give[], options_statuses[];

/* Of all commands that the help lists: the manual page, and what completes a line in bash. */
void options_manual(FILE *out);
void options_completion(FILE *out);

/* Calls `put` for each option of the commands in `shown`, 1 << COMMAND_... each, by the set of commands that take it:
 * the largest sets first, then in the order of the commands; with `heading`, the set in words, before the first of each. */
void options_in_groups(unsigned shown, void (*heading)(const char *commands, FILE *out),
                       void (*put)(const option_row *row, FILE *out), FILE *out);

#endif
