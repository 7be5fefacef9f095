/* Patterns in a problem line: see:local:128,0+first:4, docs:LENGTH, blocks:BQ,BK,DENSITY,AXES, topk:K; features.c has
 * them in its table. */
#ifndef ATTN_HARNESS_PATTERN_TEXT_H
#define ATTN_HARNESS_PATTERN_TEXT_H

#include "words.h"

/* Each reads the text of its part, or writes the part where the workload has it. see takes docs, blocks and topk as terms
 * as well; they are written as parts of their own. */
bool pattern_read_see(workload_reading *r, const char *key, const char *text);
void pattern_write_see(const workload *w, const char *key, workload_writing *to);
bool pattern_read_documents(workload_reading *r, const char *key, const char *text);
void pattern_write_documents(const workload *w, const char *key, workload_writing *to);
bool pattern_read_blocks(workload_reading *r, const char *key, const char *text);
void pattern_write_blocks(const workload *w, const char *key, workload_writing *to);
bool pattern_read_topk(workload_reading *r, const char *key, const char *text);
void pattern_write_topk(const workload *w, const char *key, workload_writing *to);

/* What a term of numbers is called, and how many of a, b and seed it has. */
int pattern_term(attn_term_kind kind, const char **name);

#endif
