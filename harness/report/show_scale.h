/* The logarithmic scale of a head's weights: from the smallest that is shown to the largest. */
#ifndef ATTN_HARNESS_SHOW_SCALE_H
#define ATTN_HARNESS_SHOW_SCALE_H

#include "show_cells.h"

typedef struct show_scale {
  double low, high; /* 0 < low < high */
  bool is_cut;      /* weights below low are there: they look like low */
  bool has_nan;
  bool is_empty; /* no weight is a positive number */
} show_scale;

show_scale show_scale_of(const show_cells *cells);

/* Where a weight stands, 0 at low to 1 at high; beyond, at these. */
double show_scale_share(const show_scale *scale, double weight);

#endif
