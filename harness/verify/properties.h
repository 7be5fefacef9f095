/* What holds for every right kernel on every problem and can be seen by running it on two problems that belong
 * together: no answer is needed for it, at most the error that the reference allows. */
#ifndef ATTN_HARNESS_PROPERTIES_H
#define ATTN_HARNESS_PROPERTIES_H

#include "property_inputs.h"
#include "run/runner.h"

/* Bits where the two results must be the same bits; bound where each may be off by its own error bound, in the
 * probabilistic form. */
typedef enum property {
  PROPERTY_REPEAT,       /* bits: a second run */
  PROPERTY_WORKSPACE,    /* bits: whatever the workspace holds */
  PROPERTY_THREADS,      /* bits: any number of threads */
  PROPERTY_SIDE_EFFECTS, /* no call for memory inside run, no thread too many, nothing changed of the process */
  PROPERTY_EDGES, /* bound: buffers that begin where a guard page ends, instead of ending where one begins */
  PROPERTY_ONES,  /* bound: the weights of a row sum to one, seen with values of one and in the weights */
  PROPERTY_BETWEEN,  /* bound: outputs lie between the smallest and the largest visible value */
  PROPERTY_HIDDEN,   /* bits: a row whatever stands in keys and values that it cannot see, NaN included */
  PROPERTY_WIDE,     /* bits: a band as wide as the sequence is none */
  PROPERTY_GROUPS,   /* bound: shared keys and values, repeated for each query head or with one head alone */
  PROPERTY_ORDER,    /* bound: keys and values in another order */
  PROPERTY_SHIFT,    /* bound: one constant added to all scores of a row; the log-sum-exp moves by it */
  PROPERTY_LAYOUT,   /* bits: [B, H, T, D] and [B, T, H, D] */
  PROPERTY_HALVES,   /* bound: two halves of the keys, merged by their log-sum-exps */
  PROPERTY_COMPANY,  /* bits: one key/value head of one entry alone; where ATTN_BATCH_INVARIANT is promised */
  PROPERTY_SINK,     /* bound: a sink is one more key, whose value is zero */
  PROPERTY_DECODED,  /* bits: a query alone; where ATTN_DECODE_INVARIANT is promised */
  PROPERTY_BIAS,     /* bits: a bias of -inf hides its key, whatever finite numbers stand in it */
  PROPERTY_STATE,    /* bits: whatever ran before; other inputs at the same addresses, the same at others */
  PROPERTY_PATTERN,  /* bits: its terms in any order, a local term as a band; within bounds: a mask for it */
  PROPERTY_POSITION, /* bound: a bias for what positions add */
  PROPERTIES
} property;

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
} property_verdict;

/* Holds a variant that solves the problem to those properties of `wanted` that say something of it. In every run
 * outputs and workspace are poisoned before, and guards and inputs must be untouched after it. Stops at the
 * first failure. False, with the reason in words, when memory cannot be had. */
bool properties_hold(properties *prepared, const run_setup *setup, unsigned wanted, property_verdict *verdict,
                     char *why, size_t why_size);

#endif
