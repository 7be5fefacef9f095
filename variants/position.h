/* What positions add to the scores, for variants: attention.h defines it pair by pair. Within a head it follows from
 * the distance of a key from its query alone, r = j - (i + offset): a kernel that has it for a run of distances adds
 * it along the diagonals of a tile, and needs no T x T tensor. attention.h includes this; include that. */
#ifndef ATTN_POSITION_H
#define ATTN_POSITION_H

ATTN_INLINE bool attn_has_position_bias(const attn_problem *problem) {
  return attn_uses(problem, ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5);
}

/* The distance of key j from query i. */
ATTN_INLINE int64_t attn_distance(const attn_problem *problem, int64_t b, int64_t i, int64_t j) {
  return j - (i + attn_offset_of(problem, b));
}

/* By double, in which every distance up to 2^53 is exact and which vectors convert to. */
ATTN_INLINE void attn_fill_alibi(float slope, int64_t first, int64_t count, float *bias) {
  const double from = (double)first;
  for (int n = 0; n < (int)count; n++) {
    const float distance = (float)(from + n);
    bias[n] = -slope * (distance < 0 ? -distance : distance);
  }
}

/* table: of a head. Distances beyond its ends have the number of that end. */
ATTN_INLINE void attn_add_relative(const float *table, int64_t reach, int64_t first, int64_t count,
                                   float *bias) {
  for (int64_t n = 0; n < count; n++) {
    const int64_t distance = first + n;
    const int64_t clipped = distance < -reach ? -reach : distance > reach ? reach : distance;
    bias[n] += table[clipped + reach];
  }
}

/* How T5 cuts distances into buckets. Of those of a direction the first half have one distance each, which the others
 * have more and more of, in equal steps of the logarithm up to the greatest distance; from that on it is the last
 * one. Keys ahead have the second half of the buckets where there are both directions. */
typedef struct attn_t5_cut {
  int64_t own, exact, most; /* buckets of a direction, those of one distance each, the greatest distance */
  int64_t ahead;            /* where those of keys ahead begin; 0: these are in bucket 0 */
  double steps;             /* buckets for each unit of the natural logarithm */
} attn_t5_cut;

ATTN_INLINE attn_t5_cut attn_t5_cut_of(const attn_problem *problem) {
  attn_t5_cut cut;
  cut.own = problem->t5_both ? problem->t5_buckets / 2 : problem->t5_buckets;
  cut.exact = cut.own / 2;
  cut.most = problem->t5_distance;
  cut.ahead = problem->t5_both ? cut.own : 0;
  cut.steps = (double)(cut.own - cut.exact) / log1p((double)(cut.most - cut.exact) / (double)cut.exact);
  return cut;
}

/* The bucket of a distance. Steps that are whole, as at 16, 32 and 64 of up to 128, must not be less by rounding: hence a little
 * more than what comes of it, which is less than any other distance is off. */
ATTN_INLINE int64_t attn_t5_bucket_of(const attn_t5_cut *cut, int64_t distance) {
  const double little_more = 1 + 4e-15;
  const int64_t first = distance > 0 ? cut->ahead : 0;
  const int64_t far = distance <= 0 ? -distance : cut->ahead > 0 ? distance : 0;
  if (far < cut->exact) return first + far;
  if (far >= cut->most) return first + cut->own - 1;
  const double steps = cut->steps * log1p((double)(far - cut->exact) / (double)cut->exact);
  return first + cut->exact + (int64_t)(steps * little_more);
}

ATTN_INLINE int64_t attn_t5_bucket(const attn_problem *problem, int64_t distance) {
  const attn_t5_cut cut = attn_t5_cut_of(problem);
  return attn_t5_bucket_of(&cut, distance);
}

ATTN_INLINE void attn_add_t5(const attn_problem *problem, int64_t h, int64_t first, int64_t count,
                             float *bias) {
  const attn_t5_cut cut = attn_t5_cut_of(problem);
  const float *table = problem->t5_data + h * problem->t5.head;
  for (int64_t n = 0; n < count; n++) bias[n] += table[attn_t5_bucket_of(&cut, first + n)];
}

/* bias[n] is what the scores of keys at the distance first + n from their query have added in query head h; count is at most
 * INT32_MAX. */
ATTN_INLINE void attn_position_biases(const attn_problem *problem, int64_t h, int64_t first, int64_t count,
                                      float *bias) {
  if (attn_uses(problem, ATTN_ALIBI))
    attn_fill_alibi(problem->alibi_data[h * problem->alibi.head], first, count, bias);
  else
    for (int64_t n = 0; n < count; n++) bias[n] = 0;
  if (attn_uses(problem, ATTN_RELATIVE))
    attn_add_relative(problem->relative_data + h * problem->relative.head, problem->relative_distance, first,
                      count, bias);
  if (attn_uses(problem, ATTN_T5)) attn_add_t5(problem, h, first, count, bias);
}

/* The same of one distance. */
ATTN_INLINE float attn_position_bias(const attn_problem *problem, int64_t h, int64_t distance) {
  float bias;
  attn_position_biases(problem, h, distance, 1, &bias);
  return bias;
}

#endif
