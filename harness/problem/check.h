/* Whether a problem makes sense. */
#ifndef ATTN_HARNESS_CHECK_H
#define ATTN_HARNESS_CHECK_H

#include "variants/attention.h"

/* True when the problem makes sense; otherwise false and a sentence in reason (cut to size bytes) that
 * says what is wrong and what would be right. Everything that attn_problem promises to a variant is checked here. A
 * band that is empty everywhere is sound. */
bool check_problem(const attn_problem *problem, char *reason, size_t reason_size);

/* The same of what the tensors of its pattern hold, where these are there: indices that are out of range or listed twice. */
bool check_pattern_tensors(const attn_problem *problem, char *reason, size_t reason_size);

#endif
