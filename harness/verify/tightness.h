/* How tight the error bounds are: the worst share of each case, gathered apart for inputs as they come (uniform
 * and normal) and for those that are made to hurt. */
#ifndef ATTN_HARNESS_TIGHTNESS_H
#define ATTN_HARNESS_TIGHTNESS_H

#include <stdio.h>

#include "expected.h"
#include "problem/workload.h"

enum { TIGHTNESS_INPUTS = 2, TIGHTNESS_BOUNDS = 2 };

typedef struct tightness {
  struct {
    double *shares[TIGHTNESS_BOUNDS]; /* of the worst-case bound, of the probabilistic one */
    size_t count, room;
  } of[TIGHTNESS_INPUTS];
} tightness;

/* Notes a case, in memory that outlives a child; false when that is short. */
bool tightness_add(tightness *tightness, workload_fill fill, const verdict *verdict);

/* The head of a table, and a variant's line in it: cases, median and largest share. */
void tightness_print_head(FILE *out);
void tightness_print(const tightness *tightness, const char *variant, FILE *out);

#endif
