/* How cost grows with T: the exponent of T, with an interval. */
#ifndef ATTN_HARNESS_COMPLEXITY_H
#define ATTN_HARNESS_COMPLEXITY_H

#include "results.h"

/* Fits every family of a report that was measured at three lengths or more, and fills its growths.
 * declared exponents come from the callback (family's variant name, in; exponents, out). */
typedef void complexity_declared(const char *variant, int *time_exponent, int *workspace_exponent,
                                 void *context);
void complexity_fit(report *report, complexity_declared *declared, void *context);

/* Exponent of y in x from blocks of measurements: y is [blocks][points]; one log-log slope per block
 * over the top three octaves of x; the interval holds what varies from block to block and what bends the
 * curve in all of them. With one block, only the latter. Unless NULL, *varying is
 * half the interval as far as it comes from the blocks. */
interval complexity_exponent(const double *x, size_t points, const double *y, size_t blocks,
                             double confidence, double *log_intercept, size_t *first_point, double *varying);

#endif
