/* What linear attention does with one tile of queries or of keys: features, the running state in its strips, and the
 * pairs that only some rows see. Which tiles there are, and who takes them, is in ../linear.c. */
#ifndef ATTN_LINEAR_TILE_H
#define ATTN_LINEAR_TILE_H

#include "tile.h"

typedef struct linear_plan {
  const tile_kernels *kernels, *floats,
      *outputs;           /* of the inputs' type, of float32, and of the output's type */
  int64_t group, heads;   /* query heads to a key/value head; key/value heads of all batch entries */
  int64_t rows;           /* query rows of the largest tile */
  int64_t slices, shares; /* of each head, where it is shared out; else 1 */
  int64_t depth, width;   /* D and Dv, padded to whole vectors */
  int64_t pace;           /* of what is fetched ahead, see tile_ahead */
  bool maps_beside;       /* products map features of the rows that come next */
  size_t state_floats, thread_floats;
} linear_plan;

/* Rows of one key/value head: row r is query position (first_row + r) / heads of query head first_head + (first_row +
 * r) % heads, as in a query_tile. Without rows what a walk along the keys needs is there all the same. */
typedef struct linear_tile {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t batch, first_head, heads;
  int64_t most;                   /* rows of a full tile */
  int64_t first_row, count, rows; /* rows: count in whole vectors */
  tile_rows key, value;           /* of this batch entry and key/value head */
} linear_tile;

/* phi of some rows of a tensor; and room for as many behind them, which products map meanwhile. */
typedef struct linear_features {
  float *now, *next;
  int64_t stride;
  attn_range mapped, coming; /* the rows that `now` holds, and those that `next` will */
  tile_mapping mapping;      /* what of these is still to be done */
} linear_features;

/* What one thread works in. The state lies in strips of the features that a kernel takes, one strip after the
 * other: columns that are twice as far apart would share half of the L1 cache (5% slower at Dv = 128). */
typedef struct linear_scratch {
  int64_t first_feature, features,
      pitch;         /* those of the keys that it takes, and their number in whole vectors */
  float *normaliser; /* [pitch] */
  float
      *state; /* [features, width] in strips, right behind the normaliser, so that both are copied at once */
  /* [TILE_KEYS, stride]: of a power of two, all would share a few sets of the L1 cache; and [TILE_MAX_ROWS, depth] */
  linear_features keys, queries;
  float *values;  /* [TILE_KEYS, width], where those of the problem cannot be read as they are */
  float *weights; /* columns [TILE_KEYS, rows] */
  float *output;  /* [rows, width] */
  float *sums;    /* [rows], the output's divisor */
  float *ones;    /* [TILE_MAX_ROWS] */
  float *gates;   /* [TILE_KEYS] of the loaded keys, where they decay */
} linear_scratch;

/* The walk along the keys of a head, at one of its query tiles. Those before `ready` are in the state when it is
 * applied. The others, up to `end`, are seen by some rows only: they are met pair by pair and then join the state. */
typedef struct linear_stop {
  int64_t before, ready, end;
} linear_stop;

static inline int64_t linear_round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/* The position that stacked rows come to: a division takes as long as a dozen products. */
static inline int64_t linear_position(const linear_tile *tile, int64_t rows) {
  return tile->heads == 1 ? rows : rows / tile->heads;
}

/* Where the keys end that a row of a tile sees. They never end earlier for a later row, and begin with the first. */
static inline int64_t linear_end_of_row(const linear_tile *tile, int64_t r) {
  return attn_visible_keys(tile->problem, tile->batch, linear_position(tile, tile->first_row + r)).end;
}

/* Sets what follows from the kernels, the rows of the largest tile and the problem: depth, width, and floats of a
 * state and of a thread. */
void linear_measure(const attn_problem *problem, linear_plan *plan);

/* The scratch of a thread in its memory, which takes all features; then some of those of the keys. */
linear_scratch linear_make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory);
void linear_take_features(const linear_plan *plan, linear_scratch *scratch, int64_t first, int64_t end);

/* What the walk along the keys of a head begins with: those of the scratch's features of the initial state, or zeros. */
void linear_begin_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
                        int64_t head);

/* Adds keys [first, end) to the state. */
void linear_advance(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                    int64_t end);

/* Copies the state of a slice of the features into a whole one. */
void linear_leave_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *slice,
                        float *whole);

/* One query tile, the state holding its keys up to stop.ready; then it reaches stop.end. */
void linear_solve_tile(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       linear_stop stop);

/* Writes the state of all features, which has all keys. */
void linear_end_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
                      int64_t head);

#endif
