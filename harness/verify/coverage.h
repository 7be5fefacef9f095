/* What a variant was posed: how many problems, with which features, types and layouts, and of which sizes. A pass says
 * something of these alone. */
#ifndef ATTN_HARNESS_COVERAGE_H
#define ATTN_HARNESS_COVERAGE_H

#include <stdio.h>

#include "problem/features.h"
#include "problem/workload.h"

enum {
  COVERAGE_SIZES = 8,
  COVERAGE_VALUES = 6,
  COVERAGE_LAYOUTS = LAYOUT_MIXED + 1,
  COVERAGE_TYPES = 5,
  COVERAGE_FILLS = FILL_NONFINITE + 1
};

typedef struct coverage_size {
  int64_t least, most;
  int values; /* that differ; beyond COVERAGE_VALUES they are not told apart */
  int64_t of[COVERAGE_VALUES];
} coverage_size;

typedef struct coverage {
  int64_t problems, fitted; /* fitted: to what the variant takes */
  int64_t with[FEATURES], layouts[COVERAGE_LAYOUTS], types[COVERAGE_TYPES], fills[COVERAGE_FILLS];
  int64_t grouped, square,
      causal; /* several query heads to a key/value head, Tq = Tk, right 0 and left unlimited */
  coverage_size sizes[COVERAGE_SIZES];
  int64_t pairs, possible; /* of what it takes, as in fitted_pairs.h; possible 0: not known */
} coverage;

void coverage_add(coverage *to, const workload *workload, bool fitted);

/* A few lines, and a warning where a pass means little. asked: how many problems were to be posed. */
void coverage_print(const coverage *of, const char *variant, int64_t asked, FILE *out);

#endif
