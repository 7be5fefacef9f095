/* What becomes of the weights, in a problem line: dropout:P; features.c has it in its table. */
#ifndef ATTN_HARNESS_WEIGHTS_TEXT_H
#define ATTN_HARNESS_WEIGHTS_TEXT_H

#include "words.h"

/* Each reads the text of its part, or writes the part where the workload has it. */
bool weights_read_dropout(workload_reading *r, const char *key, const char *text);
void weights_write_dropout(const workload *w, const char *key, workload_writing *to);

#endif
