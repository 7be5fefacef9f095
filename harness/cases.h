/* Cases from outside: folders that hold a problem, its tensors and an answer computed elsewhere, in the
 * plain format of tests/cases/README.md. */
#ifndef ATTN_HARNESS_CASES_H
#define ATTN_HARNESS_CASES_H

#include <stdio.h>

#include "memory.h"
#include "plugins.h"

/* One case: what is asked, where the inputs and outputs lie, and the answer. */
typedef struct golden_case {
  attn_problem
      problem; /* asks for the log-sum-exp where the case has one; points into this struct's memory */
  attn_tensors tensors;
  guarded query, key, value, mask, bias, output, lse;
  int64_t *lengths;
  double *expected_output; /* [B, H, Tq, Dv] packed, as the output */
  double *expected_lse;    /* [B, H, Tq]; NULL for linear attention */
} golden_case;

/* Reads a case folder. False, with a sentence that names the file, when a file is missing, shorter or
 * longer than its shape, or a key of case.txt is unknown, missing, repeated or has no sensible value. */
bool case_load(golden_case *loaded, const char *folder, char *why, size_t why_size);
void case_destroy(golden_case *loaded);

/* Runs every variant (or those named) on every case in the folder that it supports, on every instruction
 * set, and holds it to the case's answer under the error bound of that problem. Prints a line for each
 * failure and one for each variant. 0 when all passed, 1 when one failed, 2, with a line on stderr, when
 * it could not run. */
int cases_verify(const variant_list *list, const char *const *variant_names, size_t variant_count,
                 const char *folder, int threads, FILE *out);

#endif
