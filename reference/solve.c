/* The reference by the function that a problem asks for, and what is made of its bounds. */
#include <math.h>

#include "reference.h"

void reference_solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                     int64_t i, reference_row *row) {
  if (problem->function == ATTN_LINEAR) {
    reference_linear(problem, tensors, b, h, i, row);
    reference_linear_bound(problem, tensors, b, h, i, row);
  } else {
    reference_softmax(problem, tensors, b, h, i, row);
    reference_softmax_bound(problem, tensors, b, h, i, row);
  }
}

double reference_error_share(double computed, double truth, double bound) {
  if (isnan(truth)) return isnan(computed) ? 0 : INFINITY;
  if (isinf(truth)) return computed == truth || isnan(computed) ? 0 : INFINITY;
  if (bound == INFINITY || computed == truth) return 0;
  if (!isfinite(computed)) return INFINITY;
  return fabs(computed - truth) / bound;
}
