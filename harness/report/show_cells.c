/* See show_cells.h. */
#include "show_cells.h"

#include <math.h>
#include <stdlib.h>

#include "reference/reference.h"
#include "reference/rows.h"

/* ---- counting ---- */

/* Rectangles of pairs: tiles, which have one size, or cells, which share queries and keys evenly. */
typedef struct grid {
  int64_t columns;
  int64_t *visible;        /* [rows * columns] */
  int64_t *cuts;           /* [columns + 1], where the keys of each begin */
  int64_t height;          /* of tiles; 0: cells, */
  const show_cells *cells; /* which are these */
} grid;

/* The row of cells that has query i. */
static int64_t row_of(const show_cells *cells, int64_t i) {
  return ((i + 1) * cells->rows - 1) / cells->queries;
}

/* before[j]: how many keys in front of j the query sees. Rows of a grid may belong to several threads. */
static void count_row(const show_head *of, const grid *grids, size_t count, int64_t i, int64_t *before) {
  const attn_problem *p = &of->inputs->problem;
  before[0] = 0;
  for (int64_t j = 0; j < p->key_length; j++)
    before[j + 1] = before[j] + reference_sees(p, &of->inputs->tensors, of->b, of->h, i, j);
  for (size_t g = 0; g < count; g++) {
    const grid *grid = &grids[g];
    const int64_t row = grid->height ? i / grid->height : row_of(grid->cells, i);
    for (int64_t n = 0; n < grid->columns; n++) {
      const int64_t seen = before[grid->cuts[n + 1]] - before[grid->cuts[n]];
      if (!seen) continue;
#pragma omp atomic
      grid->visible[row * grid->columns + n] += seen;
    }
  }
}

/* False when memory is short. */
static bool count_rows(const show_head *of, const grid *grids, size_t count) {
  const attn_problem *p = &of->inputs->problem;
  bool good = true;
#pragma omp parallel
  {
    int64_t *before = malloc(((size_t)p->key_length + 1) * sizeof *before);
#pragma omp for schedule(dynamic) reduction(&& : good)
    for (int64_t i = 0; i < p->query_length; i++) {
      good = good && before;
      if (before) count_row(of, grids, count, i, before);
    }
    free(before);
  }
  return good;
}

/* ---- tiles ---- */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

attn_visibility show_tile_kind(const show_tiles *tiles, int64_t row, int64_t column,
                               const attn_problem *problem) {
  const int64_t queries = smaller(tiles->height, problem->query_length - row * tiles->height);
  const int64_t keys = smaller(tiles->width, problem->key_length - column * tiles->width);
  const int64_t visible = tiles->visible[row * tiles->columns + column];
  return visible == 0 ? ATTN_EMPTY : visible == queries * keys ? ATTN_FULL : ATTN_PARTIAL;
}

static void sum_up(show_tiles *tiles, const show_head *of) {
  const attn_problem *p = &of->inputs->problem;
  for (int64_t row = 0; row < tiles->rows; row++)
    for (int64_t column = 0; column < tiles->columns; column++) {
      const attn_visibility kind = show_tile_kind(tiles, row, column, p);
      const int64_t i0 = row * tiles->height, j0 = column * tiles->width;
      const attn_visibility said =
          attn_visible_tile(p, of->b, of->h, i0, smaller(i0 + tiles->height, p->query_length), j0,
                            smaller(j0 + tiles->width, p->key_length));
      tiles->kinds[kind]++;
      tiles->unsaid += said == ATTN_PARTIAL && kind != ATTN_PARTIAL;
      tiles->pairs += tiles->visible[row * tiles->columns + column];
    }
}

void show_tiles_destroy(show_tiles *tiles) {
  free(tiles->visible);
  tiles->visible = NULL;
}

/* ---- cells ---- */

int64_t show_cell_pairs(const show_cells *cells, int64_t row, int64_t column) {
  return (show_first(row + 1, cells->rows, cells->queries) - show_first(row, cells->rows, cells->queries)) *
         (show_first(column + 1, cells->columns, cells->keys) -
          show_first(column, cells->columns, cells->keys));
}

static attn_visibility kind_of_cell(const show_cells *cells, const show_tiles *tiles,
                                    const attn_problem *problem, int64_t row, int64_t column) {
  const int64_t first_row = show_first(row, cells->rows, cells->queries) / tiles->height;
  const int64_t last_row = (show_first(row + 1, cells->rows, cells->queries) - 1) / tiles->height;
  const int64_t first_column = show_first(column, cells->columns, cells->keys) / tiles->width;
  const int64_t last_column = (show_first(column + 1, cells->columns, cells->keys) - 1) / tiles->width;
  const attn_visibility kind = show_tile_kind(tiles, first_row, first_column, problem);
  for (int64_t r = first_row; r <= last_row; r++)
    for (int64_t c = first_column; c <= last_column; c++)
      if (show_tile_kind(tiles, r, c, problem) != kind) return ATTN_PARTIAL;
  return kind;
}

void show_cells_destroy(show_cells *cells) {
  free(cells->visible);
  free(cells->kind);
  free(cells->weight);
  *cells = (show_cells){0};
}

/* ---- all of them ---- */

static bool lay_out_tiles(show_tiles *tiles, const attn_problem *p, grid *grid) {
  tiles->height = smaller(tiles->height, p->query_length);
  tiles->width = smaller(tiles->width, p->key_length);
  tiles->rows = (p->query_length - 1) / tiles->height + 1;
  tiles->columns = (p->key_length - 1) / tiles->width + 1;
  tiles->visible = calloc((size_t)(tiles->rows * tiles->columns), sizeof *tiles->visible);
  *grid = (struct grid){.columns = tiles->columns, .visible = tiles->visible, .height = tiles->height};
  grid->cuts = malloc(((size_t)tiles->columns + 1) * sizeof *grid->cuts);
  for (int64_t n = 0; grid->cuts && n <= tiles->columns; n++)
    grid->cuts[n] = smaller(n * tiles->width, p->key_length);
  return tiles->visible && grid->cuts;
}

static bool lay_out_cells(show_cells *cells, const attn_problem *p, grid *grid) {
  const size_t count = (size_t)(cells->rows * cells->columns);
  cells->queries = p->query_length;
  cells->keys = p->key_length;
  cells->visible = calloc(count, sizeof *cells->visible);
  cells->kind = malloc(count);
  *grid = (struct grid){.columns = cells->columns, .visible = cells->visible, .cells = cells};
  grid->cuts = malloc(((size_t)cells->columns + 1) * sizeof *grid->cuts);
  for (int64_t n = 0; grid->cuts && n <= cells->columns; n++)
    grid->cuts[n] = show_first(n, cells->columns, cells->keys);
  return cells->visible && cells->kind && grid->cuts;
}

bool show_count(const show_head *of, show_tiles *tiles, show_cells *const *cells, size_t count) {
  const attn_problem *p = &of->inputs->problem;
  grid *grids = calloc(count + 1, sizeof *grids);
  bool good = grids && lay_out_tiles(tiles, p, &grids[0]);
  for (size_t n = 0; good && n < count; n++) good = lay_out_cells(cells[n], p, &grids[n + 1]);
  good = good && count_rows(of, grids, count + 1);
  if (good) sum_up(tiles, of);
  for (size_t n = 0; good && n < count; n++)
    for (int64_t row = 0; row < cells[n]->rows; row++)
      for (int64_t column = 0; column < cells[n]->columns; column++)
        cells[n]->kind[row * cells[n]->columns + column] =
            (uint8_t)kind_of_cell(cells[n], tiles, p, row, column);
  for (size_t n = 0; grids && n <= count; n++) free(grids[n].cuts);
  free(grids);
  return good;
}

/* ---- weights ---- */

/* What of two shows in their cell: NaN, then the larger; hidden is below all. */
static double outstanding(double a, double b) { return isnan(a) || a > b ? a : b; }

/* The largest weights of a row in each cell. A score of -inf hides a key, as a bias may. */
static void weigh_row(show_cells *cells, const reference_row *solved, bool has_scores, int64_t i) {
  double *weights = cells->weight + row_of(cells, i) * cells->columns;
  for (int64_t c = 0; c < cells->columns; c++)
    for (int64_t j = show_first(c, cells->columns, cells->keys);
         j < show_first(c + 1, cells->columns, cells->keys); j++)
      if (solved->visible[j] && !(has_scores && solved->scores[j] == -INFINITY))
        weights[c] = outstanding(solved->weights[j], weights[c]);
}

static bool hide_all(show_cells *const *cells, size_t count) {
  for (size_t n = 0; n < count; n++) {
    const size_t all = (size_t)(cells[n]->rows * cells[n]->columns);
    cells[n]->weight = malloc(all * sizeof *cells[n]->weight);
    if (!cells[n]->weight) return false;
    for (size_t m = 0; m < all; m++) cells[n]->weight[m] = SHOW_HIDDEN;
  }
  return true;
}

bool show_weigh(const show_head *of, const attn_tensors *tensors, show_cells *const *cells, size_t count) {
  const size_t keys = (size_t)of->inputs->problem.key_length;
  const reference_function *function = reference_function_of(of->inputs->problem.function);
  attn_problem problem = of->inputs->problem;
  problem.value_dim = 0; /* nobody asks for the output */
  bool good = hide_all(cells, count);
  if (!good) return false;
#pragma omp parallel
  {
    double output = 0, *weights = malloc(keys * sizeof *weights), *scores = malloc(keys * sizeof *scores);
    double *features = malloc(((size_t)problem.head_dim + 1) * sizeof *features);
    bool *visible = malloc(keys * sizeof *visible);
    reference_row solved = {
        .weights = weights, .scores = scores, .visible = visible, .features = features, .output = &output};
#pragma omp for schedule(dynamic) reduction(&& : good)
    for (int64_t i = 0; i < problem.query_length; i++) {
      good = good && weights && scores && features && visible;
      if (!weights || !scores || !features || !visible) continue;
      function->solve(&problem, tensors, of->b, of->h, i, &solved);
#pragma omp critical
      for (size_t n = 0; n < count; n++) weigh_row(cells[n], &solved, function->has_scores, i);
    }
    free(weights);
    free(scores);
    free(features);
    free(visible);
  }
  return good;
}
