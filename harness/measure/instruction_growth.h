/* The growth of the work in T, from instruction counts: a second exponent, which no noise touches. */
#ifndef ATTN_HARNESS_INSTRUCTION_GROWTH_H
#define ATTN_HARNESS_INSTRUCTION_GROWTH_H

#include "results.h"
#include "run/point.h"

/* Counts each family of the report's growths at a few lengths and fills its exponent of instructions. What
 * cannot be counted is left out; report->instructions_note then says why. */
void instruction_growth_fit(report *report, const bench_point *points, size_t count);

#endif
