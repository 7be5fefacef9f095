/* For each key tile that some query tile sees: scores, what is hidden, weights, and the weighted values. */
#include "online_softmax.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* One step of a tile: keys [first, end) of a key tile that `count` tiles pass. */
static void take_keys(query_tile *tile, int64_t first, int64_t end, const query_tile *tiles, int64_t count,
                      attn_range together, key_tile *of) {
  const attn_visibility seen = query_tile_visibility(tile, first, end);
  if (seen == ATTN_EMPTY) return;
  if (tile->layout.chunk > 0) {
    query_tile_prepare(tiles, count, together, of);
    query_tile_attend(tile, tiles, count, of, first, end, seen);
    return;
  }
  const attn_visibility shown = query_tile_look(tile, first, end);
  if (shown == ATTN_EMPTY) return;
  query_tile_prepare(tiles, count, together, of);
  query_tile_scores(tile, of, first, end);
  if (seen == ATTN_PARTIAL) query_tile_hide(tile, first, end, shown);
  query_tile_weights(tile, first, end);
  if (tile->problem->keep.type) query_tile_drop(tile, first, end);
  query_tile_accumulate(tile, of, first, end, seen == ATTN_PARTIAL);
}

/* Gaps between keys that are shorter do not pay for one step more. A multiple of every kernel's `step`. */
enum { SHORTEST_GAP = 8 };

/* Whether each query sees keys that lie apart from each other, so that a key tile is mostly gaps. */
static bool has_gaps(const attn_problem *problem) {
  for (int64_t n = 0; n < problem->term_count; n++) {
    const attn_term *term = &problem->terms[n];
    if (term->kind == ATTN_FIXED || (term->kind == ATTN_STRIDED && term->a > SHORTEST_GAP) ||
        (term->kind == ATTN_DILATED && term->b > SHORTEST_GAP))
      return true;
  }
  return false;
}

/* The same keys run by run: those of a stride that T decides would otherwise cost as many key tiles as all keys do, and time
 * would grow as T^2 where the pairs that are seen grow as T^1.5. */
static void take_runs(query_tile *tile, int64_t first, int64_t end, const query_tile *tiles, int64_t count,
                      attn_range together, key_tile *of) {
  const int64_t step = tile->kernels->step;
  for (int64_t j = query_tile_next(tile, first), last; j < end; j = query_tile_next(tile, last)) {
    const int64_t from = larger(first, j / step * step);
    last = from;
    do last += SHORTEST_GAP;
    while (last < end && query_tile_next(tile, last) < last + SHORTEST_GAP);
    last = smaller(last, end);
    take_keys(tile, from, last, tiles, count, together, of);
  }
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

static bool lies_across(const query_tile *tile, attn_range own) {
  const int64_t step = tile->layout.keys;
  return is_one_step(tile, own) && own.end > own.first / step * step + step;
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

void online_softmax(query_tile *tiles, int64_t count, attn_range keys, key_tile *of) {
  const int64_t step = tiles->layout.keys;
  const bool has_pattern = attn_has_pattern(tiles->problem);
  void (*const take)(query_tile *, int64_t, int64_t, const query_tile *, int64_t, attn_range, key_tile *) =
      has_pattern && has_gaps(tiles->problem) ? take_runs : take_keys;
  of->keys = (attn_range){0, 0};
  for (int64_t j = keys.first, next; j < keys.end; j = next) {
    if (has_pattern && (j = skip_empty(tiles, count, keys, j)) == keys.end) break;
    next = smaller(j / step * step + step, keys.end);
    for (query_tile *tile = tiles; tile < tiles + count; tile++) {
      const attn_range own = own_keys(tile, keys);
      const bool one_step = lies_across(tile, own);
      const int64_t from = larger(j, own.first), to = smaller(next, own.end);
      if (from >= to || (one_step && from > own.first)) continue;
      if (one_step)
        take(tile, own.first, own.end, tile, 1, own, of);
      else
        take(tile, from, to, tiles, count, (attn_range){j, next}, of);
    }
  }
  query_tile_attend_waiting(tiles->kernels, of);
}
