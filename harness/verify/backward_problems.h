/* The problems of the backward pass that belong to the grid. */
#ifndef ATTN_HARNESS_BACKWARD_PROBLEMS_H
#define ATTN_HARNESS_BACKWARD_PROBLEMS_H

#include "problem/workload.h"

int64_t backward_problems_count(void);
workload backward_problem(int64_t n);

#endif
