/* See show.h. */
#include "show.h"

#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/text.h"
#include "problem/check.h"
#include "problem/widened.h"
#include "reference/reference.h"
#include "show_picture.h"

#define SHOW(number) ((long long)(number))

/* Cells of letters and of pictures. */
typedef struct shown {
  workload workload; /* as it was asked for */
  show_head head;
  show_tiles tiles;
  show_cells letters, points;
} shown;

/* ---- what is asked for ---- */

static bool read_problem(const show_request *request, workload *w, complaint to) {
  char reason[512];
  const preset *preset = preset_find(request->problem);
  if (preset) {
    *w = preset->workload;
    return true;
  }
  if (workload_parse(request->problem, w, reason, sizeof reason) && workload_check(w, reason, sizeof reason))
    return true;
  return wrong(to, "show %.512s: %s", request->problem, reason);
}

static bool read_tile(const char *text, int64_t *height, int64_t *width, complaint to) {
  const char *end = text;
  const int64_t most = INT64_C(1) << 40;
  if (text_integer(text, 1, most, &end, height) && *end == 'x' &&
      text_integer(end + 1, 1, most, &end, width) && *end == '\0')
    return true;
  return wrong(to, "--tile takes QUERIESxKEYS, each 1 or more, such as 64x64, not '%.64s'", text);
}

static bool check_place(const char *option, int64_t place, int64_t count, const char *what, complaint to) {
  if (place < count) return true;
  if (count == 0) return wrong(to, "%s %lld: the problem has no %s", option, SHOW(place), what);
  return wrong(to, "%s %lld: %s of this problem are 0 to %lld", option, SHOW(place), what, SHOW(count - 1));
}

static int64_t tiles_along(int64_t length, int64_t tile) { return (length - 1) / tile + 1; }

static bool check_size(const show_request *request, const shown *s, complaint to) {
  const workload *w = &s->workload;
  const int64_t pairs = w->query_length * w->key_length; /* the workload is sound: far within int64_t */
  if (pairs == 0)
    return wrong(to, "Tq is %lld and Tk %lld: there is no pair of a query and a key to show",
                 SHOW(w->query_length), SHOW(w->key_length));
  if (pairs > SHOW_MOST_PAIRS)
    return wrong(
        to, "Tq %lld x Tk %lld are too many pairs to ask for one by one; show takes up to 2^32 (T:65536)",
        SHOW(w->query_length), SHOW(w->key_length));
  if (tiles_along(w->query_length, s->tiles.height) * tiles_along(w->key_length, s->tiles.width) >
      SHOW_MOST_TILES)
    return wrong(to, "--tile %.64s makes too many tiles of Tq %lld x Tk %lld; show counts up to 2^22 of them",
                 request->tile, SHOW(w->query_length), SHOW(w->key_length));
  if (request->weights && !reference_function_of(w->function)->solve)
    return wrong(to, "--weights shows softmax and linear attention: leave '%s/' out of the problem",
                 reference_function_of(w->function)->name);
  if (request->weights && (double)pairs * (double)w->head_dim > (double)SHOW_MOST_PRODUCTS)
    return wrong(to, "--weights takes Tq Tk D up to 2^34 (D:64/T:16384), not %lld x %lld x %lld",
                 SHOW(w->query_length), SHOW(w->key_length), SHOW(w->head_dim));
  return true;
}

static bool read_request(const show_request *request, shown *s, complaint to) {
  return read_problem(request, &s->workload, to) &&
         read_tile(request->tile, &s->tiles.height, &s->tiles.width, to) &&
         check_place("--batch", request->batch, s->workload.batch, "batch entries", to) &&
         check_place("--head", request->head, s->workload.query_heads, "query heads", to) &&
         check_size(request, s, to);
}

/* Values decide neither who sees whom nor the weights, and features not who sees whom: the inputs are drawn without them,
 * which changes no other. */
static workload needed(const workload *asked, bool weights) {
  workload w = *asked;
  w.value_dim = 0;
  w.wants_lse = w.wants_weights = false;
  if (weights) return w;
  w.head_dim = 1;
  w.bias.present = false;
  w.rope = 0;
  return w;
}

/* ---- what is given ---- */

static double percent(int64_t part, int64_t whole) { return 100 * (double)part / (double)whole; }

static void put_counts(const show_paper *paper, const shown *s, const char *line) {
  const workload *w = &s->workload;
  const show_tiles *tiles = &s->tiles;
  const int64_t count = tiles->rows * tiles->columns, pairs = w->query_length * w->key_length;
  fprintf(paper->out,
          "%s\nbatch entry %lld, head %lld: %lld of %lld pairs of a query and a key are visible (%.3g%%)\n",
          line, SHOW(s->head.b), SHOW(s->head.h), SHOW(tiles->pairs), SHOW(pairs),
          percent(tiles->pairs, pairs));
  fprintf(paper->out,
          "tiles of %lld x %lld (queries x keys): %lld, of these %lld empty (%.3g%%), %lld partial (%.3g%%), "
          "%lld full "
          "(%.3g%%)\n",
          SHOW(tiles->height), SHOW(tiles->width), SHOW(count), SHOW(tiles->kinds[ATTN_EMPTY]),
          percent(tiles->kinds[ATTN_EMPTY], count), SHOW(tiles->kinds[ATTN_PARTIAL]),
          percent(tiles->kinds[ATTN_PARTIAL], count), SHOW(tiles->kinds[ATTN_FULL]),
          percent(tiles->kinds[ATTN_FULL], count));
  if (tiles->unsaid)
    fprintf(paper->out, "attn_visible_tile calls %lld of the empty and full ones partial\n",
            SHOW(tiles->unsaid));
  if (w->bias.present) fputs("a bias of -inf hides keys too: --weights shows these as hidden\n", paper->out);
}

static void put_letters(const shown *s, const show_paper *paper, const char *line) {
  const attn_problem *p = &s->head.inputs->problem;
  put_counts(paper, s, line);
  show_text_pairs(paper, &s->letters);
  if (s->tiles.rows * s->tiles.columns > 1) show_text_tiles(paper, &s->tiles, p);
  if (s->letters.weight) show_text_weights(paper, &s->letters);
  fflush(paper->out);
}

static bool draw(const shown *s, const show_request *request, const char *line, complaint to) {
  const show_subject of = {line, &s->head, &s->tiles};
  drawing drawing;
  if (!drawing_begin(&drawing, &request->style, request->folder, to.text, to.size)) return false;
  const bool drawn = show_picture_pairs(&drawing, &of, &s->points) &&
                     (!s->points.weight || show_picture_weights(&drawing, &of, &s->points));
  drawing_end(&drawing);
  return drawn;
}

/* False when memory is short. */
static bool fill(shown *s, const show_request *request, const show_paper *paper) {
  const attn_problem *p = &s->head.inputs->problem;
  show_cells *const cells[] = {&s->letters, &s->points};
  const size_t count = request->folder ? 2 : 1;
  widened widened = {0};
  show_text_size(paper, p->query_length, p->key_length, &s->letters.rows, &s->letters.columns);
  show_picture_size(&request->style, p, &s->points.rows, &s->points.columns);
  bool good = show_count(&s->head, &s->tiles, cells, count);
  if (!good || !request->weights) return good;
  good = widened_create(&widened, &s->head.inputs->problem, &s->head.inputs->tensors, false) &&
         show_weigh(&s->head, &widened.tensors, cells, count);
  widened_destroy(&widened);
  return good;
}

static bool give(shown *s, const show_request *request, const show_paper *paper, complaint to) {
  char line[WORKLOAD_NAME_BYTES];
  workload_name(&s->workload, line);
  const bool filled = fill(s, request, paper);
  if (filled) put_letters(s, paper, line);
  const bool good = filled ? !request->folder || draw(s, request, line, to) : wrong(to, "out of memory");
  show_tiles_destroy(&s->tiles);
  show_cells_destroy(&s->letters);
  show_cells_destroy(&s->points);
  return good;
}

bool show_problem(const show_request *request, const show_paper *paper, char *why, size_t why_size) {
  const complaint to = {why, why_size};
  shown shown = {0};
  inputs inputs;
  if (!read_request(request, &shown, to)) return false;
  const workload drawn = needed(&shown.workload, request->weights);
  if (!inputs_create(&inputs, &drawn, true, why, why_size)) return false;
  shown.head = (show_head){&inputs, request->batch, request->head};
  const bool given = give(&shown, request, paper, to);
  inputs_destroy(&inputs);
  return given;
}
