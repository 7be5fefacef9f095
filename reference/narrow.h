/* What elements of 16 bits round, for narrow.c and for gradients. */
#ifndef ATTN_REFERENCE_NARROW_H
#define ATTN_REFERENCE_NARROW_H

#include <math.h>

#include "reference.h"

/* A type's unit roundoff, the error of what lies below its normal range, and its largest number. */
typedef struct reference_rounding {
  double unit, absolute, largest;
  double flushed; /* what is smaller counts as 0, and so do sums that are */
} reference_rounding;

/* The units that multiply bfloat16 flush what is below the normal range; those of float16 do not. */
static inline reference_rounding reference_rounding_of(attn_type type) {
  switch (type) {
    case ATTN_BFLOAT16: return (reference_rounding){0x1p-8, 0x1p-126, 0x1.fep127, 0x1p-126};
    case ATTN_FLOAT16: return (reference_rounding){0x1p-11, 0x1p-25, 65504, 0};
    default: return (reference_rounding){0, 0, INFINITY, 0};
  }
}

/* One rounding of what was computed. */
static inline double reference_rounded(double bound, double expected, reference_rounding to) {
  const double more = fabs(bound) * (1 + to.unit) + to.unit * fabs(expected) + to.absolute;
  return copysign(fabs(expected) + more > to.largest ? INFINITY : more, bound);
}

#endif
