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
#include "../visibility.h"

enum {
  TILE_MAX_ROWS = 64,
  TILE_KEYS = 64,
  TILE_MOST_KEYS = 128,
  TILE_CHUNK = 64,           /* keys of a step of attend, */
  TILE_CHUNKS = 2,           /* of which there are so many at once; */
  TILE_CHUNK_ROWS = 32,      /* rows of its tiles, */
  TILE_TOGETHER = 16,        /* which are so many together at most, */
  TILE_ATTENDED_KEYS = 1024, /* and the most keys that they pass in one call, */
  TILE_COPIES = 4,           /* of which so many copies stay for the tiles that come after */
  TILE_FEW_ROWS = 4,
  TILE_FEW_KEYS = 256,
  TILE_TILED_ROWS = 16,  /* of few rows by AMX, */
  TILE_TILED_DEPTH = 32, /* and features of a line of theirs */
  TILE_FEW_PLACES = 8,   /* where keys and values of such a tile are read at once */
  TILE_ALIGNMENT = 64
};

/* Rows or columns of floats: number n begins at x + n * stride. tile_target is written to. */
typedef struct tile_matrix {
  const float *x;
  int64_t stride;
} tile_matrix;

typedef struct tile_target {
  float *x;
  int64_t stride;
} tile_target;

/* Rows of a tensor, or of a copy of some: x and the stride are in elements of the type that the kernels are for. Those
 * that a product reads are in operands, see tile_kernels. */
typedef struct tile_rows {
  const void *x;
  int64_t stride;
} tile_rows;

/* What a product is of: query rows, keys, and features, of a key or of a value. */
typedef struct tile_size {
  int64_t rows, keys, features;
} tile_size;

/* Two products that make rows of an output, see sum_products below. */
typedef struct tile_sum {
  int64_t depth;
  tile_matrix x;        /* rows of depth */
  const float *columns; /* [depth, width] */
  const int64_t *seen;  /* keys that a row has weights of, no fewer than the row before; NULL: none has any */
  tile_matrix weights; /* columns: of a key, weights of all rows, 0 for the keys behind those that are seen */
  tile_matrix values;  /* rows of width, of a key each */
  const float *factor; /* of each row */
} tile_sum;

/* Where the online softmax stands: of each row, see softmax below. */
typedef struct tile_state {
  float *max, *sum, *rescale;
} tile_state;

/* Rows that are wanted soon, so many of each of two tensors: a kernel fetches them into a cache while it computes,
 * as far as its own loops reach. stride and width are in bytes; width 0 for none. What comes in a burst fills the buffers that
 * misses wait in, and some processors drop the rest. There a step of a call goes on by `pace` bytes of rows without a gap, and
 * asks for a line several times; it is such that the steps reach the last. 0: by a line. */
typedef struct tile_ahead {
  int64_t rows;
  struct {
    const void *x;
    int64_t stride, width;
  } of[2];
  int64_t pace;
  struct tile_mapping *mapping; /* what is mapped meanwhile, or NULL */
} tile_ahead;

/* Rows of floats of which elu(x) + 1 is wanted soon. Where kernels say so (maps_beside), products of full tiles map a vector of
 * theirs now and then, and leave the rows that are still to be mapped: of the first of them `at` floats are done. width: in whole
 * vectors. */
typedef struct tile_mapping {
  int64_t rows, width, at;
  tile_matrix x;
  tile_target y;
} tile_mapping;

/* Lines of rows that are wanted soon, of TILE_FEW_PLACES places in turn: at `at` of `row`, which is the first place's, and so
 * many bytes apart in the others. All are in bytes. */
typedef struct tile_lines {
  const char *row;
  int64_t apart, stride, width, at;
} tile_lines;

/* From the first key of a place to that of the next, where so many are read in TILE_FEW_PLACES: odd, so that these places do not lie in
 * one set of a cache. That none begins anew before its end, as key_of_place has it, and no list of keys is made takes 0.84 to 0.97 of
 * the time of decoding (Zen 5). */
static inline int64_t tile_few_apart(int64_t keys) {
  return (keys + TILE_FEW_PLACES - 1) / TILE_FEW_PLACES | 1;
}

/* Those of the rows of `keys` keys with so many features, of elements of so many bytes. */
static inline tile_lines tile_lines_of(tile_rows rows, int64_t keys, int64_t features, int64_t bytes) {
  const int64_t stride = rows.stride * bytes;
  return (tile_lines){.row = (const char *)rows.x,
                      .apart = tile_few_apart(keys) * stride,
                      .stride = stride,
                      .width = features * bytes};
}

/* The share of them that falls to columns [first, first + width) of so many, where a product of all takes several calls. */
static inline tile_ahead tile_share(tile_ahead of, int64_t first, int64_t width, int64_t columns) {
  const int64_t from = of.rows * first / columns;
  for (int s = 0; s < 2; s++) of.of[s].x = (const char *)of.of[s].x + from * of.of[s].stride;
  of.rows = of.rows * (first + width) / columns - from;
  return of;
}

/* Queries of additive scores, as columns; features beyond `depth`, up to a multiple of 4, have weights of 0 and any
 * powers that are numbers. Of row r sum[r] + sum_d weights[d, r] / (1 + powers[d, r] e^(2 key_d)), times factor[r],
 * is the score: weights are -2 times those that are meant, none larger than 2 in size, and sum[r] is what they come
 * to, or NaN where they are no numbers. */
typedef struct tile_additive {
  const float *queries, *powers, *weights; /* [d, row] at d * rows + row */
  const float *sum, *factor;
  int64_t depth;
  int64_t stride, key_powers; /* from a key to the next, and from its features to their powers */
} tile_additive;

/* What attend takes, see below: TILE_CHUNK_ROWS rows, whose columns of queries and outputs lie one after the other. */
typedef struct tile_passage {
  int64_t keys;         /* whole chunks */
  int64_t depth, width; /* features of a key, a multiple of TILE_CHUNK, and of a value, of 16 */
  const float *queries;
  float factor;
  tile_rows key;
  const void
      *values; /* chunk c: from element c * TILE_CHUNK * width on, features TILE_CHUNK elements apart */
  const float *first, *end; /* of each row, the keys that it sees; NULL: it sees all */
  const uint64_t *left_out; /* of each chunk, bits of keys that no row sees; NULL: none is left out */

  /* What comes between the scores of keys [key, key + TILE_CHUNK), which stand in two places, and their softmax; NULL: nothing.
   * grows: scores may grow by much from chunk to chunk. */
  void (*change)(const struct tile_passage *of, int64_t key, float *const scores[2]);
  bool grows;
  struct query_tile *tile; /* of `change`, */
  int64_t first_key;       /* the first of its keys, */
  uint64_t masked;         /* and bits of the chunks from which a mask hides something */

  float *scores;    /* room for TILE_CHUNKS chunks, and of elements in two parts for half as many more */
  tile_state state; /* rescale is not used */
  float *output;
  tile_ahead ahead;
} tile_passage;

typedef struct tile_kernels {
  const char *name; /* of the instruction set */
  attn_type type;   /* of the tensors' elements */
  int64_t element_bytes;
  int64_t lanes;
  int64_t max_rows;
  int64_t few_rows; /* of a stack, up to which the kernels for few rows are faster than those of columns */
  int64_t keys;     /* of a full key tile, at most TILE_MOST_KEYS: more of pairs, which take half the room */

  /* The two products of full tiles, scores and accumulate, multiply operands: floats, or where step is 2 pairs of
   * elements, in 32 bits. A column of queries then holds features 2d (low) and 2d + 1 of each row, a column of weights
   * keys 2j and 2j + 1, and so do rows of values; beyond an odd number of features or keys stands 0. Keys are rows of
   * elements, where a pair of features lies side by side. */
  int64_t step;

  /* 2: of float16 an element is the sum of two bfloat16, exactly, and such parts are what attend multiplies. Columns of
   * queries are pairs of all first parts and then of all second ones; copied keys have both behind each other, the values of
   * a chunk below each other, all without what is not finite. Such kernels have attend, and what is for few rows, but no
   * other products of full tiles. 1: of all others. */
  int64_t parts;

  /* Rows of elements become rows of such operands, `stride` units of 32 bits apart. Keys are taken as they are where
   * copy_keys is NULL, values where elements are floats. */
  void (*copy_keys)(int64_t rows, int64_t width, tile_rows x, float *copy, int64_t stride);
  void (*copy_values)(int64_t rows, int64_t width, tile_rows x, float *copy, int64_t stride);

  /* Of values the copy has features one below the other instead, operands of keys along them: so accumulate takes them,
   * whose `value` then is row e = 0, from a pair of keys on. The stride is a multiple of lanes with room for all of them. */
  bool transposes_values;

  /* scores[j, r] = factor * sum_d key[j, d] * queries[d, r]      d < features, j < keys
   * factor is what pack has left, or 1 where it is the softmax that takes it; columns of queries and of scores are
   * strides apart that may exceed rows. ahead may be NULL, here and below. */
  void (*scores)(tile_size size, tile_matrix queries, tile_rows key, float factor, const tile_ahead *ahead,
                 tile_target scores);

  /* The same with factor 1 and columns one after the other, and largest[r] = the largest of scores[j, r]: at no cost, while
   * the scores are in registers still. NULL where sums leave no registers for it; softmax_of_largest then as well. */
  void (*scores_and_largest)(tile_size size, const float *queries, tile_rows key, const tile_ahead *ahead,
                             float *scores, float *largest);

  /* scores[j, r] = scores[j, r] + sum_d key[j, d] * queries[d, r], as above; of floats alone, else NULL. */
  void (*add_products)(tile_size size, tile_matrix queries, tile_rows key, tile_target scores);

  /* rows[r, e] = factor[r] * (sum_d x[r, d] columns[d, e] + sum_j weights[j, r] values[j, e])
   * for r < count, e < width, d < depth, j < seen[r]; width a multiple of lanes, at most max_rows; of floats alone, else NULL. */
  void (*sum_products)(int64_t width, int64_t count, const tile_sum *of, const tile_ahead *ahead,
                       tile_target rows);

  /* sum_products, and accumulate without rescale, go on with the mapping in `ahead`. */
  bool maps_beside;

  /* output[e, r] = output[e, r] * rescale[r] + sum_j weights[j, r] * value[j, e]      e < features, j < keys
   * The columns of weights and of output have strides as well. rescale may be NULL where products are of floats: 1 for all. */
  void (*accumulate)(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                     const tile_ahead *ahead, tile_target output);

  /* One step of the online softmax in base 2 (Milakov and Gimelshein 2018, algorithm 3), row by row:
   *     old = max;  max = largest of max and factor * scores;  rescale = 2^(old - max)
   *     scores = 2^(factor * scores - max);  sum = sum * rescale + sum of the scores
   * A score of -inf gives weight 0; a maximum of -inf (nothing visible yet) gives weights 0. What accumulate takes as
   * weights stands where the scores were: with step 2, pairs of them, rounded after they were summed. The factor is
   * above 0, and 1 with step 1. Returns the sum of all weights. */
  float (*softmax)(int64_t rows, int64_t keys, float *scores, float factor, tile_state state);

  /* The same, where rescale holds what scores_and_largest left. */
  float (*softmax_of_largest)(int64_t rows, int64_t keys, float *scores, float factor, tile_state state);

  /* Scores, softmax and accumulate of all keys of one tile after the other, chunk by chunk, the products of one chunk beside the
   * exponentials of another. The tiles have the same sizes and the same memory for scores, and at least a chunk each. A maximum
   * is what softmax's was at some time: a row takes a new one when its weights have grown large. The weights of the last chunk
   * stand where its scores were, which of a single chunk is at `scores`. Of pairs alone; NULL where there are no such tiles. */
  void (*attend)(int64_t count, const tile_passage *of);

  /* What softmax has left: weights[j, r] = 0 where keep[r][j] is 0, for r < count. */
  void (*drop)(int64_t rows, int64_t count, int64_t keys, const uint8_t *const *keep, float *weights);

  /* scores[j, r] = hidden unless first[r] <= j < end[r] */
  void (*hide)(int64_t rows, int64_t keys, const float *first, const float *end, float hidden, float *scores);

  /* Of seen[r][j], r < rows, first <= j < end, at least one: empty where all are 0, full where none is. */
  attn_visibility (*look)(int64_t rows, int64_t first, int64_t end, const uint8_t *const *seen);

  /* scores[j - first, r] = hidden where seen[r][j] is 0, for first <= j < end and r < count. */
  void (*hide_masked)(int64_t rows, int64_t count, int64_t first, int64_t end, const uint8_t *const *seen,
                      float hidden, float *scores);

  /* scores[j - first, r] = scale * scores[j - first, r] + base2_bias(bias[r][j]) likewise: of elements. */
  void (*add_bias)(int64_t rows, int64_t count, int64_t first, int64_t end, const void *const *bias,
                   float scale, float *scores);

  /* scores[j, r] = scale * scores[j, r] + run[(keys - 1 - j) * step + r] */
  void (*add_run)(int64_t rows, int64_t keys, const float *run, int64_t step, float scale, float *scores);

  /* True when x[r, n] for r < rows, n < width holds no NaN and no infinity. */
  bool (*all_finite)(int64_t rows, int64_t width, tile_rows x);

  /* copy: [rows, width] elements, those of x with 0 for every NaN and infinity. */
  void (*copy_finite)(int64_t rows, int64_t width, tile_rows x, void *copy);

  /* Elements x[n], n < count, as floats. */
  void (*read)(int64_t count, const void *x, float *floats);

  /* Rows of queries or keys as floats, `stride` apart, that a rotary embedding has turned: row r by row position + r
   * of its tables. */
  void (*rotate)(const attn_problem *problem, int64_t rows, tile_rows x, int64_t position, float *to,
                 int64_t stride);

  /* The softmax of one row that lies along memory, in base 2: max = largest of max and x, x = 2^(x - max),
   * sum = the sum of these. count a multiple of lanes; fill up with -inf. Lines ahead are fetched meanwhile; NULL: none. */
  void (*softmax_row)(int64_t count, float *x, float *max, float *sum, tile_lines *ahead);

  /* Of the backward pass, for n < count and r < rows:
   *     weights[n, r] = 2^(weights[n, r] - shift[n]);  grads[n, r] = weights[n, r] * (grads[n, r] - delta[n]) */
  void (*grade)(int64_t rows, int64_t count, const float *shift, const float *delta, float *weights,
                float *grads);

  /* x = cap * tanh(scale * x), elementwise; count a multiple of lanes. */
  void (*softcap)(int64_t count, float scale, float cap, float *x);

  /* x = 2^x: within 2 ulp, 0 for -inf and wherever the result is below 2^-126.5 or so, NaN for NaN,
   * for x up to 127. count a multiple of lanes. */
  void (*exp2)(int64_t count, float *x);

  /* y = elu(x) + 1, which is x + 1 where x > 0 and e^x elsewhere, of rows of count elements; 0 from count to a whole
   * vector. The stride of y is a multiple of lanes. */
  void (*elu1)(int64_t rows, int64_t count, tile_rows x, tile_target y);

  /* y = max(x, least), NaN for NaN, the same way. */
  void (*at_least)(int64_t rows, int64_t count, float least, tile_rows x, tile_target y);

  /* columns[d, r] = row[r][d] * factor for r < count, 0 for the padding up to rows; d < depth. Returns what the scores are
   * still to be multiplied by: 1, or where a pair of elements cannot take the factor without being rounded its size. */
  float (*pack)(int64_t rows, int64_t count, int64_t depth, const void *const *row, float factor,
                float *columns);

  /* row[r][e] = columns[e, r] * factor[r] for r < count, e < width. */
  void (*unpack)(int64_t rows, int64_t count, int64_t width, const float *columns, const float *factor,
                 void *const *row);

  /* row[r][e] = x[r, e] * factor[r] for r < count, e < width. */
  void (*scale_rows)(int64_t count, int64_t width, tile_matrix x, const float *factor, void *const *row);

  /* x[n, r] = x[n, r] * ours[r] + y[n, r] * theirs[r] for n < count, r < rows: columns of two states become one's. */
  void (*join)(int64_t rows, int64_t count, const float *ours, const float *theirs, const float *y, float *x);

  /* sum[n] = sum[n] + sum_r x[r, n] for r < rows, n < width; width a multiple of lanes, at most max_rows. */
  void (*add_rows)(int64_t rows, int64_t width, tile_matrix x, float *sum);

  /* dots[j * stride + r] = sum_n x[r, n] * y[j, n] for j < keys, r < rows, n < features, and 0 where row r sees less than j + 1
   * of the keys: no fewer than the row before, or all (NULL). Features are a multiple of lanes, as rows are. */
  void (*dot_rows)(tile_size size, tile_matrix x, tile_matrix y, const int64_t *seen, tile_target dots);

  /* dots[r] = sum_n x[r, n] * y[r, n] for r < rows, n < width; dots up to a whole vector are written. */
  void (*dot_pairs)(int64_t rows, int64_t width, tile_matrix x, tile_matrix y, float *dots);

  /* Of the backward pass of linear attention, for r < count and d < width; rows of x and phi, and y, are whole vectors:
   *     row[r][d] = (x[r, d] - minus[r] * y[d]) * factor[r] * phi'      by the map, whose value is phi[r, d] */
  void (*scale_slopes)(int64_t count, int64_t width, attn_feature_map map, tile_matrix x, const float *minus,
                       const float *y, const float *factor, tile_matrix phi, float *const *row);

  /* The two products for few rows, stored row by row:
   *     scores[r, j] = sum_d query[r, d] * key[j, d]
   *     output[r, e] = output[r, e] * rescale[r] + sum_j weights[r, j] * value[j, e]
   * The strides of query and output are multiples of lanes; query is padded with zeros, each row in the order in which
   * features of keys are loaded: few_order brings it there. ahead: rows that are fetched meanwhile, one for each key. */
  void (*few_order)(int64_t depth, float *query);
  void (*few_scores)(tile_size size, tile_matrix query, tile_rows key, tile_rows ahead, tile_target scores);
  void (*few_accumulate)(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                         tile_rows ahead, tile_target output);

  /* The same by AMX, of at most TILE_TILED_ROWS rows; else NULL. Queries are columns of `lanes` rows as pack leaves them, with
   * zeros up to a multiple of TILE_TILED_DEPTH features, and scores times the factor. Rows of scores and weights have room for
   * TILE_FEW_KEYS, and behind the last weight zeros up to a whole vector. */
  void (*tiled_scores)(tile_size size, tile_matrix queries, tile_rows key, float factor, tile_rows ahead,
                       tile_target scores);
  void (*tiled_accumulate)(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                           tile_rows ahead, tile_target output);

  /* Additive scores (additive.h), of kernels with products of floats; else NULL. Of floats, whatever the type.
   *     to[r, d] = e^(2 x[r, d]), NaN where x is none or large; rows of both are whole vectors, `stride` apart
   *     scores[j, r] as tile_additive says; size.features a multiple of 4
   *     scores[r, j] = sum_d weight[r, d] tanh(query[r, d] + key[j, d]) for few rows, padded as few_scores has them */
  void (*additive_powers)(int64_t rows, int64_t width, const float *x, float *to, int64_t stride);
  void (*additive_scores)(tile_size size, const tile_additive *of, const float *keys, tile_target scores);
  void (*few_additive)(tile_size size, tile_matrix query, tile_matrix weight, tile_rows keys,
                       tile_target scores);
} tile_kernels;

/* Element n of a tensor of these kernels' type, and its rows from row n on. */
static inline const void *tile_element(const tile_kernels *kernels, const void *x, int64_t n) {
  return (const char *)x + n * kernels->element_bytes;
}

static inline tile_rows tile_rows_from(const tile_kernels *kernels, tile_rows of, int64_t n) {
  return (tile_rows){tile_element(kernels, of.x, n * of.stride), of.stride};
}

/* The kernels of an instruction set, by its name, for a type. NULL, or a name that this processor has none of: the
 * fastest; a set that has none of its own for the type has those of the set before it. Asked once at the top of a call
 * and handed down. */
const tile_kernels *tile_select(const char *isa, attn_type type);

/* Kernels of a type whose attend multiplies parts of elements (tile_kernels.parts), for problems that attend takes; NULL
 * where the set has none. */
const tile_kernels *tile_select_parts(const char *isa, attn_type type);

/* The same, with products of floats: for what is computed before there are elements to multiply. */
const tile_kernels *tile_select_floats(const char *isa, attn_type type);

/* Why the call's instruction set would be of no use: it has no kernels for this type but those of another. NULL where it
 * has, or where the call names none. */
const char *tile_refusal(const char *isa, attn_type type);

/* Names of those that this processor has, slowest first, ending in NULL. */
const char *const *tile_instruction_sets(void);

#endif
