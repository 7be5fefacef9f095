/* Files that are replaced whole: written beside, then renamed, so that a reader finds the old one or the new one. */
#ifndef ATTN_HARNESS_REPLACE_H
#define ATTN_HARNESS_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

/* Where the file lies that this path leads to through symbolic links, the last of which may point to nothing yet: a
 * rename onto the link itself would end the link. For the caller to free; NULL with errno. */
char *replace_target(const char *path);

/* Renames a file onto what the path leads to. 0, or -1 with errno, as rename(2), which does not cross disks. */
int replace_rename(const char *beside, const char *path);

/* The stream that the program already writes to this file, which must not be replaced or emptied beneath it:
 * /dev/stdout where the standard output goes to a file. NULL: there is none. */
FILE *replace_standard_stream(const char *path);

/* Writes `what` to a file; false, and where it is known errno, when that fails. */
typedef bool replace_writer(const void *what, FILE *file);

/* Writes beside, forces it to the disk and renames, so that a reader finds the old file or the whole new one,
 * whatever happens in between. A link stays one: what it points to is replaced. Devices, pipes and the standard
 * streams are written to. False, with the reason in words. */
bool replace_write(const char *path, replace_writer *write, const void *what, char *why, size_t why_size);

#endif
