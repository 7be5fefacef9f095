/* The sizes that models have, for which kernels have ways of their own; and features that meet in use and in no other problem. */
#ifndef ATTN_HARNESS_USUAL_PROBLEMS_H
#define ATTN_HARNESS_USUAL_PROBLEMS_H

#include "pair_problems.h"

int64_t usual_problems_count(void);
planned_problem usual_problem(int64_t n);

#endif
