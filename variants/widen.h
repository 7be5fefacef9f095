/* How a variant that computes in float32 takes narrow types: its inputs are converted on the way in and its outputs on the
 * way out, in workspace of its own. */
#ifndef ATTN_WIDEN_H
#define ATTN_WIDEN_H

#include "attention.h"

/* Bits of attn_variant.types. */
#define ATTN_ALL_FLOATS (1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16)

/* Whether any tensor has elements of 16 bits. */
static inline bool attn_is_narrow(const attn_problem *problem) {
  const attn_type types[] = {problem->query.type, problem->key.type,    problem->value.type,
                             problem->bias.type,  problem->output.type, problem->weights.type};
  for (size_t n = 0; n < sizeof types / sizeof *types; n++)
    if (types[n] == ATTN_BFLOAT16 || types[n] == ATTN_FLOAT16) return true;
  return false;
}

/* The workspace of the same problem in float32, and room for the converted tensors. */
size_t attn_widened_workspace(const attn_call *call, size_t (*workspace_size)(const attn_call *));

/* Converts, runs that problem, and converts back. */
void attn_widened_run(const attn_call *call, void (*run)(const attn_call *));

#endif
