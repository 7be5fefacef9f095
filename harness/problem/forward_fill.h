/* What the backward pass is given of the forward pass. */
#ifndef ATTN_HARNESS_FORWARD_FILL_H
#define ATTN_HARNESS_FORWARD_FILL_H

#include "tensors.h"

/* Of inputs that are given as float32 whatever their type: fills output (in its own type) and lse of a problem of the backward pass, whose other inputs are filled: the reference's, rounded. Zeros and
 * -inf in rows for which memory is short. */
void fill_forward(const attn_problem *problem, const attn_tensors *tensors);

#endif
