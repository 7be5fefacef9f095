/* What the backward pass is given of the forward pass. */
#ifndef ATTN_HARNESS_FORWARD_FILL_H
#define ATTN_HARNESS_FORWARD_FILL_H

#include "tensors.h"

/* Fills output, in its own type, and lse of a problem of the backward pass: the reference's, rounded. Its inputs are
 * filled, and given as float32 whatever their type (widened.h). Zeros and -inf in rows for which memory is short. */
void fill_forward(const attn_problem *problem, const attn_tensors *tensors);

#endif
