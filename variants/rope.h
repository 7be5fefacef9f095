/* Rotary position embedding, for variants (Su et al. 2021, RoFormer): queries and keys are rotated by their
 * positions, pair by pair of features, before anything else is made of them. Cosines and sines are tables that the
 * problem comes with, a row for each position. attention.h includes this; include that.
 *
 * Scores are made of rotated numbers in float32 (reference/README.md): to round these to 16 bits is a rounding too
 * many. */
#ifndef ATTN_ROPE_H
#define ATTN_ROPE_H

/* Which feature is a, and which is b, of pair n. */
ATTN_INLINE int64_t attn_rope_first(const attn_problem *problem, int64_t n) {
  return problem->rope_interleaved ? 2 * n : n;
}
ATTN_INLINE int64_t attn_rope_second(const attn_problem *problem, int64_t n) {
  return problem->rope_interleaved ? 2 * n + 1 : n + problem->rope_features / 2;
}

/* The row of the tables for a query; that of a key is its own number. */
ATTN_INLINE int64_t attn_rope_position(const attn_problem *problem, int64_t b, int64_t i) {
  return i + attn_offset_of(problem, b);
}

/* x: [D] a query or a key at this position, rotated where it lies; back: the other way, as gradients are. */
ATTN_INLINE void attn_rotate(const attn_problem *problem, int64_t position, bool back, float *x) {
  const float *cosines = problem->rope_cos_data + position * problem->rope_cos.position;
  const float *sines = problem->rope_sin_data + position * problem->rope_sin.position;
  for (int64_t n = 0; n < problem->rope_features / 2; n++) {
    float *a = x + attn_rope_first(problem, n), *b = x + attn_rope_second(problem, n);
    const float turned = *a, c = cosines[n], s = back ? -sines[n] : sines[n];
    *a = turned * c - *b * s;
    *b = *b * c + turned * s;
  }
}

#endif
