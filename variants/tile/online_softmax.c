/* For each key tile that some query tile sees: scores, what is hidden, weights, and the weighted values. */
#include "online_softmax.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

void online_softmax(query_tile *tiles, int64_t count, attn_range keys) {
  const int64_t step = tiles->steps->keys;
  for (int64_t j = keys.first, next; j < keys.end; j = next) {
    next = smaller(j / step * step + step, keys.end);
    const tile_rows values = query_tile_values(tiles, count, j, next);
    for (query_tile *tile = tiles; tile < tiles + count; tile++) {
      const int64_t first = larger(j, tile->keys.first), end = smaller(next, tile->keys.end);
      const attn_visibility seen = query_tile_visibility(tile, first, end);
      if (seen == ATTN_EMPTY) continue;
      query_tile_scores(tile, first, end);
      if (seen == ATTN_PARTIAL) query_tile_hide(tile, first, end);
      query_tile_weights(tile, first, end);
      query_tile_accumulate(tile, first, end, tile_rows_from(tile->kernels, values, first - j),
                            seen == ATTN_PARTIAL);
    }
  }
}
