/* The growth of the work in T, from instruction counts: a second exponent, which no noise touches. */
#ifndef ATTN_HARNESS_WORK_H
#define ATTN_HARNESS_WORK_H

#include "bench.h"

/* Counts each family of the report's growths at a few lengths and fills its exponent of instructions. What
 * cannot be counted is left out; report->instructions_note then says why. */
void work_fit(report *report, const bench_point *points, size_t count);

#endif
