/* The tile kernels that the fast variants share: one table of functions per instruction set.
 *
 * Query rows lie across the lanes of a vector, so that keys and values are read where they are, one
 * broadcast element at a time: nothing of length T is ever packed or copied but values whose rows would crowd a
 * few sets of the L1 cache, a tile at a time (query_tile_values).
 * Row maximum and row sum are then plain vertical operations. In memory a tile is therefore stored
 * "columns": element (x, row) of a tile [X, rows] at columns[x * rows + row].
 *
 * rows is a multiple of `lanes`, at most `max_rows`; rows that do not exist are padding, computed and
 * thrown away. Column buffers are aligned to 64 bytes. keys is any number from 0. */
#ifndef ATTN_TILE_H
#define ATTN_TILE_H

#include "../attention.h"

enum { TILE_MAX_ROWS = 64, TILE_KEYS = 64, TILE_FEW_ROWS = 4, TILE_FEW_KEYS = 256, TILE_ALIGNMENT = 64 };

/* Rows that are wanted soon, two tiles of them: a kernel fetches them into the L2 cache while it computes,
 * as far as its own loops reach. width[s]: floats of row[s] + n * stride[s], 0 for none. */
typedef struct tile_ahead {
  const float *row[2];
  int64_t stride[2], width[2];
} tile_ahead;

typedef struct tile_kernels {
  const char *name;
  int64_t lanes;
  int64_t max_rows;

  /* scores[j, r] = sum_d key[j * key_stride + d] * queries[d, r]      d < depth, j < keys
   * Columns of queries and of scores are pitches apart that may exceed rows. ahead may be NULL, here and below. */
  void (*scores)(int64_t rows, int64_t keys, int64_t depth, const float *queries, int64_t queries_pitch,
                 const float *key, int64_t key_stride, const tile_ahead *ahead, float *scores,
                 int64_t scores_pitch);

  /* output[e, r] = output[e, r] * rescale[r] + sum_j weights[j, r] * value[j * value_stride + e]
   * for e < width. The columns of weights and of output have pitches as well. */
  void (*accumulate)(int64_t rows, int64_t keys, int64_t width, const float *weights, int64_t weights_pitch,
                     const float *value, int64_t value_stride, const float *rescale, const tile_ahead *ahead,
                     float *output, int64_t output_pitch);

  /* One step of the online softmax in base 2 (Milakov and Gimelshein 2018, algorithm 3), row by row:
   *     old = max;  max = largest of max and the scores;  rescale = 2^(old - max)
   *     scores = 2^(scores - max);  sum = sum * rescale + sum of the scores
   * A score of -inf gives weight 0; a maximum of -inf (nothing visible yet) gives weights 0. */
  void (*softmax)(int64_t rows, int64_t keys, float *scores, float *max, float *sum, float *rescale);

  /* scores[j, r] = hidden unless first[r] <= j < end[r] */
  void (*hide)(int64_t rows, int64_t keys, const float *first, const float *end, float hidden, float *scores);

  /* True when x[r * stride + n] for r < rows, n < width holds no NaN and no infinity. */
  bool (*all_finite)(int64_t rows, int64_t width, const float *x, int64_t stride);

  /* The softmax of one row that lies along memory, in base 2: max = largest of max and x, x = 2^(x - max),
   * sum = the sum of these. count a multiple of lanes; fill up with -inf. */
  void (*softmax_row)(int64_t count, float *x, float *max, float *sum);

  /* x = cap * tanh(x), elementwise; count a multiple of lanes. */
  void (*softcap)(int64_t count, float cap, float *x);

  /* x = 2^x: within 2 ulp, 0 for -inf and wherever the result is below 2^-126.5 or so, NaN for NaN,
   * for x up to 127. count a multiple of lanes. */
  void (*exp2)(int64_t count, float *x);

  /* y = elu(x) + 1, which is x + 1 where x > 0 and e^x elsewhere, of rows of count elements at x + r * stride
   * to y + r * pitch; 0 from count to the pitch. */
  void (*elu1)(int64_t rows, int64_t count, const float *x, int64_t stride, float *y, int64_t pitch);

  /* columns[d, r] = row[r][d] * factor for r < count, 0 for the padding up to rows; d < depth. */
  void (*pack)(int64_t rows, int64_t count, int64_t depth, const float *const *row, float factor,
               float *columns);

  /* row[r][e] = columns[e, r] * factor[r] for r < count, e < width. */
  void (*unpack)(int64_t rows, int64_t count, int64_t width, const float *columns, const float *factor,
                 float *const *row);

  /* row[r][e] = x[r * pitch + e] * factor[r] for r < count, e < width. */
  void (*scale_rows)(int64_t count, int64_t width, const float *x, int64_t pitch, const float *factor,
                     float *const *row);

  /* dots[r] = sum_n x[r * pitch + n] * y[n] for r < rows, n < width; width a multiple of lanes, as rows is. */
  void (*dot_rows)(int64_t rows, int64_t width, const float *x, int64_t pitch, const float *y, float *dots);

  /* The two products for at most TILE_FEW_ROWS rows, stored row by row:
   *     scores[r * pitch + j] = sum_d query[r * query_pitch + d] * key[j * key_stride + d]
   *     output[r * pitch + e] = output[r * pitch + e] * rescale[r] + sum_j weights[r, j] * value[j, e]
   * query_pitch and the output's pitch are multiples of lanes; query is padded with zeros. ahead: rows that
   * are fetched meanwhile, one for each key. */
  void (*few_scores)(int64_t rows, int64_t keys, int64_t depth, const float *query, int64_t query_pitch,
                     const float *key, int64_t key_stride, const float *ahead, int64_t ahead_stride,
                     float *scores, int64_t pitch);
  void (*few_accumulate)(int64_t rows, int64_t keys, int64_t width, const float *weights,
                         int64_t weights_pitch, const float *value, int64_t value_stride,
                         const float *rescale, const float *ahead, int64_t ahead_stride, float *output,
                         int64_t pitch);
} tile_kernels;

/* The kernels of an instruction set, by its name. NULL, or a name that this processor has none of: the fastest. */
const tile_kernels *tile_select(const char *isa);

/* Those that the environment variable ATTN_ISA asks for. Asked once at the top of a call and handed down. */
const tile_kernels *tile_in_force(void);

/* Names of those that this processor has, slowest first, ending in NULL. */
const char *const *tile_instruction_sets(void);

extern const tile_kernels tile_portable;
#ifdef ATTN_X86_64
extern const tile_kernels tile_avx2, tile_avx512;
#endif

#endif
