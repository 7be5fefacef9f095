/* Variants whose place is a team of processes (variants/team.h). Rank 0 is the command, which judges as always; the other
 * ranks serve it. Where the runner would call a variant, rank 0 deals the inputs out, each rank calls the variant on
 * its slice, in memory of its own, and rank 0 puts the outputs together: so all that judges variants judges these. */
#ifndef ATTN_HARNESS_TEAM_H
#define ATTN_HARNESS_TEAM_H

#include "problem/inputs.h"
#include "run.h"
#include "variants/team.h"

/* Whether a launcher of MPI has started this process, beside others or alone; and which of them it is. By the environment. */
bool team_is_launched(void);
int team_rank(void);

/* The variants of this table work in it. False, with the reason in words, where it was built for another version of
 * variants/team.h. */
bool team_register(const attn_table *table, const attn_team *team, char *why, size_t why_size);
const attn_team *team_of(const attn_variant *variant); /* NULL: none */

/* Joins the others, once the variants are loaded. */
bool team_begin(char *why, size_t why_size);

/* On ranks other than 0: makes the runs that rank 0 asks for, until it dismisses them; the status that it says. */
int team_serve(void);

/* On rank 0, last: the status of all. */
int team_dismiss(int status);

/* How many ranks a run is held to, by the name that stands in an instruction set's place: "ranks3". NULL: all. */
int team_ranks(const char *isa);

/* The name of all of them. */
const char *team_all(void);

/* runner_run of a variant of a team. */
bool team_run(const run_setup *setup, inputs *inputs, const run_watch *watch, run_outcome *outcome, char *why,
              size_t why_size);

/* What came of the last run, of each rank that took part. */
typedef struct team_result {
  char violation[RUN_VIOLATION_BYTES];
  double seconds;
  size_t workspace_bytes;
  uint64_t declared_bytes; /* to be sent */
  attn_team_account account;
} team_result;
const team_result *team_results(void);

/* Whether runs are held to what MPI promises (watch.h says how), which takes time: they are, unless this says not. */
void team_set_strict(bool strict);

#endif
