/* The three steps of an online softmax by AMX, chunk of keys after chunk, behind amx_parts.h; the file defines besides
 * weights_of, which is exp2_each but gives infinity for what is large, weights_as_pair, which rounds ties away from zero,
 * and the numbers that these need. While the weights of one chunk are made, the tiles multiply the scores of the next and
 * add the values of the one before (tile.h, attend).
 *
 * Everything rests on one step: 16 rows of elements, keys or features of values, by 32 columns, whose sums are in two tiles
 * until all depth is behind them. Depth is cut into slices of 64, four multiplications each. Each step goes through its slices
 * the other way than the step before, so that the columns of the slice between stay in their four tiles. The rows, which each
 * step reads once, come from the L2 cache past the L1, which has room for the rest: queries, outputs, two chunks of scores. */
enum {
  CHUNK = TILE_CHUNK,
  HALF = CHUNK / 2,
  CHUNK_ROWS = TILE_CHUNK_ROWS,
  CHUNK_VECTORS = 2,
  SLICE = 2 * AMX_DEPTH,
  SLICE_COLUMNS = SLICE / 2 * CHUNK_ROWS, /* floats */
  SCORES_ROW = CHUNK_ROWS * sizeof(float),
  HALF_SCORES = HALF * CHUNK_ROWS /* floats */
};
_Static_assert(CHUNK_ROWS == 2 * AMX_COLUMNS && CHUNK == SLICE, "a step is 32 columns wide and a chunk deep");
_Static_assert(TILE_CHUNKS == 2 && HALF == 2 * AMX_ROWS, "steps of a half go through slices to and fro");

/* The weights of a chunk on their way, two keys after the other, of one vector of rows and then of the other. */
typedef struct chunk_weights {
  const float *scores, *second_half;
  float *weights, *second_parts;
  int64_t left; /* keys */
  int parts;
  vec factor, shift[CHUNK_VECTORS], total[CHUNK_VECTORS];
  weight_numbers numbers;
} chunk_weights;

/* A row's scores are less by what was its largest once, and not anew in each chunk: as long as no weight is large
 * nothing has to be rescaled, and the weights wait for nothing (the idea is FlashAttention-4's; there the maximum is
 * found all the same). The most that a row's weights of one chunk may sum to: no exponent is above 8 then, where
 * floats are 2^-21 apart. */
static const float largest_total = 256;

/* Of vector v of the rows; behind the last come the next keys. */
INLINE void weigh_two_keys(chunk_weights *of, const int v) {
  if (of->left == 0) return;
  const float *scores = of->scores + v * LANES;
  vec weight[2];
  for (int i = 0; i < 2; i++)
    weight[i] = fused_multiply_subtract(load(scores + i * CHUNK_ROWS), of->factor, of->shift[v]);
  weights_of(&of->numbers, 2, weight);
  for (int i = 0; i < 2; i++) of->total[v] = add(of->total[v], weight[i]);
  store(of->weights + v * LANES, weights_as_pair(&of->numbers, weight[0], weight[1]));
  if (of->parts == 2) {
    for (int i = 0; i < 2; i++) weight[i] = subtract(weight[i], first_part(weight[i]));
    store(of->second_parts + v * LANES, weights_as_pair(&of->numbers, weight[0], weight[1]));
  }
  if (v < CHUNK_VECTORS - 1) return;
  of->left -= 2;
  of->scores = of->left == HALF ? of->second_half : of->scores + 2 * CHUNK_ROWS;
  of->weights += CHUNK_ROWS;
  of->second_parts += CHUNK_ROWS;
}

INLINE void weigh_rest(chunk_weights *of) {
  while (of->left > 0)
    for (int v = 0; v < CHUNK_VECTORS; v++) weigh_two_keys(of, v);
}

/* 16 rows of elements, a slice deep, and the columns that they meet. */
typedef struct chunk_slice {
  const uint16_t *elements;
  int64_t row_bytes;
  const float *columns;
} chunk_slice;

INLINE void load_upper(amx_unit *unit, chunk_slice of, const bool columns) {
  (void)unit;
  amx_tileloaddt1(unit, 2, of.elements, of.row_bytes);
  if (!columns) return;
  amx_tileloadd(unit, 4, of.columns, SCORES_ROW);
  amx_tileloadd(unit, 5, of.columns + AMX_COLUMNS, SCORES_ROW);
}

INLINE void load_lower(amx_unit *unit, chunk_slice of, const bool columns) {
  (void)unit;
  amx_tileloaddt1(unit, 3, of.elements + AMX_DEPTH, of.row_bytes);
  if (!columns) return;
  amx_tileloadd(unit, 6, of.columns + SLICE_COLUMNS / 2, SCORES_ROW);
  amx_tileloadd(unit, 7, of.columns + SLICE_COLUMNS / 2 + AMX_COLUMNS, SCORES_ROW);
}

INLINE void load_slice(amx_unit *unit, chunk_slice of) {
  load_upper(unit, of, true);
  load_lower(unit, of, true);
}

/* What is loaded is multiplied, and what comes next loaded as soon as tiles are free for it. Between them weights are made, of
 * three vectors, or where slices are few of six; the places were found by trying some sixty ways (Granite Rapids). */
INLINE void multiply_slice(amx_unit *unit, chunk_slice next, const bool columns, const bool often,
                           chunk_weights *meanwhile) {
  (void)unit;
  if (often) weigh_two_keys(meanwhile, 0);
  amx_tdpbf16ps(unit, 0, 2, 4);
  weigh_two_keys(meanwhile, often);
  amx_tdpbf16ps(unit, 1, 2, 5);
  load_upper(unit, next, columns);
  weigh_two_keys(meanwhile, !often);
  amx_tdpbf16ps(unit, 0, 3, 6);
  if (often) weigh_two_keys(meanwhile, 1);
  amx_tdpbf16ps(unit, 1, 3, 7);
  load_lower(unit, next, columns);
  weigh_two_keys(meanwhile, 0);
  if (often) weigh_two_keys(meanwhile, 1);
}

/* The fourth, or the seventh and eighth, of a slice. */
INLINE void weigh_more(const bool often, chunk_weights *meanwhile) {
  if (often) weigh_two_keys(meanwhile, 0);
  weigh_two_keys(meanwhile, 1);
}

INLINE void store_sums(amx_unit *unit, float *sums, const bool often, chunk_weights *meanwhile) {
  (void)unit;
  amx_tilestored(unit, 0, sums, SCORES_ROW);
  weigh_more(often, meanwhile);
  amx_tilestored(unit, 1, sums + AMX_COLUMNS, SCORES_ROW);
}

/* Chunk c of a passage, the n-th of all. It has one of two places, in turns, for its scores, and then for its weights, which
 * take the half that had the scores of its first keys. When the next chunk comes to that place these weights have yet to be
 * multiplied, and so it begins in the other half. */
typedef struct chunk_at {
  const tile_passage *of;
  int64_t c, n;
} chunk_at;

INLINE chunk_at chunk_behind(chunk_at at, const tile_passage *end) {
  if (at.of == end) return at;
  const bool last = (at.c + 1) * CHUNK == at.of->keys;
  return (chunk_at){last ? at.of + 1 : at.of, last ? 0 : at.c + 1, at.n + 1};
}

INLINE float *place_of_chunk(chunk_at at) { return at.of->scores + at.n % 2 * 2 * HALF_SCORES; }

INLINE float *scores_of_half(chunk_at at, int half) {
  return place_of_chunk(at) + (at.n / 2 + half) % 2 * HALF_SCORES;
}

INLINE float *weights_of_chunk(chunk_at at) { return scores_of_half(at, 0); }

/* Of elements in parts, behind both places. */
INLINE float *second_parts_of_weights(chunk_at at) { return at.of->scores + (4 + at.n % 2) * HALF_SCORES; }

/* Rows m to m + 16 of a chunk's keys, and of them the n-th slice. Of elements in parts slices come in twos, of which
 * columns are the same: second parts of all queries, then first ones, each by keys' second parts and by first ones. */
INLINE chunk_slice scores_slice(chunk_at at, const int parts, int64_t m, int64_t n) {
  const tile_rows *key = &at.of->key;
  const int64_t depth = at.of->depth, slice = n / parts * SLICE, of_first = parts == 2 && slice >= depth;
  const int64_t key_part = parts == 2 && n % 2 == 0, d = of_first ? slice - depth : slice;
  return (chunk_slice){(const uint16_t *)key->x + (at.c * CHUNK + m) * key->stride + key_part * depth + d,
                       key->stride * (int64_t)sizeof(uint16_t),
                       at.of->queries + (d + (parts == 2 && !of_first ? depth : 0)) / 2 * CHUNK_ROWS};
}

INLINE chunk_slice scores_begin(chunk_at at, const int parts, int half) {
  return scores_slice(at, parts, half * HALF, 0);
}

/* Features e to e + 16 of a chunk's values, and of elements in parts the n-th of three products: second parts by first parts
 * of weights, first parts by these, and by second parts. That of two second parts is 2^-18 of the whole, where weights of
 * float16 are rounded by 2^-11. */
INLINE chunk_slice values_slice(chunk_at at, const int parts, int64_t e, int n) {
  const int64_t width = at.of->width, value_part = parts == 2 && n == 0, weight_part = n == 2;
  return (chunk_slice){(const uint16_t *)at.of->values + ((at.c * parts + value_part) * width + e) * CHUNK,
                       CHUNK * sizeof(uint16_t),
                       weight_part ? second_parts_of_weights(at) : weights_of_chunk(at)};
}

INLINE chunk_slice values_begin(chunk_at at, const int parts) { return values_slice(at, parts, 0, 0); }

/* scores[j, r] = sum_d key[j, d] query[d, r] of half a chunk whose first slice is loaded, in parts; `then` is in the end. */
INLINE void multiply_scores_in_parts(amx_unit *unit, chunk_at chunk, const int half, chunk_slice then,
                                     bool columns, chunk_weights *meanwhile) {
  const int64_t slices = 4 * chunk.of->depth / SLICE;
  const int from = half * HALF;
  float *sums = scores_of_half(chunk, half);
#pragma GCC unroll 2
  for (int m = 0; m < HALF; m += AMX_ROWS) {
    const bool back = m > 0;
    amx_tilezero(unit, 0);
    amx_tilezero(unit, 1);
    for (int64_t i = 0; i < slices - 1; i++) {
      const int64_t n = back ? slices - 2 - i : i + 1;
      multiply_slice(unit, scores_slice(chunk, 2, from + m, n), (n % 2 != 0) == back, false, meanwhile);
      weigh_more(false, meanwhile);
    }
    if (!back)
      multiply_slice(unit, scores_slice(chunk, 2, from + AMX_ROWS, slices - 1), false, false, meanwhile);
    else
      multiply_slice(unit, then, columns, false, meanwhile);
    store_sums(unit, sums + m * CHUNK_ROWS, false, meanwhile);
  }
}

/* output[e, r] = output[e, r] + sum_j value[j, e] weight[j, r] the same way. */
INLINE void add_values_in_parts(amx_unit *unit, chunk_at chunk, chunk_slice then, chunk_weights *meanwhile) {
  const int64_t width = chunk.of->width;
  float *sums = chunk.of->output;
  for (int64_t e = 0; e < width; e += AMX_ROWS) {
    const bool back = e / AMX_ROWS % 2 != 0, last = e + AMX_ROWS == width;
    amx_tileloadd(unit, 0, sums, SCORES_ROW);
    amx_tileloadd(unit, 1, sums + AMX_COLUMNS, SCORES_ROW);
    multiply_slice(unit, values_slice(chunk, 2, e, 1), back, false, meanwhile);
    weigh_more(false, meanwhile);
    multiply_slice(unit, values_slice(chunk, 2, e, back ? 0 : 2), !back, false, meanwhile);
    weigh_more(false, meanwhile);
    multiply_slice(unit, last ? then : values_slice(chunk, 2, e + AMX_ROWS, back ? 0 : 2), last, false,
                   meanwhile);
    store_sums(unit, sums, false, meanwhile);
    sums += AMX_ROWS * CHUNK_ROWS;
  }
}

/* The same of elements that are one bfloat16. */
INLINE void multiply_scores(amx_unit *unit, chunk_at chunk, const int half, chunk_slice then, bool columns,
                            const int parts, const bool often, chunk_weights *meanwhile) {
  if (parts == 2) {
    multiply_scores_in_parts(unit, chunk, half, then, columns, meanwhile);
    return;
  }
  const int64_t depth = chunk.of->depth, stride = chunk.of->key.stride;
  chunk_slice at = scores_begin(chunk, 1, half);
  float *sums = scores_of_half(chunk, half);
#pragma GCC unroll 2
  for (int m = 0; m < HALF; m += AMX_ROWS) {
    const int towards = m == 0 ? 1 : -1;
    amx_tilezero(unit, 0);
    amx_tilezero(unit, 1);
    for (int64_t d = SLICE; d < depth; d += SLICE) {
      at.elements += towards * SLICE;
      at.columns += towards * SLICE_COLUMNS;
      multiply_slice(unit, at, true, often, meanwhile);
      weigh_more(often, meanwhile);
    }
    at.elements += AMX_ROWS * stride;
    if (m == 0)
      multiply_slice(unit, at, false, often, meanwhile);
    else
      multiply_slice(unit, then, columns, often, meanwhile);
    store_sums(unit, sums + m * CHUNK_ROWS, often, meanwhile);
  }
}

INLINE void add_values(amx_unit *unit, chunk_at chunk, chunk_slice then, const int parts, const bool often,
                       chunk_weights *meanwhile) {
  if (parts == 2) {
    add_values_in_parts(unit, chunk, then, meanwhile);
    return;
  }
  chunk_slice at = values_begin(chunk, 1);
  float *sums = chunk.of->output;
  for (int64_t left = chunk.of->width - AMX_ROWS; left > 0; left -= AMX_ROWS) {
    amx_tileloadd(unit, 0, sums, SCORES_ROW);
    amx_tileloadd(unit, 1, sums + AMX_COLUMNS, SCORES_ROW);
    at.elements += AMX_ROWS * CHUNK;
    multiply_slice(unit, at, false, often, meanwhile);
    store_sums(unit, sums, often, meanwhile);
    sums += AMX_ROWS * CHUNK_ROWS;
  }
  amx_tileloadd(unit, 0, sums, SCORES_ROW);
  amx_tileloadd(unit, 1, sums + AMX_COLUMNS, SCORES_ROW);
  multiply_slice(unit, then, true, often, meanwhile);
  store_sums(unit, sums, often, meanwhile);
}

/* Rows that the next key tile begins with, some with each chunk. */
static void fetch_ahead(chunk_at at) {
  const tile_ahead *ahead = &at.of->ahead;
  const int64_t chunks = at.of->keys / CHUNK, end = ahead->rows * (at.c + 1) / chunks;
  for (int64_t n = ahead->rows * at.c / chunks; n < end; n++)
    for (int i = 0; i < 2; i++)
      for (int64_t b = 0; b < ahead->of[i].width; b += AMX_ROW_BYTES)
        __builtin_prefetch((const char *)ahead->of[i].x + n * ahead->of[i].stride + b, 0, 2);
}

/* Whether a row sees less than all of the chunk: most chunks have none. */
INLINE bool is_partly_hidden(chunk_at at) {
  const tile_passage *of = at.of;
  const vec begin = broadcast(&(float){(float)(at.c * CHUNK)}),
            end = broadcast(&(float){(float)((at.c + 1) * CHUNK)});
  bool hidden = false;
  for (int64_t r = 0; of->first && r < CHUNK_ROWS; r += LANES)
    hidden = hidden || any_less(begin, load(of->first + r)) || any_less(load(of->end + r), end);
  return hidden;
}

static void hide_in_chunk(chunk_at at) {
  for (int half = 0; half < 2; half++) {
    const float before = (float)(at.c * CHUNK + half * HALF);
    float first[CHUNK_ROWS], end[CHUNK_ROWS];
    for (int r = 0; r < CHUNK_ROWS; r++) first[r] = at.of->first[r] - before, end[r] = at.of->end[r] - before;
    hide(CHUNK_ROWS, HALF, first, end, -INFINITY, scores_of_half(at, half));
  }
}

static void leave_out(chunk_at at, uint64_t keys) {
  const vec none = broadcast(&(float){-INFINITY});
  for (; keys; keys &= keys - 1) {
    const int key = __builtin_ctzll(keys);
    for (int v = 0; v < CHUNK_VECTORS; v++)
      store(scores_of_half(at, key / HALF) + key % HALF * CHUNK_ROWS + v * LANES, none);
  }
}

static void change_scores(chunk_at at) {
  float *const scores[2] = {scores_of_half(at, 0), scores_of_half(at, 1)};
  at.of->change(at.of, at.c * CHUNK, scores);
}

/* What comes between scores and their softmax; those of what is not seen become -inf. */
INLINE void change_and_hide(chunk_at at) {
  if (at.of->change) change_scores(at);
  if (is_partly_hidden(at)) hide_in_chunk(at);
  if (at.of->left_out && at.of->left_out[at.c]) leave_out(at, at.of->left_out[at.c]);
}

INLINE void begin_weights(chunk_at at, chunk_weights *weights) {
  weights->scores = scores_of_half(at, 0);
  weights->weights = weights_of_chunk(at);
  weights->second_half = scores_of_half(at, 1);
  weights->second_parts = second_parts_of_weights(at);
  weights->left = CHUNK;
  weights->factor = broadcast(&at.of->factor);
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    weights->shift[v] = zero_where_minus_infinity(load(at.of->state.max + v * LANES));
    weights->total[v] = zero();
  }
}

/* Rows whose total is too large take the largest score of the chunk for their maximum, and what they have so far is rescaled. A
 * row's bits follow from its own total. */
static void raise_maximum_where_large(chunk_at at, const vec total[CHUNK_VECTORS]) {
  const tile_passage *of = at.of;
  vec largest[MAX_VECTORS];
  find_largest_pairs(CHUNK_VECTORS, CHUNK, place_of_chunk(at), largest);
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    float *max = of->state.max + v * LANES, *sum = of->state.sum + v * LANES;
    const vec old = load(max), found = maximum(multiply(largest[v], broadcast(&of->factor)), old);
    const vec new = select_less(broadcast(&largest_total), total[v], found, old);
    if (!any_less(old, new)) continue;
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
INLINE void begin_rows(chunk_at at) {
  const vec least = broadcast(&(float){-FLT_MAX}), large = broadcast(&(float){INFINITY});
  vec total[CHUNK_VECTORS];
  bool any = false;
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    const vec max = load(at.of->state.max + v * LANES);
    any = any || any_less(max, least);
    total[v] = select_less(max, least, large, zero());
  }
  if (any) raise_maximum_where_large(at, total);
}

/* Rows of which a weight would be above 4, so that no total is too large. */
static bool have_grown(chunk_at at, vec total[CHUNK_VECTORS]) {
  const vec large = broadcast(&(float){INFINITY}), two = broadcast(&(float){2});
  vec largest[MAX_VECTORS];
  bool any = false;
  find_largest_pairs(CHUNK_VECTORS, CHUNK, place_of_chunk(at), largest);
  for (int v = 0; v < CHUNK_VECTORS; v++) {
    const vec most = add(load(at.of->state.max + v * LANES), two),
              found = multiply(largest[v], broadcast(&at.of->factor));
    any = any || any_less(most, found);
    total[v] = select_less(most, found, large, zero());
  }
  return any;
}

/* The weights stand where the scores were, which are multiplied again. */
static void weigh_again(amx_unit *unit, chunk_at at, chunk_slice then, const int parts,
                        vec total[CHUNK_VECTORS]) {
  chunk_weights weights = {.left = 0, .parts = parts};
  load_slice(unit, scores_begin(at, parts, 0));
  multiply_scores(unit, at, 0, scores_begin(at, parts, 1), true, parts, false, &weights);
  multiply_scores(unit, at, 1, then, true, parts, false, &weights);
  change_and_hide(at);
  raise_maximum_where_large(at, total);
  weights.numbers = numbers_of_weights();
  begin_weights(at, &weights);
  weigh_rest(&weights);
  for (int v = 0; v < CHUNK_VECTORS; v++) total[v] = weights.total[v];
}

/* Where scores grow by much from chunk to chunk, all rows that have grown; before outputs are rescaled the values of the chunk before
 * are added to them. Returns whether they were. */
static bool begin_grown_rows(amx_unit *unit, chunk_at at, chunk_at before, chunk_slice then, const int parts,
                             bool has_values) {
  chunk_weights none = {.left = 0};
  vec total[CHUNK_VECTORS];
  if (!have_grown(at, total)) return false;
  if (has_values) {
    load_slice(unit, values_begin(before, parts));
    add_values(unit, before, then, parts, false, &none);
  }
  raise_maximum_where_large(at, total);
  return has_values;
}

/* Tiles have something to do from the first chunk of the first passage to the last of the last: while the weights of a
 * chunk are made, half of the scores of the one behind it are multiplied, whose first slice is loaded, then the values of
 * the one before it, and the other half. */
INLINE void attend_chunks(const tile_passage *of, int64_t count, const int parts, const bool often) {
  amx_unit unit = {0};
  const tile_passage *end = of + count;
  const vec most = broadcast(&largest_total);
  chunk_weights weights = {.left = 0, .parts = parts, .numbers = numbers_of_weights()};
  chunk_at before = {.of = end}, now = {of, 0, 0}, after = chunk_behind(now, end);
  configure(&unit, AMX_BLOCK, AMX_DEPTH / 2);
  load_slice(&unit, scores_begin(now, parts, 0));
  multiply_scores(&unit, now, 0, scores_begin(now, parts, 1), true, parts, often, &weights);
  multiply_scores(&unit, now, 1, scores_begin(after.of < end ? after : now, parts, 0), true, parts, often,
                  &weights);
  while (now.of < end) {
    const chunk_at further = chunk_behind(after, end);
    const chunk_slice next =
        scores_begin(further.of < end ? further : now, parts, 0); /* behind the last anything */
    const bool has_scores = after.of < end;
    const chunk_slice rest = has_scores ? scores_begin(after, parts, 1) : next;
    bool has_values = before.of < end;
    fetch_ahead(now);
    change_and_hide(now);
    if (!now.of->grows)
      begin_rows(now);
    else if (begin_grown_rows(&unit, now, before, scores_begin(has_scores ? after : now, parts, 0), parts,
                              has_values))
      has_values = false;
    begin_weights(now, &weights);
    if (has_scores)
      multiply_scores(&unit, after, 0, has_values ? values_begin(before, parts) : rest, true, parts, often,
                      &weights);
    else if (has_values)
      load_slice(&unit, values_begin(before, parts));
    if (has_values) add_values(&unit, before, rest, parts, often, &weights);
    if (has_scores) multiply_scores(&unit, after, 1, next, further.of != after.of, parts, often, &weights);
    weigh_rest(&weights);
    vec total[CHUNK_VECTORS] = {weights.total[0], weights.total[1]};
    if (any_less(most, total[0]) || any_less(most, total[1])) weigh_again(&unit, now, next, parts, total);
    for (int v = 0; v < CHUNK_VECTORS; v++) {
      float *sum = now.of->state.sum + v * LANES;
      store(sum, add(load(sum), total[v]));
    }
    before = now;
    now = after;
    after = further;
  }
  load_slice(&unit, values_begin(before, parts));
  add_values(&unit, before, values_begin(before, parts), parts, often, &weights);
  amx_tilerelease(&unit);
}

static void attend_tiles(int64_t count, const tile_passage *of) {
  const unsigned mode = flush_denormals();
  if (of->depth + of->width < 4 * CHUNK)
    attend_chunks(of, count, 1, true);
  else
    attend_chunks(of, count, 1, false);
  restore_denormals(mode);
}

static void attend_parts(int64_t count, const tile_passage *of) {
  const unsigned mode = flush_denormals();
  attend_chunks(of, count, 2, false);
  restore_denormals(mode);
}

#define AMX_TABLE(set)                                                                                       \
  TILE_TABLE(set, ATTN_BFLOAT16, bfloat16, pairs, tiles, 2, NULL, copy_features, true, pack_pairs)

/* float16 in parts: other products are of floats, elsewhere. */
#define scores_parts NULL
#define accumulate_parts NULL
#define WITH_LARGEST_parts(kernel) NULL
#define ATTEND_parts attend_parts
#define TILED_SCORES_parts NULL
#define TILED_ACCUMULATE_parts NULL
#define PARTS_parts PARTS
#define AMX_PARTS_TABLE(set)                                                                                 \
  TILE_TABLE(set, ATTN_FLOAT16, float16, pairs, parts, 1, copy_keys_in_parts, copy_values_in_parts, true,    \
             pack_parts)
