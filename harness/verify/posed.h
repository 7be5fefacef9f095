/* What a variant was posed: how many problems, with which features, types and layouts, and of which sizes. A pass says
 * something of these alone. */
#ifndef ATTN_HARNESS_POSED_H
#define ATTN_HARNESS_POSED_H

#include <stdio.h>

#include "problem/features.h"
#include "problem/workload.h"

enum {
  POSED_SIZES = 8,
  POSED_VALUES = 6,
  POSED_LAYOUTS = LAYOUT_MIXED + 1,
  POSED_TYPES = 5,
  POSED_FILLS = FILL_NONFINITE + 1
};

typedef struct posed_size {
  int64_t least, most;
  int values; /* that differ; beyond POSED_VALUES they are not told apart */
  int64_t of[POSED_VALUES];
} posed_size;

typedef struct posed {
  int64_t problems, fitted; /* fitted: to what the variant takes */
  int64_t with[FEATURES], layouts[POSED_LAYOUTS], types[POSED_TYPES], fills[POSED_FILLS];
  int64_t grouped, square,
      causal; /* several query heads to a key/value head, Tq = Tk, right 0 and left unlimited */
  posed_size sizes[POSED_SIZES];
  int64_t pairs, possible; /* of what it takes, as in fitted_pairs.h; possible 0: not known */
} posed;

void posed_note(posed *to, const workload *workload, bool fitted);

/* A few lines, and a warning where a pass means little. asked: how many problems were to be posed. */
void posed_print(const posed *of, const char *variant, int64_t asked, FILE *out);

#endif
