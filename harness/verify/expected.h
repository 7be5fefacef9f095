/* The reference rows of one set of inputs, solved once and compared with the outputs of many runs: the
 * reference costs far more than any kernel. */
#ifndef ATTN_HARNESS_EXPECTED_H
#define ATTN_HARNESS_EXPECTED_H

#include "reference/reference.h"
#include "problem/rows.h"
#include "verdict.h"

typedef struct expected {
  const inputs *inputs;
  uint64_t inputs_checksum;
  int64_t rows, rows_total;
  int64_t *positions;          /* [rows] (b * H + h) * Tq + i, ascending */
  reference_row *solved;       /* [rows] without scores and visible; weights only where they are wanted */
  bool *is_first;              /* [rows] false: an earlier row has its solution */
  struct gradients *gradients; /* of the backward pass and of a layer, which have other rows; else NULL */
  struct gradients *states;    /* rows of a final state that is wanted; else NULL */
  double *numbers;             /* what the rows point to, those that ask the same to the same */
} expected;

/* Solves at most max_rows rows (0: all) of all B H Tq: of each head the first, the last and those next to
 * which the visible range begins or ceases to touch an end of the keys, as far as max_rows goes; the
 * others drawn by the workload's seed. False, with the reason in words, when memory is short. */
bool expected_solve(expected *expected, const inputs *inputs, int64_t max_rows, char *why, size_t why_size);

/* How many rows the reference can solve in a few seconds, all of a small problem; 0: all. */
int64_t expected_affordable_rows(const workload *workload);

/* Solves the rows at these positions. */
bool expected_solve_rows(expected *expected, const inputs *inputs, const int64_t *positions, int64_t count,
                         char *why, size_t why_size);
void expected_destroy(expected *expected);

/* Holds the outputs of a variant with these traits to the rows, and all outputs to being written: inputs_poison_outputs must
 * have come before the run. Fills the verdict; the first wrong element is named in it. */
void expected_compare(const expected *expected, uint32_t traits, verdict *verdict);

#endif
