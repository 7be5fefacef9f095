/* Holds variants to the reference: one run on one workload, or the whole grid and random sample. */
#ifndef ATTN_HARNESS_VERIFY_H
#define ATTN_HARNESS_VERIFY_H

#include <stdio.h>

#include "run/plugins.h"
#include "expected.h"
#include "problem/workload.h"

/* Checks outputs that a variant has written over poison. At most max_rows rows (0: all) of all B H Tq are
 * held to the reference, as expected_solve chooses them; the rest are only checked to be written. Who has
 * several runs on the same inputs solves them once and uses expected_compare. */
void verify_outputs(const inputs *inputs, int64_t max_rows, verdict *verdict);

/* Poisons outputs and workspace, runs the variant once, and checks outputs, guard canaries and that the
 * inputs are unchanged. False, with the reason in words, when memory cannot be had. */
bool verify_run(const attn_variant *variant, inputs *inputs, int threads, int64_t max_rows, verdict *verdict,
                char *why, size_t why_size);

/* The same with rows that are solved already. */
bool verify_run_against(const attn_variant *variant, inputs *inputs, const expected *expected, int threads,
                        verdict *verdict, char *why, size_t why_size);

typedef struct verify_options {
  const char *const *variant_names; /* NULL: all */
  size_t variant_count;
  const char *const *problems; /* workloads in words */
  size_t problem_count;        /* 0: grid and random sample */
  const char *isa;             /* hold to this one; NULL: every one that each variant's table names */
  uint64_t seed;
  int64_t random_count; /* random problems for each variant */
  bool fail_fast;       /* stop at the first failure */
  int threads;
  const char *const *plugins; /* echoed in the command that reproduces a failure */
  size_t plugin_count;
} verify_options;

/* The subcommand: 0 when all passed, 1 when one failed, 2 when it could not run. Sets ATTN_ISA for the
 * variants as it goes, and leaves it unset. */
int verify_all(const variant_list *list, const verify_options *options, FILE *out);

#endif
