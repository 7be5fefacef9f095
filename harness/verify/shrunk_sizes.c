/* See shrunk_sizes.h. A few sizes are asked for around each edge that a kernel may have. What is said of tiles holds for nearly
 * all of these, for a wrong kernel may be right by chance at one; those that failed and passed are named. */
#include "shrunk_sizes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/interrupt.h"
#include "base/timer.h"
#include "problem/workload.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const int sizes[] = {2, 4, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 256};
static const int tiles[] = {2, 4, 8, 16, 32, 48, 64, 96, 128};

typedef enum which { BOTH_LENGTHS, QUERIES, KEYS, BOTH_DIMS, HEAD_DIM, VALUE_DIM, WHICH } which;
static const char *const names[WHICH] = {"T", "Tq", "Tk", "D", "D", "Dv"};

/* What came of each of the sizes. */
typedef struct answers {
  size_answer of[COUNT(sizes)];
  int fail, pass;
} answers;

static bool is_said(which which, const workload *w) {
  const bool square = w->query_length == w->key_length, same = w->head_dim == w->value_dim;
  switch (which) {
    case BOTH_LENGTHS: return square;
    case QUERIES:
    case KEYS: return !square;
    case BOTH_DIMS: return same;
    default: return !same;
  }
}

static void set(workload *w, which which, int64_t size) {
  const bool bottom_right = w->offset != 0 && w->offset == w->key_length - w->query_length;
  if (which == BOTH_LENGTHS || which == QUERIES) w->query_length = size;
  if (which == BOTH_LENGTHS || which == KEYS) w->key_length = size;
  if (which == BOTH_DIMS || which == HEAD_DIM) w->head_dim = size;
  if (which == BOTH_DIMS || which == VALUE_DIM) w->value_dim = size;
  if (bottom_right) w->offset = w->key_length - w->query_length;
}

static bool ask(const failing *smallest, which which, double until, shrunk_size_asks *asks, void *context,
                answers *found) {
  *found = (answers){0};
  for (int n = 0; n < COUNT(sizes); n++) {
    failing candidate = *smallest;
    if (wall_seconds() >= until || interrupt_wanted()) return false;
    set(&candidate.workload, which, sizes[n]);
    found->of[n] = asks(&candidate, context);
    found->fail += found->of[n] == SIZE_FAILS;
    found->pass += found->of[n] == SIZE_PASSES;
  }
  return true;
}

/* ---- what they have in common ---- */

static int first_that(const answers *found, size_answer which) {
  for (int n = 0; n < COUNT(sizes); n++)
    if (found->of[n] == which) return sizes[n];
  return 0;
}

/* The smallest tile of which all multiples pass while nearly all other sizes fail, from the first that fails on; 0:
 * none. */
static int tile_of(const answers *found) {
  const int first = first_that(found, SIZE_FAILS);
  for (int t = 0; t < COUNT(tiles); t++) {
    int multiples = 0, others_pass = 0, others_fail = 0;
    bool sound = true;
    for (int n = 0; n < COUNT(sizes); n++) {
      const bool multiple = sizes[n] % tiles[t] == 0;
      if (sizes[n] < first) continue;
      sound = sound && !(multiple && found->of[n] == SIZE_FAILS);
      multiples += multiple && found->of[n] == SIZE_PASSES;
      others_pass += !multiple && found->of[n] == SIZE_PASSES;
      others_fail += !multiple && found->of[n] == SIZE_FAILS;
    }
    if (sound && multiples >= 2 && others_fail >= 3 && others_fail > 6 * others_pass) return tiles[t];
  }
  return 0;
}

/* The same the other way round: only multiples fail. */
static int failing_tile_of(const answers *found) {
  answers turned = *found;
  for (int n = 0; n < COUNT(sizes); n++)
    if (found->of[n] != SIZE_REFUSED) turned.of[n] = found->of[n] == SIZE_FAILS ? SIZE_PASSES : SIZE_FAILS;
  return tile_of(&turned);
}

/* The largest tile of which just one remainder fails, from the first size that does on; 0: there is none. */
static int remainder_of(const answers *found, int *remainder) {
  const int first = first_that(found, SIZE_FAILS);
  for (int t = COUNT(tiles) - 1; t >= 0; t--) {
    bool sound = tiles[t] > 2 && found->fail >= 2;
    *remainder = first % tiles[t];
    for (int n = 0; n < COUNT(sizes); n++) {
      if (sizes[n] < first || found->of[n] == SIZE_REFUSED) continue;
      sound = sound && (found->of[n] == SIZE_FAILS) == (sizes[n] % tiles[t] == *remainder);
    }
    if (sound) return tiles[t];
  }
  return 0;
}

/* The first size from which on all fail, while none before does; 0: there is none. */
static int first_failing(const answers *found) {
  int first = 0;
  for (int n = 0; n < COUNT(sizes); n++) {
    if (found->of[n] == SIZE_FAILS && !first) first = sizes[n];
    if (found->of[n] == SIZE_PASSES && first) return 0;
  }
  return first;
}

/* ---- in words ---- */

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *format, ...) {
  va_list arguments;
  size_t used = 0;
  while (text[used]) used++;
  va_start(arguments, format);
  vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
}

static void add_sizes(const answers *found, size_answer which, char *text, size_t size) {
  enum { MOST = 8 };
  int told = 0;
  for (int n = 0; n < COUNT(sizes); n++) {
    if (found->of[n] != which) continue;
    if (told == MOST) {
      add(text, size, ", ...");
      return;
    }
    add(text, size, "%s%d", told++ ? ", " : "", sizes[n]);
  }
}

static void say(const answers *found, const char *name, char *text, size_t size) {
  int remainder;
  const int tile = tile_of(found), failing = failing_tile_of(found), first = first_failing(found);
  const int alone = remainder_of(found, &remainder);
  if (found->fail == 0 || found->pass == 0) return;
  if (*text) add(text, size, "; ");
  if (tile)
    add(text, size, "%s %% %d matters: it fails where %s is no multiple of %d, from %d on", name, tile, name,
        tile, first_that(found, SIZE_FAILS));
  else if (failing)
    add(text, size, "%s %% %d matters: it fails where %s is a multiple of %d", name, failing, name, failing);
  else if (first)
    add(text, size, "%s matters: it fails from %d on", name, first);
  else if (alone)
    add(text, size, "%s %% %d matters: it fails where that is %d", name, alone, remainder);
  else
    add(text, size, "%s matters", name);
  add(text, size, " (fails at ");
  add_sizes(found, SIZE_FAILS, text, size);
  add(text, size, "; passes at ");
  add_sizes(found, SIZE_PASSES, text, size);
  add(text, size, ")");
}

void shrunk_sizes_describe(const failing *smallest, double seconds, shrunk_size_asks *asks, void *context,
                           char *text, size_t size) {
  const double until = wall_seconds() + seconds;
  answers found;
  *text = '\0';
  /* Widths only where no length says anything: each costs a process. */
  for (which which = BOTH_LENGTHS; which < WHICH && (which < BOTH_DIMS || !*text); which++)
    if (is_said(which, &smallest->workload) && ask(smallest, which, until, asks, context, &found))
      say(&found, names[which], text, size);
}
