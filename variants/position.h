/* What positions add to the scores, for variants: attention.h defines it pair by pair. Within a head it follows from the distance
 * of a key from its query alone, r = j - (i + offset): a kernel that has it for a run of distances adds it along the diagonals of a
 * tile, and needs no T x T tensor. attention.h includes this; include that. */
#ifndef ATTN_POSITION_H
#define ATTN_POSITION_H

ATTN_INLINE bool attn_has_position_bias(const attn_problem *problem) {
  return attn_uses(problem, ATTN_ALIBI | ATTN_RELATIVE);
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
}

/* The same of one distance. */
ATTN_INLINE float attn_position_bias(const attn_problem *problem, int64_t h, int64_t distance) {
  float bias;
  attn_position_biases(problem, h, distance, 1, &bias);
  return bias;
}

#endif
