/* The problems of whole layers that belong to the grid. */
#ifndef ATTN_HARNESS_LAYER_PROBLEMS_H
#define ATTN_HARNESS_LAYER_PROBLEMS_H

#include "problem/workload.h"

int64_t layer_problems_count(void);
workload layer_problem(int64_t n);

#endif
