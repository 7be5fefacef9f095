/* The first half of a sweep: the points of one length are verified and warmed up. */
#ifndef ATTN_HARNESS_PREPARE_H
#define ATTN_HARNESS_PREPARE_H

#include "sweep_state.h"

/* Takes up the points of order[first] and the count - 1 after it, which have the same length: each is
 * verified and warmed up, and becomes a measurement if time and memory allow. Ends early when interrupted. */
void prepare_length(bench *bench, size_t first, size_t count);

#endif
