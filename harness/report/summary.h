/* Sentences of the summary, which a page has too. */
#ifndef ATTN_HARNESS_SUMMARY_H
#define ATTN_HARNESS_SUMMARY_H

#include <stdio.h>

#include "report.h"

/* Which exact variant is the fastest on the problem that most solved; a line, or none where nobody asked. */
void summary_fastest(const report *report, FILE *out);

/* Who overtakes whom; a line for each pair. */
void summary_crossovers(const report *report, FILE *out);

#endif
