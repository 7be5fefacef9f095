/* One line on the terminal that says how far a run is; nothing where there is no terminal. */
#ifndef ATTN_HARNESS_PROGRESS_H
#define ATTN_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct progress {
  bool shown;
  double started, drawn; /* on the wall clock */
} progress;

/* Nothing is drawn when quiet or when stderr is not a terminal. */
progress progress_begin(bool quiet);

/* Draws the line again, some ten times a second at most. */
void progress_show(progress *progress, size_t done, size_t total, double seconds_left, const char *what);

/* Wipes the line. */
void progress_end(progress *progress);

#endif
