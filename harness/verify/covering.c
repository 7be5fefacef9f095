/* See covering.h. Greedy, a row at a time (Cohen, Dalal, Fredman and Patton 1997, "The AETG system"): a row begins with
 * a pair that is still missing, and every other factor in turn takes the level that adds most pairs to it. */
#include "covering.h"

#include <assert.h>
#include <string.h>

typedef struct making {
  const covering_design *design;
  covering *made;
  int first[COVERING_FACTORS]; /* where the levels of a factor begin among those of all */
  int all;
  bool missing[COVERING_LEVELS][COVERING_LEVELS]; /* both ways */
  int from;                                       /* levels before this one miss none */
  int phase;
} making;

static int level_of(const making *m, int factor, int level) { return m->first[factor] + level; }

static int factor_of(const making *m, int level) {
  int factor = 0;
  while (factor + 1 < m->design->factors && m->first[factor + 1] <= level) factor++;
  return factor;
}

static void clear(const making *m, int *row) {
  for (int f = 0; f < m->design->factors; f++) row[f] = COVERING_OPEN;
}

/* Marks the pairs that can be at all as missing. */
static void find_pairs(making *m) {
  int row[COVERING_FACTORS];
  for (int a = 0; a < m->all; a++)
    for (int b = 0; b < a; b++) {
      const int f = factor_of(m, a), g = factor_of(m, b);
      if (f == g || m->design->levels[f] == 1 || m->design->levels[g] == 1) continue;
      clear(m, row);
      row[f] = a - m->first[f];
      row[g] = b - m->first[g];
      const bool possible = m->design->can_be(row, m->design->phases - 1);
      m->missing[a][b] = m->missing[b][a] = possible;
      m->made->pairs++;
      m->made->possible += possible;
    }
}

/* Pairs that a level would add to a row. */
static int gain(const making *m, const int *row, int factor, int level) {
  const bool *missing = m->missing[level_of(m, factor, level)];
  int gained = 0;
  for (int g = 0; g < m->design->factors; g++)
    gained += row[g] != COVERING_OPEN && missing[level_of(m, g, row[g])];
  return gained;
}

/* Of levels that gain alike the plainest, or the first from one that differs from row to row. */
static int best_level(const making *m, int *row, int factor) {
  const int count = m->design->levels[factor];
  int best = COVERING_OPEN, most = -1;
  for (int n = 0; n <= count; n++) {
    const int level = n == 0 ? 0 : (m->made->count + n) % count;
    const int gained = gain(m, row, factor, level);
    if (gained <= most) continue;
    row[factor] = level;
    if (m->design->can_be(row, m->phase)) {
      best = level;
      most = gained;
    }
    row[factor] = COVERING_OPEN;
  }
  assert(best != COVERING_OPEN && "what can be can be completed");
  return best;
}

/* Factors with many levels first: for them there are fewest rows. */
static int next_factor(const making *m, const int *row) {
  int found = -1;
  for (int f = 0; f < m->design->factors; f++)
    if (row[f] == COVERING_OPEN && (found < 0 || m->design->levels[f] > m->design->levels[found])) found = f;
  return found;
}

/* The next missing pair that a row of this phase can have; false: there is none. */
static bool begin_row(making *m, int *row) {
  for (; m->from < m->all; m->from++)
    for (int other = 0; other < m->from; other++) {
      if (!m->missing[m->from][other]) continue;
      const int f = factor_of(m, m->from), g = factor_of(m, other);
      clear(m, row);
      row[f] = m->from - m->first[f];
      row[g] = other - m->first[g];
      if (m->design->can_be(row, m->phase)) return true;
    }
  return false;
}

static void add_row(making *m, const int *row) {
  assert(m->made->count < COVERING_ROWS);
  memcpy(m->made->rows[m->made->count++], row, sizeof *m->made->rows);
  for (int f = 0; f < m->design->factors; f++)
    for (int g = 0; g < m->design->factors; g++)
      m->missing[level_of(m, f, row[f])][level_of(m, g, row[g])] = false;
}

void covering_make(const covering_design *design, covering *made) {
  making m = {.design = design, .made = made};
  int row[COVERING_FACTORS] = {0};
  *made = (covering){0};
  for (int f = 0; f < design->factors; f++) {
    m.first[f] = m.all;
    m.all += design->levels[f];
  }
  assert(m.all <= COVERING_LEVELS);
  find_pairs(&m);
  for (m.phase = 0; m.phase < design->phases; m.phase++)
    for (m.from = 0; begin_row(&m, row);) {
      for (int f = next_factor(&m, row); f >= 0; f = next_factor(&m, row)) row[f] = best_level(&m, row, f);
      add_row(&m, row);
    }
}
