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

/* Of so many points on one problem, the fastest: puts the one with the smallest median first, behind it those that are not
 * surely slower, and returns how many these are together, one where it is the fastest alone. Any two may be the ones that look
 * fastest and second, so that all pairs are asked about. */
size_t paired_fastest(const result **rivals, size_t count);

#endif
