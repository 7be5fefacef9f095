/* The truth of the backward pass: gradients in double precision, one row of one of them at a time, straight from the formulas in
 * variants/attention.h, and how far float32 arithmetic may be from them (README.md derives it). Elements of 16 bits
 * are given as float32 (reference.h). */
#ifndef ATTN_REFERENCE_GRADIENT_H
#define ATTN_REFERENCE_GRADIENT_H

#include "reference.h"

typedef struct reference_pair {
  int64_t b, h, i, j; /* entry, query head, query, key */
} reference_pair;

/* What a row of the forward pass left: [B, H, Tq] each, packed. */
typedef struct reference_given {
  double *lse;        /* of softmax */
  double *delta;      /* the sum of output times its gradient */
  double *delta_size; /* of the sizes of its products */
  double *
      normaliser; /* of linear attention, which is not given but made again; how far it may be off, relatively */
  double *normaliser_size;
  double *normaliser_error[2]; /* in the worst case, and probably */
} reference_given;

enum { REFERENCE_GIVEN = 7 }; /* arrays */

/* From the tensors. */
void reference_give(const attn_problem *problem, const attn_tensors *tensors, reference_given *given);

/* One row of a gradient, as wide as what it is of. A bound is infinite where a correct kernel may overflow. */
typedef struct reference_gradient {
  double *values, *worst, *probabilistic;
  double *sizes; /* sums of the absolute values of what the values are sums of */
  /* NULL, or: of elements of 16 bits, what a kernel may be off beside both bounds that rounds the weights, and the gradients
   * of the scores, to these before they are multiplied. */
  double *rounded;
} reference_gradient;

/* [D]: of query i. */
void reference_query_gradient(const attn_problem *problem, const attn_tensors *tensors,
                              const reference_given *given, int64_t b, int64_t h, int64_t i,
                              reference_gradient *to);

/* [D] and [Dv]: of key j of a key/value head, and of its value. */
void reference_key_gradients(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t b, int64_t kv_head, int64_t j,
                             reference_gradient *key, reference_gradient *value);

/* [Tk]: of a row of the bias, by where it stands on the axes on which the bias has a stride; 0 on the others. */
void reference_bias_gradient(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t b, int64_t h, int64_t i,
                             reference_gradient *to);

/* [1]: of the sink of a head. */
void reference_sink_gradient(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_given *given, int64_t h, reference_gradient *to);

/* [Dv]: of row d of the initial state of a head; [D]: of its sums of features. */
void reference_linear_state_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t kv_head, int64_t d,
                                     reference_gradient *to);
void reference_linear_state_sum_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                         const reference_given *given, int64_t b, int64_t kv_head,
                                         reference_gradient *to);

/* [1]: of the decay of key t (linear_decay.c). room: so many numbers to work in. */
size_t reference_decay_room(const attn_problem *problem);
void reference_linear_decay_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t kv_head, int64_t t,
                                     double *room, reference_gradient *to);

/* How far the score of a pair may be off, in both forms (bound.c); infinite where it may overflow. */
void reference_score_errors(const attn_problem *problem, const attn_tensors *tensors,
                            const reference_pair *pair, double score, double errors[]);

/* The same of linear attention (linear_gradient.c), for the above. */
void reference_linear_give(const attn_problem *problem, const attn_tensors *tensors, reference_given *given);
void reference_linear_query_gradient(const attn_problem *problem, const attn_tensors *tensors,
                                     const reference_given *given, int64_t b, int64_t h, int64_t i,
                                     reference_gradient *to);
void reference_linear_key_gradients(const attn_problem *problem, const attn_tensors *tensors,
                                    const reference_given *given, int64_t b, int64_t kv_head, int64_t j,
                                    reference_gradient *key, reference_gradient *value);
/* The same of a query and a key [D] that are not the problem's own, of which the sizes of the elements matter alone, in both
 * forms; chains: the relative errors of D products. */
void reference_vectors_score_errors(const attn_problem *problem, const attn_tensors *tensors,
                                    const reference_pair *pair, const float *query, const float *key,
                                    double score, const double chains[], double errors[]);

#endif
