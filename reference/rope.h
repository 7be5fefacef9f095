/* Rotary position embedding, the definition: a feature of a query or a key as scores see it. Written from the text of
 * variants/functions.h and not from variants/rope.h, which variants use: a slip in one shows against the other. */
#ifndef ATTN_REFERENCE_ROPE_H
#define ATTN_REFERENCE_ROPE_H

#include <math.h>

#include "../variants/attention.h"

/* size: what |value| is at most, whatever cancels, and what rounding it is in proportion to; |value| itself where
 * nothing is rotated. */
typedef struct reference_feature {
  double value, size;
} reference_feature;

static inline int64_t reference_query_position(const attn_problem *problem, int64_t b, int64_t i) {
  return i + (problem->offsets ? problem->offsets[b] : problem->offset);
}

/* What a rotation makes of feature d of x: x_d by a cosine, and by a sine that of the other of its pair. back: the
 * other way round. */
static inline reference_feature reference_turned(const attn_problem *problem, int64_t position, bool back,
                                                 double own, double other, bool is_first, int64_t pair) {
  const double cosine = problem->rope_cos_data[position * problem->rope_cos.position + pair];
  const double sine = problem->rope_sin_data[position * problem->rope_sin.position + pair];
  const double sign = is_first != back ? -1 : 1;
  return (reference_feature){own * cosine + sign * other * sine, fabs(own * cosine) + fabs(other * sine)};
}

/* Where a feature's partner is, which pair they are, and whether the feature is the first of it. -1: it is not rotated. */
static inline int64_t reference_partner(const attn_problem *problem, int64_t d, int64_t *pair,
                                        bool *is_first) {
  const int64_t half = problem->rope_features / 2;
  if (d >= problem->rope_features) return -1;
  *is_first = problem->rope_interleaved ? d % 2 == 0 : d < half;
  *pair = problem->rope_interleaved ? d / 2 : d % half;
  const int64_t apart = problem->rope_interleaved ? 1 : half;
  return *is_first ? d + apart : d - apart;
}

static inline reference_feature reference_rotated(const attn_problem *problem, int64_t position,
                                                  const float *x, int64_t d) {
  int64_t pair;
  bool is_first;
  const int64_t partner =
      problem->rope_cos.type == ATTN_ABSENT ? -1 : reference_partner(problem, d, &pair, &is_first);
  if (partner < 0) return (reference_feature){x[d], fabs((double)x[d])};
  return reference_turned(problem, position, false, x[d], x[partner], is_first, pair);
}

#endif
