/* The two products of full tiles by AMX, whose tiles hold 16 rows of 64 bytes: behind pairs.h, with OWN_PRODUCTS defined
 * before it. The file that includes this has the unit and its instructions: those of amx_emulated.h, or the processor's under
 * the same names, which want the number of a tile as a literal.
 *
 * TDPBF16PS multiplies 16 rows of 16 pairs by 16 columns of 16 pairs and adds to 16 x 16 floats. Columns are columns of
 * queries, and of weights, as they lie. Rows are keys, as they lie, and features of values: the copy of these has
 * features one below the other, each a row of pairs of keys. What it adds to are columns of scores, and of outputs.
 *
 * Tiles 0 to 3 hold sums of 32 rows and 32 columns, 4 and 5 the rows, 6 and 7 the columns: four multiplications for four
 * loads. What is left of rows or of depth has tiles configured smaller, so that nothing beside it is read. */
_Static_assert((int)LANES == (int)AMX_COLUMNS, "a vector of query rows is the columns of a tile");

enum { AMX_BLOCK = 2 * AMX_ROWS, AMX_DEPTH = AMX_ROW_BYTES / sizeof(uint16_t) };

/* sums[m, r] = sums[m, r] + sum_d element[m, d] * column[d, r]     m < count, d < depth, r < size.rows
 * to_none: there are no sums yet. */
typedef struct tile_product {
  int64_t count, depth, rows;
  const uint16_t *elements; /* number (m, d) at elements[m * stride + d] */
  int64_t stride;
  tile_matrix columns; /* of pairs of d */
  tile_target sums;
  bool to_none;
} tile_product;

static void configure(amx_unit *unit, int64_t count, int64_t pairs) {
  const uint8_t upper = (uint8_t)(count < AMX_ROWS ? count : AMX_ROWS), lower = (uint8_t)(count - upper);
  const uint16_t row = AMX_ROW_BYTES, below = lower > 0 ? row : 0, element_row = (uint16_t)(4 * pairs);
  const amx_configuration tiles = {
      .palette = 1,
      .rows = {upper, upper, lower, lower, upper, lower, (uint8_t)pairs, (uint8_t)pairs},
      .row_bytes = {row, row, below, below, element_row, lower > 0 ? element_row : 0, row, row}};
  amx_ldtilecfg(unit, &tiles);
}

/* Up to 32 rows by 16 or 32 columns. Lines ahead are fetched meanwhile; NULL: none. */
INLINE void multiply_block(amx_unit *unit, const bool two_high, const bool two_wide, tile_product of,
                           tile_lines *ahead) {
  (void)unit; /* the processor's own */
  const int64_t row = of.stride * (int64_t)sizeof *of.elements,
                column = of.columns.stride * (int64_t)sizeof *of.columns.x,
                sum = of.sums.stride * (int64_t)sizeof *of.sums.x;
  float *lower = of.sums.x + AMX_ROWS * of.sums.stride;
  if (of.to_none) {
    amx_tilezero(unit, 0);
    if (two_wide) amx_tilezero(unit, 1);
    if (two_high) amx_tilezero(unit, 2);
    if (two_high && two_wide) amx_tilezero(unit, 3);
  } else {
    amx_tileloadd(unit, 0, of.sums.x, sum);
    if (two_wide) amx_tileloadd(unit, 1, of.sums.x + AMX_COLUMNS, sum);
    if (two_high) amx_tileloadd(unit, 2, lower, sum);
    if (two_high && two_wide) amx_tileloadd(unit, 3, lower + AMX_COLUMNS, sum);
  }
  for (int64_t d = 0; d < of.depth; d += AMX_DEPTH) {
    const uint16_t *elements = of.elements + d;
    const float *columns = of.columns.x + d / 2 * of.columns.stride;
    amx_tileloadd(unit, 6, columns, column);
    amx_tileloadd(unit, 4, elements, row);
    if (two_wide) amx_tileloadd(unit, 7, columns + AMX_COLUMNS, column);
    if (two_high) amx_tileloadd(unit, 5, elements + AMX_ROWS * of.stride, row);
    amx_tdpbf16ps(unit, 0, 4, 6);
    if (ahead) fetch_lines(ahead);
    if (two_wide) amx_tdpbf16ps(unit, 1, 4, 7);
    if (two_high) amx_tdpbf16ps(unit, 2, 5, 6);
    if (ahead) fetch_lines(ahead);
    if (two_high && two_wide) amx_tdpbf16ps(unit, 3, 5, 7);
  }
  amx_tilestored(unit, 0, of.sums.x, sum);
  if (two_wide) amx_tilestored(unit, 1, of.sums.x + AMX_COLUMNS, sum);
  if (two_high) amx_tilestored(unit, 2, lower, sum);
  if (two_high && two_wide) amx_tilestored(unit, 3, lower + AMX_COLUMNS, sum);
}

INLINE void multiply_row_of_blocks(amx_unit *unit, const bool two_high, tile_product of, tile_lines *ahead) {
  for (; of.rows >= AMX_BLOCK; of.rows -= AMX_BLOCK) {
    multiply_block(unit, two_high, true, of, ahead);
    of.columns.x += AMX_BLOCK, of.sums.x += AMX_BLOCK;
  }
  if (of.rows > 0) multiply_block(unit, two_high, false, of, ahead);
}

/* All tiles have the same depth: whole ones, or one that is what is left. The last of an odd number of elements has no
 * partner: what stands behind it belongs to something else, so that there rows are copied. */
static void multiply_depth(amx_unit *unit, tile_product of) {
  const int64_t tile_depth = of.depth < AMX_DEPTH ? of.depth : AMX_DEPTH;
  uint16_t copy[AMX_BLOCK * AMX_DEPTH] = {0};
  for (int64_t left = of.count; left > 0; left -= AMX_BLOCK) {
    const bool whole = left >= AMX_BLOCK;
    tile_product block = of;
    block.count = whole ? AMX_BLOCK : left;
    if (left == of.count || !whole) configure(unit, block.count, (tile_depth + 1) / 2);
    if (tile_depth % 2 != 0) {
      for (int64_t m = 0; m < block.count; m++)
        memcpy(copy + m * AMX_DEPTH, of.elements + m * of.stride, (size_t)tile_depth * sizeof *copy);
      block.elements = copy;
      block.stride = AMX_DEPTH;
    }
    if (block.count > AMX_ROWS)
      multiply_row_of_blocks(unit, true, block, NULL);
    else
      multiply_row_of_blocks(unit, false, block, NULL);
    of.elements += AMX_BLOCK * of.stride;
    of.sums.x += AMX_BLOCK * of.sums.stride;
  }
}

/* The configuration is the thread's, and is gone when the call returns. */
static void multiply_tiles(tile_product of) {
  amx_unit unit = {0};
  const int64_t whole = of.depth / AMX_DEPTH * AMX_DEPTH, rest = of.depth - whole;
  of.depth = whole;
  if (whole > 0) multiply_depth(&unit, of);
  of.depth = rest;
  of.elements += whole;
  of.columns.x += whole / 2 * of.columns.stride;
  of.to_none = of.to_none && whole == 0;
  if (rest > 0) multiply_depth(&unit, of);
  amx_tilerelease(&unit);
}

static void scores_tiles(tile_size size, tile_matrix queries, tile_rows key, float factor,
                         const tile_ahead *ahead, tile_target scores) {
  (void)ahead; /* nothing is fetched yet */
  multiply_tiles((tile_product){.count = size.keys,
                                .depth = size.features,
                                .rows = size.rows,
                                .elements = key.x,
                                .stride = key.stride,
                                .columns = queries,
                                .sums = scores,
                                .to_none = true});
  if (factor == 1) return;
  for (int64_t j = 0; j < size.keys; j++)
    for (int64_t r = 0; r < size.rows; r += LANES) {
      float *score = scores.x + j * scores.stride + r;
      store(score, multiply(load(score), broadcast(&factor)));
    }
}

/* Tiles add to what there is: the old output, rescaled before. */
static void accumulate_tiles(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                             const tile_ahead *ahead, tile_target output) {
  (void)ahead;
  for (int64_t e = 0; e < size.features; e++)
    for (int64_t r = 0; r < size.rows; r += LANES) {
      float *old = output.x + e * output.stride + r;
      store(old, multiply(load(old), load(rescale + r)));
    }
  multiply_tiles((tile_product){.count = size.features,
                                .depth = (size.keys + 1) / 2 * 2,
                                .rows = size.rows,
                                .elements = value.x,
                                .stride = value.stride,
                                .columns = weights,
                                .sums = output});
}

/* Features [e, e + LANES) of keys j and j + 1, as far as there are such. */
INLINE vec pairs_of_keys(int64_t rows, int64_t width, tile_rows x, int64_t j, int64_t e) {
  if (j >= rows) return zero();
  const uint16_t *low = (const uint16_t *)x.x + j * x.stride + e;
  const bool whole = e + LANES <= width;
  const int part = whole ? LANES : (int)(width - e);
  if (whole && j + 1 < rows) return join_rows(low, low + x.stride);
  return pair(load_bfloat16_part(low, part),
              j + 1 < rows ? load_bfloat16_part(low + x.stride, part) : zero());
}

/* Features one below the other, two keys to a unit; squares of them are transposed in registers. */
static void copy_features(int64_t rows, int64_t width, tile_rows x, float *copy, int64_t stride) {
  for (int64_t j = 0; j < rows; j += 2 * LANES) {
    int64_t e = 0;
    for (; rows - j >= 2 * LANES && e + PAIR_COLUMNS <= width; e += PAIR_COLUMNS) {
      vec column[PAIR_COLUMNS];
      pairs_of_rows((const uint16_t *)x.x + j * x.stride + e, x.stride, column);
      for (int n = 0; n < PAIR_COLUMNS; n++) store(copy + (e + n) * stride + j / 2, column[n]);
    }
    for (; e < width; e += LANES) {
      vec square[LANES];
      for (int n = 0; n < LANES; n++) square[n] = pairs_of_keys(rows, width, x, j + 2 * n, e);
      transpose(square);
      for (int n = 0; n < LANES && e + n < width; n++) store(copy + (e + n) * stride + j / 2, square[n]);
    }
  }
}
