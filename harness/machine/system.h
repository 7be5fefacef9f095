/* What Linux says of itself, in its files. */
#ifndef ATTN_HARNESS_SYSTEM_H
#define ATTN_HARNESS_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of a file without its end; false when there is none. */
bool system_line(const char *path, char *line, size_t line_size);

/* What follows the colon in the first line of the file that has the key before it; false when there is none. */
bool system_value(const char *path, const char *key, char *value, size_t value_size);

#endif
