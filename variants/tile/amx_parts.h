/* float16 by tiles of bfloat16, behind amx.h: an element is the sum of two bfloat16, which together have 16 bits where it
 * has 11, so that four products of such parts are one of elements, exactly (tile.h, parts). The file that includes this
 * defines first_part: a float rounded to bfloat16, ties away from zero. */
enum { PARTS = 2, STRIP = 2 * LANES };

/* Of LANES elements. What is not finite is left out. */
INLINE void take_apart(const uint16_t *x, uint16_t *first, uint16_t *second) {
  const vec all = load_float16(x), size = maximum(all, subtract(zero(), all));
  const vec element = select_less(size, broadcast(&(float){INFINITY}), all, zero());
  const vec part = first_part(element);
  store_bfloat16(first, part);
  store_bfloat16(second, subtract(element, part));
}

/* A chunk's depth of all rows at a time. */
static float pack_parts(int64_t rows, int64_t count, int64_t depth, const void *const *row, float factor,
                        float *columns) {
  uint16_t part[PARTS][TILE_CHUNK_ROWS][TILE_CHUNK];
  const void *from[PARTS][TILE_CHUNK_ROWS];
  for (int64_t d = 0; d < depth; d += TILE_CHUNK) {
    for (int64_t r = 0; r < count; r++) {
      for (int64_t n = 0; n < TILE_CHUNK; n += LANES)
        take_apart((const uint16_t *)row[r] + d + n, &part[0][r][n], &part[1][r][n]);
      for (int p = 0; p < PARTS; p++) from[p][r] = part[p][r];
    }
    for (int p = 0; p < PARTS; p++)
      pack_pairs(rows, count, TILE_CHUNK, from[p], factor, columns + (p * depth + d) / 2 * rows);
  }
  return fabsf(factor);
}

/* The last chunk is filled up with zeros. */
static void copy_keys_in_parts(int64_t keys, int64_t depth, tile_rows x, float *copy, int64_t stride) {
  int64_t j = 0;
  for (; j < keys; j++) {
    uint16_t *to = (uint16_t *)(void *)(copy + j * stride);
    for (int64_t d = 0; d < depth; d += LANES)
      take_apart((const uint16_t *)x.x + j * x.stride + d, to + d, to + depth + d);
  }
  for (; j % TILE_CHUNK != 0; j++) memset(copy + j * stride, 0, (size_t)depth * PARTS * sizeof(uint16_t));
}

/* Of one chunk, a strip of features at a time; the stride is that of both parts. */
static void copy_values_in_parts(int64_t keys, int64_t width, tile_rows x, float *copy, int64_t stride) {
  uint16_t part[PARTS][TILE_CHUNK][STRIP];
  memset(part, 0, sizeof part);
  for (int64_t e = 0; e < width; e += STRIP) {
    const int64_t features = width - e < STRIP ? width - e : STRIP;
    for (int64_t j = 0; j < keys; j++)
      for (int64_t n = 0; n < features; n += LANES)
        take_apart((const uint16_t *)x.x + j * x.stride + e + n, &part[0][j][n], &part[1][j][n]);
    for (int p = 0; p < PARTS; p++)
      copy_features(TILE_CHUNK, features, (tile_rows){part[p], STRIP},
                    copy + (p * width + e) * stride / PARTS, stride / PARTS);
  }
}
