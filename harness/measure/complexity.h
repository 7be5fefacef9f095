/* How cost grows with the length that is swept: its exponent, with an interval. */
#ifndef ATTN_HARNESS_COMPLEXITY_H
#define ATTN_HARNESS_COMPLEXITY_H

#include "results.h"

/* What a variant declares of T, where queries and keys grow together, in the length that a family is swept along. A square is
 * one of queries times keys; O(T) of softmax attention is one of queries, each with a band of keys of its own. What no longer key
 * or query is seen by costs nothing. */
int complexity_declared_along(sweep_axis swept, attn_function function, int exponent);

/* Fits every family of a report that was measured at three lengths or more, and fills its growths.
 * declared exponents come from the callback (family's variant name, in; exponents, out). */
typedef void complexity_declared(const char *variant, int *time_exponent, int *workspace_exponent,
                                 void *context);
void complexity_fit(report *report, complexity_declared *declared, void *context);

#endif
