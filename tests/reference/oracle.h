/* Attention in quadruple precision, to hold the double-precision reference to: on small problems, one
 * row at a time, from the formulas in variants/attention.h and sharing no code with the reference. */
#ifndef ATTN_TESTS_ORACLE_H
#define ATTN_TESTS_ORACLE_H

#include "variants/attention.h"

enum { ORACLE_MAX_KEYS = 128, ORACLE_MAX_VALUE_DIM = 64 };

/* Fills output [Dv] and, for softmax, *lse, each rounded to double once. Tk at most ORACLE_MAX_KEYS. */
void oracle_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                double *output, double *lse);

/* Row d of the final state of a head [Dv], and its sum of features. */
void oracle_final_state(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t kv_head,
                        int64_t d, double *values, double *sum);

/* The gradients of the sum of output_grad times output by all elements of the inputs: central differences, of each row by what
 * it reads. */
void oracle_find_gradients(const attn_problem *problem, const attn_tensors *tensors);
/* What was found for one of them; 0 where no row reads it. */
double oracle_gradient(const float *element);

#endif
