/* A sequence of linear attention in two parts, of which the second goes on from the state that the first has left. */
#ifndef ATTN_HARNESS_PROPERTY_PARTS_H
#define ATTN_HARNESS_PROPERTY_PARTS_H

#include "property_copies.h"

/* Both parts, the second with the reference's final state of the first, and what the bounds of that come to in each sampled row.
 * False, with the reason in words, when memory is short. */
bool property_make_parts(properties *all, char *why, size_t why_size);

/* The final state that a run has written, as the initial state of another problem. */
void property_hand_over(const inputs *from, const inputs *to);

#endif
