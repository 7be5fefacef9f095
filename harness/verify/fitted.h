/* Variants that take few of the problems that all are posed: each is posed others instead, fitted to what it takes, as
 * many as it refused. */
#ifndef ATTN_HARNESS_FITTED_H
#define ATTN_HARNESS_FITTED_H

#include "pair_problems.h"
#include "verification.h"

/* The problems that all variants are posed, of which the n-th can be had. */
typedef struct problem_plan {
  int64_t count;   /* in fuzz, which has no end: how many tell whether a variant takes few */
  int64_t step;    /* every so many-th is posed */
  int64_t to_hold; /* problems of properties_problem that properties are held on */
  planned_problem (*problem)(const verify_options *options, int64_t n);
} problem_plan;

typedef struct fitted fitted;

/* Which variants take few, and what these take; NULL when memory is short. */
fitted *fitted_create(verification *verification, const problem_plan *plan);
void fitted_destroy(fitted *fitted);

/* Poses those that have their turn what is fitted to them, to the end of the plan. False, with the reason in words, when
 * a problem cannot be prepared. */
bool fitted_run(fitted *fitted, char *why, size_t why_size);

/* The same with one problem: this is fitted to each of them that refuses it. */
bool fitted_run_one(fitted *fitted, const workload *wanted, int64_t n, int threads, unsigned wanted_checks,
                    char *why, size_t why_size);

#endif
