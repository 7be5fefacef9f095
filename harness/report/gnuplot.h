/* gnuplot, run on three files in turn, without settings of the user's own. */
#ifndef ATTN_HARNESS_GNUPLOT_H
#define ATTN_HARNESS_GNUPLOT_H

#include <stdbool.h>
#include <stddef.h>

/* complaints: a file for what it says on stderr. False, with the reason in words. */
bool gnuplot_run(const char *const files[3], const char *complaints, char *why, size_t why_size);

#endif
