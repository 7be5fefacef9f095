/* Variants of a team of processes, measured: for each point and each number of ranks the time, what each rank sends and
 * needs, and how much of the messages' time work has hidden. */
#ifndef ATTN_HARNESS_TEAM_SWEEP_H
#define ATTN_HARNESS_TEAM_SWEEP_H

#include <stdio.h>

#include "base/statistics.h"
#include "run/team.h"
#include "sweep.h"

enum { TEAM_RUNS = 7 };

/* One problem among so many ranks; of bytes the most that any rank has. */
typedef struct team_measurement {
  const bench_point *point;
  int ranks;
  double runs[TEAM_RUNS];
  double seconds, hidden; /* median; share of the time with messages on their way, NaN: there were none */
  uint64_t sent;
  size_t workspace, workspace_least; /* of the rank that needs most, and of the one that needs least */
  char violation[RUN_VIOLATION_BYTES];
} team_measurement;

/* In T among so many ranks, or (by_ranks) in 1 / P at this T from two ranks on, where all have about as much. */
typedef struct team_growth {
  const char *variant, *quantity;
  bool by_ranks;
  int ranks;
  int64_t length;
  interval exponent;
} team_growth;

typedef struct team_report {
  team_measurement *points;
  size_t count;
  team_growth *growths;
  size_t growth_count;
} team_report;

/* A table, and of each variant how its workspace and its time grow. 0; 1 where a rank sent other bytes than the
 * variant declares, or did what it may not; 2 where nothing could be measured, with the reason on stderr. The report,
 * which on ranks other than 0 has no more than the times, is to be destroyed in any case. */
int team_sweep(const sweep *sweep, const variant_list *list, int threads, team_report *report, FILE *out);
void team_report_destroy(team_report *report);

#endif
