/* How cost grows with T: the exponent of T, with an interval. */
#ifndef ATTN_HARNESS_COMPLEXITY_H
#define ATTN_HARNESS_COMPLEXITY_H

#include "results.h"

/* Fits every family of a report that was measured at three lengths or more, and fills its growths.
 * declared exponents come from the callback (family's variant name, in; exponents, out). */
typedef void complexity_declared(const char *variant, int *time_exponent, int *workspace_exponent,
                                 void *context);
void complexity_fit(report *report, complexity_declared *declared, void *context);

#endif
