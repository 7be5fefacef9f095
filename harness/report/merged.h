/* The summary of a report that was merged from several runs. */
#ifndef ATTN_HARNESS_MERGED_H
#define ATTN_HARNESS_MERGED_H

#include "report.h"

/* What was merged and what is missing; each host by itself; and what several hosts measured, as shares of each one's own
 * peak. */
void merged_summary(const report *report, FILE *out);

#endif
