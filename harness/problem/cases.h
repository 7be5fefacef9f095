/* Cases from outside: folders that hold a problem, its tensors and an answer computed elsewhere, in the
 * plain format of tests/cases/README.md. */
#ifndef ATTN_HARNESS_CASES_H
#define ATTN_HARNESS_CASES_H

#include "inputs.h"

/* One case: what is asked, with the log-sum-exp where the case has one, and the answer. The workload of the inputs
 * says its sizes and band alone: what is asked stands in their problem, which points into this struct's memory. */
typedef struct golden_case {
  inputs inputs;
  int64_t *lengths, *query_lengths; /* NULL: it has none */
  double *answers
      [TENSORS]; /* packed, of what is written; of the backward pass output and lse too. NULL: it has none */
} golden_case;

/* Reads a case folder. False, with a sentence that names the file, when a file is missing, shorter or
 * longer than its shape, or a key of case.txt is unknown, missing, repeated or has no sensible value. */
bool case_load(golden_case *loaded, const char *folder, char *why, size_t why_size);
void case_destroy(golden_case *loaded);

#endif
