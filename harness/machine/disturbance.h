/* What disturbs a measurement: other load, the machine below this machine, a coarse clock. */
#ifndef ATTN_HARNESS_DISTURBANCE_H
#define ATTN_HARNESS_DISTURBANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Shares are of the time of the processors that this process may use: what others do elsewhere disturbs nobody here. NaN where
 * the system does not say. */
typedef struct disturbance {
  double seconds;                /* that were watched */
  int64_t involuntary_switches;  /* of our threads, by others that wanted their processor */
  double others_share;           /* spent by other processes */
  double stolen_share;           /* given to other virtual machines */
  double clock_step_seconds;     /* smallest step of the clock that times are taken with */
  double shortest_batch_seconds; /* smallest time that was taken with it */
} disturbance;

/* Counters when watching began. */
typedef struct disturbance_watch {
  double wall, cpu;
  int64_t involuntary_switches;
  double busy, stolen, all; /* ticks of these processors */
} disturbance_watch;

/* Adds the ticks of these processors from a file like /proc/stat; NaN where it lacks one of them. */
void disturbance_read_ticks(disturbance_watch *watch, FILE *stat, const int *processors, size_t count);

disturbance_watch disturbance_begin(void);
disturbance disturbance_end(const disturbance_watch *watch);

#endif
