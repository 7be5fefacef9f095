/* The two products for few query rows by AMX, behind amx.h: of as many rows as a tile has columns, for what it takes to read the keys
 * of one. Queries are columns of pairs, as `pack` leaves them, and keys rows of pairs where they are: a key's scores come out in
 * a row, and are turned in registers. Weights are rows of pairs of keys, and values columns of such, once each two of their
 * rows are joined. The file that includes this defines join_two, which makes pairs of two rows of AMX_DEPTH elements, in what order
 * of the features it finds easiest: `joined` brings two vectors of floats into that order, `unjoined` back.
 *
 * Tiles need less time than memory, which must not wait for them: lines are fetched beside their products and between these, in
 * steps that take as long as the lines do. All at once they fill the buffers that misses wait in, and then memory idles:
 * .77 instead of .87 of the rate of reads. */
enum { TILED_WIDTH = 4 * AMX_DEPTH /* features of values that are joined and added at once */ };
_Static_assert((int)AMX_DEPTH == (int)TILE_TILED_DEPTH && (int)AMX_ROWS == (int)TILE_TILED_ROWS,
               "as tile.h has them");

/* AMX_BLOCK rows of x from row j, elements d to d + width. Where not all exist, they are a copy with 0 for the others. */
INLINE tile_rows tiled_block(tile_rows x, tile_size size, int64_t j, int64_t d, int64_t width,
                             uint16_t *copy) {
  const uint16_t *from = (const uint16_t *)x.x + j * x.stride + d;
  const int64_t rows = size.keys - j, part = size.features - d;
  if (rows >= AMX_BLOCK && part >= width) return (tile_rows){from, x.stride};
  memset(copy, 0, (size_t)(AMX_BLOCK * width) * sizeof *copy);
  for (int64_t n = 0; n < AMX_BLOCK && n < rows; n++)
    memcpy(copy + n * width, from + n * x.stride, (size_t)(part < width ? part : width) * sizeof *copy);
  return (tile_rows){copy, width};
}

/* scores[r, j] = factor * columns[j, r] for LANES keys, which have so many lines each. */
INLINE void turn_scores(int64_t rows, const float *columns, float factor, int64_t lines, tile_lines *ahead,
                        tile_target scores) {
  vec square[LANES];
  for (int n = 0; n < LANES; n++) square[n] = load(columns + n * LANES);
  for (int64_t n = 0; n < lines; n++) fetch_lines(ahead);
  transpose(square);
  for (int64_t r = 0; r < rows; r++)
    store(scores.x + r * scores.stride, multiply(square[r], broadcast(&factor)));
}

static void tiled_scores(tile_size size, tile_matrix query, tile_rows key, float factor, tile_rows ahead,
                         tile_target scores) {
  amx_unit unit = {0};
  _Alignas(TILE_ALIGNMENT) float columns[AMX_BLOCK * LANES];
  uint16_t copy[AMX_BLOCK * AMX_DEPTH];
  tile_lines next = tile_lines_of(ahead, size.keys, size.features, sizeof(uint16_t));
  const int64_t lines = (size.features + AMX_DEPTH - 1) / AMX_DEPTH;
  configure(&unit, AMX_BLOCK, AMX_DEPTH / 2);
  for (int64_t j = 0; j < size.keys; j += AMX_BLOCK) {
    const int64_t whole = size.keys - j < AMX_BLOCK ? 0 : size.features / AMX_DEPTH * AMX_DEPTH;
    tile_product of = {.depth = whole,
                       .elements = (const uint16_t *)key.x + j * key.stride,
                       .stride = key.stride,
                       .columns = query,
                       .sums = {columns, LANES},
                       .to_none = true};
    multiply_block(&unit, true, false, of, &next);
    of.to_none = false;
    of.depth = AMX_DEPTH;
    for (int64_t d = whole; d < size.features; d += AMX_DEPTH) {
      const tile_rows block = tiled_block(key, size, j, d, AMX_DEPTH, copy);
      of.elements = block.x;
      of.stride = block.stride;
      of.columns.x = query.x + d / 2 * query.stride;
      multiply_block(&unit, true, false, of, &next);
    }
    for (int64_t n = 0; n < AMX_BLOCK; n += LANES)
      turn_scores(size.rows, columns + n * LANES, factor, lines, &next,
                  (tile_target){scores.x + j + n, scores.stride});
  }
  amx_tilerelease(&unit);
}

/* pairs[n] = rows 2n and 2n + 1 of a block. Products fetch the other half of the lines. */
INLINE void join_block(int64_t width, tile_rows value, tile_lines *ahead, float *pairs) {
  const int64_t groups = width / AMX_DEPTH;
  const uint16_t *row = value.x;
  for (int n = 0; n < AMX_BLOCK / 2; n++) {
    if (n % 2 == 0 && n / 2 % 4 < groups) fetch_lines(ahead);
    for (int64_t e = 0; e < width; e += AMX_DEPTH) {
      vec x[2];
      join_two(row + e, row + value.stride + e, x);
      for (int i = 0; i < 2; i++) store(pairs + e + i * LANES, x[i]);
    }
    row += 2 * value.stride;
    pairs += TILED_WIDTH;
  }
}

/* sums[r, e] = output[r, e] * rescale[r] for e < width, in the order of joined features, and zeros up to a whole line. */
INLINE void begin_sums(int64_t rows, int64_t width, tile_target output, const float *rescale, float *sums) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t e = 0; e < width; e += AMX_DEPTH) {
      const float *row = output.x + r * output.stride + e;
      vec x[2] = {load(row), e + LANES < width ? load(row + LANES) : zero()};
      joined(x);
      for (int n = 0; n < 2; n++)
        store(sums + r * TILED_WIDTH + e + n * LANES, multiply(x[n], broadcast(rescale + r)));
    }
}

INLINE void end_sums(int64_t rows, int64_t width, const float *sums, tile_target output) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t e = 0; e < width; e += AMX_DEPTH) {
      float *row = output.x + r * output.stride + e;
      vec x[2] = {load(sums + r * TILED_WIDTH + e), load(sums + r * TILED_WIDTH + e + LANES)};
      unjoined(x);
      store(row, x[0]);
      if (e + LANES < width) store(row + LANES, x[1]);
    }
}

/* Of a block from key j on, 0 for those that are none. */
INLINE void round_weights(tile_size size, tile_matrix weights, int64_t j, uint16_t *rounded) {
  for (int64_t r = 0; r < size.rows; r++)
    for (int64_t n = 0; n < AMX_BLOCK; n += LANES)
      store_bfloat16(rounded + r * AMX_BLOCK + n,
                     j + n < size.keys ? load(weights.x + r * weights.stride + j + n) : zero());
}

static void tiled_accumulate(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                             tile_rows ahead, tile_target output) {
  amx_unit unit = {0};
  _Alignas(TILE_ALIGNMENT) uint16_t rounded[AMX_ROWS * AMX_BLOCK];
  _Alignas(TILE_ALIGNMENT) float pairs[AMX_BLOCK / 2 * TILED_WIDTH], sums[AMX_ROWS * TILED_WIDTH];
  uint16_t copy[AMX_BLOCK * TILED_WIDTH];
  tile_lines next = tile_lines_of(ahead, size.keys, size.features, sizeof(uint16_t));
  configure(&unit, size.rows, AMX_DEPTH / 2);
  for (int64_t e = 0; e < size.features; e += TILED_WIDTH) {
    const int64_t width = size.features - e < TILED_WIDTH ? size.features - e : TILED_WIDTH,
                  whole = (width + AMX_DEPTH - 1) / AMX_DEPTH * AMX_DEPTH;
    const tile_target strip = {output.x + e, output.stride};
    begin_sums(size.rows, width, strip, rescale, sums);
    for (int64_t j = 0; j < size.keys; j += AMX_BLOCK) {
      join_block(whole, tiled_block(value, size, j, e, whole, copy), &next, pairs);
      round_weights(size, weights, j, rounded);
      multiply_row_of_blocks(&unit, false,
                             (tile_product){.depth = AMX_BLOCK,
                                            .rows = whole,
                                            .elements = rounded,
                                            .stride = AMX_BLOCK,
                                            .columns = {pairs, TILED_WIDTH},
                                            .sums = {sums, TILED_WIDTH}},
                             &next);
    }
    end_sums(size.rows, width, sums, strip);
  }
  amx_tilerelease(&unit);
}
