/* Dropout, for variants: attention.h defines it pair by pair. A mask that is given says which weights meet their
 * values; what is left is divided by 1 - p, which a kernel may as well do to the whole row at the end. attention.h
 * includes this; include that. */
#ifndef ATTN_DROPOUT_H
#define ATTN_DROPOUT_H

/* The bytes of a row, a key each: 0 drops its weight. NULL: nothing is dropped. */
ATTN_INLINE const uint8_t *attn_keep_row(const attn_problem *problem, int64_t b, int64_t h, int64_t i) {
  const attn_layout *keep = &problem->keep;
  if (!attn_uses(problem, ATTN_DROPOUT)) return 0;
  return problem->keep_data + b * keep->batch + h * keep->head + i * keep->position;
}

/* What weights that are not dropped are multiplied by. */
ATTN_INLINE float attn_kept_factor(const attn_problem *problem) {
  return attn_uses(problem, ATTN_DROPOUT) ? (float)(1 / (1 - problem->dropout_p)) : 1;
}

#endif
