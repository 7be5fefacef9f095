/* The T at which one family overtakes another. */
#ifndef ATTN_HARNESS_CROSSOVER_H
#define ATTN_HARNESS_CROSSOVER_H

#include "results.h"

typedef enum crossover_kind {
  CROSSOVER_UNKNOWN,  /* at fewer than two lengths were both measured */
  CROSSOVER_NEVER,    /* the challenger is not ahead at the longest length */
  CROSSOVER_ALWAYS,   /* it is ahead at every length */
  CROSSOVER_OVERTAKES /* it falls ahead once and for all between two of them */
} crossover_kind;

typedef struct crossover {
  crossover_kind kind;
  int64_t first, last;   /* the lengths at which both were measured */
  int64_t behind, ahead; /* the neighbours among them between which it overtakes */
  interval at;           /* T, with its 95 % interval; an end beyond what was measured is infinite */
} crossover;

/* From the ratios of the two within each pass, so that what slowed both does not matter. */
crossover crossover_find(const report *report, int challenger, int champion);

#endif
