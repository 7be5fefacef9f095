/* How the reference reads a problem: which key a query sees, and where a vector lies. Written from the
 * text of variants/attention.h and not from its helper attn_visible_keys, which variants use: a slip in
 * one shows against the other. */
#ifndef ATTN_REFERENCE_ROWS_H
#define ATTN_REFERENCE_ROWS_H

#include <math.h>

#include "reference.h"

static inline const float *reference_vector(const void *tensor, attn_layout strides, int64_t b, int64_t h,
                                            int64_t position) {
  return (const float *)tensor + b * strides.batch + h * strides.head + position * strides.position;
}

static inline int64_t reference_kv_head(const attn_problem *problem, int64_t h) {
  return h / (problem->query_heads / problem->kv_heads);
}

/* -inf, which adds nothing, where the problem has none. */
static inline double reference_sink(const attn_problem *problem, const attn_tensors *tensors, int64_t h) {
  return problem->sink.type ? (double)tensors->sink[h * problem->sink.head] : (double)-INFINITY;
}

/* Whether query i of head h in entry b sees key j: it exists, lies in the band, and no mask hides it. */
static inline bool reference_sees(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                  int64_t h, int64_t i, int64_t j) {
  if (problem->key_lengths && j >= problem->key_lengths[b]) return false;
  int64_t distance = j - i - (problem->offsets ? problem->offsets[b] : problem->offset);
  if (distance < -problem->left || distance > problem->right) return false;
  if (!problem->mask.type) return true;
  const attn_layout *mask = &problem->mask;
  return tensors->mask[b * mask->batch + h * mask->head + i * mask->position + j] != 0;
}

#endif
