/* Runs another program to its end and keeps what it said. */
#ifndef ATTN_HARNESS_CHILD_H
#define ATTN_HARNESS_CHILD_H

#include <stddef.h>

/* argv[0] is looked up in PATH; environment NULL: that of this process. The exit status, or 128 and the
 * signal that ended it; -1, with the reason in words, when it could not be run. *said is what it wrote
 * to both its outputs, for the caller to free, never NULL unless -1 is returned. */
int child_run(char *const argv[], char *const environment[], char **said, char *why, size_t why_size);

/* The last line of a text that is not empty, without its end; "" when there is none. For messages. */
const char *child_last_line(char *said);

#endif
