/* The constants of the bounds, as README.md in this folder has them. */
#ifndef ATTN_REFERENCE_ROUNDINGS_H
#define ATTN_REFERENCE_ROUNDINGS_H

#include <float.h>
#include <math.h>

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

/* exp(x) - 1 from above and exp(-x) from below, x not negative. Bounds ask for both once for each pair and form, and
 * nearly always of a small x, for which a series will do: x^4 / 6 covers what it leaves out of the first, and the
 * second's next term is positive. */
static inline double bound_grown(double x) {
  return x < 0x1p-6 ? x * (1 + x * (0.5 + x * (1 + x) / 6)) : expm1(x);
}
static inline double bound_kept(double x) { return x < 0x1p-6 ? 1 - x * (1 - x * (0.5 - x / 6)) : exp(-x); }

/* p (exp(t) - 1), t: what the exponent of p is off by; also where p underflows but what rounding makes of it does not. */
static inline double bound_weight_error(double weight, double exponent, double t) {
  return t < 1 ? weight * bound_grown(t) : exp(exponent + t);
}

#endif
