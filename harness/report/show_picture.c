/* See show_picture.h. The colours of all points of the plot are worked out here, so that a cell has sharp edges in every
 * format; gnuplot puts axes, words and the scale around them. */
#include "show_picture.h"

#include <math.h>
#include <string.h>

#include "captions.h"
#include "reference/reference.h"
#include "show_scale.h"

/* Of scripts/plots/canvas.gp. */
enum { CANVAS = 1600 };

/* In points of the canvas, at the usual size of the font: what stands left and right of the plot, and how small and how high
 * that may be; the scale of weights has to have room beside it. */
enum { LEFT = 150, RIGHT = 390, LEAST_WIDTH = 90, LEAST_HEIGHT = 280, HIGHEST = 900 };

/* How two pictures differ: what is said around them, and the colour of a cell. */
typedef struct matrix {
  const show_subject *of;
  const show_cells *cells;
  show_scale scale; /* of weights */
  bool weighs;
  const char *title;
  void (*put_words)(const struct matrix *matrix, double font_scale, FILE *out);
  uint32_t (*color)(const struct matrix *matrix, int64_t row, int64_t column);
  int64_t width, height; /* of the plot, in points */
} matrix;

/* Pairs are squares as far as that leaves both sides something to be seen. */
static void plot_size(const plot_style *style, int64_t queries, int64_t keys, int64_t *width,
                      int64_t *height) {
  const double widest = CANVAS - (LEFT + RIGHT) * drawing_scale(style);
  const double ratio = (double)queries / (double)keys;
  const double wide = fmin(widest, HIGHEST / ratio), high = fmin(HIGHEST, widest * ratio);
  *width = (int64_t)fmax(wide, LEAST_WIDTH * drawing_scale(style));
  *height = (int64_t)fmax(high, LEAST_HEIGHT * drawing_scale(style));
}

void show_picture_size(const plot_style *style, const attn_problem *problem, int64_t *rows,
                       int64_t *columns) {
  int64_t width, height;
  plot_size(style, problem->query_length, problem->key_length, &width, &height);
  *rows = problem->query_length < height ? problem->query_length : height;
  *columns = problem->key_length < width ? problem->key_length : width;
}

/* ---- colours ---- */

static uint32_t mixed(uint32_t from, uint32_t to, double share) {
  uint32_t mixture = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    const double a = (double)(from >> shift & 0xff), b = (double)(to >> shift & 0xff);
    mixture |= (uint32_t)(a + (b - a) * share + 0.5) << shift;
  }
  return mixture;
}

/* The blue and the orange of common.gp's palette. */
static const uint32_t white = 0xFFFFFF, blue = 0x0072B2, orange = 0xD55E00, hidden_in_partial = 0xFBE9DC;

/* The fewest pairs still show. */
static uint32_t color_of_pairs(const matrix *matrix, int64_t row, int64_t column) {
  const show_cells *cells = matrix->cells;
  const int64_t n = row * cells->columns + column;
  const double share = (double)cells->visible[n] / (double)show_cell_pairs(cells, row, column);
  if (cells->kind[n] == ATTN_EMPTY) return white;
  if (cells->kind[n] == ATTN_FULL) return blue;
  return share > 0 ? mixed(hidden_in_partial, orange, 0.4 + 0.6 * share) : hidden_in_partial;
}

/* From small weights to large ones: viridis (Smith and van der Walt 2015), turned round, whose dark end stands out from white. */
static const uint32_t weight_colors[] = {0xFDE725, 0xB4DE2C, 0x6DCD59, 0x35B779, 0x1F9E89,
                                         0x26828E, 0x31688E, 0x3E4A89, 0x482878, 0x440154};
enum { WEIGHT_COLORS = sizeof weight_colors / sizeof weight_colors[0] };
static const uint32_t not_a_number = 0xCC79A7;

static uint32_t color_of_weight(const matrix *matrix, int64_t row, int64_t column) {
  const double weight = matrix->cells->weight[row * matrix->cells->columns + column];
  if (isnan(weight)) return not_a_number;
  if (weight == SHOW_HIDDEN) return white;
  const double place = show_scale_share(&matrix->scale, weight) * (WEIGHT_COLORS - 1);
  const int below = place < WEIGHT_COLORS - 2 ? (int)place : WEIGHT_COLORS - 2;
  return mixed(weight_colors[below], weight_colors[below + 1], place - below);
}

/* Which cell a point lies in: there is one for each point, or fewer that are single pairs. */
static int64_t cell_at(int64_t point, int64_t points, int64_t cells) { return point * cells / points; }

/* Whether a tile begins at this point; of tiles too small for lines between them, none does. */
static bool is_edge(int64_t point, int64_t points, int64_t length, int64_t tile) {
  enum { LEAST_POINTS = 10 };
  if (point == 0 || tile * points < LEAST_POINTS * length) return false;
  return point * length / points / tile != (point - 1) * length / points / tile;
}

static void put_data(const void *what, FILE *out) {
  const matrix *m = what;
  const show_cells *cells = m->cells;
  const show_tiles *tiles = m->of->tiles;
  for (int64_t y = 0; y < m->height; y++)
    for (int64_t x = 0; x < m->width; x++) {
      uint32_t color = m->color(m, cell_at(y, m->height, cells->rows), cell_at(x, m->width, cells->columns));
      if (!m->weighs && (is_edge(y, m->height, cells->queries, tiles->height) ||
                         is_edge(x, m->width, cells->keys, tiles->width)))
        color = mixed(color, 0x808080, 0.35);
      const unsigned char bytes[3] = {(unsigned char)(color >> 16), (unsigned char)(color >> 8 & 0xff),
                                      (unsigned char)(color & 0xff)};
      fwrite(bytes, 1, sizeof bytes, out);
    }
}

/* ---- words ---- */

static double percent(int64_t part, int64_t whole) { return 100 * (double)part / (double)whole; }

static void put_entry(FILE *out, int n, uint32_t color, const char *text) {
  char name[32];
  snprintf(name, sizeof name, "entry[%d]", n);
  caption_string(out, name, text);
  fprintf(out, "entry_colour[%d] = '#%06X'\n", n, (unsigned)color);
}

static void put_pairs_words(const matrix *matrix, double font_scale, FILE *out) {
  (void)font_scale;
  static const char *const names[] = {"empty", "partial", "full"};
  static const attn_visibility order[] = {ATTN_FULL, ATTN_PARTIAL, ATTN_EMPTY};
  const show_tiles *tiles = matrix->of->tiles;
  const uint32_t colors[] = {white, orange, blue};
  char text[128];
  for (int n = 0; n < 3; n++) {
    const attn_visibility kind = order[n];
    snprintf(text, sizeof text, "%lld %s tile%s, %.3g%%", (long long)tiles->kinds[kind], names[kind],
             tiles->kinds[kind] == 1 ? "" : "s", percent(tiles->kinds[kind], tiles->rows * tiles->columns));
    put_entry(out, n + 1, colors[kind], text);
  }
  put_entry(out, 4, hidden_in_partial, "hidden in partial tiles");
  fputs("entries = 4\n", out);
}

/* Numbers on the scale: powers of ten, every other where these are many, and between them where they are few. */
static void put_ticks(const show_scale *scale, double font_scale, FILE *out) {
  const double decades = log10(scale->high / scale->low);
  fprintf(out, "set cbtics font ',%g' (", 15 * font_scale); /* as captions */
  const char *between = "";
  for (int power = (int)floor(log10(scale->low)); power <= (int)ceil(log10(scale->high)); power++)
    for (int digit = 1; digit < 10; digit++) {
      const double tick = digit * pow(10, power);
      const bool wanted =
          digit == 1 ? decades <= 4 || power % 2 == 0 : decades < 2.5 && (digit == 2 || digit == 5);
      if (!wanted || tick < scale->low * (1 - 1e-9) || tick > scale->high * (1 + 1e-9)) continue;
      fprintf(out, "%s'%g' %.17g", between, tick, tick);
      between = ", ";
    }
  fputs(")\n", out);
}

static void put_weights_words(const matrix *matrix, double font_scale, FILE *out) {
  const show_scale *scale = &matrix->scale;
  put_entry(out, 1, white, "hidden keys");
  if (scale->has_nan) put_entry(out, 2, not_a_number, "not a number");
  fprintf(out, "entries = %d\n", scale->has_nan ? 2 : 1);
  if (scale->is_empty) return;
  fprintf(out, "has_scale = 1\nscale_low = %.17g\nscale_high = %.17g\nset palette defined (", scale->low,
          scale->high);
  for (int n = 0; n < WEIGHT_COLORS; n++)
    fprintf(out, "%s%d '#%06X'", n ? ", " : "", n, (unsigned)weight_colors[n]);
  fputs(")\n", out);
  put_ticks(scale, font_scale, out);
  caption_string(out, "scale_title",
                 reference_function_of(matrix->of->head->inputs->problem.function)->has_scores
                     ? "weight"
                     : "phi(q) phi(k)");
}

static void cell_words(const matrix *matrix, char *text, size_t size) {
  const show_cells *cells = matrix->cells;
  const bool is_pair = cells->rows == cells->queries && cells->columns == cells->keys;
  text[0] = '\0';
  if (!is_pair && matrix->weighs)
    snprintf(text, size, "A point stands for %.3g x %.3g pairs and shows the largest weight.",
             (double)cells->queries / (double)cells->rows, (double)cells->keys / (double)cells->columns);
  else if (!is_pair)
    snprintf(text, size,
             "A point stands for %.3g x %.3g pairs: the darker, the more are visible; a single one shows.",
             (double)cells->queries / (double)cells->rows, (double)cells->keys / (double)cells->columns);
  if (matrix->weighs && matrix->scale.is_cut) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%sWeights below %.2g look like that.", used ? " " : "",
             matrix->scale.low);
  }
}

/* The problem's line stands in the title, where there is room and no other is wanted. */
static void put_captions(const matrix *matrix, const plot_style *style, FILE *out) {
  const show_subject *of = matrix->of;
  const show_tiles *tiles = of->tiles;
  const show_cells *cells = matrix->cells;
  char title[512], first[256], second[256];
  const char *lines[3];
  size_t count = 0;
  const double scale = drawing_scale(style);
  const size_t letters = (size_t)((CANVAS - (LEFT + 40) * scale) / (11 * scale));
  snprintf(title, sizeof title, "%s: %s", matrix->title, of->line);
  const bool fits = strlen(title) * 26 <= letters * 15 && !style->title;
  caption_string(out, "title", style->title ? style->title : fits ? title : matrix->title);
  if (!fits) lines[count++] = of->line;
  const int64_t pairs = cells->queries * cells->keys;
  const int used =
      snprintf(first, sizeof first, "Batch entry %lld, head %lld: %lld of %lld pairs are visible (%.3g%%).",
               (long long)of->head->b, (long long)of->head->h, (long long)tiles->pairs, (long long)pairs,
               percent(tiles->pairs, pairs));
  if (!matrix->weighs)
    snprintf(first + used, sizeof first - (size_t)used, " Tiles of %lld x %lld (queries x keys).",
             (long long)tiles->height, (long long)tiles->width);
  lines[count++] = first;
  cell_words(matrix, second, sizeof second);
  if (*second) lines[count++] = second;
  captions_put_lines(out, letters, lines, count);
}

/* Numbers on an axis: multiples of a power of two, about eight of them or as many as have room. */
static int64_t tick_step(int64_t length, int64_t points, double scale) {
  int64_t step = 1;
  while (length / step > 8 || (double)step * (double)points < 60 * scale * (double)length) step *= 2;
  return step;
}

static void put_settings(const void *what, const plot_style *style, FILE *out) {
  const matrix *m = what;
  const show_cells *cells = m->cells;
  const double scale = drawing_scale(style);
  fprintf(out, "left_margin = %.5f\nplot_width = %.5f\nplot_pixels = %lld\n", LEFT * scale / CANVAS,
          (double)m->width / CANVAS, (long long)m->height);
  fprintf(out, "columns = %lld\nrows = %lld\nqueries = %lld.0\nkeys = %lld.0\n", (long long)m->width,
          (long long)m->height, (long long)cells->queries, (long long)cells->keys);
  fprintf(out, "key_step = %lld.0\nquery_step = %lld.0\n",
          (long long)tick_step(cells->keys, m->width, 1.3 * scale),
          (long long)tick_step(cells->queries, m->height, 0.6 * scale));
  put_captions(m, style, out);
  fputs("array entry[4]\narray entry_colour[4]\nhas_scale = 0\n", out);
  m->put_words(m, scale, out);
}

static bool draw(const drawing *drawing, const char *name, matrix *matrix) {
  const attn_problem *p = &matrix->of->head->inputs->problem;
  const drawing_picture picture = {name, "matrix", matrix, put_settings, put_data};
  plot_size(drawing->style, p->query_length, p->key_length, &matrix->width, &matrix->height);
  return drawing_make(drawing, &picture);
}

bool show_picture_pairs(const drawing *drawing, const show_subject *of, const show_cells *cells) {
  matrix matrix = {.of = of,
                   .cells = cells,
                   .title = "Who sees whom",
                   .put_words = put_pairs_words,
                   .color = color_of_pairs};
  return draw(drawing, "pattern", &matrix);
}

bool show_picture_weights(const drawing *drawing, const show_subject *of, const show_cells *cells) {
  matrix matrix = {.of = of,
                   .cells = cells,
                   .scale = show_scale_of(cells),
                   .weighs = true,
                   .title = "Weights",
                   .put_words = put_weights_words,
                   .color = color_of_weight};
  return draw(drawing, "weights", &matrix);
}
