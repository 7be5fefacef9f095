/* How kernels of plugins compare with the fastest variant on the same points. */
#ifndef ATTN_HARNESS_RATIOS_H
#define ATTN_HARNESS_RATIOS_H

#include <stdio.h>

#include "measure/results.h"

/* A line for each family of points of a plugin's kernel: the ratio of times with its 95 % interval, from the passes that both
 * were in. */
void report_ratios(const report *report, FILE *out);

#endif
