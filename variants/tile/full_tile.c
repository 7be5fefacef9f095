/* A full tile: a row in each lane of a vector, so that max and sum of the rows are vertical operations. Queries,
 * scores and outputs are columns (tile.h). What a row's result is, to the last bit, depends neither on its lane nor
 * on the number of vectors: each lane is a chain of its own. */
#include <math.h>
#include <string.h>

#include "query_tile.h"

enum { LINE = 16 }; /* floats of a cache line */

/* Rows an odd number of cache lines apart use all sets of a cache alike. */
static int64_t spread(int64_t width) { return ((width + LINE - 1) / LINE | 1) * LINE; }

/* Of a run for as many heads as can be stacked. */
static int64_t run_floats(const attn_problem *problem, int64_t rows, int64_t keys) {
  const int64_t heads = problem->query_heads / problem->kv_heads;
  return attn_has_position_bias(problem) ? rows + heads * (keys + 1) : 0;
}

static int64_t most_attended_keys(int64_t parts) { return TILE_ATTENDED_KEYS / parts; }

/* The most keys of a key tile that attend takes: no more than the chunks that a tile in a narrow band can see. */
static int64_t attended_keys(const attn_problem *problem, int64_t parts) {
  const int64_t most = most_attended_keys(parts), ends = 2 * TILE_CHUNK;
  if (problem->left >= most || problem->right >= most) return most;
  const int64_t seen = problem->left + problem->right + TILE_CHUNK_ROWS + ends;
  return seen < most ? seen / TILE_CHUNK * TILE_CHUNK : most;
}

/* In a narrow band few tiles see the same keys. */
static int64_t copies_of(int64_t keys, int64_t parts) {
  return keys < most_attended_keys(parts) ? 1 : TILE_COPIES;
}

static query_tile_layout layout(const attn_problem *problem, const tile_kernels *kernels, int64_t count) {
  const bool attends = query_tile_attends(problem, kernels);
  const int64_t rows =
      attends ? TILE_CHUNK_ROWS : (count + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
  const bool rotated = attn_uses(problem, ATTN_ROPE),
             additive =
                 attn_uses(problem, ATTN_ADDITIVE); /* keys that are floats take twice the room of pairs */
  const int64_t keys = attends ? attended_keys(problem, kernels->parts) : rotated ? TILE_KEYS : kernels->keys;
  const bool transposed = kernels->transposes_values;
  const int64_t together = attends ? TILE_CHUNK : keys,
                values = attends ? together * kernels->parts / 2
                                 : together / kernels->step; /* operands copied together */
  const int64_t spread_value = attends ? values : spread(transposed ? values : problem->value_dim);
  return (query_tile_layout){
      .rows = rows,
      .query_rows = rows,
      .keys = keys,
      .score_keys = attends ? TILE_CHUNKS * TILE_CHUNK * (1 + kernels->parts) / 2 : keys,
      .chunk = attends ? TILE_CHUNK : 0,
      .copies = attends ? copies_of(keys, kernels->parts) : 1,
      .depth = rotated ? problem->head_dim : (problem->head_dim + kernels->step - 1) / kernels->step,
      .width = problem->value_dim,
      .score_key = rows,
      .score_row = 1,
      .output_feature = rows,
      .output_row = 1,
      .spread_key = additive                        ? 2 * spread(problem->head_dim)
                    : rotated || kernels->copy_keys ? spread(problem->head_dim)
                                                    : 0,
      .spread_value = spread_value,
      .key_powers = additive ? spread(problem->head_dim) : 0,
      .run = run_floats(problem, rows, keys),
      .copied_rows = transposed ? keys / together * problem->value_dim : values,
      .copied_key = transposed ? 1 : spread_value};
}

/* Packed queries times the matrix of a head, which is what accumulate does with weights and values: the sums are
 * packed as well. Heads that are stacked have matrices of their own: a product for each, of all rows, from which it
 * takes its own. */
static void turn(query_tile *tile) {
  const int64_t rows = tile->layout.rows, D = tile->problem->head_dim, heads = tile->heads;
  const tile_size size = {rows, D, D};
  float *zeros = tile->general + rows * D, *sums = heads > 1 ? zeros + rows : tile->queries;
  memset(zeros, 0, (size_t)rows * sizeof *zeros);
  for (int64_t h = 0; h < heads; h++) {
    const tile_rows matrix = {query_tile_general(tile, tile->first_head + h),
                              tile->problem->general.position};
    memset(sums, 0, (size_t)(rows * D) * sizeof *sums);
    tile->score_kernels->accumulate(size, (tile_matrix){tile->general, rows}, matrix, zeros, NULL,
                                    (tile_target){sums, rows});
    for (int64_t r = 0; heads > 1 && r < rows; r++)
      for (int64_t d = 0; (tile->first_row + r) % heads == h && d < D; d++)
        tile->queries[d * rows + r] = sums[d * rows + r];
  }
}

/* Where the columns of additive scores lie, one kind behind the other. */
static tile_additive additive_of(const query_tile *tile) {
  const int64_t rows = tile->layout.rows, column = rows * query_tile_fours(tile->layout.depth);
  return (tile_additive){.queries = tile->queries,
                         .powers = tile->queries + column,
                         .weights = tile->queries + 2 * column,
                         .sum = tile->queries + 3 * column,
                         .factor = tile->queries + 3 * column + rows,
                         .depth = tile->problem->head_dim,
                         .stride = tile->layout.spread_key,
                         .key_powers = tile->layout.key_powers};
}

/* The weights of a row times the factor, of which a power of two is left out so that none is larger than 1; this, or
 * 1 where they are no numbers. */
static float weigh_row(const query_tile *tile, int64_t r, float factor, float *weights, float *sum) {
  const int64_t rows = tile->layout.rows, D = tile->problem->head_dim;
  const float *given = query_tile_additive(tile, r);
  double total = 0;
  float largest = 0;
  int exponent = 0;
  for (int64_t d = 0; d < D; d++) {
    total += given[d] * factor;
    largest = fmaxf(largest, fabsf(given[d] * factor));
  }
  const bool finite = isfinite(total) && largest < 0x1p126f;
  if (finite) frexpf(largest, &exponent);
  for (int64_t d = 0; d < D; d++) weights[d * rows + r] = -2 * ldexpf(given[d] * factor, -exponent);
  sum[r] = finite ? (float)ldexp(total, -exponent) : NAN;
  return ldexpf(1, exponent);
}

static void pack_additive(query_tile *tile, const void *const *row, float factor) {
  const tile_additive of = additive_of(tile);
  const int64_t rows = tile->layout.rows, D = tile->problem->head_dim, all = query_tile_fours(D);
  float *queries = tile->queries, *powers = queries + rows * all, *scaled = powers + rows * all,
        *sum = scaled + rows * all, *factors = sum + rows;
  memset(queries, 0, (size_t)(rows * (3 * all + 2)) * sizeof *queries);
  tile->factor = tile->score_kernels->pack(rows, tile->count, D, row, 1, queries);
  tile->score_kernels->additive_powers(1, rows * D, of.queries, powers, 0);
  for (int64_t r = 0; r < tile->count; r++) factors[r] = weigh_row(tile, r, factor, scaled, sum);
}

static void pack(query_tile *tile, const void *const *row, float factor) {
  if (attn_uses(tile->problem, ATTN_ADDITIVE)) {
    pack_additive(tile, row, factor);
    return;
  }
  if (attn_uses(tile->problem, ATTN_GENERAL)) {
    tile->factor = tile->score_kernels->pack(tile->layout.rows, tile->count, tile->problem->head_dim, row,
                                             factor, tile->general);
    turn(tile);
    return;
  }
  tile->factor = tile->score_kernels->pack(tile->layout.rows, tile->count, tile->problem->head_dim, row,
                                           factor, tile->queries);
}

/* angles: those of the keys that come next are wanted when these are rotated; a half of them is fetched with either product.
 * A product of 24 rows has D / 4 steps a key: 32 bytes each make 8 D, which reach the last row of 4 Dv unless Dv is over 2 D. */
static tile_ahead bytes_ahead(const query_tile *tile, tile_rows rows, int64_t width, const float *angles,
                              const attn_layout *layout) {
  const attn_problem *problem = tile->problem;
  const int64_t bytes = tile->kernels->element_bytes, unit = sizeof *angles;
  tile_ahead ahead = {.rows = tile->kernels->step * TILE_KEYS,
                      .of = {{rows.x, rows.stride * bytes, width * bytes}},
                      .pace = 32};
  if (attn_uses(problem, ATTN_ROPE) && tile->after < problem->key_length) {
    ahead.of[1].x = angles + tile->after * layout->position;
    ahead.of[1].stride = layout->position * unit;
    ahead.of[1].width = problem->rope_features / 2 * unit;
  }
  return ahead;
}

/* The softmax multiplies scores by the factor at no cost, where nothing happens to them before and none is hidden by
 * -inf * 0. */
static bool softmax_scales(const query_tile *tile) {
  if (attn_has_position_bias(tile->problem)) return false;
  return tile->problem->softcap == 0 && !tile->problem->bias.type && tile->factor > 0;
}

static void scores(query_tile *tile, int64_t keys, tile_rows key, tile_rows ahead) {
  const int64_t rows = tile->layout.rows, most = tile->score_kernels->max_rows;
  if (attn_uses(tile->problem, ATTN_ADDITIVE)) {
    const tile_additive of = additive_of(tile);
    const tile_size size = {rows, keys, query_tile_fours(tile->problem->head_dim)};
    tile->knows_largest = false;
    tile->score_kernels->additive_scores(size, &of, key.x, (tile_target){tile->scores, rows});
    return;
  }
  const tile_ahead next = bytes_ahead(tile, ahead, tile->problem->value_dim, tile->problem->rope_cos_data,
                                      &tile->problem->rope_cos);
  tile->knows_largest =
      softmax_scales(tile) && tile->score_kernels == tile->kernels && tile->kernels->scores_and_largest;
  if (tile->knows_largest) {
    tile->kernels->scores_and_largest((tile_size){rows, keys, tile->problem->head_dim}, tile->queries, key,
                                      tile->leads ? &next : NULL, tile->scores, tile->state.rescale);
    return;
  }
  /* Vectors of floats may be narrower than those of pairs, where these are emulated. */
  for (int64_t r = 0; r < rows; r += most) {
    const tile_size size = {rows - r < most ? rows - r : most, keys, tile->problem->head_dim};
    tile->score_kernels->scores(size, (tile_matrix){tile->queries + r, rows}, key,
                                softmax_scales(tile) ? 1 : tile->factor, tile->leads && r == 0 ? &next : NULL,
                                (tile_target){tile->scores + r, rows});
  }
}

static void softcap(query_tile *tile, int64_t keys, float cap) {
  tile->kernels->softcap(tile->layout.rows * keys, 1, cap, tile->scores);
}

static void add_bias(query_tile *tile, int64_t first, int64_t keys) {
  tile->kernels->add_bias(tile->layout.rows, tile->count, first, first + keys, tile->bias, 1, tile->scores);
}

static void position(query_tile *tile, int64_t first, int64_t keys) {
  query_tile_fill_run(tile, first, first + keys);
  tile->kernels->add_run(tile->layout.rows, keys, query_tile_run(tile, 0), tile->heads, 1, tile->scores);
}

static void hide(query_tile *tile, int64_t keys, const float *first, const float *end) {
  tile->kernels->hide(tile->layout.rows, keys, first, end, -INFINITY, tile->scores);
}

static void hide_masked(query_tile *tile, int64_t first, int64_t end, const uint8_t *const *seen) {
  tile->kernels->hide_masked(tile->layout.rows, tile->count, first, end, seen, -INFINITY, tile->scores);
}

static float weights(query_tile *tile, int64_t keys) {
  float (*const softmax)(int64_t, int64_t, float *, float, tile_state) =
      tile->knows_largest ? tile->kernels->softmax_of_largest : tile->kernels->softmax;
  return softmax(tile->layout.rows, keys, tile->scores, softmax_scales(tile) ? tile->factor : 1, tile->state);
}

static void drop(query_tile *tile, int64_t keys, const uint8_t *const *keep) {
  tile->kernels->drop(tile->layout.rows, tile->count, keys, keep, tile->scores);
}

static void accumulate(query_tile *tile, int64_t keys, tile_rows value, tile_rows ahead) {
  const int64_t rows = tile->layout.rows;
  const tile_size size = {rows, keys, tile->problem->value_dim};
  const tile_ahead next = bytes_ahead(tile, ahead, tile->problem->head_dim, tile->problem->rope_sin_data,
                                      &tile->problem->rope_sin);
  tile->kernels->accumulate(size, (tile_matrix){tile->scores, rows}, value, tile->state.rescale,
                            tile->leads ? &next : NULL, (tile_target){tile->output, rows});
}

static void merge(query_tile *tile, const float *output, const float *ours, const float *theirs) {
  tile->kernels->join(tile->layout.rows, tile->problem->value_dim, ours, theirs, output, tile->output);
}

static void unpack(query_tile *tile, const float *factor, void *const *row) {
  tile->output_kernels->unpack(tile->layout.rows, tile->count, tile->problem->value_dim, tile->output, factor,
                               row);
}

const query_tile_steps full_tile = {
    .rows = TILE_MAX_ROWS,
    .attends = true,
    .layout = layout,
    .pack = pack,
    .scores = scores,
    .softcap = softcap,
    .bias = add_bias,
    .position = position,
    .hide = hide,
    .hide_masked = hide_masked,
    .weights = weights,
    .drop = drop,
    .accumulate = accumulate,
    .merge = merge,
    .unpack = unpack,
};
