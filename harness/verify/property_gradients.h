/* What holds of gradients: the properties whose comparisons go row by row of other tensors than the output. */
#ifndef ATTN_HARNESS_PROPERTY_GRADIENTS_H
#define ATTN_HARNESS_PROPERTY_GRADIENTS_H

#include "property_check.h"

/* Bits: [B, H, T, D] and [B, T, H, D]. */
void property_hold_gradients_in_layouts(property_check *check);

/* Bound: with keys and values the other way round the gradients of queries are the same, those of keys and values the other way
 * round. */
void property_hold_gradients_in_order(property_check *check);

#endif
