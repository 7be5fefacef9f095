/* The covering array of what a variant takes: problems in which any two of its sizes, features, layouts, inputs and numbers of
 * threads meet, where it takes them together. What pair_problems.h is for all variants, for one that takes few of
 * those. */
#ifndef ATTN_HARNESS_FITTED_PAIRS_H
#define ATTN_HARNESS_FITTED_PAIRS_H

#include "fitting.h"
#include "pair_problems.h"

typedef struct fitted_pairs fitted_pairs;

/* NULL when memory is short, or nothing is known that the variant takes. */
fitted_pairs *fitted_pairs_create(const fitting *fitting);
void fitted_pairs_destroy(fitted_pairs *pairs);

int64_t fitted_pairs_count(const fitted_pairs *pairs);
planned_problem fitted_pairs_problem(const fitted_pairs *pairs, int64_t n);

/* How many pairs there are of what it takes, and how many of them it takes together: all of those meet. */
void fitted_pairs_pairs(const fitted_pairs *pairs, int64_t *all, int64_t *possible);

#endif
