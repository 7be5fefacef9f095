/* What the elements of a workload's inputs are. */
#ifndef ATTN_HARNESS_FILLS_H
#define ATTN_HARNESS_FILLS_H

#include "tensors.h"
#include "workload.h"

/* Draws one input of the problem that the workload poses. Every element is a function of the seed, the tensor and the
 * element's place: the same workload gives the same bits everywhere, in any layout and with any number of threads. */
void fill_tensor(const workload *workload, const attn_problem *problem, tensor_id id, void *data);

/* By which a rotary embedding turns a pair of so many features at a position (Su et al. 2021): position / 10000^(2
 * pair / features). */
void fill_angle(int64_t position, int64_t pair, int64_t features, float *cosine, float *sine);

#endif
