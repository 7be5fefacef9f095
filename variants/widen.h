/* How a variant that computes in float32 takes narrow types: its inputs are converted on the way in and its outputs on the
 * way out, in workspace of its own. So it takes a rotary embedding: queries and keys are rotated on the way in, and their
 * gradients turned back on the way out. */
#ifndef ATTN_WIDEN_H
#define ATTN_WIDEN_H

#include "attention.h"

/* Bits of attn_variant.types. */
#define ATTN_ALL_FLOATS (1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16)

/* Why there is nothing to hold a variant to that looks at no instruction set. */
const char *attn_portable_unsupported(const attn_call *call);

/* The workspace of the same problem in float32, and room for the tensors that are converted. kept: 0, or ATTN_BIAS: a
 * bias and its gradient, of which a copy would have T x T elements, stay as they are. */
size_t attn_widened_workspace(const attn_call *call, uint64_t kept,
                              size_t (*workspace_size)(const attn_call *));

/* Converts what is narrow and rotates what is to be, runs that problem, and converts and turns back. */
void attn_widened_run(const attn_call *call, uint64_t kept, void (*run)(const attn_call *));

#endif
