/* The reference by the function that a problem asks for, and what is made of its bounds. */
#include <math.h>

#include "reference.h"

const reference_function *reference_function_of(attn_function function) {
  static const reference_function *const table[] = {[ATTN_SOFTMAX] = &reference_softmax,
                                                    [ATTN_LINEAR] = &reference_linear,
                                                    [ATTN_SOFTMAX_BACKWARD] = &reference_backward,
                                                    [ATTN_LINEAR_BACKWARD] = &reference_linear_backward,
                                                    [ATTN_LAYER] = &reference_layers};
  return (unsigned)function < sizeof table / sizeof *table ? table[function] : NULL;
}

void reference_solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                     int64_t i, reference_row *row) {
  const reference_function *function = reference_function_of(problem->function);
  function->solve(problem, tensors, b, h, i, row);
  row->exact = false;
  function->bound(problem, tensors, b, h, i, row);
  reference_narrow_bound(problem, tensors, b, h, i, row);
}

double reference_error_share(double computed, double expected, double bound) {
  if (bound == INFINITY || (signbit(bound) && isnan(computed))) return 0;
  if (bound == -INFINITY && !isfinite(expected)) return isfinite(computed) ? INFINITY : 0;
  bound = fabs(bound);
  if (isnan(expected)) return isnan(computed) ? 0 : INFINITY;
  if (isinf(expected)) return computed == expected || isnan(computed) ? 0 : INFINITY;
  if (bound == INFINITY || computed == expected) return 0;
  if (!isfinite(computed)) return INFINITY;
  return fabs(computed - expected) / bound;
}
