/* `attnbench verify --cases FOLDER`: every variant on every case, held to the answer that came with it. */
#ifndef ATTN_HARNESS_GOLDEN_H
#define ATTN_HARNESS_GOLDEN_H

#include "verify.h"

/* Runs every variant (or those named in the options) on every case in the options' folder that it supports, on
 * every instruction set, and holds it to the case's answer under the error bound of that problem. Prints a table as
 * verify_all does. 0 when all passed, 1 when one failed, 2, with a line on stderr, when it could not run. */
int golden_verify(const variant_list *list, const verify_options *options, FILE *out);

#endif
