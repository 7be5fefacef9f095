/* Holds variants to the reference: one run on one workload, or the whole grid and random sample. */
#ifndef ATTN_HARNESS_VERIFY_H
#define ATTN_HARNESS_VERIFY_H

#include <stdio.h>

#include "run/plugins.h"
#include "run/runner.h"
#include "expected.h"
#include "projection.h"
#include "problem/workload.h"

/* Checks outputs that a variant has written over poison. At most max_rows rows (0: all) of all B H Tq are
 * held to the reference, as expected_solve chooses them; the rest are only checked to be written. Who has
 * several runs on the same inputs solves them once and uses expected_compare. */
void verify_outputs(const inputs *inputs, int64_t max_rows, verdict *verdict);

/* Runs the variant once, as runner_run does, and checks its outputs and that it did nothing that it may not. False,
 * with the reason in words, when memory cannot be had. */
bool verify_run(const run_setup *setup, inputs *inputs, int64_t max_rows, verdict *verdict, char *why,
                size_t why_size);

/* The same with rows that are solved already. first: it is the variant's first run, which is looked at for side effects
 * too: some are there once. */
bool verify_run_against(const run_setup *setup, inputs *inputs, const expected *known, bool first,
                        verdict *verdict, char *why, size_t why_size);

/* Holds what the last run of a batch, of a variant with these traits, wrote to the reference: every element is
 * written, if inputs_poison_outputs came before the batch; the row whose query the batch changed is right, and so are
 * those that deviate most, or without a projection (NULL) another one. False when memory is short. */
bool verify_batch(const run_batch *batch, const projection *projection, uint32_t traits, verdict *verdict);

/* Adds to a verdict of outputs what the reference says of the rows that deviate most. */
bool verify_projected(const inputs *inputs, const projection *projection, uint32_t traits, verdict *verdict);

typedef struct verify_options {
  const char *const *variant_names; /* NULL: all */
  size_t variant_count;
  const char *const *problems; /* workloads in words */
  size_t problem_count;        /* 0: grid and random sample */
  const char *cases;           /* the folder of cases that the variants are held to instead, or NULL */
  const char *isa;             /* hold to this one; NULL: every one that each variant's table names */
  uint64_t seed;
  int64_t random_count;         /* random problems for each variant */
  int64_t every;                /* of so many problems of the grid and the sample one is posed; 0 or 1: all */
  bool isa_in_turn;             /* each problem under one of them alone, another one each time */
  bool fail_fast;               /* stop at the first failure */
  unsigned properties_left_out; /* bits 1 << property */
  int threads;
  double run_limit; /* seconds that were asked for; 0: none */
  const char
      *device; /* NULL: the host. This and what follows are echoed in the command that reproduces a failure */
  bool own_left_out; /* those of plugins alone */
  bool in_team;      /* of processes: a command of one's own is started by mpirun */
  const char *const *plugins;
  size_t plugin_count;
} verify_options;

/* What it says first, of a variant that takes none of the problems. */
#define VERIFY_NOTHING "nothing was verified: "

/* The subcommand: 0 when all passed, 1 when one failed, 2 when it could not run. */
int verify_all(const variant_list *list, const verify_options *options, FILE *out);

#endif
