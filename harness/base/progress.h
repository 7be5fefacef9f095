/* How far a run is, on stderr: one line that is drawn again where there is a terminal, and elsewhere, as in the log of a CI or
 * on a terminal that knows no control characters, a line every ten seconds. */
#ifndef ATTN_HARNESS_PROGRESS_H
#define ATTN_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
  bool shown, on_terminal;
  double started, drawn; /* on the wall clock */
} progress;

/* TERM is "dumb". */
bool terminal_is_dumb(void);

/* Nothing is shown when quiet. */
progress progress_begin(bool quiet);

/* Draws the line again, some ten times a second at most, or prints the next one. */
void progress_show(progress *progress, size_t done, size_t total, double seconds_left, const char *what);

/* Wipes the line. */
void progress_end(progress *progress);

#endif
