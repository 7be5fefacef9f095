/* The constants of the bounds, as README.md in this folder has them. */
#ifndef ATTN_REFERENCE_ROUNDINGS_H
#define ATTN_REFERENCE_ROUNDINGS_H

#include <float.h>

#define EXPONENTIAL (4 * UNIT) /* relative error of an exponential within 2 ulp */
#define FLUSHED 0x1p-125       /* of a weight, where one below the normal range may become 0 */

#define UNIT 0x1p-24       /* u, the unit roundoff of float32 */
#define LAMBDA 10.0        /* of the probabilistic form: fails with probability 2 exp(-50) = 4e-22 a sum */
#define SUBNORMAL 0x1p-149 /* of a product, where it underflows gradually */
#define LARGEST ((double)FLT_MAX / 4) /* intermediates beyond this may overflow */

/* The forms of a bound: the third is no bound, but what independent roundings come to. */
enum { WORST, PROBABLE, EXPECTED, FORMS };

/* Relative error of a chain of so many roundings. */
double reference_chain_error(int form, double roundings);

#endif
