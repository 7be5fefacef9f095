/* The two products of full tiles and the softmax between them, once for each kind of operands: the file that includes
 * this defines KIND, which names it; STEP, the elements of an operand; operand, as rows are stored; BROADCAST(x) of one
 * operand, of STEP times that type; MULTIPLY_ADD(a, b, sum); where STEP is 2, BROADCAST_HALF(x) of a last element alone,
 * PAIR(low, high), which rounds two vectors of floats to pairs, and SHIFT(score, factor, shift), what the softmax raises 2
 * to; SCALED(score, factor), the scores that it takes. With OWN_PRODUCTS the softmax alone, and what makes the columns of
 * queries.
 *
 * Everything rests on one register tile: `group` broadcast operands times `vectors` vectors of rows, all sums in
 * registers. The sums of GROUP(vectors), row vectors and one broadcast fit the register file. */

#ifndef OWN_PRODUCTS
/* The scalars of a product: number (g, d) at x[g * group_stride + d * depth_stride]. */
typedef struct NAME(scalars) {
  const operand *x;
  int64_t group_stride, depth_stride;
} NAME(scalars);

/* sum[g][v] += sum over d < depth of scalar (g, d) * columns[d * pitch, v] */
INLINE void NAME(product)(const int vectors, const int group, const int fetch, int64_t depth,
                          tile_matrix columns, NAME(scalars) of, line_ahead ahead,
                          vec sum[MAX_GROUP][MAX_VECTORS]) {
#pragma GCC unroll 2
  for (int64_t d = 0; d < depth; d++) {
    if (fetch == INTO_L1) __builtin_prefetch(ahead.first + d * ahead.stride, 0, 3);
    if (fetch == INTO_L2) __builtin_prefetch(ahead.first + d * ahead.stride, 0, 2);
    vec column[MAX_VECTORS];
    for (int v = 0; v < vectors; v++) column[v] = load(columns.x + d * columns.stride + v * LANES);
    for (int g = 0; g < group; g++) {
      vec scalar = BROADCAST(of.x + g * of.group_stride + d * of.depth_stride);
      for (int v = 0; v < vectors; v++) sum[g][v] = MULTIPLY_ADD(scalar, column[v], sum[g][v]);
    }
  }
}

#if STEP == 1 && defined OWN_ELU1
/* The next vector of the rows, of which there is one. */
INLINE void map_vector(tile_mapping *of) {
  const elu1_constants *constants = &elu1_of_vectors;
  const float *x = of->x.x + of->at, *again = x;
  __asm__("" : "+r"(constants), "+r"(again)); /* or they are kept in registers, and sums are not */
  store(of->y.x + of->at, elu1_vec(load(x), load(again), constants));
  of->at += LANES;
  if (of->at < of->width) return;
  of->at = 0;
  of->rows--;
  of->x.x += of->x.stride;
  of->y.x += of->y.stride;
}

/* The same, and with each two steps a vector is mapped, as long as there are some: two with each four steps take
 * as long as none beside them. */
INLINE void product_and_map(const int vectors, const int group, const int fetch, int64_t depth,
                            tile_matrix columns, NAME(scalars) of, line_ahead ahead, tile_mapping *mapping,
                            vec sum[MAX_GROUP][MAX_VECTORS]) {
  tile_mapping now = *mapping;
  for (; depth >= 2 && now.rows > 0; depth -= 2) {
    for (int s = 0; s < 2; s++) {
      NAME(product)(vectors, group, fetch, 1, columns, of, ahead, sum);
      columns.x += columns.stride;
      of.x += of.depth_stride;
      ahead.first += ahead.stride;
      __asm__("" : "+r"(of.x)); /* or there is a register for each of the scalars */
    }
    map_vector(&now);
  }
  *mapping = now;
  NAME(product)(vectors, group, fetch, depth, columns, of, ahead, sum);
}
#endif

/* A loop of its own where there is nothing to fetch: a fetch costs up to 6% (measured, AVX2). The last few of a tile go without:
 * loops for them were a tenth of all that is compiled. */
INLINE void NAME(product_ahead)(const int vectors, const int group, const int fetch, int64_t depth,
                                tile_matrix columns, NAME(scalars) of, line_ahead ahead,
                                tile_mapping *mapping, vec sum[MAX_GROUP][MAX_VECTORS]) {
#if STEP == 1 && defined OWN_ELU1
  if (vectors == MAX_VECTORS && group == GROUP(vectors) && mapping && mapping->rows > 0) {
    if (!ahead.first) ahead = (line_ahead){(const char *)columns.x, 0};
    product_and_map(vectors, group, fetch, depth, columns, of, ahead, mapping, sum);
    return;
  }
#endif
  (void)mapping;
  if (group > 2 && ahead.first)
    NAME(product)(vectors, group, fetch, depth, columns, of, ahead, sum);
  else
    NAME(product)(vectors, group, NOWHERE, depth, columns, of, ahead, sum);
}

#if STEP == 2
/* The last feature of an odd number has no partner: what stands behind it belongs to something else. */
INLINE void add_last_feature(const int vectors, const int group, int64_t feature, tile_matrix queries,
                             NAME(scalars) keys, vec sum[MAX_GROUP][MAX_VECTORS]) {
  for (int g = 0; g < group; g++) {
    vec scalar = BROADCAST_HALF(keys.x + g * keys.group_stride + feature);
    for (int v = 0; v < vectors; v++)
      sum[g][v] =
          MULTIPLY_ADD(scalar, load(queries.x + feature / STEP * queries.stride + v * LANES), sum[g][v]);
  }
}
#endif

/* One slice of the features: the first finds no scores yet, the last multiplies them by the factor. */
typedef struct NAME(slice) {
  bool first, last;
  float factor;
} NAME(slice);

/* largest: NULL, or what the last slice joins the scores to. */
INLINE groups_done NAME(scores_groups)(const int vectors, const int group, tile_size size, NAME(slice) slice,
                                       tile_matrix queries, tile_rows key, const tile_ahead *ahead,
                                       tile_target scores, vec *largest, groups_done done) {
  const int64_t steps = size.features / STEP;
  for (; done.elements + group <= size.keys; done.elements += group) {
    float *out = scores.x + done.elements * scores.stride;
    const NAME(scalars) keys = {(const operand *)key.x + done.elements * key.stride, key.stride, STEP};
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++)
        sum[g][v] = slice.first ? zero() : load(out + g * scores.stride + v * LANES);
    NAME(product_ahead)
    (vectors, group, INTO_L2, steps, queries, keys, line_of(ahead, done.groups++, steps), NULL, sum);
#if STEP == 2
    if (size.features % STEP) add_last_feature(vectors, group, size.features - 1, queries, keys, sum);
    for (int g = 0; slice.last && slice.factor != 1 && g < group; g++)
      for (int v = 0; v < vectors; v++) sum[g][v] = multiply(sum[g][v], broadcast(&slice.factor));
#endif
    for (int g = 0; largest && slice.last && g < group; g++)
      for (int v = 0; v < vectors; v++) largest[v] = maximum(sum[g][v], largest[v]);
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) store(out + g * scores.stride + v * LANES, sum[g][v]);
  }
  return done;
}

/* adds: to what the scores hold. finds: the largest score of each row, which stays in registers until the end. */
INLINE void NAME(scores_rows)(const int vectors, const bool adds, const bool finds, tile_size size,
                              tile_matrix queries, tile_rows key, float factor, const tile_ahead *ahead,
                              tile_target scores, float *largest) {
  vec joined[MAX_VECTORS];
  for (int v = 0; finds && v < vectors; v++) joined[v] = broadcast(&(float){-INFINITY});
  const int64_t depth = size.features, whole = STEP * depth_slice(vectors * LANES, (depth + STEP - 1) / STEP);
  groups_done done = {0, 0};
  for (int64_t d = 0; d == 0 || d < depth; d += whole, done.elements = 0) {
    const tile_matrix columns = {queries.x + d / STEP * queries.stride, queries.stride};
    const tile_rows from = {(const operand *)key.x + d, key.stride};
    const NAME(slice) slice = {d == 0 && !adds, d + whole >= depth, factor};
    size.features = depth - d < whole ? depth - d : whole;
    done = NAME(scores_groups)(vectors, GROUP(vectors), size, slice, columns, from, ahead, scores,
                               finds ? joined : NULL, done);
    if (GROUP(vectors) > 4)
      done = NAME(scores_groups)(vectors, 4, size, slice, columns, from, ahead, scores, finds ? joined : NULL,
                                 done);
    done = NAME(scores_groups)(vectors, 2, size, slice, columns, from, ahead, scores, finds ? joined : NULL,
                               done);
    done = NAME(scores_groups)(vectors, 1, size, slice, columns, from, ahead, scores, finds ? joined : NULL,
                               done);
  }
  for (int v = 0; finds && v < vectors; v++) store(largest + v * LANES, joined[v]);
}

#if STEP == 1
/* Features [first, end) of x; with the last of these the weighted rows, where `both`. */
INLINE groups_done sum_groups(const int vectors, const int group, const bool both, int64_t count,
                              int64_t first, int64_t end, const tile_sum *of, const tile_ahead *ahead,
                              tile_target rows, groups_done done) {
  static const float one = 1; /* no branch may stand between the sums, or they leave the registers */
  const bool last = end == of->depth;
  const int64_t wide = vectors * LANES;
  for (; done.elements + group <= count; done.elements += group) {
    const int64_t r = done.elements;
    float *out = rows.x + r * rows.stride;
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++)
        sum[g][v] = first == 0 ? zero() : load(out + g * rows.stride + v * LANES);
    NAME(product_ahead)
    (vectors, group, INTO_L1, end - first, (tile_matrix){of->columns + first * wide, wide},
     (NAME(scalars)){of->x.x + r * of->x.stride + first, of->x.stride, 1},
     line_of(ahead, done.groups++, end - first), ahead ? ahead->mapping : NULL, sum);
    if (both) NAME(product)
    (vectors, group, NOWHERE, last ? of->seen[r + group - 1] : 0, of->values,
     (NAME(scalars)){of->weights.x + r, 1, of->weights.stride}, (line_ahead){NULL, 0}, sum);
    for (int g = 0; g < group; g++) {
      const vec factor = broadcast(last ? of->factor + r + g : &one);
      for (int v = 0; v < vectors; v++) store(out + g * rows.stride + v * LANES, multiply(sum[g][v], factor));
    }
  }
  return done;
}

INLINE void sum_rows(const int vectors, const bool both, int64_t count, const tile_sum *of,
                     const tile_ahead *ahead, tile_target rows) {
  const int64_t depth = of->depth, slice = depth_slice(vectors * LANES, depth);
  groups_done done = {0, 0};
  for (int64_t first = 0; first < depth; first += slice, done.elements = 0) {
    const int64_t end = first + slice < depth ? first + slice : depth;
    done = sum_groups(vectors, GROUP(vectors), both, count, first, end, of, ahead, rows, done);
    if (GROUP(vectors) > 4) done = sum_groups(vectors, 4, both, count, first, end, of, ahead, rows, done);
    done = sum_groups(vectors, 2, both, count, first, end, of, ahead, rows, done);
    done = sum_groups(vectors, 1, both, count, first, end, of, ahead, rows, done);
  }
}

INLINE void sum_rows_of(const int vectors, int64_t count, const tile_sum *of, const tile_ahead *ahead,
                        tile_target rows) {
  if (of->seen)
    sum_rows(vectors, true, count, of, ahead, rows);
  else
    sum_rows(vectors, false, count, of, ahead, rows);
}

static void sum_products(int64_t width, int64_t count, const tile_sum *of, const tile_ahead *ahead,
                         tile_target rows) {
  BY_VECTORS(width, sum_rows_of(vectors, count, of, ahead, rows));
}
#endif

INLINE groups_done NAME(accumulate_groups)(const int vectors, const int group, const bool rescales,
                                           tile_size size, tile_matrix weights, tile_rows value,
                                           const float *restrict rescale, const tile_ahead *ahead,
                                           tile_target output, groups_done done) {
  const int64_t steps = (size.keys + STEP - 1) / STEP;
  for (; done.elements + group <= size.features; done.elements += group) {
    const NAME(scalars) values = {(const operand *)value.x + done.elements * STEP, STEP, value.stride};
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) sum[g][v] = zero();
    /* Where nothing is rescaled the rows ahead are next, of linear attention: full and causal take 0.99 of the time. */
    NAME(product_ahead)
    (vectors, group, rescales ? INTO_L2 : INTO_L1, steps, weights, values,
     line_of(ahead, done.groups++, steps), rescales || !ahead ? NULL : ahead->mapping, sum);
    /* Old output times rescale joins at the end: no pass of its own, and the chain of additions is one
     * tile long plus one a tile. Additions alone pass other ports than the products do. */
    for (int v = 0; v < vectors; v++) {
      const vec factor = rescales ? load(rescale + v * LANES) : zero();
      for (int g = 0; g < group; g++) {
        float *out = output.x + (done.elements + g) * output.stride + v * LANES;
        store(out, rescales ? fused_multiply_add(load(out), factor, sum[g][v]) : add(load(out), sum[g][v]));
      }
    }
  }
  return done;
}

INLINE void NAME(accumulate_rows)(const int vectors, const bool rescales, tile_size size, tile_matrix weights,
                                  tile_rows value, const float *restrict rescale, const tile_ahead *ahead,
                                  tile_target output) {
#define GROUPS(group)                                                                                        \
  NAME(accumulate_groups)                                                                                    \
  (vectors, group, rescales, size, weights, value, rescale, ahead, output, done)
  groups_done done = {0, 0};
  done = GROUPS(GROUP(vectors));
  if (GROUP(vectors) > 4) done = GROUPS(4);
  done = GROUPS(2);
  GROUPS(1);
#undef GROUPS
}

#endif

#if STEP == 2
/* The exponentials of two keys, or of the last one, and a vector of rows. */
INLINE void begin_pair(const int keys, const float *scores, int64_t rows, vec factor, vec shift, powers *of) {
  for (int k = 0; k < keys; k++) of->x[k] = SHIFT(load(scores + k * rows), factor, shift);
  begin_powers(keys, of);
}

INLINE void end_pair(const int keys, const powers *of, float *weights, vec *total) {
  vec weight[EXP_VECTORS];
  end_powers(keys, of, weight);
  for (int k = 0; k < keys; k++) *total = add(*total, weight[k]);
  store(weights, PAIR(weight[0], keys > 1 ? weight[1] : zero()));
}

/* Weights stand where accumulate finds them: pairs take half the room of the scores, so that none is written over before
 * it is read. Each two exponentials begin while the two before are under way: on Zen 4 fractions and powers pass other
 * ports than multiply-adds do, and so both are busy, which takes 0.80 of the time of eight at once. */
INLINE void weigh_pairs(const int vectors, int64_t keys, float *scores, vec factor,
                        const vec shift[MAX_VECTORS], vec total[MAX_VECTORS]) {
  const int64_t rows = vectors * LANES;
  powers now, next;
  int64_t j = 0;
  if (keys > 1) begin_pair(2, scores, rows, factor, shift[0], &now);
  for (; j + 2 <= keys; j += 2)
    for (int v = 0; v < vectors; v++) {
      const int w = (v + 1) % vectors;
      const int64_t key = w > 0 || j + 4 > keys ? j : j + 2; /* behind the last what nobody uses */
      begin_pair(2, scores + key * rows + w * LANES, rows, factor, shift[w], &next);
      end_pair(2, &now, scores + j / 2 * rows + v * LANES, &total[v]);
      now = next;
    }
  for (int v = 0; j < keys && v < vectors; v++) {
    begin_pair(1, scores + j * rows + v * LANES, rows, factor, shift[v], &now);
    end_pair(1, &now, scores + j / 2 * rows + v * LANES, &total[v]);
  }
}
#endif

INLINE void NAME(find_largest)(const int vectors, int64_t keys, const float *scores,
                               vec largest[MAX_VECTORS]) {
  const int64_t rows = vectors * LANES;
  vec other[MAX_VECTORS]; /* two chains each, to hide the latency of the maximum */
  for (int v = 0; v < vectors; v++) largest[v] = other[v] = broadcast(&(float){-INFINITY});
  int64_t j = 0;
  for (; j + 2 <= keys; j += 2)
    for (int v = 0; v < vectors; v++) {
      largest[v] = maximum(load(scores + j * rows + v * LANES), largest[v]);
      other[v] = maximum(load(scores + (j + 1) * rows + v * LANES), other[v]);
    }
  for (int v = 0; j < keys && v < vectors; v++)
    largest[v] = maximum(load(scores + j * rows + v * LANES), largest[v]);
  for (int v = 0; v < vectors; v++) largest[v] = maximum(largest[v], other[v]);
}

/* known: the largest scores stand where rescale will. Returns the sum of all weights. */
INLINE float NAME(softmax_rows)(const int vectors, const bool known, int64_t keys, float *restrict scores,
                                float factor, tile_state state) {
  float *restrict max = state.max, *restrict sum = state.sum, *restrict rescale = state.rescale;
  const unsigned mode = flush_denormals();
  vec largest[MAX_VECTORS];
  if (!known) NAME(find_largest)(vectors, keys, scores, largest);
  for (int v = 0; known && v < vectors; v++) largest[v] = load(rescale + v * LANES);

  const vec factors = broadcast(&factor);
  vec shift[MAX_VECTORS] = {zero()}, total[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) {
    vec old_max = load(max + v * LANES);
    vec new_max = maximum(SCALED(largest[v], factors), old_max);
    /* -inf minus -inf must not be NaN while nothing is visible. */
    shift[v] = zero_where_minus_infinity(new_max);
    store(max + v * LANES, new_max);
    store(rescale + v * LANES, exp2_vec(subtract(old_max, shift[v])));
    total[v] = zero();
  }
#if STEP == 2
  weigh_pairs(vectors, keys, scores, factors, shift, total);
#else
  const int together = EXP_VECTORS / vectors;
  const int64_t rows = vectors * LANES;
  int64_t j = 0;
  for (; j + together <= keys; j += together)
    weigh_in_place(vectors, together, scores + j * rows, shift, total);
  for (; j < keys; j++) weigh_in_place(vectors, 1, scores + j * rows, shift, total);
#endif
  vec all = zero();
  for (int v = 0; v < vectors; v++) {
    float *row_sum = sum + v * LANES;
    store(row_sum, fused_multiply_add(load(row_sum), load(rescale + v * LANES), total[v]));
    all = add(all, total[v]);
  }
  restore_denormals(mode);
  return sum_of_lanes(all);
}

/* The functions of the table: the number of vectors becomes a constant. */

#ifndef OWN_PRODUCTS
/* Where columns lie one after the other their pitch is a constant as well: 1% faster. */
INLINE void NAME(scores_of)(const int vectors, tile_size size, tile_matrix queries, tile_rows key,
                            float factor, const tile_ahead *ahead, tile_target out) {
  const int64_t rows = vectors * LANES;
  if (queries.stride == rows && out.stride == rows) NAME(scores_rows)
  (vectors, false, false, size, (tile_matrix){queries.x, rows}, key, factor, ahead,
   (tile_target){out.x, rows}, NULL);
  else NAME(scores_rows)(vectors, false, false, size, queries, key, factor, ahead, out, NULL);
}

static void NAME(scores)(tile_size size, tile_matrix queries, tile_rows key, float factor,
                         const tile_ahead *ahead, tile_target out) {
  BY_VECTORS(size.rows, NAME(scores_of)(vectors, size, queries, key, factor, ahead, out));
}

#if STEP == 2
static void scores_and_largest(tile_size size, const float *queries, tile_rows key, const tile_ahead *ahead,
                               float *out, float *largest) {
  BY_VECTORS(size.rows, NAME(scores_rows)(vectors, false, true, size, (tile_matrix){queries, vectors * LANES},
                                          key, 1, ahead, (tile_target){out, vectors * LANES}, largest));
}
#endif

#if STEP == 1
static void NAME(add_products)(tile_size size, tile_matrix queries, tile_rows key, tile_target out) {
  BY_VECTORS(size.rows, NAME(scores_rows)(vectors, true, false, size, queries, key, 1, NULL, out, NULL));
}
#endif

static void NAME(accumulate)(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                             const tile_ahead *ahead, tile_target out) {
  if (rescale)
    BY_VECTORS(size.rows, NAME(accumulate_rows)(vectors, true, size, weights, value, rescale, ahead, out))
  else
    BY_VECTORS(size.rows, NAME(accumulate_rows)(vectors, false, size, weights, value, NULL, ahead, out))
}

#endif

static float NAME(softmax)(int64_t rows, int64_t keys, float *score, float factor, tile_state state) {
  float all = 0;
  BY_VECTORS(rows, all = NAME(softmax_rows)(vectors, false, keys, score, factor, state))
  return all;
}

#if STEP == 2 && !defined OWN_PRODUCTS
static float softmax_of_largest(int64_t rows, int64_t keys, float *score, float factor, tile_state state) {
  float all = 0;
  BY_VECTORS(rows, all = NAME(softmax_rows)(vectors, true, keys, score, factor, state))
  return all;
}
#endif

/* Bits for LANES operands of a row: all where a key is kept, of pairs half of them each. */
INLINE vec NAME(kept_bits)(const uint8_t *keep) {
#if STEP == 2
  uint16_t bits[LANES * STEP];
  for (int l = 0; l < LANES * STEP; l++) bits[l] = keep[l] ? UINT16_MAX : 0;
#else
  uint32_t bits[LANES];
  for (int l = 0; l < LANES; l++) bits[l] = keep[l] ? UINT32_MAX : 0;
#endif
  vec all;
  memcpy(&all, bits, sizeof all);
  return all;
}

/* Rows of bytes lie across what has the rows in its lanes: squares of them are turned in registers. */
static void NAME(drop)(int64_t rows, int64_t count, int64_t keys, const uint8_t *const *keep,
                       float *restrict weights) {
  enum { KEYS = LANES * STEP };
  for (int64_t r = 0; r < count; r += LANES)
    for (int64_t j = 0; j < keys; j += KEYS) {
      const bool whole = keys - j >= KEYS;
      const int64_t left = whole ? KEYS : keys - j;
      vec square[LANES];
      for (int x = 0; x < LANES; x++) {
        uint8_t some[KEYS] = {0};
        if (r + x < count && !whole) memcpy(some, keep[r + x] + j, (size_t)left);
        square[x] = NAME(kept_bits)(r + x < count && whole ? keep[r + x] + j : some);
      }
      transpose(square);
      for (int64_t n = 0; n * STEP < left; n++) {
        float *weight = weights + (j / STEP + n) * rows + r;
        store(weight, bits_of(load(weight), square[n]));
      }
    }
}

#if STEP == 2
/* Rows of bfloat16 elements as the products of pairs take them. */

INLINE uint32_t pair_of(operand low, operand high) { return (uint32_t)high << 16 | low; }

/* Features side by side are pairs already: columns of 32 bits, as those of floats, and nothing is multiplied, but by the
 * sign of the factor. */
static float pack_pairs(int64_t rows, int64_t count, int64_t depth, const void *const *row, float factor,
                        float *restrict columns) {
  const int64_t whole = depth / 2 / LANES * LANES;
  const uint32_t signs = factor < 0 ? 0x80008000 : 0;
  for (int64_t r = 0; r < rows; r += LANES) {
    for (int64_t d = 0; d < whole; d += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++) square[x] = zero();
      for (int x = 0; x < LANES && r + x < count; x++)
        memcpy(&square[x], (const operand *)row[r + x] + 2 * d, sizeof *square);
      transpose(square);
      for (int x = 0; x < LANES; x++) store(columns + (d + x) * rows + r, flip_signs(square[x], signs));
    }
    for (int64_t d = whole; 2 * d < depth; d++)
      for (int64_t x = r; x < r + LANES; x++) {
        const operand *from = x < count ? (const operand *)row[x] + 2 * d : NULL;
        const uint32_t both = from ? signs ^ pair_of(from[0], 2 * d + 1 < depth ? from[1] : 0) : 0;
        memcpy(columns + d * rows + x, &both, sizeof both);
      }
  }
  return fabsf(factor);
}

#ifndef OWN_PRODUCTS
/* Two keys' values feature by feature. */
INLINE void copy_pair(int64_t width, const operand *restrict low, const operand *restrict high,
                      float *restrict copy) {
  for (int64_t e = 0; e < width; e++) {
    const uint32_t both = pair_of(low[e], high ? high[e] : 0);
    memcpy(copy + e, &both, sizeof both);
  }
}

static void copy_pairs(int64_t rows, int64_t width, tile_rows x, float *copy, int64_t stride) {
  for (int64_t j = 0; j < rows; j += 2) {
    const operand *low = (const operand *)x.x + j * x.stride;
    copy_pair(width, low, j + 1 < rows ? low + x.stride : NULL, copy + j / 2 * stride);
  }
}
#endif
#endif

#undef KIND
#undef STEP
#undef operand
#undef BROADCAST
#undef BROADCAST_HALF
#undef MULTIPLY_ADD
#undef PAIR
#undef SHIFT
#undef SCALED
