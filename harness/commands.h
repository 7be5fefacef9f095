/* The commands of the program, and what they share. Each says what went wrong and returns the exit status. */
#ifndef ATTN_HARNESS_COMMANDS_H
#define ATTN_HARNESS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/parts.h"
#include "options.h"
#include "report/report.h"
#include "run/plugins.h"

enum { STATUS_GOOD = 0, STATUS_WRONG = 1, STATUS_UNUSABLE = 2, STATUS_INTERRUPTED = 130, WHY_BYTES = 2048 };

/* Commands that run variants of a list. */
int run_bench(const options *options, const variant_list *list);
int run_verify(const options *options, const variant_list *list); /* fuzz too */
int run_list(const variant_list *list);
int run_gate_measure(const options *options);

/* Commands that run none, or in processes of their own. */
int run_machine(const options *options);
int run_dump(const options *options);
int run_judge(const options *options);
int run_show(const options *options);
int run_plots(const options *options);
int run_report(const options *options);
int run_merge(const options *options);
int run_gate(const options *options);

/* Prints why and returns STATUS_UNUSABLE. */
int command_complain(const char *why);

/* The instruction set that the command line, or else the environment, holds variants to, of whichever table; NULL when
 * neither does. False when no table has it on this processor. */
bool command_isa(const options *options, const variant_list *list, const char **isa, char *why,
                 size_t why_size);

void command_list_presets(FILE *out);
const char *const *command_texts(const text_list *list);

/* Of the terminal that the standard output is; 0: it is none. */
int command_terminal_width(void);
bool command_wants_color(const options *options);

/* False when a file of that option's could not be written; NULL can. */
bool command_check_file(const char *option, const char *file, char *why, size_t why_size);

/* False where two of the files that a bench writes are the same: one would replace the other. */
bool command_check_apart(const options *options, char *why, size_t why_size);

/* The folder of the gnuplot files; found is where the program's own is written. */
const char *command_scripts(const options *options, char found[PARTS_PATH_BYTES]);
plot_style command_style(const options *options, char found[PARTS_PATH_BYTES]);

/* Everything that --out asks for; has_pictures: whether all pictures are there and of this report. */
bool command_write_folder(const report *report, const options *options, const report_options *rows,
                          bool *has_pictures, char *why, size_t why_size);
int command_report_status(const report *report);

/* The status, or that of a command that was ended by Ctrl-C where one was, unless a kernel is wrong. */
int command_status(int status);

#endif
