/* What is said of the outputs of a run. */
#ifndef ATTN_HARNESS_VERDICT_H
#define ATTN_HARNESS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* How a run compared with the reference. */
typedef struct verdict {
  bool passed;
  char problem[512];                       /* in words, when it did not pass */
  double bound_share, probabilistic_share; /* worst error as a share of its bound */
  /* The larger of both of the output alone, of the log-sum-exp alone, and of what lies in rows whose sums are exact. */
  double output_share, lse_share, exact_share;
  double mean_square_share; /* see mean_square.h */
  int64_t rows_checked, rows_total;
  bool sampled;      /* only a seeded sample of rows was checked */
  int64_t wrong_row; /* of the first that is wrong by itself, (b * H + h) * Tq + i; -1: there is none */
  int rank;          /* in a team: whose complaint it is */
} verdict;

/* Says what is wrong, as printf does, unless something was said before: the first complaint is the clearest. */
__attribute__((format(printf, 2, 3))) void verdict_fail(verdict *verdict, const char *format, ...);

#endif
