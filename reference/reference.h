/* The truth that variants are held to: double precision, one output row at a time, straight from the
 * formulas in variants/attention.h. Slow and obvious on purpose. Beside each row stands the error that
 * float32 arithmetic may leave in it, computed from the actual input (bound.c).
 *
 * Queries, keys, values and bias are given as float32, in the problem's layouts, whatever type the problem says that they
 * have: whoever calls has widened them, which is exact. All functions are reentrant and allocate nothing. */
#ifndef ATTN_REFERENCE_H
#define ATTN_REFERENCE_H

#include "../variants/attention.h"

/* How far a right kernel's output may be off, [Dv] each: see reference_row. */
typedef struct reference_bounds {
  double *worst, *probabilistic, *deviation;
} reference_bounds;

/* One query row: entry b, query head h, position i. The caller provides the arrays. */
typedef struct reference_row {
  double *
      weights; /* [Tk] softmax weights as they meet the values, or phi(q).phi(k) for ATTN_LINEAR; 0 for hidden keys */
  double *
      scores; /* [Tk] after softcap and bias, what hides a key leaves -inf; of linear attention logarithms of decays */
  bool *visible;    /* [Tk] */
  double *features; /* [D], of linear attention: phi(q) */
  double *output;   /* [Dv] */
  double lse;       /* softmax only */

  /* Largest error that a float32 kernel may show: the worst case, which no correct kernel exceeds,
   * and the probabilistic form. NaN or infinite outputs have bound 0: see reference_error_share. Where a correct
   * kernel may overflow the bound is infinite. A negative bound (-0 too) has the size of its absolute value, and
   * admits NaN beside: where the formula is 0/0, because an infinite input makes all scores of a row -inf (else that
   * of one that sees no key), and where a key of score -inf, which may be left out, has a value that is not finite.
   * So large a one says of a truth that is not finite that what was computed is not either: where nothing divides
   * infinities of either sign, they may meet on one way to the result and not on another. */
  double *output_bound;               /* [Dv] */
  double *output_bound_probabilistic; /* [Dv] */
  /* [Dv] root mean square of the error that the roundings of a right kernel leave, at most: they are taken as independent
   * where they are, and as large as they can be where they may be alike. Infinite where nothing can be said. */
  double *output_deviation;
  /* The same of kernels that do not round their weights to the 16 bits of the values; NULL: nobody asks. */
  reference_bounds float32_weights;
  double lse_bound, lse_bound_probabilistic;
  bool exact; /* all sums are, whatever their order, and so are weights that are rounded to a narrow type */
  int64_t *order; /* [Tk], for the bound of values of 16 bits to work in */
  double *notes;  /* [REFERENCE_NOTES Tk], of what a bound found of each key */
  double weights_bound, weights_bound_probabilistic; /* relative, of each weight */
  double weights_vanish; /* beside that any weight may be off by this, where it underflows */
} reference_row;

enum { REFERENCE_NOTES = 3 };

/* Solves or bounds one row. */
typedef void reference_of_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                              int64_t i, reference_row *row);

/* A mathematical function: how its rows are solved and bounded, what they cost, and what is true of them. */
typedef struct reference_function {
  const char *name;     /* "softmax" */
  const char *computes; /* of a variant: "computes softmax attention" */
  reference_of_row
      *solve; /* fills everything above the bounds; NULL: it has other rows, those of gradient.h or layer.h */
  reference_of_row *bound; /* and these, of a row that is solved */

  /* Floating-point operations that count, with so many visible pairs of query and key over all heads. */
  double (*operations)(const attn_problem *problem, double visible_pairs);

  /* How large the weight of a key can be before it is divided by their sum, for inputs of ordinary size. */
  double (*largest_weight)(const attn_problem *problem);

  /* The weights are exponentials of scores: there is a log-sum-exp, by which parts of the keys merge; a constant
   * added to all scores of a row moves it and nothing else; and the weights sum to one. */
  bool has_scores;

  /* They are products of the maps of queries and keys (phi), so that what keys have come to can be handed on as a state. */
  bool has_states;

  /* Whose gradients it computes, and what computes its own; itself where there is none. */
  attn_function forward, backward;
} reference_function;

/* Without the verb: "softmax attention". */
static inline const char *reference_function_words(const reference_function *function) {
  return function->computes + sizeof "computes";
}

extern const reference_function reference_softmax, reference_linear, reference_backward,
    reference_linear_backward, reference_layers;

enum { REFERENCE_FUNCTIONS = ATTN_LAYER + 1 };

/* NULL for a number that is no function; all that are are below REFERENCE_FUNCTIONS. */
const reference_function *reference_function_of(attn_function function);

reference_of_row reference_softmax_bound, reference_linear_bound; /* bound.c */
reference_of_row reference_narrow_bound; /* narrow.c: adds to these what narrow types round */

/* Solves and bounds a row by the problem's function. */
void reference_solve(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                     int64_t i, reference_row *row);

/* |computed - expected| as a share of the bound: 0 when equal or when the bound is infinite, at most 1 when
 * allowed, infinity when not finite where the truth is, or finite where the truth is not and the bound is finite. A NaN must be
 * met by a NaN; an infinite truth by the same infinity or by a NaN (0 times infinity, where a weight
 * underflows in float32). Where the bound is negative, what was computed may be NaN. */
double reference_error_share(double computed, double expected, double bound);

#endif
