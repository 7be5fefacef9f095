/* Where one family overtakes another. */
#ifndef ATTN_HARNESS_CROSSOVER_H
#define ATTN_HARNESS_CROSSOVER_H

#include "paired.h"

/* Between `after`, the last length at which one of the two is surely faster, and `before`, the next at which the other
 * surely is. Nothing narrower was measured. */
typedef struct crossover {
  int64_t after, before;
  lead now; /* of the challenger, from `before` on */
  /* T of equal times if the ratio changes smoothly in between, straight in log T; with the interval that those of the
   * ratios leave, which all hold together where "surely" does. */
  interval smooth;
} crossover;

enum { CROSSOVERS_KEPT = 16 };

typedef struct contest {
  size_t lengths;       /* at which both were measured */
  int64_t first, last;  /* of these */
  size_t ahead, behind; /* lengths at which the challenger surely is; at the others, neither */
  size_t crossover_count;
  crossover crossovers[CROSSOVERS_KEPT]; /* the first of them, by ascending T */
} contest;

/* "Surely": the chance that any length of a contest is judged wrongly is below 5 %. */
contest contest_judge(const report *report, int challenger, int champion);

#endif
