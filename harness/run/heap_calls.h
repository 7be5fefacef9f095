/* Counts how often a variant calls for memory while it runs. The program defines malloc and its like
 * itself, so that the calls of every shared object, plugins included, pass through it on their way to the
 * C library. */
#ifndef ATTN_HARNESS_HEAP_CALLS_H
#define ATTN_HARNESS_HEAP_CALLS_H

#include "variants/attention.h"

typedef struct heap_calls {
  size_t count;
  const char *first; /* the function that was called first: "malloc"; NULL: none */
} heap_calls;

/* False in builds with a sanitizer, whose own allocator stands there: nothing is counted then. */
bool heap_calls_are_seen(void);

/* Between the two, counts the calls of malloc, calloc, realloc, reallocarray, posix_memalign, aligned_alloc, memalign,
 * valloc, pvalloc, mmap, mremap, munmap, brk and sbrk, and of their second names (__libc_malloc), on all threads: those
 * that the variant's object makes, itself or
 * through the C and C++ libraries (strdup, new), and those of other objects. What the OpenMP runtime and the dynamic
 * linker call for teams and thread-local storage is theirs, and OpenBLAS's scratch for small matrices is its own. Not to
 * be nested. */
typedef struct heap_counts {
  heap_calls own, library;
} heap_counts;

/* code: variant_code of the variant. */
void heap_calls_start(const void *code);
heap_counts heap_calls_stop(void);

#endif
