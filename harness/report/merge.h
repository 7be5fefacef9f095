/* One report from several of the same sweep: shards of it, runs on other hosts, or both. */
#ifndef ATTN_HARNESS_MERGE_H
#define ATTN_HARNESS_MERGE_H

#include "base/text.h"
#include "measure/results.h"

/* Reads reports, and from folders what bench wrote into them: results.json, or that of each of its shards. Points keep the
 * host that they were measured on; shares are of that host's own peak, the highest of its runs; growth is fitted for each
 * host. False, with the reason in words: what is no report of a sweep, or of another one, and the same points twice. */
bool merge_reports(report *merged, const text_list *paths, char *why, size_t why_size);

/* Whether a merge of these paths reads this file. */
bool merge_reads(const text_list *paths, const char *file);

#endif
