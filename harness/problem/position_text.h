/* What positions add to scores, in a problem line: relative:R, t5:BUCKETS,DISTANCE; and how they turn queries and
 * keys, rope:half; features.c has them in its table. */
#ifndef ATTN_HARNESS_POSITION_TEXT_H
#define ATTN_HARNESS_POSITION_TEXT_H

#include "words.h"

/* Each reads the text of its part, or writes the part where the workload has it. */
bool position_read_relative(workload_reading *r, const char *key, const char *text);
void position_write_relative(const workload *w, const char *key, workload_writing *to);
bool position_read_t5(workload_reading *r, const char *key, const char *text);
void position_write_t5(const workload *w, const char *key, workload_writing *to);
bool position_read_rope(workload_reading *r, const char *key, const char *text);
void position_write_rope(const workload *w, const char *key, workload_writing *to);

#endif
