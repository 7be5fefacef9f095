/* For each key tile that some query tile sees: scores, what is hidden, weights, and the weighted values. */
#include "online_softmax.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* One step of a tile: keys [first, end) of a key tile that `count` tiles pass. */
static void take_keys(query_tile *tile, int64_t first, int64_t end, const query_tile *tiles, int64_t count,
                      attn_range together, key_tile *of) {
  const attn_visibility seen = query_tile_visibility(tile, first, end);
  if (seen == ATTN_EMPTY) return;
  query_tile_prepare(tiles, count, together, of);
  query_tile_scores(tile, of, first, end);
  if (seen == ATTN_PARTIAL) query_tile_hide(tile, first, end);
  query_tile_weights(tile, first, end);
  query_tile_accumulate(tile, of, first, end, seen == ATTN_PARTIAL);
}

/* Those of the keys that the tile may see: first >= end where there are none. */
static attn_range own_keys(const query_tile *tile, attn_range keys) {
  const int64_t first = larger(keys.first, tile->keys.first);
  return (attn_range){first, smaller(keys.end, tile->keys.end)};
}

/* A narrow window may lie across two key tiles: its keys are one step all the same. */
static bool is_one_step(const query_tile *tile, attn_range own) {
  return own.end - own.first <= tile->layout.keys;
}

/* The first key from j on that the pattern may let a tile see of keys; their end where there is none. */
static int64_t next_wanted(query_tile *tile, attn_range keys, int64_t j) {
  const attn_range own = own_keys(tile, keys);
  if (own.first >= own.end || j >= own.end) return keys.end;
  if (is_one_step(tile, own)) return j <= own.first ? own.first : keys.end;
  const int64_t next = query_tile_next(tile, larger(j, own.first));
  return next < own.end ? next : keys.end;
}

/* Passes over the key tiles that none of the tiles wants. */
static int64_t skip_empty(query_tile *tiles, int64_t count, attn_range keys, int64_t j) {
  const int64_t step = tiles->layout.keys;
  int64_t next = keys.end;
  for (query_tile *tile = tiles; tile < tiles + count; tile++)
    next = smaller(next, next_wanted(tile, keys, j));
  return next == keys.end ? next : larger(j, next / step * step);
}

void online_softmax(query_tile *tiles, int64_t count, attn_range keys) {
  const int64_t step = tiles->layout.keys;
  const bool has_pattern = attn_has_pattern(tiles->problem);
  key_tile of = {.keys = {0, 0}};
  for (int64_t j = keys.first, next; j < keys.end; j = next) {
    if (has_pattern && (j = skip_empty(tiles, count, keys, j)) == keys.end) break;
    next = smaller(j / step * step + step, keys.end);
    for (query_tile *tile = tiles; tile < tiles + count; tile++) {
      const attn_range own = own_keys(tile, keys);
      const bool one_step = is_one_step(tile, own);
      const int64_t from = larger(j, own.first), to = smaller(next, own.end);
      if (from >= to || (one_step && from > own.first)) continue;
      if (one_step)
        take_keys(tile, own.first, own.end, tile, 1, own, &of);
      else
        take_keys(tile, from, to, tiles, count, (attn_range){j, next}, &of);
    }
  }
}
