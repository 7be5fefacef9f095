/* How a softmax problem is cut into query tiles, and the parallel loop over them: the one entry of fused and its
 * family. */
#ifndef ATTN_SCHEDULE_H
#define ATTN_SCHEDULE_H

#include "tile.h"

/* What a variant chooses. */
typedef struct schedule_shape {
  int64_t heads; /* query heads of one key/value head that are stacked in a tile; divides H / Hkv */
  int64_t rows;  /* of a full tile: a multiple of the lanes, at most max_rows */
} schedule_shape;

typedef schedule_shape (*schedule_choice)(const attn_problem *problem, const tile_kernels *kernels);

/* The optional parts of a problem that this loop knows. */
enum {
  SCHEDULE_FEATURES = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP |
                      ATTN_LSE | ATTN_SINK | ATTN_QUERY_LENGTHS | ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 |
                      ATTN_ROPE | ATTN_DROPOUT | ATTN_GENERAL | ATTN_ADDITIVE,
  SCHEDULE_PATTERNS = ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK
};

/* Bits of attn_variant.types. */
enum { SCHEDULE_TYPES = 1 << ATTN_FLOAT32 | 1 << ATTN_BFLOAT16 | 1 << ATTN_FLOAT16 };

/* Why it cannot solve this problem, or would not as the call says; NULL where it does. */
const char *schedule_unsupported(const attn_call *call);

/* Bytes that schedule_run needs, aligned to TILE_ALIGNMENT; 0 where there is nothing to do. */
size_t schedule_workspace_size(const attn_call *call, schedule_choice choose);

/* Computes every output row, and the log-sum-exp where it is wanted. The bits of a row follow from its stack of heads
 * alone: neither from the batch, nor from the other heads, nor from the number of threads. */
void schedule_run(const attn_call *call, schedule_choice choose);

/* The same for some of the keys, to be joined with others: each row's log-sum-exp is left as its largest score, in base 2, and,
 * beside it in `sums`, the sum of the weights relative to that. Together they lose nothing where scores are large. */
void schedule_run_part(const attn_call *call, schedule_choice choose, float *sums);

#endif
