/* Who sees whom in one head, counted pair by pair with the reference: over tiles of queries and keys, and over the
 * cells of a picture or of a terminal, of which each stands for one pair or for a rectangle of them. And the weights
 * of the head, likewise. */
#ifndef ATTN_HARNESS_SHOW_CELLS_H
#define ATTN_HARNESS_SHOW_CELLS_H

#include "problem/inputs.h"

/* What is looked at: head h of entry b. */
typedef struct show_head {
  const inputs *inputs;
  int64_t b, h;
} show_head;

/* Tiles of rows x keys; those at the ends may be smaller. */
typedef struct show_tiles {
  int64_t height, width; /* of a tile, in queries and in keys */
  int64_t rows, columns; /* of tiles */
  int64_t *visible;      /* [rows * columns] pairs */
  int64_t pairs;         /* that are visible, of all tiles */
  int64_t kinds[3];      /* tiles that are empty, partial and full: by attn_visibility */
  int64_t unsaid;        /* tiles that are empty or full, and attn_visible_tile says partial */
} show_tiles;

/* Cell (r, c) stands for queries show_first(r, ...) to show_first(r + 1, ...), and for keys likewise; at least one each. */
typedef struct show_cells {
  int64_t rows, columns;
  int64_t queries, keys;
  int64_t *visible; /* [rows * columns] pairs */
  uint8_t
      *kind; /* [rows * columns] attn_visibility of all tiles that it touches; PARTIAL where they differ */
  double *
      weight; /* [rows * columns] the largest, SHOW_HIDDEN where no pair is visible, NaN where one is; or NULL */
} show_cells;

#define SHOW_HIDDEN (-1.0)

static inline int64_t show_first(int64_t n, int64_t cells, int64_t length) { return n * length / cells; }

/* Counts the visible pairs of tiles, of which height and width are set, and of `count` sets of cells, of which rows and columns
 * are, and fills all but weights: every pair is asked for once. The problem has queries and keys, and at least as many as
 * there are rows and columns. False when memory is short; what was filled is destroyed all the same. */
bool show_count(const show_head *of, show_tiles *tiles, show_cells *const *cells, size_t count);
void show_tiles_destroy(show_tiles *tiles);
void show_cells_destroy(show_cells *cells);

attn_visibility show_tile_kind(const show_tiles *tiles, int64_t row, int64_t column,
                               const attn_problem *problem);

/* Fills the weights of all; `tensors` are those of the inputs, widened. False when memory is short. */
bool show_weigh(const show_head *of, const attn_tensors *tensors, show_cells *const *cells, size_t count);

/* Pairs that a cell stands for. */
int64_t show_cell_pairs(const show_cells *cells, int64_t row, int64_t column);

#endif
