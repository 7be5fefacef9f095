/* Makes a problem that fails as small and as plain as it can be and still fail. */
#ifndef ATTN_HARNESS_SHRINK_H
#define ATTN_HARNESS_SHRINK_H

#include "problem/workload.h"

/* What fails: a workload with so many threads. */
typedef struct failing {
  workload workload;
  int threads;
} failing;

/* Whether it still fails; asked of sound problems only. */
typedef bool shrink_fails(const failing *candidate, void *context);

/* Greedy: drops options, takes plainer inputs, lowers numbers, each time keeping what still fails, until
 * nothing of it does or the seconds are over or Ctrl-C came. *subject must fail, and fails in the end.
 * Returns how often it asked. */
int64_t shrink(failing *subject, double seconds, shrink_fails *fails, void *context);

#endif
