/* What positions add to a score, the definition: of a query i of head h and a key j. Written from the text of variants/attention.h
 * and not from the helpers in variants/position.h, which variants use: a slip in one shows against the other. */
#ifndef ATTN_REFERENCE_POSITION_H
#define ATTN_REFERENCE_POSITION_H

#include <math.h>

#include "../variants/attention.h"

/* The sum of the terms, their sizes, what float32 arithmetic makes of each, and how many there are. */
typedef struct reference_terms {
  double sum, size, error;
  int count;
} reference_terms;

static inline bool reference_has_position(const attn_problem *problem) {
  return problem->alibi.type != ATTN_ABSENT || problem->relative.type != ATTN_ABSENT;
}

/* error: in roundings of the term, README.md. */
static inline void reference_add_term(reference_terms *all, double term, double error) {
  all->sum += term;
  all->size += fabs(term);
  all->error += error * fabs(term);
  all->count++;
}

/* Distances are told apart up to R on each side. */
static inline double reference_relative(const attn_problem *problem, int64_t h, int64_t distance) {
  const int64_t most = problem->relative_distance;
  int64_t place = distance;
  if (place > most) place = most;
  if (place < -most) place = -most;
  return problem->relative_data[h * problem->relative.head + place + most];
}

static inline reference_terms reference_position(const attn_problem *problem, int64_t b, int64_t h, int64_t i,
                                                 int64_t j) {
  reference_terms all = {0};
  const int64_t distance = j - (i + (problem->offsets ? problem->offsets[b] : problem->offset));
  if (problem->alibi.type) {
    const double slope = problem->alibi_data[h * problem->alibi.head];
    reference_add_term(&all, -slope * fabs((double)distance), 5);
  }
  if (problem->relative.type) reference_add_term(&all, reference_relative(problem, h, distance), 3);
  return all;
}

#endif
