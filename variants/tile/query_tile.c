/* The steps of the online softmax on one tile of query rows. Arithmetic over whole tiles is in the tile
 * kernels; here is what depends on the problem: which rows, what is hidden, where results go. */
#include "query_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const float log2e = 1.44269504f;
static const double ln2 = 0.69314718055994531;

size_t query_tile_queries_floats(const attn_problem *problem, int64_t rows) {
  return (size_t)(rows * problem->head_dim);
}

size_t query_tile_state_floats(const attn_problem *problem, int64_t rows) {
  return (size_t)(rows * (problem->value_dim + 2));
}

size_t query_tile_scratch_floats(const attn_problem *problem, int64_t rows) {
  return (size_t)(rows * (TILE_KEYS + 1) + TILE_KEYS * problem->value_dim);
}

static int64_t row_position(const query_tile *tile, int64_t r) { return (tile->first_row + r) / tile->heads; }

static int64_t row_head(const query_tile *tile, int64_t r) {
  return tile->first_head + (tile->first_row + r) % tile->heads;
}

/* Element offset of row r in a tensor with these strides. */
static int64_t row_offset(const query_tile *tile, const attn_strides *strides, int64_t r) {
  return tile->batch * strides->batch + row_head(tile, r) * strides->head +
         row_position(tile, r) * strides->position;
}

void query_tile_place(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const int64_t kv_head = tile->first_head / (problem->query_heads / problem->kv_heads);
  tile->rows = (tile->count + tile->kernels->lanes - 1) / tile->kernels->lanes * tile->kernels->lanes;
  tile->key =
      (const float *)tile->tensors->key + tile->batch * problem->key.batch + kv_head * problem->key.head;
  tile->value = (const float *)tile->tensors->value + tile->batch * problem->value.batch +
                kv_head * problem->value.head;
  tile->keys = (attn_range){0, 0};
  tile->shared = (attn_range){0, problem->key_length};
  for (int64_t r = 0; r < tile->count; r++) {
    const attn_range range = attn_visible_keys(problem, tile->batch, row_position(tile, r));
    tile->visible[r] = range;
    if (range.first > tile->shared.first) tile->shared.first = range.first;
    if (range.end < tile->shared.end) tile->shared.end = range.end;
    if (range.first == range.end) continue;
    if (tile->keys.first == tile->keys.end) tile->keys = range;
    if (range.first < tile->keys.first) tile->keys.first = range.first;
    if (range.end > tile->keys.end) tile->keys.end = range.end;
  }
}

void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch) {
  tile->queries = queries;
  tile->output = state;
  tile->max = tile->output + tile->problem->value_dim * tile->rows;
  tile->sum = tile->max + tile->rows;
  tile->scores = scratch;
  tile->rescale = tile->scores + TILE_KEYS * tile->rows;
  tile->finite = tile->rescale + tile->rows;
}

void query_tile_begin(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const float *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++)
    row[r] = (const float *)tile->tensors->query + row_offset(tile, &problem->query, r);
  const double unit = problem->softcap > 0 ? 1 / problem->softcap : 1 / ln2;
  tile->kernels->pack(tile->rows, tile->count, problem->head_dim, row, (float)(problem->scale * unit),
                      tile->queries);
  memset(tile->output, 0, (size_t)(problem->value_dim * tile->rows) * sizeof(float));
  for (int64_t r = 0; r < tile->rows; r++) {
    tile->max[r] = -INFINITY;
    tile->sum[r] = 0;
  }
}

void query_tile_scores(query_tile *tile, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const int64_t rows = tile->rows;
  tile->kernels->scores(rows, end - first, problem->head_dim, tile->queries,
                        tile->key + first * problem->key.position, problem->key.position, tile->scores);
  if (problem->softcap > 0)
    tile->kernels->softcap(rows * (end - first), (float)(problem->softcap / ln2), tile->scores);
  if (problem->has_bias)
    for (int64_t r = 0; r < tile->count; r++) {
      const float *bias = (const float *)tile->tensors->bias + row_offset(tile, &problem->bias, r);
      for (int64_t j = first; j < end; j++) tile->scores[(j - first) * rows + r] += log2e * bias[j];
    }
}

static const uint8_t *mask_row(const query_tile *tile, int64_t r) {
  return tile->tensors->mask + row_offset(tile, &tile->problem->mask, r);
}

static int32_t clamp_to_tile(int64_t j) { return (int32_t)(j < 0 ? 0 : j > TILE_KEYS ? TILE_KEYS : j); }

bool query_tile_hide(query_tile *tile, int64_t first, int64_t end) {
  bool hidden = false;
  if (first < tile->shared.first || end > tile->shared.end) {
    int32_t from[TILE_MAX_ROWS] = {0}, to[TILE_MAX_ROWS] = {0};
    for (int64_t r = 0; r < tile->count; r++) {
      from[r] = clamp_to_tile(tile->visible[r].first - first);
      to[r] = clamp_to_tile(tile->visible[r].end - first);
    }
    tile->kernels->hide(tile->rows, end - first, from, to, tile->scores);
    hidden = true;
  }
  if (tile->problem->has_mask) {
    for (int64_t r = 0; r < tile->count; r++) {
      const uint8_t *mask = mask_row(tile, r);
      for (int64_t j = first; j < end; j++)
        if (!mask[j]) tile->scores[(j - first) * tile->rows + r] = -INFINITY;
    }
    hidden = true;
  }
  return hidden;
}

void query_tile_weights(query_tile *tile, int64_t first, int64_t end) {
  tile->kernels->softmax(tile->rows, end - first, tile->scores, tile->max, tile->sum, tile->rescale);
}

bool all_finite(const float *value, int64_t stride, int64_t keys, int64_t width) {
  int bad = 0;
  for (int64_t j = 0; j < keys; j++)
    for (int64_t e = 0; e < width; e++) bad |= !(fabsf(value[j * stride + e]) <= FLT_MAX);
  return !bad;
}

void copy_finite(const float *value, int64_t stride, int64_t keys, int64_t width, float *finite) {
  for (int64_t j = 0; j < keys; j++)
    for (int64_t e = 0; e < width; e++)
      finite[j * width + e] = fabsf(value[j * stride + e]) <= FLT_MAX ? value[j * stride + e] : 0;
}

/* Adds what copy_finite left out, to the rows that see it. */
static void accumulate_nonfinite(query_tile *tile, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  for (int64_t r = 0; r < tile->count; r++) {
    const uint8_t *mask = problem->has_mask ? mask_row(tile, r) : NULL;
    for (int64_t j = first; j < end; j++) {
      if (j < tile->visible[r].first || j >= tile->visible[r].end || (mask && !mask[j])) continue;
      const float weight = tile->scores[(j - first) * tile->rows + r];
      const float *value = tile->value + j * problem->value.position;
      for (int64_t e = 0; e < problem->value_dim; e++)
        if (!(fabsf(value[e]) <= FLT_MAX)) tile->output[e * tile->rows + r] += weight * value[e];
    }
  }
}

void query_tile_accumulate(query_tile *tile, int64_t first, int64_t end, bool hidden) {
  const int64_t width = tile->problem->value_dim;
  int64_t stride = tile->problem->value.position;
  const float *value = tile->value + first * stride;
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool apart = hidden && !all_finite(value, stride, end - first, width);
  if (apart) {
    copy_finite(value, stride, end - first, width, tile->finite);
    value = tile->finite;
    stride = width;
  }
  tile->kernels->accumulate(tile->rows, end - first, width, tile->scores, tile->rows, value, stride,
                            tile->rescale, tile->output);
  if (apart) accumulate_nonfinite(tile, first, end);
}

void query_tile_merge(query_tile *tile, const float *other_state) {
  const int64_t rows = tile->rows, width = tile->problem->value_dim;
  const float *other_output = other_state, *other_max = other_output + width * rows;
  const float *other_sum = other_max + rows;
  for (int64_t r = 0; r < rows; r++) {
    const float max = fmaxf(tile->max[r], other_max[r]);
    if (max == -INFINITY) continue;
    const float ours = exp2f(tile->max[r] - max), theirs = exp2f(other_max[r] - max);
    tile->max[r] = max;
    tile->sum[r] = tile->sum[r] * ours + other_sum[r] * theirs;
    for (int64_t e = 0; e < width; e++)
      tile->output[e * rows + r] = tile->output[e * rows + r] * ours + other_output[e * rows + r] * theirs;
  }
}

void query_tile_finish(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  float factor[TILE_MAX_ROWS];
  float *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++) {
    factor[r] = 1 / tile->sum[r];
    row[r] = (float *)tile->tensors->output + row_offset(tile, &problem->output, r);
    if (problem->wants_lse)
      tile->tensors->lse[row_offset(tile, &problem->lse, r)] =
          (float)((double)tile->max[r] * ln2 + log((double)tile->sum[r]));
  }
  tile->kernels->unpack(tile->rows, tile->count, problem->value_dim, tile->output, factor, row);
  for (int64_t r = 0; r < tile->count; r++)
    if (tile->sum[r] == 0) memset(row[r], 0, (size_t)problem->value_dim * sizeof(float));
}
