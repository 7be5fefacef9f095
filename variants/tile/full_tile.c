/* A full tile: a row in each lane of a vector, so that max and sum of the rows are vertical operations. Queries,
 * scores and outputs are columns (tile.h). What a row's result is, to the last bit, depends neither on its lane nor
 * on the number of vectors: each lane is a chain of its own. */
#include <math.h>

#include "query_tile.h"

enum { LINE = 16 }; /* floats of a cache line */

/* Rows an odd number of cache lines apart use all sets of a cache alike. */
static int64_t spread(int64_t width) { return ((width + LINE - 1) / LINE | 1) * LINE; }

static query_tile_layout layout(const attn_problem *problem, const tile_kernels *kernels, int64_t count) {
  const int64_t rows = (count + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
  const int64_t values = kernels->keys / kernels->step; /* operands of a key tile */
  const bool transposed = kernels->transposes_values;
  const int64_t spread_value = spread(transposed ? values : problem->value_dim);
  return (query_tile_layout){.rows = rows,
                             .keys = kernels->keys,
                             .depth = (problem->head_dim + kernels->step - 1) / kernels->step,
                             .width = problem->value_dim,
                             .score_key = rows,
                             .score_row = 1,
                             .output_feature = rows,
                             .output_row = 1,
                             .spread_key = kernels->copy_keys ? spread(problem->head_dim) : 0,
                             .spread_value = spread_value,
                             .copied_rows = transposed ? problem->value_dim : values,
                             .copied_key = transposed ? 1 : spread_value};
}

static void pack(query_tile *tile, const void *const *row, float factor) {
  tile->factor = tile->kernels->pack(tile->layout.rows, tile->count, tile->problem->head_dim, row, factor,
                                     tile->queries);
}

static tile_ahead bytes_ahead(const query_tile *tile, tile_rows rows, int64_t width) {
  const int64_t bytes = tile->kernels->element_bytes;
  return (tile_ahead){.of = {{rows.x, rows.stride * bytes, width * bytes}}};
}

/* The softmax multiplies scores by the factor at no cost, where nothing happens to them before and none is hidden by
 * -inf * 0. */
static bool softmax_scales(const query_tile *tile) {
  return tile->problem->softcap == 0 && !tile->problem->bias.type && tile->factor > 0;
}

static void scores(query_tile *tile, int64_t keys, tile_rows key, tile_rows ahead) {
  const int64_t rows = tile->layout.rows;
  const tile_size size = {rows, keys, tile->problem->head_dim};
  const tile_ahead next = bytes_ahead(tile, ahead, tile->problem->value_dim);
  tile->kernels->scores(size, (tile_matrix){tile->queries, rows}, key,
                        softmax_scales(tile) ? 1 : tile->factor, tile->leads ? &next : NULL,
                        (tile_target){tile->scores, rows});
}

static void softcap(query_tile *tile, int64_t keys, float cap) {
  tile->kernels->softcap(tile->layout.rows * keys, cap, tile->scores);
}

static void hide(query_tile *tile, int64_t keys, const float *first, const float *end) {
  tile->kernels->hide(tile->layout.rows, keys, first, end, -INFINITY, tile->scores);
}

static void weights(query_tile *tile, int64_t keys) {
  tile->kernels->softmax(tile->layout.rows, keys, tile->scores, softmax_scales(tile) ? tile->factor : 1,
                         tile->state);
}

static void accumulate(query_tile *tile, int64_t keys, tile_rows value, tile_rows ahead) {
  const int64_t rows = tile->layout.rows;
  const tile_size size = {rows, keys, tile->problem->value_dim};
  const tile_ahead next = bytes_ahead(tile, ahead, tile->problem->head_dim);
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
