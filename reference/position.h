/* What positions add to a score, the definition: of a query i of head h and a key j. Written from the text of
 * variants/attention.h and not from the helpers in variants/position.h, which variants use: a slip in one shows
 * against the other. */
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
  return problem->alibi.type != ATTN_ABSENT || problem->relative.type != ATTN_ABSENT ||
         problem->t5.type != ATTN_ABSENT;
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

/* By the logarithms as they are written, with so many more digits that those which are whole numbers in truth can be told. */
static inline int64_t reference_t5_bucket(const attn_problem *problem, int64_t distance) {
  const int64_t buckets = problem->t5_both ? problem->t5_buckets / 2 : problem->t5_buckets;
  const int64_t exact = buckets / 2, second_half = problem->t5_both && distance > 0 ? buckets : 0;
  int64_t n = distance;
  if (n < 0 || !problem->t5_both) n = n < 0 ? -n : 0;
  if (n < exact) return second_half + n;
  if (n >= problem->t5_distance) return second_half + buckets - 1;
  const long double of_n = logl((long double)n / exact),
                    of_most = logl((long double)problem->t5_distance / exact);
  const long double share = of_n / of_most * (buckets - exact);
  const int64_t bucket = exact + (int64_t)floorl(share + share * 4e-15L);
  return second_half + (bucket < buckets ? bucket : buckets - 1);
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
  if (problem->t5.type)
    reference_add_term(&all, problem->t5_data[h * problem->t5.head + reference_t5_bucket(problem, distance)],
                       3);
  return all;
}

#endif
