/* The fuzz subcommand: random problems until the time is over or a variant fails, and then the smallest
 * problem that fails too. */
#ifndef ATTN_HARNESS_FUZZ_H
#define ATTN_HARNESS_FUZZ_H

#include "verify.h"

/* Of the options, random_count and threads do not count: threads vary from problem to problem. Names the
 * problems, checks and worst shares; for a failure, the one command that repeats it. 0 when the time was
 * over or Ctrl-C came (interrupt_wanted tells), 1 when a variant failed, 2 when it could not run. */
int fuzz_all(const variant_list *list, const verify_options *options, double seconds, FILE *out);

/* Shrinks the one problem of the options, which the one variant of the options fails. 1 when it is shrunk,
 * 2 when it does not fail. */
int fuzz_shrink(const verify_options *options, double seconds, FILE *out);

#endif
