/* The inputs of a problem as the reference reads them: as float32, which holds every element of 16 bits exactly. */
#ifndef ATTN_HARNESS_WIDENED_H
#define ATTN_HARNESS_WIDENED_H

#include <stdbool.h>

#include "tensors.h"

typedef struct widened {
  attn_tensors tensors;   /* those of the problem, but for those of 16 bits */
  attn_problem problem;   /* with its own tensors likewise */
  float *copies[TENSORS]; /* of these, in the same layouts; NULL: none */
} widened;

/* As the tensors are now, those that are inputs, and the outputs too where they are asked for. False when memory is short. */
bool widened_create(widened *widened, const attn_problem *problem, const attn_tensors *tensors, bool outputs);
void widened_destroy(widened *widened);

#endif
