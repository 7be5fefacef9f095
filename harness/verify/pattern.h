/* Where the outputs of a run are wrong, in words: which batch entries, heads, rows and columns, of how many. That names
 * the fault sooner than its first element does. */
#ifndef ATTN_HARNESS_PATTERN_H
#define ATTN_HARNESS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "variants/attention.h"

/* Of the rows that were checked which are wrong, and which columns of them. */
typedef struct wrong_rows {
  const attn_problem *problem;
  int64_t count;
  const int64_t *positions; /* [count] (b * H + h) * Tq + i, ascending */
  const bool *wrong;        /* [count] */
  const bool *columns;      /* [Dv] of the output */
  const bool *keys;         /* [Tk] of the weights, or NULL */
} wrong_rows;

/* "wrong in 63 of 508 rows: heads 1-2 of 4, rows from 64 on of 127"; "" where no row is wrong or memory is short. */
void pattern_describe(const wrong_rows *rows, char *text, size_t size);

#endif
