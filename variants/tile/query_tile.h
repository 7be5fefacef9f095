/* A tile of query rows on its way past the keys: the state of the online softmax and the steps that move
 * it on. The loop over keys is in fused.c; which tiles there are is in schedule.h. */
#ifndef ATTN_QUERY_TILE_H
#define ATTN_QUERY_TILE_H

#include "tile.h"

typedef struct query_tile_row {
  int64_t position, head; /* of the query */
  attn_range visible;
} query_tile_row;

/* Rows of one key/value head. Row r is query position (first_row + r) / heads of query head
 * first_head + (first_row + r) % heads: `heads` query heads that share their keys are stacked, position by
 * position, so that a causal tile stays narrow. */
typedef struct query_tile {
  const tile_kernels *kernels;
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t batch, first_head, heads, first_row;
  int64_t count; /* rows that exist */
  int64_t rows;  /* with padding */
  bool leads;    /* first of those that pass the keys together: it fetches for all of them */
  bool few;      /* at most TILE_FEW_ROWS rows, stored row by row; else columns, see tile.h */

  const float *key, *value; /* of this batch entry and key/value head */
  query_tile_row row[TILE_MAX_ROWS];
  attn_range keys;   /* all keys that some row sees */
  attn_range shared; /* those that every row sees */

  float *queries; /* D x rows, scaled so that scores come out in base 2 (with softcap: before tanh) */
  float *scores;  /* keys of a tile x rows: of key j and row r at j * score_key + r * score_row */
  float *output;  /* Dv x rows, not yet divided by sum: at e * output_feature + r * output_row */
  int64_t score_key, score_row, output_feature, output_row;
  float *max, *sum, *rescale; /* [rows] */
  float *finite;              /* [keys of a tile, Dv], for values that not all are */
  float *spread_values;       /* [keys of a tile, Dv and a gap], for query_tile_values */
} query_tile;

/* Keys of a key tile. Few rows leave room in the caches for more, and long runs are what memory reads fastest. */
static inline int64_t query_tile_keys(bool few) { return few ? TILE_FEW_KEYS : TILE_KEYS; }

/* Floats of a tile of so many rows: of its queries, of its state (output, max, sum), and of the scratch
 * (scores, rescale, finite, spread_values) that tiles may take turns with; each in whole cache lines, so that threads
 * share none. */
typedef struct query_tile_sizes {
  size_t queries, state, scratch;
} query_tile_sizes;
query_tile_sizes query_tile_measure(const attn_problem *problem, int64_t rows, bool few);

/* Element offset of row r in a tensor with these strides. */
static inline int64_t query_tile_offset(const query_tile *tile, const attn_strides *strides, int64_t r) {
  return tile->batch * strides->batch + tile->row[r].head * strides->head +
         tile->row[r].position * strides->position;
}

/* With batch, first_head, heads, first_row, count, rows, leads and few set: finds the rows and their keys. */
void query_tile_place(query_tile *tile);

/* Points the tile at its memory, so many floats as query_tile_measure says. The state is the output, then max and
 * sum of each row. */
void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch);

/* Before the first key: packs the queries; nothing seen, output 0. */
void query_tile_begin(query_tile *tile);

/* Scores of keys [first, end), at most query_tile_keys, with softcap and bias, in base 2. */
void query_tile_scores(query_tile *tile, int64_t first, int64_t end);

/* Hides what band, lengths and mask hide. True when something in [first, end) was hidden. */
bool query_tile_hide(query_tile *tile, int64_t first, int64_t end);

/* Scores become weights under the running maximum. */
void query_tile_weights(query_tile *tile, int64_t first, int64_t end);

/* The values of some keys, rows `stride` floats apart. */
typedef struct tile_values {
  const float *row;
  int64_t stride;
} tile_values;

/* The values of keys [first, end) for `count` tiles that pass them together: where they are, or copied to where
 * their rows do not crowd a few sets of the L1 cache. Products read 64 rows side by side, which as rows of
 * [B, T, H, D] push each other out: with the copy, 16 heads of D = 128 take 0.93 of the time, on AVX2 0.80. */
tile_values query_tile_values(const query_tile *tiles, int64_t count, int64_t first, int64_t end);

/* Adds the weighted values of keys [first, end) to the output; rows of values are `stride` apart. */
void query_tile_accumulate(query_tile *tile, int64_t first, int64_t end, const float *value, int64_t stride,
                           bool hidden);

/* finite: [keys, width], the values with 0 for every NaN and infinity. */
void copy_finite(const float *value, int64_t stride, int64_t keys, int64_t width, float *finite);

/* Joins the state of another part of the same rows' keys to this one (Dao et al. 2023, "Flash-Decoding";
 * the same formula as one online step). */
void query_tile_merge(query_tile *tile, const float *other_state);

/* After the last key: divides by the sum and writes the output rows and the log-sum-exp. */
void query_tile_finish(query_tile *tile);

#endif
