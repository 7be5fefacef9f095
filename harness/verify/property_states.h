/* What holds of the states of linear attention: a sequence may be cut in two, and the second part go on from the
 * state that the first has left; and a state is of keys, and not of their order where none decays. */
#ifndef ATTN_HARNESS_PROPERTY_STATES_H
#define ATTN_HARNESS_PROPERTY_STATES_H

#include "property_check.h"

/* Bound: outputs and final state of the whole and of its second part, to which the first has handed its state. */
void property_hold_parts(property_check *check);

/* Bound: the final states of two runs, of which each may be off by its own. */
void property_hold_near_states(property_check *check, const altered *a, const altered *b, const char *when);

/* Bits: the final states of heads of b from its first on, and those of a from this one on. */
void property_hold_same_states(property_check *check, const inputs *a, row_place first, const inputs *b,
                               const char *when);

#endif
