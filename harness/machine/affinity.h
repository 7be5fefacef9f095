/* The processors that this process may use, and threads that each keep to one of them. */
#ifndef ATTN_HARNESS_AFFINITY_H
#define ATTN_HARNESS_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

enum { AFFINITY_MOST = 1024 };

/* The numbers of the processors, ascending; how many there are, 0: the system does not say. They are those that the program was
 * started with, also when it is pinned and its first thread keeps to one. */
size_t affinity_processors(int processors[AFFINITY_MOST]);

/* The same as a list: "0-3,6". */
void affinity_name(char *text, size_t size);

bool affinity_is_pinned(void);

/* Begins the program again with OpenMP told to keep each of so many threads to one of the first so many of these processors,
 * which it reads when it is loaded; the others are then none of this process's. Returns only where that cannot be. */
void affinity_pin(char **argv, size_t threads);

#endif
