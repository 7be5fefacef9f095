/* What the elements of a workload's inputs are. */
#ifndef ATTN_HARNESS_FILLS_H
#define ATTN_HARNESS_FILLS_H

#include "tensors.h"
#include "workload.h"

/* Draws one input of the problem that the workload poses. Every element is a function of the seed, the tensor and the
 * element's place: the same workload gives the same bits everywhere, in any layout and with any number of threads. */
void fill_tensor(const workload *workload, const attn_problem *problem, tensor_id id, void *data);

#endif
