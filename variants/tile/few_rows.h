/* The kernels for few query rows, as in decoding, where a vector of rows would be mostly padding. Features
 * lie across the lanes, so each key and value is read in whole vectors, once for all rows: the arithmetic
 * per byte is small, and what counts is that memory never waits. A tile is therefore read in several places
 * at once, since processors fetch ahead in each page of 4 KiB and stop where it ends: decoding takes 0.88 to
 * 0.91 of the time that it takes with one. Each place of keys begins a key later than the one before it, and
 * those of values are an odd number of them apart: rows of a power of two bytes would else lie in one set of the
 * L1 cache, eight at a time. How many places must not follow from the strides: they set the order of additions,
 * and another layout has to give the same bits. Included by element_rows.h. Two vectors are loaded at once
 * (LOAD_TWO), in what order of the features the type finds easiest: APART brings two vectors of floats into that
 * order, as queries have it, TOGETHER back. */

#ifndef LOAD_TWO
#define LOAD_TWO(from, x) ((x)[0] = LOAD(from), (x)[1] = LOAD((from) + LANES))
#define APART(x) ((void)(x))
#define TOGETHER(x) ((void)(x))
#endif
#define LINE (64 / (int)sizeof(element)) /* of a cache, in elements */

/* Queries in the order in which keys are loaded. */
static void NAME(few_order)(int64_t depth, float *query) {
  for (int64_t d = 0; d + 2 * LANES <= depth; d += 2 * LANES) {
    vec two[2] = {load(query + d), load(query + d + LANES)};
    APART(two);
    for (int n = 0; n < 2; n++) store(query + d + n * LANES, two[n]);
  }
}

/* scores[r][j] = query[r] . key[j] for one group of LANES / rows keys: LANES sums side by side, added up
 * together. In one place, keys that do not exist repeat the last. */
INLINE void NAME(few_scores_group)(const int rows, const int places, int64_t index, tile_size size,
                                   tile_matrix query, tile_rows key, tile_rows ahead, tile_target scores) {
  const int64_t keys = size.keys, depth = size.features;
  const int group = LANES / rows;
  const int64_t whole = depth / LANES * LANES, first = index * group;
  /* Of 16 registers sums leave room for these, or the queries; of 32 for either, and with queries four rows take .965. */
  const bool keeps_keys = rows == 4 && LANES < 16;
  const int apart = rows >= FEW_TWICE ? LINE / 2 : LINE;
  int64_t at[LANES];
  const element *from[LANES], *next[LANES];
  vec sum[LANES], q[TILE_FEW_ROWS][2], k[LANES][2];
  for (int g = 0; g < group; g++) {
    at[g] = first + g < keys ? first + g : keys - 1;
    if (places > 1) at[g] = key_of_place(g % places, (first + g) / places, keys / places);
    from[g] = (const element *)key.x + at[g] * key.stride;
    next[g] = (const element *)ahead.x + at[g] * ahead.stride;
  }
  for (int n = 0; n < LANES; n++) sum[n] = zero();
  int64_t d = 0;
  for (; d + 2 * LANES <= whole; d += 2 * LANES) {
    for (int r = 0; !keeps_keys && r < rows; r++)
      for (int n = 0; n < 2; n++) q[r][n] = load(query.x + r * query.stride + d + n * LANES);
    for (int g = 0; g < group; g++) {
      vec *const x = k[keeps_keys ? g : 0];
      LOAD_TWO(from[g] + d, x);
      for (int n = 0; n < 2 * LANES && d % LINE == 0; n += apart) __builtin_prefetch(next[g] + d + n, 0, 2);
      for (int r = 0; !keeps_keys && r < rows; r++)
        for (int n = 0; n < 2; n++)
          sum[r * group + g] = fused_multiply_add(q[r][n], x[n], sum[r * group + g]);
    }
    for (int r = 0; keeps_keys && r < rows; r++)
      for (int n = 0; n < 2; n++) {
        vec one = load(query.x + r * query.stride + d + n * LANES);
        LOADED_ONCE(one);
        for (int g = 0; g < group; g++)
          sum[r * group + g] = fused_multiply_add(one, k[g][n], sum[r * group + g]);
      }
  }
  for (; d < whole; d += LANES) {
    for (int r = 0; r < rows; r++) q[r][0] = load(query.x + r * query.stride + d);
    for (int g = 0; g < group; g++) {
      k[0][0] = LOAD(from[g] + d);
      if (d % LINE == 0) __builtin_prefetch(next[g] + d, 0, 2);
      for (int r = 0; r < rows; r++)
        sum[r * group + g] = fused_multiply_add(q[r][0], k[0][0], sum[r * group + g]);
    }
  }
  if (whole < depth) {
    for (int r = 0; r < rows; r++) q[r][0] = load(query.x + r * query.stride + whole);
    for (int g = 0; g < group; g++) {
      k[0][0] = LOAD_PART(from[g] + whole, (int)(depth - whole));
      for (int r = 0; r < rows; r++)
        sum[r * group + g] = fused_multiply_add(q[r][0], k[0][0], sum[r * group + g]);
    }
  }
  float all[LANES];
  store(all, sums_of(sum));
  for (int r = 0; r < rows; r++)
    if (places > 1)
      for (int g = 0; g < group; g++) scores.x[r * scores.stride + at[g]] = all[r * group + g];
    else
      memcpy(scores.x + r * scores.stride + first, all + r * group,
             (size_t)(keys - first < group ? keys - first : group) * sizeof *all);
}

INLINE void NAME(few_scores_rows)(const int rows, tile_size size, tile_matrix query, tile_rows key,
                                  tile_rows ahead, tile_target scores) {
  const int group = LANES / rows, places = group < PLACES ? group : PLACES;
  const bool apart = size.keys % group == 0;
  for (int64_t n = 0; n * group < size.keys; n++)
    if (apart)
      NAME(few_scores_group)(rows, places, n, size, query, key, ahead, scores);
    else
      NAME(few_scores_group)(rows, 1, n, size, query, key, ahead, scores);
}

/* output[r][e] of `vectors` vectors of features, an even number or one, with `part` features. Between the first keys of a tile
 * and the last, features stay in the order in which they are loaded. */
INLINE void NAME(few_accumulate_group)(const int rows, const int vectors, const int part, few_steps steps,
                                       tile_matrix weights, tile_rows value, const float *restrict rescale,
                                       tile_rows ahead, tile_target output) {
  const bool two = vectors > 1;
  vec sum[TILE_FEW_ROWS][FEW_VECTORS], x[FEW_VECTORS];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      sum[r][v] = load(output.x + r * output.stride + v * LANES);
      if (steps.first == 0) sum[r][v] = multiply(sum[r][v], broadcast(rescale + r));
    }
  for (int r = 0; two && steps.first == 0 && r < rows; r++)
    for (int v = 0; v < vectors; v += 2) APART(&sum[r][v]);
  for (int64_t n = steps.first; n < steps.end; n++)
    for (int64_t j = n; j < steps.keys; j += steps.apart) {
      const element *row = (const element *)value.x + j * value.stride;
      const element *next = (const element *)ahead.x + j * ahead.stride;
      if (two)
        for (int v = 0; v < vectors; v += 2) LOAD_TWO(row + v * LANES, &x[v]);
      else
        for (int v = 0; v < vectors; v++)
          x[v] = part < LANES ? LOAD_PART(row + v * LANES, part) : LOAD(row + v * LANES);
      for (int e = 0; e < vectors * LANES; e += LINE) __builtin_prefetch(next + e, 0, 2);
      for (int r = 0; r < rows; r++) {
        vec weight = broadcast(weights.x + r * weights.stride + j);
        for (int v = 0; v < vectors; v++) sum[r][v] = fused_multiply_add(weight, x[v], sum[r][v]);
      }
    }
  for (int r = 0; two && steps.end == steps.apart && r < rows; r++)
    for (int v = 0; v < vectors; v += 2) TOGETHER(&sum[r][v]);
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) store(output.x + r * output.stride + v * LANES, sum[r][v]);
}

INLINE tile_rows NAME(from_feature)(tile_rows of, int64_t e) {
  return (tile_rows){(const element *)of.x + e, of.stride};
}

/* Values wider than the registers are read to their end every FEW_STEPS keys of each place: taking one half of
 * all and then the other costs 6%. */
INLINE void NAME(few_accumulate_rows)(const int rows, tile_size size, tile_matrix weights, tile_rows value,
                                      const float *restrict rescale, tile_rows ahead, tile_target output) {
  enum { WIDE = FEW_VECTORS * LANES };
  const int64_t width = size.features, apart = tile_few_apart(size.keys),
                count = width > WIDE ? FEW_STEPS(rows, (int)sizeof(element)) : apart;
  for (int64_t n = 0; n < apart; n += count) {
    const few_steps steps = {n, n + count < apart ? n + count : apart, apart, size.keys};
    int64_t e = 0;
    for (; e + WIDE <= width; e += WIDE) NAME(few_accumulate_group)
    (rows, FEW_VECTORS, LANES, steps, weights, NAME(from_feature)(value, e), rescale,
     NAME(from_feature)(ahead, e), (tile_target){output.x + e, output.stride});
    for (; e + LANES <= width; e += LANES) NAME(few_accumulate_group)
    (rows, 1, LANES, steps, weights, NAME(from_feature)(value, e), rescale, NAME(from_feature)(ahead, e),
     (tile_target){output.x + e, output.stride});
    if (e < width) NAME(few_accumulate_group)
    (rows, 1, (int)(width - e), steps, weights, NAME(from_feature)(value, e), rescale,
     NAME(from_feature)(ahead, e), (tile_target){output.x + e, output.stride});
  }
}

/* The functions of the table: four, two or one row at a time. */

static void NAME(few_scores)(tile_size size, tile_matrix query, tile_rows key, tile_rows ahead,
                             tile_target out) {
  for (int64_t r = 0, step; r < size.rows; r += step) {
    step = rows_at_once(size.rows - r);
    switch (step) {
      case 4: NAME(few_scores_rows)(4, size, query, key, ahead, out); break;
      case 2: NAME(few_scores_rows)(2, size, query, key, ahead, out); break;
      case 1: NAME(few_scores_rows)(1, size, query, key, ahead, out); break;
    }
    query.x += step * query.stride;
    out.x += step * out.stride;
  }
}

static void NAME(few_accumulate)(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                                 tile_rows ahead, tile_target out) {
  for (int64_t r = 0, step; r < size.rows; r += step) {
    step = rows_at_once(size.rows - r);
    switch (step) {
      case 4: NAME(few_accumulate_rows)(4, size, weights, value, rescale + r, ahead, out); break;
      case 2: NAME(few_accumulate_rows)(2, size, weights, value, rescale + r, ahead, out); break;
      case 1: NAME(few_accumulate_rows)(1, size, weights, value, rescale + r, ahead, out); break;
    }
    weights.x += step * weights.stride;
    out.x += step * out.stride;
  }
}

#undef LOAD_TWO
#undef APART
#undef TOGETHER
#undef LINE
