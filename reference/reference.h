/* The truth that variants are held to: double precision, one output row at a time, straight from the
 * formulas in variants/attention.h. Slow and obvious on purpose. Beside each row stands the error that
 * float32 arithmetic may leave in it, computed from the actual input (bound.c).
 *
 * Only float32 tensors are read. All functions are reentrant and allocate nothing. */
#ifndef ATTN_REFERENCE_H
#define ATTN_REFERENCE_H

#include "../variants/attention.h"

/* One query row: entry b, query head h, position i. The caller provides the arrays. */
typedef struct reference_row {
  double *weights; /* [Tk] softmax weights, or phi(q).phi(k) for ATTN_LINEAR; 0 for hidden keys */
  double *scores;  /* [Tk] after softcap and bias (softmax only); what hides a key leaves -inf */
  bool *visible;   /* [Tk] */
  double *output;  /* [Dv] */
  double lse;      /* softmax only */

  /* Largest error that a float32 kernel may show: the worst case, which no correct kernel exceeds,
   * and the probabilistic form. NaN or infinite outputs have bound 0: see reference_error_share. Where
   * a correct kernel may overflow the bound is infinite. */
  double *output_bound;               /* [Dv] */
  double *output_bound_probabilistic; /* [Dv] */
  double lse_bound, lse_bound_probabilistic;
  double weights_bound, weights_bound_probabilistic; /* relative, of each weight; beside it any weight
                                                        may be off by FLT_MIN, where it underflows */
} reference_row;

/* Fill everything above the bounds, for ATTN_SOFTMAX and ATTN_LINEAR. */
void reference_softmax(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                       int64_t i, reference_row *row);
void reference_linear(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                      int64_t i, reference_row *row);

/* Fill the bounds of a row that the functions above have filled. */
void reference_softmax_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                             int64_t i, reference_row *row);
void reference_linear_bound(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, reference_row *row);

/* Both, by the problem's function. */
void reference_solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                     int64_t i, reference_row *row);

/* |computed - truth| as a share of the bound: 0 when equal or when the bound is infinite, at most 1 when
 * allowed, infinity when not finite where the truth is, or finite where the truth is not. A NaN must be
 * met by a NaN; an infinite truth by the same infinity or by a NaN (0 times infinity, where a weight
 * underflows in float32). A log-sum-exp of -inf, of a row that sees no key, admits nothing else: compare
 * it directly. */
double reference_error_share(double computed, double truth, double bound);

#endif
