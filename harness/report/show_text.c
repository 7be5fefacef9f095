/* See show_text.h. */
#include "show_text.h"

#include <math.h>
#include <string.h>

#include "show_scale.h"

enum { MOST_ROWS = 48, LEAST_ROWS = 16, WHOLE_ROWS = 64, LEAST_COLUMNS = 8 };

/* In front of the cells: the number of a query, a blank and a bar; behind them a bar. */
enum { MARGIN = 9 };

/* A map of letters. Rows and columns share out so many queries and keys, or tiles of them. */
typedef struct map {
  int64_t rows, columns, queries, keys;
  int64_t height, width; /* of what is shared out, in queries and in keys */
  const void *what;
  char (*letter)(const void *what, int64_t row, int64_t column);
  const char *(*color)(const void *what, int64_t row,
                       int64_t column); /* what sets it on a terminal, or NULL */
} map;

static int64_t room_of(const show_paper *paper) {
  const int64_t room = paper->width - MARGIN - 1;
  return room > LEAST_COLUMNS ? room : LEAST_COLUMNS;
}

/* Letters are twice as high as they are wide: where there is room, a cell is two of them. */
static int64_t letters_of(const show_paper *paper, int64_t columns) {
  return 2 * columns <= room_of(paper) ? 2 : 1;
}

void show_text_size(const show_paper *paper, int64_t queries, int64_t keys, int64_t *rows, int64_t *columns) {
  const int64_t room = room_of(paper);
  *columns = keys < room ? keys : room;
  *rows = queries;
  if (queries <= WHOLE_ROWS) return;
  const double square =
      (double)(*columns * letters_of(paper, *columns)) * (double)queries / (2 * (double)keys);
  *rows = square < LEAST_ROWS ? LEAST_ROWS : square > MOST_ROWS ? MOST_ROWS : (int64_t)square;
}

/* The numbers of keys above the columns, as many as have room. */
static void put_head(const show_paper *paper, const map *map, int64_t letters) {
  enum { APART = 8 };
  int64_t step = 1, at = 0;
  while (step * letters < APART) step *= 2;
  fprintf(paper->out, "%*s ", MARGIN - 1, "key");
  for (int64_t c = 0; c < map->columns; c += step) {
    char number[32];
    const int64_t key = show_first(c, map->columns, map->keys) * map->width;
    const int length = snprintf(number, sizeof number, "%lld", (long long)key);
    if (c > 0 && c * letters + length > map->columns * letters) break;
    at += fprintf(paper->out, "%*s%s", (int)(c * letters - at), "", number);
  }
  fputc('\n', paper->out);
}

static void put_map(const show_paper *paper, const map *map) {
  const int64_t letters = letters_of(paper, map->columns);
  put_head(paper, map, letters);
  for (int64_t r = 0; r < map->rows; r++) {
    const char *color = NULL;
    const int64_t query = show_first(r, map->rows, map->queries) * map->height;
    fprintf(paper->out, "%*lld |", MARGIN - 2, (long long)query);
    for (int64_t c = 0; c < map->columns; c++) {
      const char *next = paper->color && map->color ? map->color(map->what, r, c) : NULL;
      if (next != color) fprintf(paper->out, "\033[%sm", next ? next : "0");
      color = next;
      for (int64_t n = 0; n < letters; n++) fputc(map->letter(map->what, r, c), paper->out);
    }
    fprintf(paper->out, "%s|\n", color ? "\033[0m" : "");
  }
}

static const char *color_of(attn_visibility kind) {
  static const char blue[] = "34", yellow[] = "33";
  return kind == ATTN_FULL ? blue : kind == ATTN_PARTIAL ? yellow : NULL;
}

/* ---- pairs ---- */

static char letter_of_pairs(const void *what, int64_t row, int64_t column) {
  const show_cells *cells = what;
  const int64_t visible = cells->visible[row * cells->columns + column];
  const int64_t pairs = show_cell_pairs(cells, row, column);
  if (visible == 0) return ' ';
  if (visible == pairs) return '#';
  return 2 * visible < pairs ? '.' : 'o';
}

static const char *color_of_pairs(const void *what, int64_t row, int64_t column) {
  const show_cells *cells = what;
  return color_of(cells->kind[row * cells->columns + column]);
}

static bool stands_for_single_pairs(const show_cells *cells) {
  return cells->rows == cells->queries && cells->columns == cells->keys;
}

/* "1 query", "about 28 queries". */
static void put_share(FILE *out, int64_t length, int64_t cells, const char *one, const char *many) {
  const int64_t share = (length + cells / 2) / cells;
  fprintf(out, "%s%lld %s", length % cells ? "about " : "", (long long)share, share == 1 ? one : many);
}

static void put_size_of_cells(FILE *out, const show_cells *cells) {
  fputs("a sign stands for ", out);
  put_share(out, cells->queries, cells->rows, "query", "queries");
  fputs(" x ", out);
  put_share(out, cells->keys, cells->columns, "key", "keys");
}

void show_text_pairs(const show_paper *paper, const show_cells *cells) {
  const map map = {cells->rows, cells->columns, cells->queries,  cells->keys,   1,
                   1,           cells,          letter_of_pairs, color_of_pairs};
  fputs("\npairs: ", paper->out);
  if (stands_for_single_pairs(cells)) {
    fputs("# is visible\n", paper->out);
  } else {
    put_size_of_cells(paper->out, cells);
    fputs(":\n. some of its pairs are visible, o at least half, # all\n", paper->out);
  }
  put_map(paper, &map);
}

/* ---- tiles ---- */

typedef struct tile_map {
  const show_tiles *tiles;
  const attn_problem *problem;
  int64_t rows, columns;
} tile_map;

/* Of all tiles that a sign stands for. */
static attn_visibility kind_of_tiles(const tile_map *map, int64_t row, int64_t column) {
  const show_tiles *tiles = map->tiles;
  const int64_t first_row = show_first(row, map->rows, tiles->rows);
  const int64_t first_column = show_first(column, map->columns, tiles->columns);
  const attn_visibility kind = show_tile_kind(tiles, first_row, first_column, map->problem);
  for (int64_t r = first_row; r < show_first(row + 1, map->rows, tiles->rows); r++)
    for (int64_t c = first_column; c < show_first(column + 1, map->columns, tiles->columns); c++)
      if (show_tile_kind(tiles, r, c, map->problem) != kind) return ATTN_PARTIAL;
  return kind;
}

static char letter_of_tiles(const void *what, int64_t row, int64_t column) {
  return " o#"[kind_of_tiles(what, row, column)];
}

static const char *color_of_tiles(const void *what, int64_t row, int64_t column) {
  return color_of(kind_of_tiles(what, row, column));
}

void show_text_tiles(const show_paper *paper, const show_tiles *tiles, const attn_problem *problem) {
  tile_map what = {tiles, problem, 0, 0};
  show_text_size(paper, tiles->rows, tiles->columns, &what.rows, &what.columns);
  const map map = {what.rows,    what.columns, tiles->rows,     tiles->columns, tiles->height,
                   tiles->width, &what,        letter_of_tiles, color_of_tiles};
  fputs("\ntiles: # is full, o partial", paper->out);
  if (what.rows < tiles->rows || what.columns < tiles->columns)
    fputs("; where a sign stands for several, o where they differ", paper->out);
  fputc('\n', paper->out);
  put_map(paper, &map);
}

/* ---- weights ---- */

static const char weight_letters[] = ".:-=+*#@";
enum { WEIGHT_STEPS = sizeof weight_letters - 1 };

typedef struct weight_map {
  const show_cells *cells;
  show_scale scale;
} weight_map;

static char letter_of_weight(const void *what, int64_t row, int64_t column) {
  const weight_map *map = what;
  const double weight = map->cells->weight[row * map->cells->columns + column];
  if (isnan(weight)) return '?';
  if (weight == SHOW_HIDDEN) return ' ';
  const int step = (int)(show_scale_share(&map->scale, weight) * WEIGHT_STEPS);
  return weight_letters[step < WEIGHT_STEPS ? step : WEIGHT_STEPS - 1];
}

void show_text_weights(const show_paper *paper, const show_cells *cells) {
  const weight_map what = {cells, show_scale_of(cells)};
  const map map = {cells->rows, cells->columns, cells->queries,   cells->keys, 1,
                   1,           &what,          letter_of_weight, NULL};
  const double ratio = what.scale.high / what.scale.low;
  fputs("\nweights: ", paper->out);
  if (!stands_for_single_pairs(cells)) {
    put_size_of_cells(paper->out, cells);
    fputs(",\nand shows the largest; ", paper->out);
  }
  fprintf(paper->out, "blank: hidden%s\n", what.scale.has_nan ? "; ?: not a number" : "");
  for (int n = 0; n < WEIGHT_STEPS && !what.scale.is_empty; n++)
    fprintf(paper->out, "%s%c %s%.2g", n ? "  " : "", weight_letters[n], n ? "" : "<",
            what.scale.low * pow(ratio, (double)(n ? n : 1) / WEIGHT_STEPS));
  if (!what.scale.is_empty) fprintf(paper->out, " to %.2g\n", what.scale.high);
  put_map(paper, &map);
}
