/* How the reference reads a problem: which key a query sees (sees.h), and where a vector lies. */
#ifndef ATTN_REFERENCE_ROWS_H
#define ATTN_REFERENCE_ROWS_H

#include <math.h>

#include "position.h"
#include "reference.h"
#include "rope.h"
#include "sees.h"

static inline const float *reference_vector(const void *tensor, attn_layout strides, int64_t b, int64_t h,
                                            int64_t position) {
  return (const float *)tensor + b * strides.batch + h * strides.head + position * strides.position;
}

static inline int64_t reference_kv_head(const attn_problem *problem, int64_t h) {
  return h / (problem->query_heads / problem->kv_heads);
}

/* What dropout makes of a weight: it is multiplied by this. 1 where there is none. */
static inline double reference_kept(const attn_problem *problem, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attn_layout *keep = &problem->keep;
  if (keep->type == ATTN_ABSENT) return 1;
  return problem->keep_data[b * keep->batch + h * keep->head + i * keep->position + j] != 0
             ? 1 / (1 - problem->dropout_p)
             : 0;
}

/* Makes weights of a row's scores, as they are before dropout, and the log-sum-exp. No weight is exp(score - lse),
 * for beside large scores the log-sum-exp has lost the sum. */
static inline void reference_weigh(double sink, int64_t key_length, reference_row *row) {
  double largest = sink;
  for (int64_t j = 0; j < key_length; j++)
    if (row->visible[j]) largest = fmax(largest, row->scores[j]); /* what is not NaN */
  double sum = sink == -INFINITY ? 0 : exp(sink - largest);
  for (int64_t j = 0; j < key_length; j++)
    if (row->visible[j]) sum += row->weights[j] = exp(row->scores[j] - largest);
  for (int64_t j = 0; j < key_length; j++)
    if (row->visible[j]) row->weights[j] /= sum;
  row->lse = largest + log(sum);
}

/* -inf, which adds nothing, where the problem has none or no such query. */
static inline double reference_sink(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                                    int64_t h, int64_t i) {
  return problem->sink.type && reference_query_exists(problem, b, i)
             ? (double)tensors->sink[h * problem->sink.head]
             : (double)-INFINITY;
}

#endif
