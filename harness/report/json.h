/* What those who write JSON and CSV and who read JSON share. */
#ifndef ATTN_HARNESS_REPORT_JSON_H
#define ATTN_HARNESS_REPORT_JSON_H

#include <jansson.h>

#include "report.h"

/* What is said of a run as a whole, in the order in which it is written; NULL when memory is short. */
json_t *report_json_context(const report *report);

/* Raised when a file of an earlier attnbench can no longer be read. */
enum { REPORT_VERSION = 2 };

#define REPORT_VERSION_KEY "attnbench_schema_version"

/* In a context: of how many processes the team is whose variants were measured, which have columns of their own
 * (team_report.h). */
#define REPORT_TEAM_KEY "team_ranks"

/* The device of a context, where there is one (device_json.c); false without memory. */
bool device_json_put(json_t *context, const machine *machine);
void device_json_get(const json_t *context, machine *machine);

/* Of which sweep a report is a part, and of which runs it was merged (sweep_json.c); false without memory. */
bool sweep_json_put(json_t *context, const report *report);
bool sweep_json_get(const json_t *context, sweep_plan *plan);

/* Whether each number of a shard is one of so many shards, and these are no more than a sweep can have. */
bool sweep_json_is_sound(const sweep_plan *plan);

#endif
