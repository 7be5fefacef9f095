/* The kernels for few query rows, as in decoding, where a vector of rows would be mostly padding. Features
 * lie across the lanes, so each key and value is read in whole vectors, once for all rows: the arithmetic
 * per byte is small, and what counts is that memory never waits. Included by kernels.h. */

/* scores[r][g] = query[r] . key[g] for LANES / rows keys: LANES sums side by side, added
 * up together. Keys that do not exist repeat the last. */
INLINE void few_scores_group(const int rows, int64_t keys, int64_t depth, const float *restrict query,
                             int64_t query_pitch, const float *restrict key, int64_t key_stride,
                             line_ahead ahead, float *restrict scores, int64_t pitch) {
  const int group = LANES / rows, count = keys < group ? (int)keys : group;
  const int64_t whole = depth / LANES * LANES;
  const float *from[LANES];
  vec sum[LANES], q[TILE_FEW_ROWS];
  for (int g = 0; g < group; g++) from[g] = key + (g < count ? g : count - 1) * key_stride;
  for (int n = 0; n < LANES; n++) sum[n] = zero();
  for (int64_t d = 0; d < whole; d += LANES) {
    for (int r = 0; r < rows; r++) q[r] = load(query + r * query_pitch + d);
    for (int g = 0; g < group; g++) {
      vec k = load(from[g] + d);
      __builtin_prefetch(ahead.first + g * ahead.stride + d, 0, 2);
      for (int r = 0; r < rows; r++) sum[r * group + g] = fused_multiply_add(q[r], k, sum[r * group + g]);
    }
  }
  if (whole < depth) {
    for (int r = 0; r < rows; r++) q[r] = load(query + r * query_pitch + whole);
    for (int g = 0; g < group; g++) {
      vec k = load_part(from[g] + whole, (int)(depth - whole));
      for (int r = 0; r < rows; r++) sum[r * group + g] = fused_multiply_add(q[r], k, sum[r * group + g]);
    }
  }
  float all[LANES];
  store(all, sums_of(sum));
  for (int r = 0; r < rows; r++) memcpy(scores + r * pitch, all + r * group, (size_t)count * sizeof *all);
}

INLINE void few_scores_rows(const int rows, int64_t keys, int64_t depth, const float *query,
                            int64_t query_pitch, const float *key, int64_t key_stride, line_ahead ahead,
                            float *scores, int64_t pitch) {
  for (int64_t j = 0; j < keys; j += LANES / rows)
    few_scores_group(rows, keys - j, depth, query, query_pitch, key + j * key_stride, key_stride,
                     (line_ahead){ahead.first + j * ahead.stride, ahead.stride}, scores + j, pitch);
}

/* output[r][e] of `vectors` vectors of features, `part` features in the last. */
INLINE void few_accumulate_group(const int rows, const int vectors, const int part, int64_t keys,
                                 const float *restrict weights, int64_t weights_pitch,
                                 const float *restrict value, int64_t value_stride,
                                 const float *restrict rescale, line_ahead ahead, float *restrict output,
                                 int64_t pitch) {
  vec sum[TILE_FEW_ROWS][FEW_VECTORS], x[FEW_VECTORS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) sum[r][v] = zero();
  for (int64_t j = 0; j < keys; j++) {
    for (int v = 0; v < vectors; v++) {
      const float *from = value + j * value_stride + v * LANES;
      x[v] = part < LANES && v == vectors - 1 ? load_part(from, part) : load(from);
      __builtin_prefetch(ahead.first + j * ahead.stride + v * LANES, 0, 2);
    }
    for (int r = 0; r < rows; r++) {
      vec weight = broadcast(weights + r * weights_pitch + j);
      for (int v = 0; v < vectors; v++) sum[r][v] = fused_multiply_add(weight, x[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      float *out = output + r * pitch + v * LANES;
      store(out, fused_multiply_add(load(out), broadcast(rescale + r), sum[r][v]));
    }
}

INLINE void few_accumulate_rows(const int rows, int64_t keys, int64_t width, const float *weights,
                                int64_t weights_pitch, const float *value, int64_t value_stride,
                                const float *rescale, line_ahead ahead, float *output, int64_t pitch) {
  int64_t e = 0;
  for (; e + FEW_VECTORS * LANES <= width; e += FEW_VECTORS * LANES, ahead.first += FEW_VECTORS * LANES)
    few_accumulate_group(rows, FEW_VECTORS, LANES, keys, weights, weights_pitch, value + e, value_stride,
                         rescale, ahead, output + e, pitch);
  for (; e + LANES <= width; e += LANES, ahead.first += LANES)
    few_accumulate_group(rows, 1, LANES, keys, weights, weights_pitch, value + e, value_stride, rescale,
                         ahead, output + e, pitch);
  if (e < width)
    few_accumulate_group(rows, 1, (int)(width - e), keys, weights, weights_pitch, value + e, value_stride,
                         rescale, ahead, output + e, pitch);
}

/* The functions of the table: four, two or one row at a time. */

static void few_scores(int64_t rows, int64_t keys, int64_t depth, const float *query, int64_t query_pitch,
                       const float *key, int64_t key_stride, const float *ahead, int64_t ahead_stride,
                       float *out, int64_t pitch) {
  const line_ahead next = ahead ? (line_ahead){ahead, ahead_stride} : (line_ahead){key, key_stride};
  for (int64_t r = 0, step; r < rows; r += step, query += step * query_pitch, out += step * pitch) {
    step = rows - r >= 4 ? 4 : rows - r >= 2 ? 2 : 1;
    switch (step) {
      case 4: few_scores_rows(4, keys, depth, query, query_pitch, key, key_stride, next, out, pitch); break;
      case 2: few_scores_rows(2, keys, depth, query, query_pitch, key, key_stride, next, out, pitch); break;
      case 1: few_scores_rows(1, keys, depth, query, query_pitch, key, key_stride, next, out, pitch); break;
    }
  }
}

static void few_accumulate(int64_t rows, int64_t keys, int64_t width, const float *weights,
                           int64_t weights_pitch, const float *value, int64_t value_stride,
                           const float *rescale, const float *ahead, int64_t ahead_stride, float *out,
                           int64_t pitch) {
  const line_ahead next = ahead ? (line_ahead){ahead, ahead_stride} : (line_ahead){value, value_stride};
  for (int64_t r = 0, step; r < rows; r += step) {
    step = rows - r >= 4 ? 4 : rows - r >= 2 ? 2 : 1;
    const float *weight = weights + r * weights_pitch;
    float *to = out + r * pitch;
    switch (step) {
      case 4:
        few_accumulate_rows(4, keys, width, weight, weights_pitch, value, value_stride, rescale + r, next, to,
                            pitch);
        break;
      case 2:
        few_accumulate_rows(2, keys, width, weight, weights_pitch, value, value_stride, rescale + r, next, to,
                            pitch);
        break;
      case 1:
        few_accumulate_rows(1, keys, width, weight, weights_pitch, value, value_stride, rescale + r, next, to,
                            pitch);
        break;
    }
  }
}
