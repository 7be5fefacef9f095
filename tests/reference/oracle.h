/* Attention in quadruple precision, to hold the double-precision reference to: on small problems, one
 * row at a time, from the formulas in variants/attention.h and sharing no code with the reference. */
#ifndef ATTN_TESTS_ORACLE_H
#define ATTN_TESTS_ORACLE_H

#include "variants/attention.h"

enum { ORACLE_MAX_KEYS = 128 };

/* Fills output [Dv] and, for softmax, *lse, each rounded to double once. Tk at most ORACLE_MAX_KEYS. */
void oracle_row(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                double *output, double *lse);

#endif
