/* Which of two points is faster, from their ratio within each pass: what slowed both does not matter. */
#ifndef ATTN_HARNESS_PAIRED_H
#define ATTN_HARNESS_PAIRED_H

#include "results.h"

typedef enum lead { LEAD_UNDECIDED, LEAD_AHEAD, LEAD_BEHIND } lead;

/* log(seconds of one / of the other): the mean over the passes that both were in, with Student's interval. */
interval paired_lag(const result *one, const result *other, double confidence);

/* Whether one is faster, where so many such questions are asked at once and the chance that any is answered wrongly is to
 * stay below 5 % (Bonferroni). */
lead paired_lead(const result *one, const result *other, size_t questions);

#endif
