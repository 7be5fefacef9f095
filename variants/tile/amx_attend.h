/* The three steps of an online softmax by AMX, chunk of keys after chunk, behind amx.h; the file defines weights_of
 * besides, which is exp2_each but gives infinity for what is large. While the weights of one chunk are made, the
 * tiles multiply the scores of the next and add the values of the one before (tile.h, attend).
 *
 * Everything rests on one step: 16 rows of elements, keys or features of values, by 32 columns, 64 elements deep,
 * which are four multiplications onto two tiles. Its columns stay in four tiles while all rows of a chunk pass; the
 * rows, which each step reads once, come from the L2 cache past the L1, which has room for the rest: queries, outputs
 * and three chunks of scores. */
enum {
  CHUNK = TILE_CHUNK,
  CHUNK_ROWS = TILE_CHUNK_ROWS,
  CHUNK_VECTORS = 2,
  CHUNKS = TILE_CHUNKS,
  STEP_DEPTH = 2 * AMX_DEPTH
};
_Static_assert(CHUNK_ROWS == 2 * AMX_COLUMNS && CHUNK == STEP_DEPTH,
               "a step is 32 columns wide and a chunk deep");

/* sums[m, r] = sums[m, r] + sum_d element[m, d] * column[d, r]     m < count, d < 64, r < 32; or as if the sums were 0 */
typedef struct chunk_product {
  const uint16_t *elements; /* number (m, d) at elements[m * stride + d] */
  int64_t stride;
  const float *columns; /* [32, 32], of pairs of d */
  float *sums;
  int64_t count; /* whole tiles */
  bool to_none;
} chunk_product;

/* The weights of a chunk on their way, two keys after the other. */
typedef struct chunk_weights {
  const float *scores;
  float *weights;
  int64_t left; /* keys */
  bool often;   /* two in each step would not be all */
  vec factor, shift[CHUNK_VECTORS], total[CHUNK_VECTORS];
} chunk_weights;

/* A row's scores are less by what was its largest once, and not anew in each chunk: as long as no weight is large
 * nothing has to be rescaled, and the weights wait for nothing (the idea is FlashAttention-4's; there the maximum is
 * found all the same). The most that a row's weights of one chunk may sum to: no exponent is above 8 then, where
 * floats are 2^-21 apart. */
static const float largest_total = 256;

INLINE void weigh_two_keys(chunk_weights *of) {
  enum { EACH = 2 * CHUNK_VECTORS };
  if (of->left == 0) return;
  vec weight[EACH];
  for (int i = 0; i < EACH; i++)
    weight[i] =
        fused_multiply_subtract(load(of->scores + i * LANES), of->factor, of->shift[i % CHUNK_VECTORS]);
  weights_of(EACH, weight);
  for (int i = 0; i < EACH; i++) of->total[i % CHUNK_VECTORS] = add(of->total[i % CHUNK_VECTORS], weight[i]);
  for (int v = 0; v < CHUNK_VECTORS; v++)
    store(of->weights + v * LANES, pair_half_up(weight[v], weight[CHUNK_VECTORS + v]));
  of->scores += EACH * LANES;
  of->weights += CHUNK_ROWS;
  of->left -= 2;
}

INLINE void load_rows(amx_unit *unit, const uint16_t *elements, int64_t stride) {
  (void)unit;
  amx_tileloaddt1(unit, 2, elements, stride * (int64_t)sizeof *elements);
  amx_tileloaddt1(unit, 3, elements + AMX_DEPTH, stride * (int64_t)sizeof *elements);
}

INLINE void load_product(amx_unit *unit, const chunk_product *of) {
  enum { ROW = CHUNK_ROWS * sizeof(float) };
  const float *upper = of->columns, *lower = upper + AMX_DEPTH / 2 * CHUNK_ROWS;
  load_rows(unit, of->elements, of->stride);
  amx_tileloadd(unit, 4, upper, ROW);
  amx_tileloadd(unit, 5, upper + AMX_COLUMNS, ROW);
  amx_tileloadd(unit, 6, lower, ROW);
  amx_tileloadd(unit, 7, lower + AMX_COLUMNS, ROW);
}

/* `of` is loaded; `then`, if there is one, is in the end. What is wanted next is loaded, and weights are made, before
 * the sums are stored: on a Granite Rapids loads wait for the stores of tiles that come before them. Where weights
 * are made between was found by trying 72 places for two and four of them. */
INLINE void multiply_chunk(amx_unit *unit, const chunk_product *of, const chunk_product *then,
                           chunk_weights *meanwhile) {
  enum { ROW = CHUNK_ROWS * sizeof(float) };
  const uint16_t *elements = of->elements;
  float *sums = of->sums;
  for (int64_t m = 0; m < of->count; m += AMX_ROWS) {
    if (of->to_none) {
      amx_tilezero(unit, 0);
      amx_tilezero(unit, 1);
    } else {
      amx_tileloadd(unit, 0, sums, ROW);
      amx_tileloadd(unit, 1, sums + AMX_COLUMNS, ROW);
    }
    if (meanwhile->often) weigh_two_keys(meanwhile);
    amx_tdpbf16ps(unit, 0, 2, 4);
    amx_tdpbf16ps(unit, 1, 2, 5);
    weigh_two_keys(meanwhile);
    amx_tdpbf16ps(unit, 0, 3, 6);
    amx_tdpbf16ps(unit, 1, 3, 7);
    elements += AMX_ROWS * of->stride;
    if (m + AMX_ROWS < of->count)
      load_rows(unit, elements, of->stride);
    else if (then)
      load_product(unit, then);
    weigh_two_keys(meanwhile);
    amx_tilestored(unit, 0, sums, ROW);
    if (meanwhile->often) weigh_two_keys(meanwhile);
    amx_tilestored(unit, 1, sums + AMX_COLUMNS, ROW);
    sums += AMX_ROWS * CHUNK_ROWS;
  }
}

INLINE float *chunk_scores(const tile_passage *of, int64_t c) {
  return of->scores + c % CHUNKS * CHUNK * CHUNK_ROWS;
}

INLINE chunk_product scores_of_chunk(const tile_passage *of, int64_t c, int64_t d) {
  return (chunk_product){.elements = (const uint16_t *)of->key.x + c * CHUNK * of->key.stride + d,
                         .stride = of->key.stride,
                         .columns = of->queries + d / 2 * CHUNK_ROWS,
                         .sums = chunk_scores(of, c),
                         .count = CHUNK,
                         .to_none = d == 0};
}

INLINE chunk_product values_of_chunk(const tile_passage *of, int64_t c) {
  return (chunk_product){.elements = (const uint16_t *)of->values + c * CHUNK * of->width,
                         .stride = CHUNK,
                         .columns = chunk_scores(of, c),
                         .sums = of->output,
                         .count = of->width};
}

/* A round multiplies the scores of chunk c, where there are so many, a slice of features after the other, and after
 * them the weighted values of the chunk two before it, where there is one. */
INLINE chunk_product product_of_round(const tile_passage *of, int64_t c, int64_t n) {
  const bool scores = c * CHUNK < of->keys && n * STEP_DEPTH < of->depth;
  return scores ? scores_of_chunk(of, c, n * STEP_DEPTH) : values_of_chunk(of, c - 2);
}

INLINE void multiply_round(amx_unit *unit, const tile_passage *of, int64_t c, chunk_weights *meanwhile) {
  const int64_t count = (c * CHUNK < of->keys ? of->depth / STEP_DEPTH : 0) + (c >= 2);
  if (count == 0) return;
  chunk_product now = product_of_round(of, c, 0);
  load_product(unit, &now);
  for (int64_t n = 1; n < count; n++) {
    const chunk_product then = product_of_round(of, c, n);
    multiply_chunk(unit, &now, &then, meanwhile);
    now = then;
  }
  multiply_chunk(unit, &now, NULL, meanwhile);
}

/* Rows that the next key tile begins with, some with each chunk. */
static void fetch_ahead(const tile_passage *of, int64_t c) {
  const tile_ahead *ahead = &of->ahead;
  const int64_t chunks = of->keys / CHUNK, end = ahead->rows * (c + 1) / chunks;
  for (int64_t n = ahead->rows * c / chunks; n < end; n++)
    for (int i = 0; i < 2; i++)
      for (int64_t b = 0; b < ahead->of[i].width; b += AMX_ROW_BYTES)
        __builtin_prefetch((const char *)ahead->of[i].x + n * ahead->of[i].stride + b, 0, 2);
}

/* Whether a row sees less than all of the chunk: most chunks have none. */
INLINE bool is_partly_hidden(const tile_passage *of, int64_t c) {
  const vec begin = broadcast(&(float){(float)(c * CHUNK)}),
            end = broadcast(&(float){(float)((c + 1) * CHUNK)});
  bool hidden = false;
  for (int64_t r = 0; of->first && r < CHUNK_ROWS; r += LANES)
    hidden = hidden || any_less(begin, load(of->first + r)) || any_less(load(of->end + r), end);
  return hidden;
}

static void hide_in_chunk(const tile_passage *of, int64_t c) {
  float first[CHUNK_ROWS], end[CHUNK_ROWS];
  if (!is_partly_hidden(of, c)) return;
  for (int r = 0; r < CHUNK_ROWS; r++)
    first[r] = of->first[r] - (float)(c * CHUNK), end[r] = of->end[r] - (float)(c * CHUNK);
  hide(CHUNK_ROWS, CHUNK, first, end, -INFINITY, chunk_scores(of, c));
}

INLINE void begin_weights(const tile_passage *of, int64_t c, chunk_weights *weights) {
  *weights = (chunk_weights){.scores = chunk_scores(of, c),
                             .weights = chunk_scores(of, c),
                             .left = CHUNK,
                             .often = of->depth + of->width < 4 * CHUNK,
                             .factor = broadcast(&of->factor)};
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    weights->shift[v] = zero_where_minus_infinity(load(of->state.max + v * LANES));
    weights->total[v] = zero();
  }
}

/* Rows whose total is too large take the largest score of the chunk for their maximum, and what they have so far is rescaled. A
 * row's bits follow from its own total. */
static void raise_maximum_where_large(const tile_passage *of, int64_t c, const vec total[CHUNK_VECTORS]) {
  vec largest[MAX_VECTORS];
  find_largest_pairs(CHUNK_VECTORS, CHUNK, chunk_scores(of, c), largest);
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    float *max = of->state.max + v * LANES, *sum = of->state.sum + v * LANES;
    const vec old = load(max), found = maximum(multiply(largest[v], broadcast(&of->factor)), old);
    const vec new = select_less(broadcast(&largest_total), total[v], found, old);
    const vec rescale = exp2_vec(subtract(old, zero_where_minus_infinity(new)));
    store(max, new);
    store(sum, multiply(load(sum), rescale));
    const bool has_output = any_less(broadcast(&(float){-INFINITY}), old);
    for (int64_t e = 0; has_output && e < of->width; e++) {
      float *output = of->output + e * CHUNK_ROWS + v * LANES;
      store(output, multiply(load(output), rescale));
    }
  }
}

/* Rows that have seen nothing yet. */
INLINE void begin_rows(const tile_passage *of, int64_t c) {
  const vec least = broadcast(&(float){-FLT_MAX}), large = broadcast(&(float){INFINITY});
  vec total[CHUNK_VECTORS];
  bool any = false;
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    const vec max = load(of->state.max + v * LANES);
    any = any || any_less(max, least);
    total[v] = select_less(max, least, large, zero());
  }
  if (any) raise_maximum_where_large(of, c, total);
}

/* The weights stand where the scores were, which are multiplied again. */
static void weigh_again(amx_unit *unit, const tile_passage *of, int64_t c, vec total[CHUNK_VECTORS]) {
  chunk_weights weights = {.left = 0};
  for (int64_t d = 0; d < of->depth; d += STEP_DEPTH) {
    const chunk_product product = scores_of_chunk(of, c, d);
    load_product(unit, &product);
    multiply_chunk(unit, &product, NULL, &weights);
  }
  hide_in_chunk(of, c);
  raise_maximum_where_large(of, c, total);
  begin_weights(of, c, &weights);
  while (weights.left > 0) weigh_two_keys(&weights);
  for (int v = 0; v < CHUNK_VECTORS; v++) total[v] = weights.total[v];
}

static void attend_tiles(const tile_passage *of) {
  amx_unit unit = {0};
  const unsigned mode = flush_denormals();
  const int64_t chunks = of->keys / CHUNK;
  const vec most = broadcast(&largest_total);
  chunk_weights weights = {.left = 0};
  configure(&unit, AMX_BLOCK, AMX_DEPTH / 2);
  multiply_round(&unit, of, 0, &weights);
  for (int64_t c = 0; c < chunks; c++) {
    fetch_ahead(of, c);
    hide_in_chunk(of, c);
    begin_rows(of, c);
    begin_weights(of, c, &weights);
    multiply_round(&unit, of, c + 1, &weights);
    while (weights.left > 0) weigh_two_keys(&weights);
    vec total[CHUNK_VECTORS] = {weights.total[0], weights.total[1]};
    if (any_less(most, total[0]) || any_less(most, total[1])) weigh_again(&unit, of, c, total);
    for (int v = 0; v < CHUNK_VECTORS; v++) {
      float *sum = of->state.sum + v * LANES;
      store(sum, add(load(sum), total[v]));
    }
  }
  multiply_round(&unit, of, chunks + 1, &weights);
  amx_tilerelease(&unit);
  restore_denormals(mode);
}

#define AMX_TABLE(set)                                                                                       \
  TILE_TABLE(set, ATTN_BFLOAT16, bfloat16, pairs, tiles, 2, NULL, copy_features, true, pack_pairs)
