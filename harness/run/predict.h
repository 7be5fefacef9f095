/* What a run would cost, before it is made: from a shorter run of the same variant. */
#ifndef ATTN_HARNESS_PREDICT_H
#define ATTN_HARNESS_PREDICT_H

#include "runner.h"

/* How many times longer a run of `to` takes than one of `from`, if time grows with this exponent of T;
 * they differ in their lengths only. */
double predict_growth(const workload *from, const workload *to, int exponent);

/* Seconds of one run of which nothing is known: from the operations at a rate that any kernel reaches,
 * or, where that is above the limit, from short runs on parts of the problem. */
double predict_seconds(const run_setup *setup, const workload *workload, double limit);

#endif
