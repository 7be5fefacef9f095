/* See alike.h. Where terms are spread evenly over a spacing of the sum, their roundings cancel: what is left is in how
 * the counts of bins, eight of which are a spacing, differ from their mean over one. */
#include "alike.h"

#include <string.h>

#include "roundings.h"

enum { SPACING = 8 }; /* bins: 2u of the sum, the most that a spacing is */
enum { CLASSES = 48 };

void alike_begin(alike_terms *terms, double count, double size) {
  terms->bins = 64; /* of fewer, terms that are far apart would too often share one */
  while (terms->bins < ALIKE_BINS && terms->bins < 4 * count) terms->bins *= 2;
  terms->bins_a_unit = SPACING / (2 * UNIT * size);
  terms->count = terms->squares = terms->of_bins = 0;
  memset(terms->roundings, 0, (size_t)terms->bins * sizeof *terms->roundings);
}

/* How much more than the mean of the spacing around it a bin has, or less. */
static void find_uneven(const alike_terms *terms, double by[]) {
  const int mask = terms->bins - 1;
  double around = 0; /* of nine bins, the outer two of which lie in the spacing by half */
  for (int bin = -SPACING / 2; bin <= SPACING / 2; bin++) around += terms->roundings[bin & mask];
  for (int bin = 0; bin < terms->bins; bin++) {
    const double first = terms->roundings[(bin - SPACING / 2) & mask],
                 last = terms->roundings[(bin + SPACING / 2) & mask];
    by[bin] = terms->roundings[bin] - (around - (first + last) / 2) / SPACING;
    around += terms->roundings[(bin + SPACING / 2 + 1) & mask] - first;
  }
}

/* Bins that are more uneven than some are taken as conspiring, the others as independent: as it is least. Numbers that are
 * strewn at random make squares of one a term, which the probabilistic form has; up to twice as many are left to its lambda. */
double alike_excess(const alike_terms *terms) {
  const double most = 1.5; /* that differences from a mean make of squares */
  if (most * terms->of_bins <= 2 * terms->squares) return 0;
  double by[ALIKE_BINS], squares = 0, linear = 0, least = INFINITY;
  find_uneven(terms, by);
  for (int bin = 0; bin < terms->bins; bin++) squares += by[bin] * by[bin];
  if (squares <= 2 * terms->squares) return 0;

  double sum_of[CLASSES] = {0}, squares_of[CLASSES] = {0}; /* by exponent */
  for (int bin = 0; bin < terms->bins; bin++) {
    const int exponent = fabs(by[bin]) < 1 ? 0 : ilogb(by[bin]);
    const int class = exponent < CLASSES ? exponent : CLASSES - 1;
    /* All that is there, where it is alone; what neighbours lack by then is its share of their mean. */
    if (by[bin] > 0) sum_of[class] += fmin(terms->roundings[bin], 2 * by[bin]);
    squares_of[class] += by[bin] * by[bin];
  }
  for (int class = CLASSES - 1; class >= 0; class --) {
    const double beyond = fmax(0, squares - 2 * terms->squares);
    least = fmin(least, linear + LAMBDA * (sqrt(terms->count + beyond) - sqrt(terms->count)));
    linear += sum_of[class];
    squares -= squares_of[class];
  }
  return fmin(least, linear);
}
