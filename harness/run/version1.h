/* Plugins that were built for interface version 1. */
#ifndef ATTN_HARNESS_VERSION1_H
#define ATTN_HARNESS_VERSION1_H

#include "variants/attention.h"

/* A table of this version's interface for one of version 1, which is all that a table begins with in either. Its
 * variants are offered only what version 1 knew. It lives until the process ends; NULL: out of memory. */
const attn_table *version1_adapt(const attn_table *original);

/* A function of the object that a variant comes from. */
const void *variant_code(const attn_variant *variant);

#endif
