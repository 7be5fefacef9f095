/* phi and the decay of linear attention, in double precision. */
#ifndef ATTN_REFERENCE_FEATURE_MAP_H
#define ATTN_REFERENCE_FEATURE_MAP_H

#include <math.h>

#include "../variants/attention.h"

static inline double reference_phi(const attn_problem *problem, double x) {
  switch (problem->feature_map) {
    case ATTN_RELU: return x > 0 || isnan(x) ? x : 0;
    case ATTN_IDENTITY: return x;
    default: return x > 0 ? x + 1 : exp(x);
  }
}

/* Where the keys end that decay for query i: its own is the last, or those that exist end before. */
static inline int64_t reference_decay_end(const attn_problem *problem, int64_t b, int64_t i) {
  const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  const int64_t end = i + (problem->offsets ? problem->offsets[b] : problem->offset) + 1;
  return end < 0 ? 0 : end < keys ? end : keys;
}

/* What key t adds to the logarithm of the weight of those before it. */
static inline double reference_decay(const attn_problem *problem, int64_t b, int64_t kv_head, int64_t t) {
  return problem->decay_data[b * problem->decay.batch + kv_head * problem->decay.head + t];
}

#endif
