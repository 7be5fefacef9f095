/* See pattern.h. Along each axis the wrong places are compared with what faults look like: all from a place on, all behind
 * whole tiles, every so many-th, a range. */
#include "pattern.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct words {
  char *text;
  size_t size, used;
} words;

__attribute__((format(printf, 2, 3))) static void add(words *to, const char *format, ...) {
  va_list arguments;
  if (to->used >= to->size) return;
  va_start(arguments, format);
  const int written = vsnprintf(to->text + to->used, to->size - to->used, format, arguments);
  va_end(arguments);
  to->used += written > 0 ? (size_t)written : 0;
}

/* One axis: which places were looked at and which of these are wrong; for rows, how many keys each sees. */
typedef struct axis {
  int64_t count;
  bool *seen, *wrong;
  int64_t *keys; /* or NULL */
} axis;

static int64_t count_of(const bool *marks, int64_t count) {
  int64_t all = 0;
  for (int64_t n = 0; n < count; n++) all += marks[n];
  return all;
}

/* ---- what faults look like ---- */

typedef bool rule(const axis *along, int64_t n, int64_t number);

static bool is_from(const axis *along, int64_t n, int64_t first) {
  (void)along;
  return n >= first;
}
static bool has_tail(const axis *along, int64_t n, int64_t tile) {
  return (along->keys ? along->keys[n] : n + 1) % tile != 0;
}
static bool is_last_of(const axis *along, int64_t n, int64_t tile) {
  (void)along;
  return n % tile == tile - 1;
}
static bool is_first_of(const axis *along, int64_t n, int64_t tile) {
  (void)along;
  return n % tile == 0;
}

/* How many are right though the rule names them, where just those are wrong that it names, several or the last; -1 where it
 * does not fit. A few may be right by chance. */
static int64_t exceptions(const axis *along, rule *names, int64_t number) {
  int64_t named = 0, wrong = 0, right = 0;
  const bool is_last = along->wrong[along->count - 1];
  for (int64_t n = 0; n < along->count; n++) {
    if (!along->seen[n]) continue;
    const bool is_named = names(along, n, number);
    if (along->wrong[n] && !is_named) return -1;
    named += is_named;
    wrong += is_named && along->wrong[n];
    right += !is_named;
  }
  return right > 0 && wrong + is_last > 1 && 10 * wrong >= 9 * named ? named - wrong : -1;
}

/* The one with fewest exceptions, of several the largest; 0: none. */
static int64_t fitting_tile(const axis *along, rule *names) {
  static const int64_t tiles[] = {256, 128, 96, 64, 48, 32, 24, 16, 12, 8, 4, 3, 2};
  int64_t best = 0, fewest = 0;
  for (size_t n = 0; n < sizeof tiles / sizeof *tiles; n++) {
    const int64_t found = tiles[n] < along->count ? exceptions(along, names, tiles[n]) : -1;
    if (found < 0 || (best && found >= fewest)) continue;
    best = tiles[n];
    fewest = found;
  }
  return best;
}

/* ---- in words ---- */

static int64_t end_of_run(const axis *along, int64_t n) {
  int64_t end = n;
  for (int64_t next = n + 1; next < along->count; next++) {
    if (!along->seen[next]) continue;
    if (!along->wrong[next]) break;
    end = next;
  }
  return end;
}

/* "1, 3-4, 6": the first few ranges. */
static void add_ranges(words *to, const axis *along) {
  enum { MOST = 6 };
  int ranges = 0;
  for (int64_t n = 0; n < along->count; n++) {
    if (!along->wrong[n]) continue;
    if (ranges++ == MOST) {
      add(to, ", ...");
      return;
    }
    const int64_t end = end_of_run(along, n);
    add(to, "%s%lld", ranges == 1 ? "" : ", ", (long long)n);
    if (end > n) add(to, "-%lld", (long long)end);
    n = end;
  }
}

static int64_t first_wrong(const axis *along) {
  int64_t n = 0;
  while (n < along->count && !along->wrong[n]) n++;
  return n;
}

/* Where the axis is of rows, the last ones are told from a tile on that is not whole. */
static void add_from(words *to, const axis *along, const char *names, int64_t first) {
  static const int64_t tiles[] = {256, 128, 64, 32, 16, 8, 4};
  const long long count = (long long)along->count;
  add(to, "%s from %lld on of %lld", names, (long long)first, count);
  for (size_t n = 0; n < sizeof tiles / sizeof *tiles; n++)
    if (along->count % tiles[n] != 0 && first == along->count / tiles[n] * tiles[n] && first > 0) {
      add(to, " (behind whole tiles of %lld)", (long long)tiles[n]);
      return;
    }
}

static void add_axis(words *to, const axis *along, const char *names, const char *before) {
  const int64_t seen = count_of(along->seen, along->count), wrong = count_of(along->wrong, along->count);
  const int64_t first = first_wrong(along);
  int64_t tile;
  if (along->count <= 1 || wrong == 0) return;
  add(to, "%s", before);
  if (wrong == seen)
    add(to, "all %s", names);
  else if (exceptions(along, is_from, first) >= 0)
    add_from(to, along, names, first);
  else if (along->keys && (tile = fitting_tile(along, has_tail)))
    add(to, "%s whose key count is no multiple of %lld", names, (long long)tile);
  else if ((tile = fitting_tile(along, is_last_of)))
    add(to, "the last of every %lld %s", (long long)tile, names);
  else if ((tile = fitting_tile(along, is_first_of)))
    add(to, "the first of every %lld %s", (long long)tile, names);
  else {
    add(to, "%.*s ", (int)strlen(names) - (wrong == 1 && names[0] != 'b'), names);
    add_ranges(to, along);
    add(to, " of %lld", (long long)along->count);
  }
}

/* ---- the axes of a problem ---- */

static bool make_axis(axis *along, int64_t count, bool with_keys) {
  *along = (axis){.count = count};
  along->seen = calloc((size_t)count + 1, sizeof(bool));
  along->wrong = calloc((size_t)count + 1, sizeof(bool));
  along->keys = with_keys ? calloc((size_t)count + 1, sizeof(int64_t)) : NULL;
  return along->seen && along->wrong && (along->keys || !with_keys);
}

static void free_axis(axis *along) {
  free(along->seen);
  free(along->wrong);
  free(along->keys);
}

enum { AXIS_BATCH, AXIS_HEADS, AXIS_ROWS, AXIS_COLUMNS, AXIS_KEYS, AXES };

static void see_rows(const wrong_rows *rows, axis axes[AXES]) {
  const attn_problem *p = rows->problem;
  for (int64_t n = 0; n < rows->count; n++) {
    const int64_t at = rows->positions[n], i = at % p->query_length, head = at / p->query_length;
    const int64_t place[] = {head / p->query_heads, head % p->query_heads, i};
    const attn_range keys = attn_visible_keys(p, place[0], i);
    axes[AXIS_ROWS].keys[i] = keys.end - keys.first;
    for (int k = 0; k < 3; k++) {
      axes[k].seen[place[k]] = true;
      axes[k].wrong[place[k]] |= rows->wrong[n];
    }
  }
}

static void see_marks(axis *along, const bool *marks) {
  for (int64_t n = 0; n < along->count; n++) {
    along->seen[n] = true;
    along->wrong[n] = marks[n];
  }
}

static void describe(const wrong_rows *rows, axis axes[AXES], words *to) {
  static const char *const names[AXES] = {"batch entries", "heads", "rows", "columns", "keys"};
  const char *before = ": ";
  see_rows(rows, axes);
  see_marks(&axes[AXIS_COLUMNS], rows->columns);
  if (rows->keys) see_marks(&axes[AXIS_KEYS], rows->keys);
  add(to, "wrong in %lld of %lld rows", (long long)count_of(rows->wrong, rows->count),
      (long long)rows->count);
  for (int k = 0; k < AXES; k++) {
    const size_t used = to->used;
    add_axis(to, &axes[k], names[k], before);
    if (to->used > used) before = ", ";
  }
}

void pattern_describe(const wrong_rows *rows, char *text, size_t size) {
  const attn_problem *p = rows->problem;
  const int64_t counts[AXES] = {p->batch, p->query_heads, p->query_length, p->value_dim,
                                rows->keys ? p->key_length : 0};
  axis axes[AXES] = {0};
  bool made = true;
  *text = '\0';
  for (int k = 0; k < AXES; k++) made = make_axis(&axes[k], counts[k], k == AXIS_ROWS) && made;
  if (made && count_of(rows->wrong, rows->count) > 0)
    describe(rows, axes, &(words){.text = text, .size = size});
  for (int k = 0; k < AXES; k++) free_axis(&axes[k]);
}
