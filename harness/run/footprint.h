/* All memory that a run of a variant takes, from whatever source. Each point is measured in a process of its
 * own in which no variant has run before, so that what a variant sets up once, at its first run, is seen
 * at every point. */
#ifndef ATTN_HARNESS_FOOTPRINT_H
#define ATTN_HARNESS_FOOTPRINT_H

#include <sys/types.h>

#include "point.h"

typedef struct footprint {
  size_t workspace_touched_bytes; /* of the workspace, what was written, in words of 4 bytes */
  size_t stack_bytes;     /* down to the deepest byte written; the calling thread and its team, summed */
  size_t static_bytes;    /* see static_data.h */
  size_t hidden_bytes;    /* what the kernel says was mapped during run beyond all these */
  size_t heap_calls;      /* see heap_calls.h */
  char heap_function[24]; /* the first that was called; "" */
} footprint;

/* The process that these processes are forked from, before any variant has run. */
typedef struct footprint_source {
  pid_t process; /* 0: none */
  int socket;
} footprint_source;

/* False in builds with a sanitizer, whose own memory cannot be told from a variant's. */
bool footprint_is_measured(void);

/* To be called before any variant runs. points stay the caller's. False, with the reason in words. */
bool footprint_begin(footprint_source *source, const bench_point *points, int threads, const char *isa,
                     char *why, size_t why_size);
void footprint_end(footprint_source *source);

/* Runs a point twice in a process of its own. False, with the reason in words, when it could not be measured
 * or Ctrl-C was pressed; after that nothing more can be measured. */
bool footprint_measure(footprint_source *source, size_t point, footprint *footprint, char *why,
                       size_t why_size);

/* The part that happens in that process: to be called once in it. */
bool footprint_of_run(const bench_point *point, int threads, const char *isa, footprint *footprint, char *why,
                      size_t why_size);

#endif
