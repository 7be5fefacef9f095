/* The folder that --out names. */
#ifndef ATTN_HARNESS_FOLDER_H
#define ATTN_HARNESS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a folder with its parents, and sees that files can be written into it. */
bool folder_make(const char *folder, char *why, size_t why_size);

#endif
