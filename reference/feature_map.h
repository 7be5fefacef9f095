/* phi of linear attention, in double precision. */
#ifndef ATTN_REFERENCE_FEATURE_MAP_H
#define ATTN_REFERENCE_FEATURE_MAP_H

#include <math.h>

#include "../variants/attention.h"

static inline double reference_phi(const attn_problem *problem, double x) {
  switch (problem->feature_map) {
    case ATTN_RELU: return x > 0 || isnan(x) ? x : 0;
    case ATTN_IDENTITY: return x;
    default: return x > 0 ? x + 1 : exp(x);
  }
}

#endif
