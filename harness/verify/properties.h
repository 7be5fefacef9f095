/* What holds for every right kernel on every problem and can be seen by running it on two problems that belong
 * together: no answer is needed for it, at most the error that the reference allows. */
#ifndef ATTN_HARNESS_PROPERTIES_H
#define ATTN_HARNESS_PROPERTIES_H

#include "hint_words.h"
#include "property.h"
#include "property_inputs.h"
#include "run/runner.h"

#define PROPERTIES_ALL ((1u << PROPERTIES) - 1)

const char *property_name(property property); /* "hidden keys" */

/* Problems beyond this are too large to be run that often. */
bool properties_can_be_held(const workload *workload);

/* The n-th problem to hold variants to: a few that chance hardly draws, then random ones of a seed; one in five of elements
 * of 16 bits. Always sound, and small. */
workload properties_problem(uint64_t seed, int64_t n);

/* How many there are with those of 16 bits when `count` are of float32. */
int64_t properties_problems(int64_t count);

typedef struct property_verdict {
  unsigned checked, failed; /* bits 1 << property; what says nothing of this problem is not checked */
  char problem[256];        /* the first failure in words, the property's name in front */
  hint hint;                /* empty where nothing suggests itself */
} property_verdict;

/* Holds a variant that solves the problem to those properties of `wanted` that say something of it. In every run
 * outputs and workspace are poisoned before, and guards and inputs must be untouched after it. Stops at the
 * first failure. False, with the reason in words, when memory cannot be had. */
bool properties_hold(properties *prepared, const run_setup *setup, unsigned wanted, property_verdict *verdict,
                     char *why, size_t why_size);

#endif
