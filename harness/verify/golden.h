/* `attnbench verify --cases FOLDER`: every variant on every case, held to the answer that came with it. */
#ifndef ATTN_HARNESS_GOLDEN_H
#define ATTN_HARNESS_GOLDEN_H

#include <stdio.h>

#include "run/plugins.h"

/* Runs every variant (or those named) on every case in the folder that it supports, on every instruction
 * set, and holds it to the case's answer under the error bound of that problem. Prints a line for each
 * failure and one for each variant. 0 when all passed, 1 when one failed, 2, with a line on stderr, when
 * it could not run. */
int cases_verify(const variant_list *list, const char *const *variant_names, size_t variant_count,
                 const char *folder, int threads, FILE *out);

#endif
