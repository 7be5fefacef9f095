/* Problems in which any two sizes, features, layouts, inputs and numbers of threads meet, where they can. */
#ifndef ATTN_HARNESS_PAIR_PROBLEMS_H
#define ATTN_HARNESS_PAIR_PROBLEMS_H

#include "problem/workload.h"

/* A problem, and how it is posed. */
typedef struct planned_problem {
  workload workload;
  int threads; /* 0: as many as are asked for */
  int turn;    /* of its instruction sets the one that a variant is held to; -1: each */
} planned_problem;

/* They are chosen when they are first asked for. */
int64_t pair_problems_count(void);
planned_problem pair_problem(int64_t n); /* n < pair_problems_count() */

/* How many pairs there are, and how many of them can meet: all of those do. */
void pair_problems_pairs(int64_t *pairs, int64_t *possible);

#endif
