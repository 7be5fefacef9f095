/* The fixed grid of problems that every variant is verified on. */
#ifndef ATTN_HARNESS_GRID_H
#define ATTN_HARNESS_GRID_H

#include "problem/workload.h"

int64_t verify_grid_count(void);
workload verify_grid_problem(int64_t n); /* n < verify_grid_count() */

#endif
