/* The folder that --out names, and the one for what does not last. */
#ifndef ATTN_HARNESS_FOLDER_H
#define ATTN_HARNESS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Makes a folder with its parents, and sees that files can be written into it. */
bool folder_make(const char *folder, char *why, size_t why_size);

/* What TMPDIR says, or /tmp. */
const char *folder_temporary(void);

/* An empty file there that has no name and ends with the process, to write and read; NULL, with errno set, if there
 * can be none. */
FILE *folder_nameless_file(void);

#endif
