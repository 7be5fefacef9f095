/* A tile of few rows, as decoding has them: at most TILE_FEW_ROWS, stored one after the other, the features of each
 * across the lanes (few_rows.h). Few rows leave room in the caches for more keys in a tile, and long runs are what
 * memory reads fastest. A row's result, to the last bit, does not depend on how many rows are beside it. */
#include <math.h>

#include "query_tile.h"

static query_tile_layout layout(const attn_problem *problem, const tile_kernels *kernels, int64_t count) {
  const int64_t width = query_tile_pitch(kernels, problem->value_dim);
  return (query_tile_layout){.rows = count,
                             .depth = query_tile_pitch(kernels, problem->head_dim),
                             .width = width,
                             .score_key = 1,
                             .score_row = TILE_FEW_KEYS,
                             .output_feature = 1,
                             .output_row = width,
                             .spread = 0};
}

static void pack(query_tile *tile, const float *const *row, float factor) {
  const int64_t pitch = tile->layout.depth;
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t d = 0; d < pitch; d++)
      tile->queries[r * pitch + d] = d < tile->problem->head_dim ? row[r][d] * factor : 0;
}

static void scores(query_tile *tile, const float *key, const float *ahead, int64_t keys) {
  const attn_problem *problem = tile->problem;
  tile->kernels->few_scores(tile->count, keys, problem->head_dim, tile->queries, tile->layout.depth, key,
                            problem->key.position, ahead, problem->value.position, tile->scores,
                            TILE_FEW_KEYS);
}

static void softcap(query_tile *tile, int64_t keys, float cap) {
  for (int64_t r = 0; r < tile->count; r++)
    tile->kernels->softcap(query_tile_pitch(tile->kernels, keys), cap, tile->scores + r * TILE_FEW_KEYS);
}

static void hide(query_tile *tile, int64_t keys, const float *first, const float *end) {
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t j = 0; j < keys; j++)
      if ((float)j < first[r] || (float)j >= end[r]) tile->scores[r * TILE_FEW_KEYS + j] = -INFINITY;
}

static void weights(query_tile *tile, int64_t keys) {
  const int64_t padded = query_tile_pitch(tile->kernels, keys);
  for (int64_t r = 0; r < tile->count; r++) {
    float *score = tile->scores + r * TILE_FEW_KEYS, sum;
    const float old_max = tile->max[r];
    for (int64_t j = keys; j < padded; j++) score[j] = -INFINITY;
    tile->kernels->softmax_row(padded, score, &tile->max[r], &sum);
    tile->rescale[r] = old_max == -INFINITY ? 0 : exp2f(old_max - tile->max[r]);
    tile->sum[r] = tile->sum[r] * tile->rescale[r] + sum;
  }
}

static void accumulate(query_tile *tile, tile_values values, const float *ahead, int64_t keys) {
  const attn_problem *problem = tile->problem;
  tile->kernels->few_accumulate(tile->count, keys, problem->value_dim, tile->scores, TILE_FEW_KEYS,
                                values.row, values.stride, tile->rescale, ahead, problem->key.position,
                                tile->output, tile->layout.width);
}

static void merge(query_tile *tile, const float *output, const float *ours, const float *theirs) {
  const int64_t pitch = tile->layout.width;
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t e = 0; e < pitch; e++)
      tile->output[r * pitch + e] = tile->output[r * pitch + e] * ours[r] + output[r * pitch + e] * theirs[r];
}

static void unpack(query_tile *tile, const float *factor, float *const *row) {
  tile->kernels->scale_rows(tile->count, tile->problem->value_dim, tile->output, tile->layout.width, factor,
                            row);
}

const query_tile_steps few_rows_tile = {
    .keys = TILE_FEW_KEYS,
    .rows = TILE_FEW_ROWS,
    .layout = layout,
    .pack = pack,
    .scores = scores,
    .softcap = softcap,
    .hide = hide,
    .weights = weights,
    .accumulate = accumulate,
    .merge = merge,
    .unpack = unpack,
};
