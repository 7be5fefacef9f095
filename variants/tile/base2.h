/* Scores in base 2, for exponentials that are powers of two. */
#ifndef ATTN_TILE_BASE2_H
#define ATTN_TILE_BASE2_H

#include <float.h>
#include <math.h>

static const float log2e = 1.44269504f;
static const double ln2 = 0.69314718055994531;

/* Many hide a key by the lowest bias there is, of which log2(e) would make -inf: a query that is padding, from which all keys are
 * hidden so, sees them alike. What log2(e) would take below this becomes this, and what is below it already stays as it is. */
static const float base2_lowest_bias = -0x1p127f;

/* -inf and NaN stay what they are. */
static inline float base2_bias(float bias) {
  const float scaled = log2e * bias, least = bias < base2_lowest_bias ? bias : base2_lowest_bias;
  return scaled < least ? least : scaled;
}

/* A softcap that stays finite, for it meets zeros. */
static inline float base2_cap(double softcap) { return (float)fmin(softcap / ln2, FLT_MAX); }

#endif
