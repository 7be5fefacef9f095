/* The kernels for few query rows, as in decoding, where a vector of rows would be mostly padding. Features
 * lie across the lanes, so each key and value is read in whole vectors, once for all rows: the arithmetic
 * per byte is small, and what counts is that memory never waits. A tile is therefore read in several places
 * at once, since processors fetch ahead in each page of 4 KiB and stop where it ends: decoding takes 0.88 to
 * 0.91 of the time that it takes with one. How many places must not follow from the strides: they set the
 * order of additions, and another layout has to give the same bits. Included by kernels.h. */

enum { PLACES = 8 };

/* scores[r][j] = query[r] . key[j] for one group of LANES / rows keys: LANES sums side by side, added up
 * together. In one place, keys that do not exist repeat the last. */
INLINE void few_scores_group(const int rows, const int places, int64_t index, int64_t keys, int64_t depth,
                             const float *restrict query, int64_t query_pitch, const float *restrict key,
                             int64_t key_stride, line_ahead ahead, float *restrict scores, int64_t pitch) {
  const int group = LANES / rows;
  const int64_t whole = depth / LANES * LANES, first = index * group;
  int64_t at[LANES];
  const float *from[LANES], *next[LANES];
  vec sum[LANES], q[TILE_FEW_ROWS];
  for (int g = 0; g < group; g++) {
    at[g] = first + g < keys ? first + g : keys - 1;
    if (places > 1) at[g] = g % places * (keys / places) + (first + g) / places;
    from[g] = key + at[g] * key_stride;
    next[g] = ahead.first + at[g] * ahead.stride;
  }
  for (int n = 0; n < LANES; n++) sum[n] = zero();
  for (int64_t d = 0; d < whole; d += LANES) {
    for (int r = 0; r < rows; r++) q[r] = load(query + r * query_pitch + d);
    for (int g = 0; g < group; g++) {
      vec k = load(from[g] + d);
      __builtin_prefetch(next[g] + d, 0, 2);
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
  for (int r = 0; r < rows; r++)
    if (places > 1)
      for (int g = 0; g < group; g++) scores[r * pitch + at[g]] = all[r * group + g];
    else
      memcpy(scores + r * pitch + first, all + r * group,
             (size_t)(keys - first < group ? keys - first : group) * sizeof *all);
}

INLINE void few_scores_rows(const int rows, int64_t keys, int64_t depth, const float *query,
                            int64_t query_pitch, const float *key, int64_t key_stride, line_ahead ahead,
                            float *scores, int64_t pitch) {
  const int group = LANES / rows, places = group < PLACES ? group : PLACES;
  const bool apart = keys % group == 0;
  for (int64_t n = 0; n * group < keys; n++)
    if (apart)
      few_scores_group(rows, places, n, keys, depth, query, query_pitch, key, key_stride, ahead, scores,
                       pitch);
    else
      few_scores_group(rows, 1, n, keys, depth, query, query_pitch, key, key_stride, ahead, scores, pitch);
}

/* The keys of an accumulation, in the order in which they are read: of step n those at n, n + apart, ... */
typedef struct few_steps {
  int64_t first, end, apart, keys;
} few_steps;

/* output[r][e] of `vectors` vectors of features, `part` features in the last. */
INLINE void few_accumulate_group(const int rows, const int vectors, const int part, few_steps steps,
                                 const float *restrict weights, int64_t weights_pitch,
                                 const float *restrict value, int64_t value_stride,
                                 const float *restrict rescale, line_ahead ahead, float *restrict output,
                                 int64_t pitch) {
  vec sum[TILE_FEW_ROWS][FEW_VECTORS], x[FEW_VECTORS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      sum[r][v] = load(output + r * pitch + v * LANES);
      if (steps.first == 0) sum[r][v] = multiply(sum[r][v], broadcast(rescale + r));
    }
  for (int64_t n = steps.first; n < steps.end; n++)
    for (int64_t j = n; j < steps.keys; j += steps.apart) {
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
    for (int v = 0; v < vectors; v++) store(output + r * pitch + v * LANES, sum[r][v]);
}

/* Values wider than the registers are read to their end every two steps: taking one half of all and then the
 * other costs 6%. */
INLINE void few_accumulate_rows(const int rows, int64_t keys, int64_t width, const float *weights,
                                int64_t weights_pitch, const float *value, int64_t value_stride,
                                const float *rescale, line_ahead ahead, float *output, int64_t pitch) {
  enum { WIDE = FEW_VECTORS * LANES };
  const int64_t apart = (keys + PLACES - 1) / PLACES, count = width > WIDE ? 2 : apart;
  for (int64_t n = 0; n < apart; n += count) {
    const few_steps steps = {n, n + count < apart ? n + count : apart, apart, keys};
    line_ahead next = ahead;
    int64_t e = 0;
    for (; e + WIDE <= width; e += WIDE, next.first += WIDE)
      few_accumulate_group(rows, FEW_VECTORS, LANES, steps, weights, weights_pitch, value + e, value_stride,
                           rescale, next, output + e, pitch);
    for (; e + LANES <= width; e += LANES, next.first += LANES)
      few_accumulate_group(rows, 1, LANES, steps, weights, weights_pitch, value + e, value_stride, rescale,
                           next, output + e, pitch);
    if (e < width)
      few_accumulate_group(rows, 1, (int)(width - e), steps, weights, weights_pitch, value + e, value_stride,
                           rescale, next, output + e, pitch);
  }
}

/* The functions of the table: four, two or one row at a time. */

static void few_scores(int64_t rows, int64_t keys, int64_t depth, const float *query, int64_t query_pitch,
                       const float *key, int64_t key_stride, const float *ahead, int64_t ahead_stride,
                       float *out, int64_t pitch) {
  const line_ahead next = {ahead, ahead_stride};
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
  const line_ahead next = {ahead, ahead_stride};
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
