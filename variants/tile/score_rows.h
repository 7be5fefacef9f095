/* Scores kept as plain rows along the keys, as blocked and blas hold them: what happens to a row between
 * the two products. */
#ifndef ATTN_SCORE_ROWS_H
#define ATTN_SCORE_ROWS_H

#include "tile.h"

enum { SCORE_MAX_ROWS = 256 };

/* Query rows [first_row, first_row + count) of a head against the keys that one of them sees. */
typedef struct score_rows {
  const tile_kernels *kernels;
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t batch, head, kv_head, first_row, count; /* count at most SCORE_MAX_ROWS */
  attn_range keys;

  /* Values of those keys, value_pitch apart. Where one that some row cannot see is not finite, they are a
   * copy with 0 for it, in `finite` [Tk, Dv]: 0 times it would reach that row. */
  const float *value;
  int64_t value_pitch;
  float *finite;

  float *scores; /* row r at r * pitch: one score for each key of the range */
  int64_t pitch; /* at least score_rows_pitch */
  float sum[SCORE_MAX_ROWS];
} score_rows;

/* The number of keys, rounded up for the kernels to write padding. */
int64_t score_rows_pitch(int64_t keys);

/* With kernels to count and finite set: finds kv_head, keys and value. */
void score_rows_place(score_rows *rows);

/* The factor that turns q.k into what score_rows_softmax takes. */
float score_rows_factor(const attn_problem *problem);

/* Row r, holding q.k times the factor: softcap, bias, hiding, then weights relative to the row's maximum, with sum[r]
 * their sum; those that are dropped become 0. Writes the log-sum-exp and the attention weights where they are wanted. */
void score_rows_softmax(score_rows *rows, int64_t r);

/* With output row r holding weights times value: adds what the copy left out where the row sees it, and
 * divides by sum[r]; zeros where nothing was seen. */
void score_rows_finish(const score_rows *rows, int64_t r);

const float *score_rows_query(const score_rows *rows, int64_t r);
const float *score_rows_key(const score_rows *rows); /* first key of the range */
float *score_rows_out(const score_rows *rows, int64_t r);

#endif
