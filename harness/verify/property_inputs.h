/* The inputs that properties.c runs a variant on, beside those of the problem itself: each a copy with one
 * change under which the result is known. */
#ifndef ATTN_HARNESS_PROPERTY_INPUTS_H
#define ATTN_HARNESS_PROPERTY_INPUTS_H

#include "property_copies.h"

/* The inputs and their expected rows, all or some, must stay. NULL, with the reason in words, when memory is
 * short. What is drawn comes from the workload's seed. */
properties *properties_prepare(inputs *inputs, const expected *known, char *why, size_t why_size);
void properties_destroy(properties *prepared);

/* Exchanges the contents of the original's inputs with those of OTHER: each then has the other's, at its own addresses. */
void properties_exchange(properties *prepared);

/* Gives both their own again, even if a run damaged one of them in between. */
void properties_undo_exchange(properties *prepared);

/* Gives the original the numbers of RESCALED, or its own again. */
void properties_rescale(properties *prepared, bool rescaled);

#endif
