/* The inputs and outputs of a workload in memory. */
#ifndef ATTN_HARNESS_INPUTS_H
#define ATTN_HARNESS_INPUTS_H

#include "base/memory.h"
#include "tensors.h"
#include "workload.h"

/* The inputs and outputs of a workload, each in a guarded buffer of its own. */
typedef struct inputs {
  workload workload;
  attn_problem problem; /* points into this struct: do not copy an inputs */
  attn_tensors tensors;
  guarded buffers[TENSORS];
} inputs;

/* False, with the reason in words, when the problem is not sound (attn_check_problem) or its memory
 * cannot be had. aligned: tensors begin at 64-byte boundaries, as in timing; else each ends at its
 * guard page, so that any overrun faults. The same workload gives the same bits everywhere. */
bool inputs_create(inputs *inputs, const workload *workload, bool aligned, char *why, size_t why_size);
void inputs_destroy(inputs *inputs);

/* Of inputs that are not aligned: moves every buffer to where the guard page before it ends, so that any
 * underrun faults. */
bool inputs_move_to_front(inputs *inputs, char *why, size_t why_size);

/* Gives all inputs the contents that they were made with. */
void inputs_draw(inputs *inputs);

/* Poisons output, lse and weights. */
void inputs_poison_outputs(inputs *inputs);

/* A checksum of all inputs, to see that a run changed none. */
uint64_t inputs_checksum(const inputs *inputs);

/* A checksum of the bits of all outputs, to see that two runs gave the same. */
uint64_t inputs_outputs_checksum(const inputs *inputs);

#endif
