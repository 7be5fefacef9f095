/* Each rank of a team judges the rows that it owns; what all go by is agreed upon here (run/team.h). */
#ifndef ATTN_HARNESS_TEAM_VERDICT_H
#define ATTN_HARNESS_TEAM_VERDICT_H

#include "verdict.h"

/* Of the verdicts of all ranks one that is the same on each: the worst shares, and the complaint of the rank with the
 * first row that is wrong, which is named. isa: of how many ranks the run was, as in run_setup. */
void team_verdict_agree(verdict *verdict, const char *isa);

/* What a rank has to say while all hold a property: whether it is at its end, or comes to another run. */
enum { TEAM_WORD_BYTES = 256 };
typedef struct team_word {
  bool at_end, failed, violated;
  int rank; /* whose complaint it is */
  int64_t compared;
  char problem[TEAM_WORD_BYTES];
} team_word;

/* Of the words of all ranks one: at the end where all are, the complaint of the first one that has any, and the sum. */
team_word team_word_agree(const team_word *word, const char *isa);

#endif
