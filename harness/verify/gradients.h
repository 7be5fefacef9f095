/* Reference rows of the gradients of one problem of the backward pass, of the output of a layer, or of the final state of linear
 * attention, solved once and compared with the outputs of many runs. */
#ifndef ATTN_HARNESS_GRADIENTS_H
#define ATTN_HARNESS_GRADIENTS_H

#include "problem/rows.h"
#include "reference/gradient.h"
#include "verdict.h"

/* One row of one gradient, of a layer's output or of a final state. */
typedef struct gradient_row {
  tensor_id tensor;
  row_place at; /* in its tensor */
  int64_t width;
  reference_gradient of;
} gradient_row;

typedef struct gradients {
  const inputs *inputs;
  int64_t count;
  gradient_row *rows;
  double *numbers;    /* what the rows point to */
  int64_t rows_total; /* of all gradients */
} gradients;

enum { GRADIENTS_FEW = 8 };

/* Products that rows of one tensor may take in the reference, where there are more of them than these pay for. */
static const double affordable_products = 4e9;

/* Solves at most max_rows rows (0: all) of each gradient, the first and the last among them, the others drawn by the workload's
 * seed. NULL when memory is short. */
gradients *gradients_solve(const inputs *inputs, int64_t max_rows);
void gradients_destroy(gradients *gradients);

/* The answers of a case, packed, in the places of the reference's. */
void gradients_take_answers(gradients *gradients, const double *const answers[TENSORS]);

/* The element that comes nearest to its bound, or farthest beyond, and how many are beyond; row NULL: all are exact. */
typedef struct gradient_error {
  const gradient_row *row;
  int64_t element;
  double computed, expected, bound, share;
  int64_t wrong_elements, wrong_rows;
} gradient_error;
gradient_error gradients_worst(const gradients *gradients, uint32_t traits);

/* Holds what a variant wrote to the rows, and everything to being written; adds to the verdict. Of a final state,
 * beside which there are rows of the output, the verdict's counts stay those of the output. */
const char *gradients_words(const attn_problem *problem); /* " of gradients" */
void gradients_compare(const gradients *gradients, uint32_t traits, verdict *verdict);
/* The probabilistic bound of a variant with such traits. */
double gradient_bound(const gradient_row *row, int64_t element, uint32_t traits);

#endif
