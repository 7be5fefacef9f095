/* Clocks, in seconds: of the wall, and of the processor over all threads of this process. */
#ifndef ATTN_HARNESS_TIMER_H
#define ATTN_HARNESS_TIMER_H

#include <time.h>

static inline double clock_seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double wall_seconds(void) { return clock_seconds(CLOCK_MONOTONIC); }
static inline double cpu_seconds(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

#endif
