/* The summary of a report that was merged from several runs. */
#ifndef ATTN_HARNESS_MERGED_H
#define ATTN_HARNESS_MERGED_H

#include "report.h"

/* What was merged and what is missing; each host by itself; and what several hosts measured, as shares of each one's own
 * peak. of_host: gives the summary of a report of one. */
typedef void merged_of_host(const report *report, const report_place *place, FILE *out);
void merged_summary(const report *report, merged_of_host *of_host, FILE *out);

#endif
