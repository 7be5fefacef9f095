/* The problems that every variant is verified on: a fixed grid and an endless seeded sample. */
#ifndef ATTN_HARNESS_VERIFY_GRID_H
#define ATTN_HARNESS_VERIFY_GRID_H

#include "workload.h"

int64_t verify_grid_count(void);
workload verify_grid_problem(int64_t n); /* n < verify_grid_count() */

/* The n-th random problem of a seed; always sound. */
workload verify_random_problem(uint64_t seed, int64_t n);

#endif
