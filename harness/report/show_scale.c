/* See show_scale.h. */
#include "show_scale.h"

#include <math.h>

/* Below the largest by more than this, weights look alike: else one that is nearly nothing takes all colours. */
static const double most_range = 1e8;

show_scale show_scale_of(const show_cells *cells) {
  show_scale scale = {.low = INFINITY, .high = 0};
  double least = INFINITY;
  for (int64_t n = 0; n < cells->rows * cells->columns; n++) {
    const double weight = cells->weight[n];
    if (isnan(weight)) scale.has_nan = true;
    if (!isfinite(weight) || weight < 0) continue;
    least = fmin(least, weight);
    if (weight == 0) continue;
    scale.low = fmin(scale.low, weight);
    scale.high = fmax(scale.high, weight);
  }
  scale.is_empty = scale.high == 0;
  if (scale.is_empty) scale.low = scale.high = 1;
  if (scale.low < scale.high / most_range) scale.low = scale.high / most_range;
  if (scale.low > scale.high / 10) scale.low = scale.high / 10; /* weights that hardly differ look so */
  scale.is_cut = least < scale.low;
  return scale;
}

double show_scale_share(const show_scale *scale, double weight) {
  if (!(weight > scale->low)) return 0;
  if (weight >= scale->high) return 1;
  return log(weight / scale->low) / log(scale->high / scale->low);
}
