/* The writable static data of the shared object that a variant comes from. */
#ifndef ATTN_HARNESS_STATIC_DATA_H
#define ATTN_HARNESS_STATIC_DATA_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of .data and .bss, and per thread of .tdata and .tbss, of the object that this code lies in. Which
 * of its variants each byte serves cannot be told: every variant of an object has the same. False, with the
 * reason in words, when the object's file cannot be read. */
bool static_data_bytes(const void *code, int threads, size_t *bytes, char *why, size_t why_size);

/* Gives the object's data their pages, and its thread-local data of the calling thread theirs, so that using them takes no
 * more memory. Contents stay as they are. */
void static_data_touch(const void *code);

#endif
