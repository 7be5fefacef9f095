/* Variants whose place is a team of processes (variants/team.h). Every rank is the command: each draws the inputs of a problem
 * itself, from its seed, hands the variant its slices of them in memory of their own, and holds the rows that it owns to the
 * reference. Nothing of a tensor is sent by the harness. What decides how it goes on is agreed upon at places where all ranks
 * meet: each tells rank 0 what it found, and rank 0 tells all what came of it. */
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

/* Joins the others, once the variants are loaded. From here on ranks other than 0 say nothing: their streams go nowhere. */
bool team_begin(char *why, size_t why_size);

/* The last place where all meet: rank 0's status, for all. */
int team_end(int status);

/* ---- where all ranks meet ---- */

typedef enum team_place {
  TEAM_AT_RUN,
  TEAM_AT_RESULT,
  TEAM_AT_VERDICT,
  TEAM_AT_PROPERTY,
  TEAM_AT_END
} team_place;
enum { TEAM_MOST_BYTES = 1024 };

/* On rank 0, what each rank says: `bytes` of it, at most TEAM_MOST_BYTES, one behind the other. What: of the place,
 * which is to be the same on all. A rank that is elsewhere, as where it alone has no memory, ends them all. */
void team_gather(team_place place, uint64_t what, const void *mine, size_t bytes, void *all);

/* What one rank says, for all. */
void team_share(int from, void *data, size_t bytes);

/* Rank 0's answer for all, which may follow from its clock. Where there is no team: the answer. */
bool team_decides(bool answer);

/* How many ranks have been started. */
int team_size(void);

/* ---- for team_run.c ---- */

enum { TEAM_MOST_RANKS = 1024 };

const attn_team *team_joined(void); /* NULL: none has begun */
const attn_team_member *team_member_of(const attn_variant *variant);

/* Nobody can go on without this rank: says why, and ends the process, which ends them all. */
_Noreturn void team_give_up(const char *why);

/* ---- runs ---- */

/* How many ranks a run is held to, by the name that stands in an instruction set's place: "ranks3". NULL: all. */
int team_ranks(const char *isa);

/* The name of all of them. */
const char *team_all(void);

/* runner_run of a variant of a team, on each rank. Its outputs hold the rows that this rank owns, and poison elsewhere
 * (inputs_owns). */
bool team_run(const run_setup *setup, inputs *inputs, const run_watch *watch, run_outcome *outcome, char *why,
              size_t why_size);

/* Of the bits of all outputs of the last run, those of every rank: the same on each. */
uint64_t team_outputs_checksum(void);

/* What came of the last run, of each rank that took part; on rank 0. */
typedef struct team_result {
  char violation[RUN_VIOLATION_BYTES];
  double seconds;
  size_t workspace_bytes;
  uint64_t declared_bytes;   /* to be sent */
  uint64_t outputs_checksum; /* where all ranks have them */
  attn_team_account account;
  bool interrupted;
} team_result;
const team_result *team_results(void);

/* Whether runs are held to what MPI promises (watch.h says how), which takes time: they are, unless this says not. */
void team_set_strict(bool strict);

#endif
