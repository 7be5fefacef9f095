/* How a problem is cut into query tiles, and the parallel loop over them. */
#ifndef ATTN_SCHEDULE_H
#define ATTN_SCHEDULE_H

#include "query_tile.h"

/* What a variant chooses. */
typedef struct schedule_shape {
  int64_t heads; /* query heads of one key/value head that are stacked in a tile; divides H / Hkv */
  int64_t rows;  /* of a full tile: a multiple of the lanes, at most max_rows */
} schedule_shape;

/* Bytes that schedule_run needs, aligned to TILE_ALIGNMENT; 0 where there is nothing to do. */
size_t schedule_workspace_size(const attn_problem *problem, schedule_shape shape, int threads);

/* Computes every output row, and the log-sum-exp where it is wanted. How the work is cut follows from the problem
 * alone, so that the bits do not depend on the number of threads. */
void schedule_run(const attn_problem *problem, const attn_tensors *tensors, schedule_shape shape,
                  void *workspace, int threads);

/* Brings begun tiles of one key/value head past the keys [keys.first, keys.end). */
void online_softmax(query_tile *tiles, int64_t count, attn_range keys);

#endif
