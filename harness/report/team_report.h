/* What bench has measured of variants of a team, as JSON and CSV. */
#ifndef ATTN_HARNESS_TEAM_REPORT_H
#define ATTN_HARNESS_TEAM_REPORT_H

#include "measure/team_sweep.h"
#include "report.h"

/* Google Benchmark's form, as report_json's; a row has `ranks`, `sent_bytes`, `workspace_bytes` (of the rank with the most) and
 * `hidden_share`, and those that follow say how something grows. run: of its context. False when memory is short. */
bool team_report_json(const report *run, const team_report *team, FILE *out);
void team_report_csv(const team_report *team, FILE *out);

/* False for other formats than "json" and "csv", with the reason in words. */
bool team_report_check_format(const char *option, const char *format, char *why, size_t why_size);

/* In one of these into a file, as replace_write does it. */
bool team_report_write(const report *run, const team_report *team, const char *format, const char *path,
                       char *why, size_t why_size);

#endif
