/* The fixed grid of problems that every variant is verified on. */
#ifndef ATTN_HARNESS_GRID_H
#define ATTN_HARNESS_GRID_H

#include "pair_problems.h"

int64_t verify_grid_count(void);
planned_problem verify_grid_problem(int64_t n); /* n < verify_grid_count() */

#endif
