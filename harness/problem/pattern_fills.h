/* What the tensors of a pattern hold: documents, blocks, listed keys. */
#ifndef ATTN_HARNESS_PATTERN_FILLS_H
#define ATTN_HARNESS_PATTERN_FILLS_H

#include "tensors.h"
#include "workload.h"

/* Draws one of them, a function of the workload's seed alone. False when memory is short: then it is not drawn. */
void pattern_fill(const workload *w, const attn_problem *problem, tensor_id id, void *data);

/* Those of a problem without other inputs, for who counts pairs: in memory of their own. False when it is short. */
typedef struct pattern_tensors {
  void *of[TENSORS];
} pattern_tensors;

bool pattern_tensors_create(pattern_tensors *made, const workload *w, attn_problem *problem);
void pattern_tensors_destroy(pattern_tensors *made);

#endif
