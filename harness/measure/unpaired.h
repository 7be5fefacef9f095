/* Times of the same point in two runs, which have no pass in common. */
#ifndef ATTN_HARNESS_UNPAIRED_H
#define ATTN_HARNESS_UNPAIRED_H

#include "paired.h"

/* log(seconds of one / of the other): of their medians, with the interval that those of the medians give; infinite where either
 * has none. */
interval unpaired_lag(const result *one, const result *other);

/* Which is faster, where so many such questions are asked and the chance that scatter answers any of them wrongly is
 * to stay below 5 %: by the means of the logarithms, with Welch's interval for so many questions (Bonferroni), and by
 * the interval of the medians too, which one slow sample moves little. */
lead unpaired_lead(const result *one, const result *other, size_t questions);

#endif
