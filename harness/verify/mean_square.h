/* The root mean square of errors against what the roundings of a right kernel explain. One error tells little, since
 * it may be as large as its bound; but those of many rows together lie as far from the truth as roundings do, and
 * what is wrong by less than the bound in every element shows: an output that is truncated, weights that are rounded
 * twice. Only what is too large fails: who rounds less is nearer. */
#ifndef ATTN_HARNESS_MEAN_SQUARE_H
#define ATTN_HARNESS_MEAN_SQUARE_H

#include <stdint.h>

/* Squares of a row's errors, and what they are expected to be at most. */
typedef struct row_square {
  double found, expected;
} row_square;

/* deviation: reference_row.output_deviation. What is not finite says nothing here. */
void row_square_add(row_square *row, double computed, double reference, double deviation);

/* Of many rows: their quotients and the squares of these. The features of a row share its weights and so their errors; rows do
 * not. */
typedef struct mean_square {
  int64_t rows;
  double quotients, squares;
} mean_square;

void mean_square_add(mean_square *sums, const row_square *row);

/* Root of the mean quotient: 1 where the model is met; 0 without rows. */
double mean_square_root(const mean_square *sums);

/* Above 1: so much cannot come of the model. Always 0 of few rows. */
double mean_square_share(const mean_square *sums);

#endif
