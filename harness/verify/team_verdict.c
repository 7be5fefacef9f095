/* See team_verdict.h. */
#include "team_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/team.h"

static const char judged_by[] = ", judged by rank ";

static void name_rank(char *problem, size_t size, int rank, int ranks) {
  const size_t used = strlen(problem);
  if (ranks > 1 && used < size) snprintf(problem + used, size - used, "%s%d of %d", judged_by, rank, ranks);
}

/* Whether a rank's complaint comes before another's: by the first wrong row, and those of no row last. */
static bool comes_before(const verdict *one, const verdict *other) {
  if (one->passed || other->passed) return !one->passed && other->passed;
  if (one->wrong_row < 0 || other->wrong_row < 0) return one->wrong_row >= 0 && other->wrong_row < 0;
  return one->wrong_row < other->wrong_row;
}

static void take_worse(double *worst, double share) { *worst = fmax(*worst, share); }

static void merge(const verdict *each, int ranks, verdict *all) {
  int first = 0;
  for (int rank = 1; rank < ranks; rank++) {
    take_worse(&all->bound_share, each[rank].bound_share);
    take_worse(&all->probabilistic_share, each[rank].probabilistic_share);
    take_worse(&all->output_share, each[rank].output_share);
    take_worse(&all->lse_share, each[rank].lse_share);
    take_worse(&all->exact_share, each[rank].exact_share);
    take_worse(&all->mean_square_share, each[rank].mean_square_share);
    if (comes_before(&each[rank], &each[first])) first = rank;
  }
  all->passed = each[first].passed;
  all->wrong_row = each[first].wrong_row;
  all->rank = first;
  memcpy(all->problem, each[first].problem, sizeof all->problem);
  if (!all->passed) name_rank(all->problem, sizeof all->problem, first, ranks);
}

void team_verdict_agree(verdict *own, const char *isa) {
  static verdict each[TEAM_MOST_RANKS];
  _Static_assert(sizeof *own <= TEAM_MOST_BYTES, "a verdict is one message");
  team_gather(TEAM_AT_VERDICT, 0, own, sizeof *own, each);
  if (team_rank() == 0) merge(each, team_ranks(isa), own);
  team_share(0, own, sizeof *own);
}

team_word team_word_agree(const team_word *word, const char *isa) {
  static team_word each[TEAM_MOST_RANKS];
  team_word all = *word;
  _Static_assert(sizeof all <= TEAM_MOST_BYTES, "it is one message");
  team_gather(TEAM_AT_PROPERTY, 0, word, sizeof *word, each);
  for (int rank = team_size() - 1; rank >= 0 && team_rank() == 0; rank--) {
    all.at_end = all.at_end && each[rank].at_end;
    all.compared += rank > 0 ? each[rank].compared : 0;
    if (!each[rank].failed) continue;
    all.failed = true;
    all.rank = rank;
    all.violated = each[rank].violated;
    memcpy(all.problem, each[rank].problem, sizeof all.problem);
    if (!all.violated && !strstr(all.problem, judged_by))
      name_rank(all.problem, sizeof all.problem, rank, team_ranks(isa));
  }
  team_share(0, &all, sizeof all);
  return all;
}
