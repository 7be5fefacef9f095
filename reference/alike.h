/* What is not random in the roundings of a long sum (README.md, "The probabilistic form"): where terms are as small as the
 * spacing of the sum that they are added to, or as near to each other, many of them round alike. */
#ifndef ATTN_REFERENCE_ALIKE_H
#define ATTN_REFERENCE_ALIKE_H

#include <math.h>
#include <stdint.h>

enum { ALIKE_BINS = 1024 };

/* Terms by where they lie between two numbers of the sum's type, each as much as its rounding may be: u of the sum, or all of it. */
typedef struct alike_terms {
  double bins_a_unit;
  int bins;
  double count, squares;
  double of_bins; /* squares of what each has */
  double roundings[ALIKE_BINS];
} alike_terms;

/* Before the first of count terms; size: the sum of their sizes. */
void alike_begin(alike_terms *terms, double count, double size);

static inline void alike_add(alike_terms *terms, double term) {
  enum { BINS_A_UNIT = 4 };
  const double place = term * terms->bins_a_unit, own = fabs(place) * (1.0 / BINS_A_UNIT);
  if (term == 0 || !(fabs(place) < 0x1p60)) return;
  const double rounding = own < 1 ? own : 1;
  terms->count++;
  terms->squares += rounding * rounding;
  double *bin = &terms->roundings[(int64_t)floor(place) & (terms->bins - 1)];
  terms->of_bins += rounding * (2 * *bin + rounding);
  *bin += rounding;
}

/* How far roundings that are alike may exceed what the probabilistic form allows to those that are not, in u of the sum of sizes. */
double alike_excess(const alike_terms *terms);

#endif
