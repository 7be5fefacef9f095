/* One run of a variant on a problem that a test makes by hand. */
#ifndef RUN_ONCE_H
#define RUN_ONCE_H

#include <stdlib.h>

#include "variants/attention.h"

static inline void run_once(const attn_variant *variant, const char *isa, const attn_problem *problem,
                            attn_tensors tensors) {
  attn_call call = {.size = sizeof call,
                    .variant = variant,
                    .problem = problem,
                    .tensors = tensors,
                    .threads = 1,
                    .isa = isa};
  call.workspace = aligned_alloc(64, (variant->workspace_size(&call) + 63) / 64 * 64);
  assert_non_null(call.workspace);
  variant->run(&call);
  free(call.workspace);
}

#endif
