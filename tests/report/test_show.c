/* Who sees whom, as `attnbench show` gives it: letters, counts of tiles, what gnuplot is given, refusals. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "problem/widened.h"
#include "report/show.h"
#include "tests/shell.h"

#define PROGRAM ATTN_BUILD_DIR "/attnbench"

/* ---- letters ---- */

static void give(const show_request *request, char *text, size_t size) {
  char why[1024] = "";
  FILE *out = fmemopen(text, size, "w");
  assert_non_null(out);
  const show_paper paper = {.out = out, .width = 80};
  if (!show_problem(request, &paper, why, sizeof why)) fail_msg("show %s: %s", request->problem, why);
  fclose(out);
}

static void small_problems_are_given_letter_for_letter(void **state) {
  (void)state;
  static const struct {
    show_request request;
    const char *text;
  } cases[] = {
      {{.problem = "causal/H:1/T:4/D:8", .tile = "2x2"},
       "causal/B:1/H:1/Hkv:1/D:8/T:4\n"
       "batch entry 0, head 0: 10 of 16 pairs of a query and a key are visible (62.5%)\n"
       "tiles of 2 x 2 (queries x keys): 4, of these 1 empty (25%), 2 partial (50%), 1 full (25%)\n"
       "\npairs: # is visible\n"
       "     key 0\n"
       "      0 |##      |\n"
       "      1 |####    |\n"
       "      2 |######  |\n"
       "      3 |########|\n"
       "\ntiles: # is full, o partial\n"
       "     key 0\n"
       "      0 |oo  |\n"
       "      2 |##oo|\n"},
      {{.problem = "window:1/H:2/Tq:3/Tk:5", .head = 1, .tile = "3x2"},
       "window:1/B:1/H:2/Hkv:2/D:64/Tq:3/Tk:5\n"
       "batch entry 0, head 1: 5 of 15 pairs of a query and a key are visible (33.3%)\n"
       "tiles of 3 x 2 (queries x keys): 3, of these 1 empty (33.3%), 2 partial (66.7%), 0 full (0%)\n"
       "\npairs: # is visible\n"
       "     key 0       4\n"
       "      0 |##        |\n"
       "      1 |####      |\n"
       "      2 |  ####    |\n"
       "\ntiles: # is full, o partial\n"
       "     key 0\n"
       "      0 |oooo  |\n"},
      {{.problem = "full/B:2/H:1/T:3/lengths:3,2", .batch = 1, .tile = "64x64"},
       "full/B:2/H:1/Hkv:1/D:64/T:3/lengths:3,2\n"
       "batch entry 1, head 0: 6 of 9 pairs of a query and a key are visible (66.7%)\n"
       "tiles of 3 x 3 (queries x keys): 1, of these 0 empty (0%), 1 partial (100%), 0 full (0%)\n"
       "\npairs: # is visible\n"
       "     key 0\n"
       "      0 |####  |\n"
       "      1 |####  |\n"
       "      2 |####  |\n"},
      {{.problem = "causal/H:1/T:3/fill:equal", .tile = "64x64", .weights = true},
       "causal/B:1/H:1/Hkv:1/D:64/T:3/fill:equal\n"
       "batch entry 0, head 0: 6 of 9 pairs of a query and a key are visible (66.7%)\n"
       "tiles of 3 x 3 (queries x keys): 1, of these 0 empty (0%), 1 partial (100%), 0 full (0%)\n"
       "\npairs: # is visible\n"
       "     key 0\n"
       "      0 |##    |\n"
       "      1 |####  |\n"
       "      2 |######|\n"
       "\nweights: blank: hidden\n"
       ". <0.13  : 0.13  - 0.18  = 0.24  + 0.32  * 0.42  # 0.56  @ 0.75 to 1\n"
       "     key 0\n"
       "      0 |@@    |\n"
       "      1 |****  |\n"
       "      2 |++++++|\n"},
  };
  static char text[1 << 16];
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    give(&cases[n].request, text, sizeof text);
    assert_string_equal(text, cases[n].text);
  }
}

static size_t count_letter(const char *text, char letter) {
  size_t count = 0;
  for (; *text; text++) count += *text == letter;
  return count;
}

static void kinds_of_tiles_are_told_apart_by_color_where_there_is_color(void **state) {
  (void)state;
  static char text[1 << 14];
  char why[256];
  const show_request request = {.problem = "causal/H:1/T:4", .tile = "2x2"};
  FILE *out = fmemopen(text, sizeof text, "w");
  const show_paper paper = {.out = out, .width = 80, .color = true};
  assert_true(show_problem(&request, &paper, why, sizeof why));
  fclose(out);
  assert_non_null(strstr(text, "      3 |\033[34m####\033[33m####\033[0m|\n"));
  assert_non_null(strstr(text, "      0 |\033[33m##  \033[0m    |\n"));
}

/* A sign for 4 queries x 2 keys: 7 of 8 pairs are visible, 3 of 8, and 4 of 8. */
static void signs_for_several_pairs_tell_how_many_are_visible(void **state) {
  (void)state;
  static char text[1 << 16];
  const show_request causal = {.problem = "causal/H:1/Tq:128/Tk:140", .tile = "64x64"};
  give(&causal, text, sizeof text);
  assert_non_null(strstr(text, "a sign stands for 4 queries x 2 keys"));
  assert_non_null(strstr(text, "\n      4 |##o.  "));
  const show_request half = {.problem = "full/H:1/Tq:128/Tk:140/lengths:101", .tile = "64x64"};
  give(&half, text, sizeof text);
  assert_non_null(strstr(text, "##o                   |\n"));
}

/* Query 0 sees the last key, and nobody else sees anything: of 2^24 pairs one. */
static void a_single_visible_pair_never_vanishes(void **state) {
  (void)state;
  static char text[1 << 16];
  const show_request request = {.problem = "band:0,0,4095/H:1/T:4096", .tile = "64x64"};
  give(&request, text, sizeof text);
  const char *pairs = strstr(text, "     key"), *tiles = strstr(text, "tiles: #");
  assert_non_null(pairs);
  assert_non_null(tiles);
  char map[8192];
  snprintf(map, sizeof map, "%.*s", (int)(tiles - pairs), pairs);
  assert_int_equal(count_letter(map, '.'), 1);
  assert_int_equal(count_letter(map, 'o') + count_letter(map, '#'), 0);
  assert_non_null(strstr(map, ".|"));
  assert_non_null(strstr(tiles, "o|"));
}

/* A line never gets longer than the paper, however long the sequence. */
static void lines_fit_the_width(void **state) {
  (void)state;
  static const int widths[] = {20, 40, 79, 200};
  for (size_t n = 0; n < sizeof widths / sizeof *widths; n++)
    for (int64_t keys = 1; keys < 3000; keys = keys * 3 + 1) {
      const show_paper paper = {.width = widths[n]};
      int64_t rows, columns;
      show_text_size(&paper, 1 + keys / 2, keys, &rows, &columns);
      assert_true(rows >= 1 && rows <= 1 + keys / 2 && rows <= 64);
      assert_true(columns >= 1 && columns <= keys && columns + 10 <= widths[n]);
    }
}

/* ---- counts ---- */

typedef struct seen {
  inputs inputs;
  uint8_t *visible; /* [Tq * Tk], by the header's helper */
} seen;

static void see(seen *of, const char *line, int64_t b, int64_t h) {
  workload w;
  char why[512];
  assert_true(workload_parse_sound(line, &w, why, sizeof why));
  assert_true(inputs_create(&of->inputs, &w, true, why, sizeof why));
  const attn_problem *p = &of->inputs.problem;
  of->visible = malloc((size_t)(p->query_length * p->key_length));
  assert_non_null(of->visible);
  for (int64_t i = 0; i < p->query_length; i++)
    attn_visible_row(p, &of->inputs.tensors, b, h, i, 0, p->key_length, of->visible + i * p->key_length);
}

static void forget(seen *of) {
  free(of->visible);
  inputs_destroy(&of->inputs);
}

/* Visible pairs of a rectangle, cut to the pairs that there are. */
static int64_t sum(const seen *of, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const attn_problem *p = &of->inputs.problem;
  int64_t visible = 0;
  for (int64_t i = i0; i < i1 && i < p->query_length; i++)
    for (int64_t j = j0; j < j1 && j < p->key_length; j++) visible += of->visible[i * p->key_length + j];
  return visible;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void check_tiles(const seen *of, const show_tiles *tiles) {
  const attn_problem *p = &of->inputs.problem;
  int64_t kinds[3] = {0}, pairs = 0;
  for (int64_t r = 0; r < tiles->rows; r++)
    for (int64_t c = 0; c < tiles->columns; c++) {
      const int64_t i0 = r * tiles->height, j0 = c * tiles->width;
      const int64_t visible = sum(of, i0, i0 + tiles->height, j0, j0 + tiles->width);
      const int64_t all =
          smaller(tiles->height, p->query_length - i0) * smaller(tiles->width, p->key_length - j0);
      const attn_visibility kind = visible == 0 ? ATTN_EMPTY : visible == all ? ATTN_FULL : ATTN_PARTIAL;
      assert_int_equal(tiles->visible[r * tiles->columns + c], visible);
      assert_int_equal(show_tile_kind(tiles, r, c, p), kind);
      kinds[kind]++;
      pairs += visible;
    }
  assert_int_equal(tiles->rows, (p->query_length + tiles->height - 1) / tiles->height);
  assert_int_equal(tiles->columns, (p->key_length + tiles->width - 1) / tiles->width);
  assert_memory_equal(tiles->kinds, kinds, sizeof kinds);
  assert_int_equal(tiles->pairs, pairs);
}

static void check_cells(const seen *of, const show_cells *cells, const show_tiles *tiles) {
  const attn_problem *p = &of->inputs.problem;
  int64_t pairs = 0;
  for (int64_t r = 0; r < cells->rows; r++)
    for (int64_t c = 0; c < cells->columns; c++) {
      const int64_t i0 = show_first(r, cells->rows, p->query_length),
                    i1 = show_first(r + 1, cells->rows, p->query_length),
                    j0 = show_first(c, cells->columns, p->key_length),
                    j1 = show_first(c + 1, cells->columns, p->key_length);
      const int64_t n = r * cells->columns + c, visible = sum(of, i0, i1, j0, j1);
      assert_int_equal(cells->visible[n], visible);
      assert_int_equal(show_cell_pairs(cells, r, c), (i1 - i0) * (j1 - j0));
      pairs += show_cell_pairs(cells, r, c);
      bool has[3] = {false};
      for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++)
          has[show_tile_kind(tiles, i / tiles->height, j / tiles->width, p)] = true;
      const attn_visibility kind = has[ATTN_PARTIAL] || (has[ATTN_EMPTY] && has[ATTN_FULL]) ? ATTN_PARTIAL
                                   : has[ATTN_FULL]                                         ? ATTN_FULL
                                                                                            : ATTN_EMPTY;
      assert_int_equal(cells->kind[n], kind);
    }
  assert_int_equal(pairs, p->query_length * p->key_length);
}

static int64_t below(uint64_t n, int64_t count) { return (int64_t)(random_bits(5, n) % (uint64_t)count); }

static void tiles_and_cells_count_what_the_header_says_of_each_pair(void **state) {
  (void)state;
  static const char *const bands[] = {"full", "causal", "causal_bottom_right", "window:3", "band:2,5,-4"};
  for (uint64_t n = 0; n < 300; n++) {
    char line[256];
    const int64_t Tq = 1 + below(8 * n, 40), Tk = 1 + below(8 * n + 1, 40);
    snprintf(line, sizeof line, "%s/B:2/H:2/D:1/Tq:%lld/Tk:%lld%s/lengths:%lld,%lld", bands[n % 5],
             (long long)Tq, (long long)Tk, n % 3 ? "" : "/mask:bhq", (long long)below(8 * n + 2, Tk + 1),
             (long long)Tk);
    const int64_t b = (int64_t)(n / 2 % 2), h = (int64_t)(n / 4 % 2);
    seen seen;
    see(&seen, line, b, h);
    show_tiles tiles = {.height = 1 + below(8 * n + 3, 12), .width = 1 + below(8 * n + 4, 50)};
    show_cells one = {.rows = 1 + below(8 * n + 5, Tq), .columns = 1 + below(8 * n + 6, Tk)};
    show_cells whole = {.rows = Tq, .columns = Tk}, *const cells[] = {&one, &whole};
    const show_head head = {&seen.inputs, b, h};
    assert_true(show_count(&head, &tiles, cells, 2));
    check_tiles(&seen, &tiles);
    check_cells(&seen, &one, &tiles);
    check_cells(&seen, &whole, &tiles);
    if (n % 3) assert_int_equal(tiles.unsaid, 0); /* of band and lengths the header knows all */
    show_tiles_destroy(&tiles);
    show_cells_destroy(&one);
    show_cells_destroy(&whole);
    forget(&seen);
  }
}

/* ---- weights ---- */

/* Fills cells of rows x columns of head 0 with weights; for the caller to destroy. */
static void weigh(const char *line, int64_t rows, int64_t columns, show_cells *cells) {
  workload w;
  inputs inputs;
  widened widened;
  char why[512];
  assert_true(workload_parse_sound(line, &w, why, sizeof why));
  assert_true(inputs_create(&inputs, &w, true, why, sizeof why));
  assert_true(widened_create(&widened, &inputs.problem, &inputs.tensors, false));
  show_tiles tiles = {.height = 64, .width = 64};
  *cells = (show_cells){.rows = rows, .columns = columns};
  const show_head head = {&inputs, 0, 0};
  assert_true(show_count(&head, &tiles, &cells, 1));
  assert_true(show_weigh(&head, &widened.tensors, &cells, 1));
  show_tiles_destroy(&tiles);
  widened_destroy(&widened);
  inputs_destroy(&inputs);
}

static void weights_of_equal_scores_are_shares_of_the_visible_keys(void **state) {
  (void)state;
  show_cells cells;
  weigh("causal/H:2/T:20/D:16/fill:equal/bf16", 20, 20, &cells);
  for (int64_t i = 0; i < 20; i++)
    for (int64_t j = 0; j < 20; j++)
      if (j > i)
        assert_true(cells.weight[i * 20 + j] == SHOW_HIDDEN);
      else
        assert_true(fabs(cells.weight[i * 20 + j] - 1 / (double)(i + 1)) < 1e-12);
  show_cells_destroy(&cells);
}

static void a_cell_shows_its_largest_weight_and_is_hidden_only_where_all_is(void **state) {
  (void)state;
  show_cells all, few;
  weigh("causal/H:1/T:50/D:16/fill:heavy", 50, 50, &all);
  weigh("causal/H:1/T:50/D:16/fill:heavy", 7, 9, &few);
  for (int64_t r = 0; r < 7; r++)
    for (int64_t c = 0; c < 9; c++) {
      double largest = SHOW_HIDDEN;
      for (int64_t i = show_first(r, 7, 50); i < show_first(r + 1, 7, 50); i++)
        for (int64_t j = show_first(c, 9, 50); j < show_first(c + 1, 9, 50); j++)
          largest = fmax(largest, all.weight[i * 50 + j]);
      assert_true(few.weight[r * 9 + c] == largest);
    }
  show_cells_destroy(&all);
  show_cells_destroy(&few);
}

static void a_bias_of_minus_infinity_hides_and_a_nan_is_told(void **state) {
  (void)state;
  show_cells cells;
  enum { T = 64, PAIRS = T * T };
  int64_t hidden = 0, nan = 0;
  weigh("full/H:1/T:64/D:8/bias:q", T, T, &cells);
  for (int64_t n = 0; n < PAIRS; n++) hidden += cells.weight[n] == SHOW_HIDDEN;
  assert_true(hidden > T && hidden < PAIRS / 8); /* one in 32 is drawn so */
  show_cells_destroy(&cells);
  weigh("full/H:1/T:16/D:8/fill:nonfinite", 4, 4, &cells);
  for (int64_t n = 0; n < 16; n++) nan += isnan(cells.weight[n]);
  assert_true(nan > 0);
  show_cells_destroy(&cells);
}

/* ---- what gnuplot is given ---- */

/* A gnuplot that gives the data for the picture, and keeps the settings. */
#define MAKE_GNUPLOT                                                                                         \
  "cat >gnuplot <<'END'\n#!/bin/sh\n"                                                                        \
  "field() { sed -n \"s/^$1 = '\\(.*\\)'/\\1/p\" \"$3\"; }\n"                                                \
  "cp \"$3\" settings; cp \"$(field data \"\" \"$3\")\" \"$(field output \"\" \"$3\")\"\nEND\nchmod +x "     \
  "gnuplot"

static char folder[] = "/tmp/attnbench-test-show-XXXXXX";

static int in_folder(const char *command) {
  char line[8192];
  snprintf(line, sizeof line, "cd %s && %s", folder, command);
  return shell(line);
}

static void expect(const char *command, int status, const char *words) {
  const int ended = in_folder(command);
  if (ended != status || !strstr(shell_output, words))
    fail_msg("%s: status %d, expected %d and '%s'; there was:\n%s", command, ended, status, words,
             shell_output);
}

static size_t read_file(const char *name, unsigned char *bytes, size_t size) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t length = fread(bytes, 1, size, file);
  fclose(file);
  return length;
}

/* A number of the settings. */
static int64_t setting(const char *settings, const char *name) {
  char line[64];
  snprintf(line, sizeof line, "\n%s = ", name);
  const char *at = strstr(settings, line);
  if (!at) fail_msg("the settings lack %s:\n%s", name, settings);
  return at ? strtoll(at + strlen(line), NULL, 10) : 0;
}

static bool is_color(const unsigned char *point, unsigned color) {
  return (unsigned)(point[0] << 16 | point[1] << 8 | point[2]) == color;
}

static void gnuplot_gets_a_color_for_every_point_and_numbers_for_every_name(void **state) {
  (void)state;
  static unsigned char points[1 << 23];
  static char settings[1 << 16];
  assert_int_equal(in_folder(MAKE_GNUPLOT), 0);
  expect("PATH=.:$PATH " PROGRAM " show causal/H:1/T:4 --tile 2x2 --out . --format png", 0, "lie in .");
  settings[read_file("settings", (unsigned char *)settings, sizeof settings - 1)] = '\0';
  const int64_t width = setting(settings, "columns"), height = setting(settings, "rows");
  assert_int_equal(read_file("pattern.png", points, sizeof points), 3 * width * height);
  assert_int_equal(width, height); /* pairs are squares */
  assert_int_equal(setting(settings, "queries"), 4);
  assert_int_equal(setting(settings, "keys"), 4);
  assert_int_equal(setting(settings, "plot_pixels"), height);
  assert_non_null(strstr(settings, "\ntitle = 'Who sees whom: causal/B:1/H:1/Hkv:1/D:64/T:4'\n"));
  assert_non_null(strstr(settings, "'2 partial tiles, 50%'"));
  /* In the middle of each pair: hidden and visible in partial tiles, in a full one and in an empty one. */
  static const unsigned none = 0xFFFFFF, full = 0x0072B2, seen = 0xD55E00, unseen = 0xFBE9DC;
  const unsigned expected[4][4] = {{seen, unseen, none, none},
                                   {seen, seen, none, none},
                                   {full, full, seen, unseen},
                                   {full, full, seen, seen}};
  for (int64_t i = 0; i < 4; i++)
    for (int64_t j = 0; j < 4; j++)
      if (!is_color(points + 3 * ((2 * i + 1) * height / 8 * width + (2 * j + 1) * width / 8),
                    expected[i][j]))
        fail_msg("query %lld, key %lld", (long long)i, (long long)j);
}

static void a_single_pair_of_many_is_drawn(void **state) {
  (void)state;
  static unsigned char points[1 << 23];
  size_t others = 0, at = 0;
  assert_int_equal(in_folder(MAKE_GNUPLOT), 0);
  expect("PATH=.:$PATH " PROGRAM " show band:0,0,4095/H:1/T:4096 --tile 1x1 --out . --format png", 2,
         "too many tiles");
  expect("PATH=.:$PATH " PROGRAM " show band:0,0,4095/H:1/T:4096 --tile 2x4 --out . --format png", 0, "lie");
  const size_t bytes = read_file("pattern.png", points, sizeof points);
  for (size_t n = 0; n < bytes; n += 3)
    if (!is_color(points + n, 0xFFFFFF)) {
      others++;
      at = n;
    }
  assert_int_equal(others, 1);
  assert_true(points[at + 1] < 0xB4); /* of orange so much that it is seen on white */
}

static void gnuplot_draws_both_pictures_and_leaves_nothing_else(void **state) {
  (void)state;
  if (shell("command -v gnuplot") != 0) skip();
  expect("mkdir drawn && " PROGRAM " show window:5/T:40/mask:q/fill:nonfinite --weights --out drawn "
         "--font-size 26 && test $(ls -A drawn | wc -l) = 4",
         0, "The pictures lie in drawn");
  expect("for f in pattern weights; do head -c 4 drawn/$f.png | grep -q PNG && grep -q '</svg>' drawn/$f.svg "
         "&& grep -q '>key j<' drawn/$f.svg && grep -q '>query i<' drawn/$f.svg && echo $f drawn; done",
         0, "pattern drawn\nweights drawn");
}

/* ---- refusals ---- */

static void what_cannot_be_shown_is_refused_in_one_line(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *says;
  } cases[] = {
      {"", "show needs a problem: attnbench show causal/T:64"},
      {"causal/T:8 full/T:8", "show does not know what to do with 'full/T:8'"},
      {"nonsense/T:8", "show nonsense/T:8: unknown part 'nonsense'"},
      {"causal/T:8 --head 4", "--head 4: query heads of this problem are 0 to 3"},
      {"causal/T:8 --batch 1", "--batch 1: batch entries of this problem are 0 to 0"},
      {"causal/T:8/B:0", "--batch 0: the problem has no batch entries"},
      {"causal/T:8 --head -1", "--head takes a whole number from 0"},
      {"causal/T:8 --tile 0", "--tile takes QUERIESxKEYS, each 1 or more, such as 64x64, not '0'"},
      {"causal/T:8 --tile 0x4", "not '0x4'"},
      {"causal/T:8 --tile 4x4x4", "not '4x4x4'"},
      {"causal/T:0", "there is no pair of a query and a key to show"},
      {"full/T:65537", "show takes up to 2^32 (T:65536)"},
      {"full/T:65536 --tile 1x1", "show counts up to 2^22"},
      {"full/T:32768 --weights", "--weights takes Tq Tk D up to 2^34"},
      {"full/T:8 --out gnuplot", "--out gnuplot"},
      {"full/T:8 --lengths 8", "show has no option --lengths"},
  };
  assert_int_equal(in_folder(MAKE_GNUPLOT), 0);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char command[256];
    snprintf(command, sizeof command, PROGRAM " show %s", cases[n].arguments);
    expect(command, 2, cases[n].says);
    if (strncmp(shell_output, "attnbench: ", 11) != 0 || count_letter(shell_output, '\n') != 1)
      fail_msg("%s:\n%s", command, shell_output);
  }
}

/* Letters are given all the same, and a picture of before stays. */
static void what_turns_features_hides_nothing(void **state) {
  (void)state;
  assert_int_equal(in_folder(MAKE_GNUPLOT), 0);
  expect(PROGRAM " show causal/rope:half,32/D:64/T:64", 0, "2080 of 4096 pairs");
  expect(PROGRAM " show causal/rope:half,32/D:16/T:64", 2,
         "rope_features is 32: it must be an even number, 2 to head_dim 16");
}

static void without_gnuplot_there_are_letters_and_no_picture_is_lost(void **state) {
  (void)state;
  expect("echo before >pattern.png; mkdir -p empty; PATH=empty " PROGRAM " show full/T:4/H:1 --out . 2>err; "
         "echo status $?",
         0, "0 |########|");
  assert_non_null(strstr(shell_output, "status 2"));
  expect("cat err pattern.png; ls -A | grep plots || echo nothing left", 0, "nothing left");
  assert_non_null(strstr(shell_output, "gnuplot was not found"));
  assert_non_null(strstr(shell_output, "before"));
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return shell(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_problems_are_given_letter_for_letter),
      cmocka_unit_test(kinds_of_tiles_are_told_apart_by_color_where_there_is_color),
      cmocka_unit_test(signs_for_several_pairs_tell_how_many_are_visible),
      cmocka_unit_test(a_single_visible_pair_never_vanishes),
      cmocka_unit_test(lines_fit_the_width),
      cmocka_unit_test(tiles_and_cells_count_what_the_header_says_of_each_pair),
      cmocka_unit_test(weights_of_equal_scores_are_shares_of_the_visible_keys),
      cmocka_unit_test(a_cell_shows_its_largest_weight_and_is_hidden_only_where_all_is),
      cmocka_unit_test(what_turns_features_hides_nothing),
      cmocka_unit_test(a_bias_of_minus_infinity_hides_and_a_nan_is_told),
      cmocka_unit_test(gnuplot_gets_a_color_for_every_point_and_numbers_for_every_name),
      cmocka_unit_test(a_single_pair_of_many_is_drawn),
      cmocka_unit_test(gnuplot_draws_both_pictures_and_leaves_nothing_else),
      cmocka_unit_test(what_cannot_be_shown_is_refused_in_one_line),
      cmocka_unit_test(without_gnuplot_there_are_letters_and_no_picture_is_lost),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
