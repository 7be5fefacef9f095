/* Whether what a variant writes is written whole, and nothing else is. */
#ifndef ATTN_HARNESS_WRITTEN_H
#define ATTN_HARNESS_WRITTEN_H

#include "problem/inputs.h"
#include "verdict.h"

/* That every element of an output that was poisoned is written, and nothing between its rows; the verdict says where
 * it is not. */
void written_check(const inputs *inputs, tensor_id id, verdict *verdict);

#endif
