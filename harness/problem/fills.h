/* What the elements of a workload's inputs are. */
#ifndef ATTN_HARNESS_FILLS_H
#define ATTN_HARNESS_FILLS_H

#include "tensors.h"
#include "workload.h"

/* Draws one input of the problem that the workload poses. Every element is a function of the seed, the tensor and the
 * element's place: the same workload gives the same bits everywhere, in any layout and with any number of threads. */
void fill_tensor(const workload *workload, const attn_problem *problem, tensor_id id, void *data);

/* What stands in a mask for what is not hidden: any byte but 0 may. Half of them are 1; of the others each has one of the higher
 * bits, or all, so that who takes a byte for a number, for signed or for one of its bits is seen. bits: four that are random. */
static inline uint8_t fill_shown(uint64_t bits) {
  const unsigned n = bits % 16;
  return (uint8_t)(n < 8 ? 1 : n < 15 ? 2u << (n - 8) : UINT8_MAX);
}

/* By which a rotary embedding turns a pair of so many features at a position (Su et al. 2021): position / 10000^(2
 * pair / features). */
void fill_angle(int64_t position, int64_t pair, int64_t features, float *cosine, float *sine);

#endif
