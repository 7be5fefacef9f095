/* Decays in the backward pass of linear attention, a tile of keys at a time. Gates are multiplied and no logarithms
 * are taken from each other, so that one of 0 does no harm; what the gradients of decays are made of is added up in
 * double. */
#ifndef ATTN_LINEAR_GATES_H
#define ATTN_LINEAR_GATES_H

#include "tile.h"

/* Of keys that lie side by side: of each its gate, and the product of those behind it; and of all. 1 beyond the last. */
typedef struct linear_gates {
  float gate[TILE_MAX_ROWS], behind[TILE_MAX_ROWS], all;
} linear_gates;

/* Of keys first <= j < end, TILE_MAX_ROWS at most. */
void linear_load_gates(const tile_kernels *kernels, const attn_problem *problem, int64_t b, int64_t kv_head,
                       int64_t first, int64_t end, linear_gates *gates);

/* rows[r, d] *= factor[r] for r < count */
void linear_fade_rows(int64_t count, int64_t width, const float *factor, float *rows, int64_t stride);

/* columns[n, r] *= factor[r] for n < count, r < rows */
void linear_fade_columns(int64_t count, int64_t rows, const float *factor, float *columns);

/* Lets columns of pairs [keys, rows] fade, each by the gates from behind its key to the last that the row sees, of which there
 * are to[r]. */
void linear_fade_pairs(const linear_gates *gates, int64_t keys, int64_t rows, const float *to, float *pairs);

/* The pairs of a query with the first `seen` keys of a tile, their weights and the gradients of these: both fade, and
 * what they are to each other goes to the decays of the keys behind, with what all keys before the tile are to the
 * query. Returns by what these fade. */
float linear_meet_decays(const linear_gates *gates, int64_t seen, double of_keys_before, float *weights,
                         float *grads, double *decay_grads);

/* The sum of products, of whole vectors. */
double linear_product(int64_t count, const float *x, const float *y);

#endif
