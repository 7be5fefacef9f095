/* Whether a problem makes sense. */
#ifndef ATTN_HARNESS_CHECK_H
#define ATTN_HARNESS_CHECK_H

#include "variants/attention.h"

/* True when the problem makes sense; otherwise false and a sentence in reason (cut to size bytes) that
 * says what is wrong and what would be right. Everything that attn_problem promises to a variant is checked here. A
 * band that is empty everywhere is sound. */
bool check_problem(const attn_problem *problem, char *reason, size_t reason_size);

#endif
