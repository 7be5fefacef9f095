/* Random problems: an endless seeded sample. */
#ifndef ATTN_HARNESS_RANDOM_PROBLEM_H
#define ATTN_HARNESS_RANDOM_PROBLEM_H

#include "workload.h"

/* The n-th random problem of a seed; always sound. */
workload random_problem(uint64_t seed, int64_t n);

#endif
