/* A tile of few rows, as decoding has them, stored one after the other, the features of each across the lanes (few_rows.h); by
 * AMX some more rows, whose queries are columns (amx_few.h). Few rows leave room in the caches for more keys in a tile, and long
 * runs are what memory reads fastest. A row's result, to the last bit, does not depend on how many rows are beside it. */
#include <math.h>
#include <string.h>

#include "query_tile.h"

static query_tile_layout layout(const attn_problem *problem, const tile_kernels *kernels, int64_t count) {
  const int64_t width = query_tile_pitch(kernels, problem->value_dim);
  return (query_tile_layout){.rows = count,
                             .query_rows = count,
                             .keys = TILE_FEW_KEYS,
                             .score_keys = TILE_FEW_KEYS,
                             .depth = query_tile_pitch(kernels, problem->head_dim),
                             .width = width,
                             .score_key = 1,
                             .score_row = TILE_FEW_KEYS,
                             .output_feature = 1,
                             .output_row = width,
                             .spread_key =
                                 attn_uses(problem, ATTN_ROPE) ||
                                         (attn_uses(problem, ATTN_ADDITIVE) && kernels->type != ATTN_FLOAT32)
                                     ? query_tile_pitch(kernels, problem->head_dim)
                                     : 0,
                             .spread_value = 0,
                             .copies = 1};
}

/* Queries have room for columns of pairs, with as many rows as there are lanes. */
static query_tile_layout tiled_layout(const attn_problem *problem, const tile_kernels *kernels,
                                      int64_t count) {
  query_tile_layout tiled = layout(problem, kernels, count);
  if (tiled.query_rows < kernels->lanes / 2) tiled.query_rows = kernels->lanes / 2;
  tiled.depth = (problem->head_dim + TILE_TILED_DEPTH - 1) / TILE_TILED_DEPTH * TILE_TILED_DEPTH;
  return tiled;
}

/* A scaled query times the matrix of its head. */
static void turn(query_tile *tile, int64_t r, float *restrict query) {
  const int64_t D = tile->problem->head_dim;
  const float *matrix = query_tile_general(tile, tile->row[r].head);
  float *restrict before = tile->general;
  memcpy(before, query, (size_t)D * sizeof *query);
  memset(query, 0, (size_t)D * sizeof *query);
  for (int64_t d = 0; d < D; d++)
    for (int64_t e = 0; e < D; e++) query[e] += before[d] * matrix[d * tile->problem->general.position + e];
}

/* A query as it is, and behind all of them its weights, times the factor. */
static void pack_additive(query_tile *tile, const void *const *row, float factor) {
  const int64_t depth = tile->problem->head_dim, pitch = tile->layout.depth;
  memset(tile->queries, 0, (size_t)(2 * tile->count * pitch) * sizeof *tile->queries);
  for (int64_t r = 0; r < tile->count; r++) {
    float *weight = tile->queries + (tile->count + r) * pitch;
    tile->score_kernels->read(depth, row[r], tile->queries + r * pitch);
    for (int64_t d = 0; d < depth; d++) weight[d] = query_tile_additive(tile, r)[d] * factor;
  }
}

static void pack(query_tile *tile, const void *const *row, float factor) {
  if (attn_uses(tile->problem, ATTN_ADDITIVE)) {
    pack_additive(tile, row, factor);
    return;
  }
  const int64_t depth = tile->problem->head_dim, pitch = tile->layout.depth;
  for (int64_t r = 0; r < tile->count; r++) {
    float *query = tile->queries + r * pitch;
    tile->score_kernels->read(depth, row[r], query);
    for (int64_t d = 0; d < pitch; d++) query[d] = d < depth ? query[d] * factor : 0;
    if (attn_uses(tile->problem, ATTN_GENERAL)) turn(tile, r, query);
    tile->score_kernels->few_order(depth, query);
  }
}

/* Queries that are rotated are floats. */
static bool has_columns(const query_tile *tile) { return tile->score_kernels == tile->kernels; }

static void tiled_pack(query_tile *tile, const void *const *row, float factor) {
  const int64_t lanes = tile->kernels->lanes, depth = tile->layout.depth;
  if (!has_columns(tile)) {
    pack(tile, row, factor);
    return;
  }
  memset(tile->queries, 0, (size_t)(lanes * depth / 2) * sizeof *tile->queries);
  tile->factor = tile->kernels->pack(lanes, tile->count, tile->problem->head_dim, row, factor, tile->queries);
}

static void scores(query_tile *tile, int64_t keys, tile_rows key, tile_rows ahead) {
  const tile_size size = {tile->count, keys, tile->problem->head_dim};
  const tile_kernels *kernels = tile->score_kernels;
  if (attn_uses(tile->problem, ATTN_ADDITIVE)) {
    const tile_matrix query = {tile->queries, tile->layout.depth},
                      weight = {tile->queries + tile->count * tile->layout.depth, tile->layout.depth};
    kernels->few_additive(size, query, weight, key, (tile_target){tile->scores, TILE_FEW_KEYS});
    return;
  }
  ahead.stride = ahead.stride * tile->kernels->element_bytes / kernels->element_bytes;
  kernels->few_scores(size, (tile_matrix){tile->queries, tile->layout.depth}, key, ahead,
                      (tile_target){tile->scores, TILE_FEW_KEYS});
}

static void tiled_scores(query_tile *tile, int64_t keys, tile_rows key, tile_rows ahead) {
  const tile_kernels *kernels = tile->kernels;
  if (has_columns(tile))
    kernels->tiled_scores((tile_size){tile->count, keys, tile->problem->head_dim},
                          (tile_matrix){tile->queries, kernels->lanes}, key, tile->factor, ahead,
                          (tile_target){tile->scores, TILE_FEW_KEYS});
  else
    scores(tile, keys, key, ahead);
}

static void softcap(query_tile *tile, int64_t keys, float cap) {
  for (int64_t r = 0; r < tile->count; r++)
    tile->kernels->softcap(query_tile_pitch(tile->kernels, keys), 1, cap, tile->scores + r * TILE_FEW_KEYS);
}

static void add_bias(query_tile *tile, int64_t first, int64_t keys) {
  float added[TILE_FEW_KEYS];
  for (int64_t r = 0; r < tile->count; r++) {
    float *restrict score = tile->scores + r * TILE_FEW_KEYS;
    tile->kernels->read(keys, tile_element(tile->kernels, tile->bias[r], first), added);
    for (int64_t j = 0; j < keys; j++) score[j] += base2_bias(added[j]);
  }
}

static void position(query_tile *tile, int64_t first, int64_t keys) {
  float bias[TILE_FEW_KEYS];
  for (int64_t r = 0; r < tile->count; r++) {
    float *restrict score = tile->scores + r * TILE_FEW_KEYS;
    attn_position_biases(tile->problem, tile->row[r].head,
                         attn_distance(tile->problem, tile->batch, tile->row[r].position, first), keys, bias);
    for (int64_t j = 0; j < keys; j++) score[j] += log2e * bias[j];
  }
}

static void hide(query_tile *tile, int64_t keys, const float *first, const float *end) {
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t j = 0; j < keys; j++)
      if ((float)j < first[r] || (float)j >= end[r]) tile->scores[r * TILE_FEW_KEYS + j] = -INFINITY;
}

static void hide_masked(query_tile *tile, int64_t first, int64_t end, const uint8_t *const *seen) {
  for (int64_t r = 0; r < tile->count; r++) {
    float *restrict score = tile->scores + r * TILE_FEW_KEYS;
    const uint8_t *shown = seen[r] + first;
    for (int64_t j = 0; j < end - first; j++) score[j] = shown[j] ? score[j] : -INFINITY;
  }
}

static float weights(query_tile *tile, int64_t keys) {
  float all = 0;
  const int64_t padded = query_tile_pitch(tile->kernels, keys);
  const tile_state *state = &tile->state;
  const bool fetches = tile->count > 2; /* one or two rows are done before it pays */
  tile_lines ahead = tile_lines_of(tile_rows_from(tile->kernels, tile->key, tile->after), keys,
                                   tile->problem->head_dim, tile->kernels->element_bytes);
  for (int64_t r = 0; r < tile->count; r++) {
    float *score = tile->scores + r * TILE_FEW_KEYS, sum;
    const float old_max = state->max[r];
    for (int64_t j = keys; j < padded; j++) score[j] = -INFINITY;
    tile->kernels->softmax_row(padded, score, &state->max[r], &sum, fetches ? &ahead : NULL);
    state->rescale[r] = old_max == -INFINITY ? 0 : exp2f(old_max - state->max[r]);
    state->sum[r] = state->sum[r] * state->rescale[r] + sum;
    all += sum;
  }
  return all;
}

static void drop(query_tile *tile, int64_t keys, const uint8_t *const *keep) {
  for (int64_t r = 0; r < tile->count; r++) {
    float *restrict weight = tile->scores + r * TILE_FEW_KEYS;
    for (int64_t j = 0; j < keys; j++) weight[j] = keep[r][j] ? weight[j] : 0;
  }
}

static void accumulate(query_tile *tile, int64_t keys, tile_rows value, tile_rows ahead) {
  const tile_size size = {tile->count, keys, tile->problem->value_dim};
  tile->kernels->few_accumulate(size, (tile_matrix){tile->scores, TILE_FEW_KEYS}, value, tile->state.rescale,
                                ahead, (tile_target){tile->output, tile->layout.width});
}

static void tiled_accumulate(query_tile *tile, int64_t keys, tile_rows value, tile_rows ahead) {
  tile->kernels->tiled_accumulate((tile_size){tile->count, keys, tile->problem->value_dim},
                                  (tile_matrix){tile->scores, TILE_FEW_KEYS}, value, tile->state.rescale,
                                  ahead, (tile_target){tile->output, tile->layout.width});
}

static void merge(query_tile *tile, const float *output, const float *ours, const float *theirs) {
  const int64_t pitch = tile->layout.width;
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t e = 0; e < pitch; e++)
      tile->output[r * pitch + e] = tile->output[r * pitch + e] * ours[r] + output[r * pitch + e] * theirs[r];
}

static void unpack(query_tile *tile, const float *factor, void *const *row) {
  tile->output_kernels->scale_rows(tile->count, tile->problem->value_dim,
                                   (tile_matrix){tile->output, tile->layout.width}, factor, row);
}

#define OF_BOTH                                                                                              \
  .softcap = softcap, .bias = add_bias, .position = position, .hide = hide, .hide_masked = hide_masked,      \
  .weights = weights, .drop = drop, .merge = merge, .unpack = unpack

const query_tile_steps few_rows_tile = {.rows = TILE_FEW_ROWS,
                                        .layout = layout,
                                        .pack = pack,
                                        .scores = scores,
                                        .accumulate = accumulate,
                                        OF_BOTH};

const query_tile_steps tiled_rows_tile = {.rows = TILE_TILED_ROWS,
                                          .layout = tiled_layout,
                                          .pack = tiled_pack,
                                          .scores = tiled_scores,
                                          .accumulate = tiled_accumulate,
                                          OF_BOTH};
