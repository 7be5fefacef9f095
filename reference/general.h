/* General scores, the definition: what a query and the matrix of its head make of each feature of a key. */
#ifndef ATTN_REFERENCE_GENERAL_H
#define ATTN_REFERENCE_GENERAL_H

#include "rope.h"

enum { REFERENCE_MOST_GENERAL = 1024 }; /* features, which the harness sees to */

/* (W'q)_e, and the sum of the sizes of its products. */
typedef struct reference_general {
  double value[REFERENCE_MOST_GENERAL], size[REFERENCE_MOST_GENERAL];
} reference_general;

static inline void reference_transform(const attn_problem *problem, int64_t b, int64_t h, int64_t i,
                                       const float *query, reference_general *to) {
  const int64_t D = problem->head_dim, position = reference_query_position(problem, b, i);
  for (int64_t e = 0; e < D; e++) to->value[e] = to->size[e] = 0;
  for (int64_t d = 0; d < D; d++) {
    const reference_feature q = reference_rotated(problem, position, query, d);
    const float *row = problem->general_data + h * problem->general.head + d * problem->general.position;
    for (int64_t e = 0; e < D; e++) {
      to->value[e] += q.value * row[e];
      to->size[e] += q.size * fabs((double)row[e]);
    }
  }
}

/* Of such a query and the key at position j. */
static inline double reference_general_dot(const attn_problem *problem, const reference_general *query,
                                           const float *key, int64_t j) {
  double sum = 0;
  for (int64_t e = 0; e < problem->head_dim; e++)
    sum += query->value[e] * reference_rotated(problem, j, key, e).value;
  return sum;
}

#endif
