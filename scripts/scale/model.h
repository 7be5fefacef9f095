/* What takes a simulated rank its time: seconds of one core, from a table that rates.c has measured. */
#ifndef ATTN_SCALE_MODEL_H
#define ATTN_SCALE_MODEL_H

#include "variants/team.h"

/* A node as it is described: all of its cores work on what one rank has to do, each at the measured rate. */
typedef struct model_node {
  double cores;
  double cache_bytes, bytes_per_second; /* of its last cache; of its memory, 0: as fast as so many cores */
} model_node;

/* False, with the reason in words on stderr. */
bool model_read(const char *file, model_node node);

/* Where simulated work is done: these seconds of the node. */
typedef void model_spend(double seconds);
void model_begin(model_spend *spend);

/* What was copied since is spent: before each message, and at the end. */
void model_settle(void);

/* The whole problem on one node, without a message. */
double model_alone_seconds(const attn_problem *problem);

/* In the place of memcpy in the variants' sources: their buffers hold nothing. */
void *model_copy(void *to, const void *from, size_t bytes);

#endif
