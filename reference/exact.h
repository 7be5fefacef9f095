/* Bounds of rows whose sums are exact in any order: exact.c. */
#ifndef ATTN_REFERENCE_EXACT_H
#define ATTN_REFERENCE_EXACT_H

#include "reference.h"

/* True where the row is such a one; its bounds are then set. Otherwise they are left as they are, and bound.c has those
 * of any row. The row is solved and its log-sum-exp finite. */
bool reference_exact_softmax(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                             int64_t i, reference_row *row);
bool reference_exact_linear(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row);

#endif
