/* Which rows of an output to look at. All of them are compared with the truth, but only along a few random
 * directions: O = P V is held to O r = P (V r), which takes one column where the reference takes Dv (Freivalds,
 * "Probabilistic machines can use less running time", 1977). That is about what one run of a fast kernel costs.
 *
 * Nothing is judged here. Sums are in float32 and have no error bound: of all rows those that deviate most are
 * named, and the reference decides on them, so that a right one is never failed. A wrong one can hide only in the rounding of all
 * others: with inputs of ordinary size an element that is off by its error bound stands out from 256 to 8192 keys some
 * thirty-fold; in a row of few keys, whose bound is less than others' rounding, it has to be off by some 1e-5 of the values,
 * and with scores in the hundreds, where single keys decide on a row, by a thousandth of the row. */
#ifndef ATTN_HARNESS_PROJECTION_H
#define ATTN_HARNESS_PROJECTION_H

#include "projection_sums.h"
#include "run/runner.h"

/* False when memory is short, the user interrupts, or the function is another than softmax or linear: a layer and
 * gradients have no such sums. What it holds does not refer to the inputs, and is true of any with
 * the same contents. */
bool projection_create(projection *projection, const inputs *inputs);
void projection_destroy(projection *projection);
double projection_bytes(const workload *workload);

/* The positions of the rows that deviate most, at most so many, and their number. The outputs are those of a run on the
 * inputs that the projection was made from, or else of the last run of this batch, whose changes the inputs have. */
int64_t projection_worst(const projection *projection, const inputs *inputs, const run_batch *batch,
                         int64_t most, int64_t *positions);

#endif
