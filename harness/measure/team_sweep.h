/* Variants of a team of processes, measured: for each point and each number of ranks the time, what each rank sends and
 * needs, and how much of the messages' time work has hidden. */
#ifndef ATTN_HARNESS_TEAM_SWEEP_H
#define ATTN_HARNESS_TEAM_SWEEP_H

#include <stdio.h>

#include "sweep.h"

/* A table, and of each variant how its workspace and its time grow. 0; 1 where a rank sent other bytes than the variant
 * declares, or did what it may not; 2 where nothing could be measured, with the reason on stderr. */
int team_sweep(const sweep *sweep, const variant_list *list, int threads, FILE *out);

#endif
