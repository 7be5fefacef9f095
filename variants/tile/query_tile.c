/* What a tile of query rows does whichever way it lies in memory, and what depends on the problem: which rows, what is
 * hidden, where results go. */
#include "query_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const float log2e = 1.44269504f;
static const double ln2 = 0.69314718055994531;

enum { LINE = 16 }; /* floats of a cache line */

static int64_t whole_lines(int64_t floats) { return (floats + LINE - 1) / LINE * LINE; }

query_tile_sizes query_tile_measure(const attn_problem *problem, const tile_kernels *kernels,
                                    const query_tile_steps *steps, int64_t count) {
  const query_tile_layout layout = steps->layout(problem, kernels, count);
  const int64_t scores = layout.rows * (steps->keys + 1), values = steps->keys * problem->value_dim;
  return (query_tile_sizes){
      .queries = (size_t)whole_lines(layout.rows * layout.depth),
      .state = (size_t)whole_lines(layout.rows * (layout.width + 2)),
      .scratch = (size_t)(whole_lines(scores + values) + steps->keys * layout.spread),
  };
}

void query_tile_use_state(query_tile *tile, float *state) {
  tile->output = state;
  tile->max = tile->output + tile->layout.rows * tile->layout.width;
  tile->sum = tile->max + tile->layout.rows;
}

void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch) {
  tile->layout = tile->steps->layout(tile->problem, tile->kernels, tile->count);
  const int64_t keys = tile->steps->keys, rows = tile->layout.rows;
  tile->queries = queries;
  query_tile_use_state(tile, state);
  tile->scores = scratch;
  tile->rescale = scratch + rows * keys;
  tile->finite = tile->rescale + rows;
  tile->spread_values = scratch + whole_lines(rows * (keys + 1) + keys * tile->problem->value_dim);
}

void query_tile_place(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const int64_t kv_head = tile->first_head / (problem->query_heads / problem->kv_heads);
  tile->key =
      (const float *)tile->tensors->key + tile->batch * problem->key.batch + kv_head * problem->key.head;
  tile->value = (const float *)tile->tensors->value + tile->batch * problem->value.batch +
                kv_head * problem->value.head;
  int64_t first = problem->key_length, end = 0, shared_first = 0, shared_end = problem->key_length;
  /* Counted up: the divisions of each row would take 3% of the time of causal linear attention. */
  int64_t position = tile->first_row / tile->heads, head = tile->first_row % tile->heads;
  for (int64_t r = 0; r < tile->count; r++) {
    const attn_range range = attn_visible_keys(problem, tile->batch, position);
    tile->row[r] = (query_tile_row){position, tile->first_head + head, range};
    if (++head == tile->heads) head = 0, position++;
    if (range.first > shared_first) shared_first = range.first;
    if (range.end < shared_end) shared_end = range.end;
    if (range.first < range.end && range.first < first) first = range.first;
    if (range.first < range.end && range.end > end) end = range.end;
  }
  tile->keys = first < end ? (attn_range){first, end} : (attn_range){0, 0};
  tile->shared = (attn_range){shared_first, shared_end};
}

void query_tile_pack(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const float *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++)
    row[r] = (const float *)tile->tensors->query + query_tile_offset(tile, &problem->query, r);
  const double unit = problem->softcap > 0 ? 1 / problem->softcap : 1 / ln2;
  tile->steps->pack(tile, row, (float)(problem->scale * unit));
}

void query_tile_clear(query_tile *tile) {
  memset(tile->output, 0, (size_t)(tile->max - tile->output) * sizeof(float));
  for (int64_t r = 0; r < tile->layout.rows; r++) {
    tile->max[r] = -INFINITY;
    tile->sum[r] = 0;
  }
}

void query_tile_scores(query_tile *tile, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const float *value = tile->value + first * problem->value.position; /* wanted next */
  tile->steps->scores(tile, tile->key + first * problem->key.position, value, end - first);
  if (problem->softcap > 0) tile->steps->softcap(tile, end - first, (float)(problem->softcap / ln2));
  if (problem->has_bias)
    for (int64_t r = 0; r < tile->count; r++) {
      const float *bias = (const float *)tile->tensors->bias + query_tile_offset(tile, &problem->bias, r);
      float *score = tile->scores + r * tile->layout.score_row;
      for (int64_t j = first; j < end; j++) score[(j - first) * tile->layout.score_key] += log2e * bias[j];
    }
}

static const uint8_t *mask_row(const query_tile *tile, int64_t r) {
  return tile->tensors->mask + query_tile_offset(tile, &tile->problem->mask, r);
}

static float clamp(int64_t j, int64_t most) { return (float)(j < 0 ? 0 : j > most ? most : j); }

bool query_tile_hide(query_tile *tile, int64_t first, int64_t end) {
  const query_tile_layout *layout = &tile->layout;
  bool hidden = false;
  if (first < tile->shared.first || end > tile->shared.end) {
    float from[TILE_MAX_ROWS] = {0}, to[TILE_MAX_ROWS] = {0};
    for (int64_t r = 0; r < tile->count; r++) {
      from[r] = clamp(tile->row[r].visible.first - first, end - first);
      to[r] = clamp(tile->row[r].visible.end - first, end - first);
    }
    tile->steps->hide(tile, end - first, from, to);
    hidden = true;
  }
  if (tile->problem->has_mask) {
    for (int64_t r = 0; r < tile->count; r++) {
      const uint8_t *mask = mask_row(tile, r);
      for (int64_t j = first; j < end; j++)
        if (!mask[j]) tile->scores[(j - first) * layout->score_key + r * layout->score_row] = -INFINITY;
    }
    hidden = true;
  }
  return hidden;
}

void query_tile_weights(query_tile *tile, int64_t first, int64_t end) {
  tile->steps->weights(tile, end - first);
}

void copy_finite(const float *value, int64_t stride, int64_t keys, int64_t width, float *finite) {
  for (int64_t j = 0; j < keys; j++)
    for (int64_t e = 0; e < width; e++)
      finite[j * width + e] = fabsf(value[j * stride + e]) <= FLT_MAX ? value[j * stride + e] : 0;
}

/* Adds what copy_finite left out, to the rows that see it. */
static void accumulate_nonfinite(query_tile *tile, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const query_tile_layout *layout = &tile->layout;
  for (int64_t r = 0; r < tile->count; r++) {
    const uint8_t *mask = problem->has_mask ? mask_row(tile, r) : NULL;
    for (int64_t j = first; j < end; j++) {
      if (j < tile->row[r].visible.first || j >= tile->row[r].visible.end || (mask && !mask[j])) continue;
      const float weight = tile->scores[(j - first) * layout->score_key + r * layout->score_row];
      const float *value = tile->value + j * problem->value.position;
      for (int64_t e = 0; e < problem->value_dim; e++)
        if (!(fabsf(value[e]) <= FLT_MAX))
          tile->output[e * layout->output_feature + r * layout->output_row] += weight * value[e];
    }
  }
}

tile_values query_tile_values(const query_tile *tiles, int64_t count, int64_t first, int64_t end) {
  const int64_t width = tiles->problem->value_dim, stride = tiles->problem->value.position;
  const int64_t apart = tiles->layout.spread;
  const float *value = tiles->value + first * stride;
  /* It pays for more rows than one tile has, and from this distance on: where the register tile is narrow and a value
   * serves few rows at a time (AVX2), rows that share 8 of 64 sets, else those that share one. */
  const int64_t crowded = tiles->kernels->max_rows < TILE_MAX_ROWS ? 8 : 64;
  if (apart == 0 || count * tiles->layout.rows <= TILE_MAX_ROWS || stride % (crowded * LINE) != 0)
    return (tile_values){value, stride};
  for (int64_t j = 0; j < end - first; j++)
    memcpy(tiles->spread_values + j * apart, value + j * stride, (size_t)width * sizeof *value);
  return (tile_values){tiles->spread_values, apart};
}

void query_tile_accumulate(query_tile *tile, int64_t first, int64_t end, tile_values values, bool hidden) {
  const attn_problem *problem = tile->problem;
  const int64_t width = problem->value_dim;
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool apart = hidden && !tile->kernels->all_finite(end - first, width, values.row, values.stride);
  if (apart) {
    copy_finite(values.row, values.stride, end - first, width, tile->finite);
    values = (tile_values){tile->finite, width};
  }
  const float *key = tile->key + end * problem->key.position; /* wanted next */
  tile->steps->accumulate(tile, values, key, end - first);
  if (apart) accumulate_nonfinite(tile, first, end);
}

void query_tile_merge(query_tile *tile, const float *other_state) {
  const float *other_max = other_state + (tile->max - tile->output);
  const float *other_sum = other_max + tile->layout.rows;
  float ours[TILE_MAX_ROWS], theirs[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->layout.rows; r++) {
    const float max = fmaxf(tile->max[r], other_max[r]);
    /* -inf minus -inf must not be NaN where neither saw a key, nor be left out: the sum may be NaN. */
    const float shift = max == -INFINITY ? 0 : max;
    ours[r] = exp2f(tile->max[r] - shift);
    theirs[r] = exp2f(other_max[r] - shift);
    tile->max[r] = max;
    tile->sum[r] = tile->sum[r] * ours[r] + other_sum[r] * theirs[r];
  }
  tile->steps->merge(tile, other_state, ours, theirs);
}

void query_tile_finish(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  float factor[TILE_MAX_ROWS];
  float *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++) {
    factor[r] = 1 / tile->sum[r];
    row[r] = (float *)tile->tensors->output + query_tile_offset(tile, &problem->output, r);
    if (problem->wants_lse)
      tile->tensors->lse[query_tile_offset(tile, &problem->lse, r)] =
          (float)((double)tile->max[r] * ln2 + log((double)tile->sum[r]));
  }
  tile->steps->unpack(tile, factor, row);
  for (int64_t r = 0; r < tile->count; r++)
    if (tile->sum[r] == 0) memset(row[r], 0, (size_t)problem->value_dim * sizeof(float));
}
