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

/* Between the two, counts the calls that the variant's object makes, and those that other objects do: what
 * heap_calls_of_run is made of, for those who cannot leave the run to it. Not to be nested. */
typedef struct heap_counts {
  heap_calls own, library;
} heap_counts;

void heap_calls_start(const attn_variant *variant);
heap_counts heap_calls_stop(void);

/* Runs the variant and counts the calls of malloc, calloc, realloc, posix_memalign, aligned_alloc, memalign,
 * mmap, brk and sbrk on all threads meanwhile; a variant makes none. The variant's own object, and what it
 * calls of the C library, is held to that from its first run on. Another library behind it may set itself
 * up once: when only such calls were seen, the variant runs a second time, and what is called then counts.
 * What the OpenMP runtime and the dynamic linker call for teams and thread-local storage is theirs, and
 * OpenBLAS's scratch for small matrices is its own. One run at a time. */
heap_calls heap_calls_of_run(const attn_variant *variant, const attn_problem *problem,
                             const attn_tensors *tensors, void *workspace, int threads);

#endif
