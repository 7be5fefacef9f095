/* The steps of the online softmax on one tile of query rows. Arithmetic over whole tiles is in the tile
 * kernels; here is what depends on the problem: which rows, what is hidden, where results go. */
#include "query_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const float log2e = 1.44269504f;
static const double ln2 = 0.69314718055994531;

static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* Features of a row, where rows lie one after the other: whole vectors. */
static int64_t row_pitch(const tile_kernels *kernels, int64_t features) {
  return round_up(features, kernels->lanes);
}

enum { LINE = 16 }; /* floats of a cache line */

/* Rows an odd number of cache lines apart use all sets of a cache alike. */
static int64_t spread(int64_t width) { return (round_up(width, LINE) / LINE | 1) * LINE; }

query_tile_sizes query_tile_measure(const attn_problem *problem, int64_t rows, bool few) {
  const tile_kernels *kernels = tile_select();
  const int64_t keys = query_tile_keys(few);
  const int64_t depth = few ? row_pitch(kernels, problem->head_dim) : problem->head_dim;
  const int64_t width = few ? row_pitch(kernels, problem->value_dim) : problem->value_dim;
  return (query_tile_sizes){
      .queries = (size_t)round_up(rows * depth, LINE),
      .state = (size_t)round_up(rows * (width + 2), LINE),
      .scratch = (size_t)round_up(rows * (keys + 1) + keys * problem->value_dim, LINE) +
                 (size_t)(few ? 0 : keys * spread(problem->value_dim)),
  };
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

void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch) {
  const int64_t width = tile->problem->value_dim, pitch = row_pitch(tile->kernels, width);
  tile->score_key = tile->few ? 1 : tile->rows;
  tile->score_row = tile->few ? TILE_FEW_KEYS : 1;
  tile->output_feature = tile->few ? 1 : tile->rows;
  tile->output_row = tile->few ? pitch : 1;
  tile->queries = queries;
  tile->output = state;
  tile->max = tile->output + tile->rows * (tile->few ? pitch : width);
  tile->sum = tile->max + tile->rows;
  tile->scores = scratch;
  tile->rescale = tile->scores + query_tile_keys(tile->few) * tile->rows;
  tile->finite = tile->rescale + tile->rows;
  tile->spread_values = scratch + round_up(tile->finite - scratch + query_tile_keys(tile->few) * width, LINE);
}

void query_tile_begin(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const float *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++)
    row[r] = (const float *)tile->tensors->query + query_tile_offset(tile, &problem->query, r);
  const double unit = problem->softcap > 0 ? 1 / problem->softcap : 1 / ln2;
  const float factor = (float)(problem->scale * unit);
  if (tile->few) {
    const int64_t pitch = row_pitch(tile->kernels, problem->head_dim);
    for (int64_t r = 0; r < tile->count; r++)
      for (int64_t d = 0; d < pitch; d++)
        tile->queries[r * pitch + d] = d < problem->head_dim ? row[r][d] * factor : 0;
  } else {
    tile->kernels->pack(tile->rows, tile->count, problem->head_dim, row, factor, tile->queries);
  }
  memset(tile->output, 0, (size_t)(tile->max - tile->output) * sizeof(float));
  for (int64_t r = 0; r < tile->rows; r++) {
    tile->max[r] = -INFINITY;
    tile->sum[r] = 0;
  }
}

void query_tile_scores(query_tile *tile, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const float *key = tile->key + first * problem->key.position;
  const float *value = tile->value + first * problem->value.position; /* wanted next */
  const tile_ahead next = {
      .row = {value}, .stride = {problem->value.position}, .width = {problem->value_dim}};
  if (tile->few)
    tile->kernels->few_scores(tile->count, end - first, problem->head_dim, tile->queries,
                              row_pitch(tile->kernels, problem->head_dim), key, problem->key.position, value,
                              problem->value.position, tile->scores, tile->score_row);
  else
    tile->kernels->scores(tile->rows, end - first, problem->head_dim, tile->queries, tile->rows, key,
                          problem->key.position, tile->leads ? &next : NULL, tile->scores, tile->rows);
  if (problem->softcap > 0) {
    const float cap = (float)(problem->softcap / ln2);
    const int64_t padded = round_up(end - first, tile->kernels->lanes);
    if (!tile->few) tile->kernels->softcap(tile->rows * (end - first), cap, tile->scores);
    for (int64_t r = 0; tile->few && r < tile->count; r++)
      tile->kernels->softcap(padded, cap, tile->scores + r * tile->score_row);
  }
  if (problem->has_bias)
    for (int64_t r = 0; r < tile->count; r++) {
      const float *bias = (const float *)tile->tensors->bias + query_tile_offset(tile, &problem->bias, r);
      float *score = tile->scores + r * tile->score_row;
      for (int64_t j = first; j < end; j++) score[(j - first) * tile->score_key] += log2e * bias[j];
    }
}

static const uint8_t *mask_row(const query_tile *tile, int64_t r) {
  return tile->tensors->mask + query_tile_offset(tile, &tile->problem->mask, r);
}

static float clamp(int64_t j, int64_t most) { return (float)(j < 0 ? 0 : j > most ? most : j); }

bool query_tile_hide(query_tile *tile, int64_t first, int64_t end) {
  bool hidden = false;
  if (first < tile->shared.first || end > tile->shared.end) {
    float from[TILE_MAX_ROWS] = {0}, to[TILE_MAX_ROWS] = {0};
    for (int64_t r = 0; r < tile->count; r++) {
      from[r] = clamp(tile->row[r].visible.first - first, end - first);
      to[r] = clamp(tile->row[r].visible.end - first, end - first);
    }
    if (tile->few)
      for (int64_t r = 0; r < tile->count; r++)
        for (int64_t j = 0; j < end - first; j++)
          if ((float)j < from[r] || (float)j >= to[r]) tile->scores[r * tile->score_row + j] = -INFINITY;
    if (!tile->few) tile->kernels->hide(tile->rows, end - first, from, to, -INFINITY, tile->scores);
    hidden = true;
  }
  if (tile->problem->has_mask) {
    for (int64_t r = 0; r < tile->count; r++) {
      const uint8_t *mask = mask_row(tile, r);
      for (int64_t j = first; j < end; j++)
        if (!mask[j]) tile->scores[(j - first) * tile->score_key + r * tile->score_row] = -INFINITY;
    }
    hidden = true;
  }
  return hidden;
}

static void weights_of_few(query_tile *tile, int64_t keys) {
  const int64_t padded = round_up(keys, tile->kernels->lanes);
  for (int64_t r = 0; r < tile->count; r++) {
    float *score = tile->scores + r * tile->score_row, sum;
    const float old_max = tile->max[r];
    for (int64_t j = keys; j < padded; j++) score[j] = -INFINITY;
    tile->kernels->softmax_row(padded, score, &tile->max[r], &sum);
    tile->rescale[r] = old_max == -INFINITY ? 0 : exp2f(old_max - tile->max[r]);
    tile->sum[r] = tile->sum[r] * tile->rescale[r] + sum;
  }
}

void query_tile_weights(query_tile *tile, int64_t first, int64_t end) {
  if (tile->few) {
    weights_of_few(tile, end - first);
    return;
  }
  tile->kernels->softmax(tile->rows, end - first, tile->scores, tile->max, tile->sum, tile->rescale);
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
      if (j < tile->row[r].visible.first || j >= tile->row[r].visible.end || (mask && !mask[j])) continue;
      const float weight = tile->scores[(j - first) * tile->score_key + r * tile->score_row];
      const float *value = tile->value + j * problem->value.position;
      for (int64_t e = 0; e < problem->value_dim; e++)
        if (!(fabsf(value[e]) <= FLT_MAX))
          tile->output[e * tile->output_feature + r * tile->output_row] += weight * value[e];
    }
  }
}

tile_values query_tile_values(const query_tile *tiles, int64_t count, int64_t first, int64_t end) {
  const int64_t width = tiles->problem->value_dim, stride = tiles->problem->value.position;
  const float *value = tiles->value + first * stride;
  /* It pays for more rows than one tile has, and from this distance on: where the register tile is narrow and a value
   * serves few rows at a time (AVX2), rows that share 8 of 64 sets, else those that share one. */
  const int64_t crowded = tiles->kernels->max_rows < TILE_MAX_ROWS ? 8 : 64;
  if (tiles->few || count * tiles->rows <= TILE_MAX_ROWS || stride % (crowded * LINE) != 0)
    return (tile_values){value, stride};
  const int64_t apart = spread(width);
  for (int64_t j = 0; j < end - first; j++)
    memcpy(tiles->spread_values + j * apart, value + j * stride, (size_t)width * sizeof *value);
  return (tile_values){tiles->spread_values, apart};
}

void query_tile_accumulate(query_tile *tile, int64_t first, int64_t end, const float *value, int64_t stride,
                           bool hidden) {
  const attn_problem *problem = tile->problem;
  const int64_t width = problem->value_dim;
  const float *key = tile->key + end * problem->key.position; /* wanted next */
  const tile_ahead next = {.row = {key}, .stride = {problem->key.position}, .width = {problem->head_dim}};
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool apart = hidden && !tile->kernels->all_finite(end - first, width, value, stride);
  if (apart) {
    copy_finite(value, stride, end - first, width, tile->finite);
    value = tile->finite;
    stride = width;
  }
  if (tile->few)
    tile->kernels->few_accumulate(tile->count, end - first, width, tile->scores, tile->score_row, value,
                                  stride, tile->rescale, key, problem->key.position, tile->output,
                                  tile->output_row);
  else
    tile->kernels->accumulate(tile->rows, end - first, width, tile->scores, tile->rows, value, stride,
                              tile->rescale, tile->leads ? &next : NULL, tile->output, tile->rows);
  if (apart) accumulate_nonfinite(tile, first, end);
}

void query_tile_merge(query_tile *tile, const float *other_state) {
  const float *other_output = other_state, *other_max = other_output + (tile->max - tile->output);
  const float *other_sum = other_max + tile->rows;
  for (int64_t r = 0; r < tile->count; r++) {
    const float max = fmaxf(tile->max[r], other_max[r]);
    if (max == -INFINITY) continue;
    const float ours = exp2f(tile->max[r] - max), theirs = exp2f(other_max[r] - max);
    tile->max[r] = max;
    tile->sum[r] = tile->sum[r] * ours + other_sum[r] * theirs;
    for (int64_t e = 0; e < tile->problem->value_dim; e++) {
      const int64_t at = e * tile->output_feature + r * tile->output_row;
      tile->output[at] = tile->output[at] * ours + other_output[at] * theirs;
    }
  }
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
  if (tile->few)
    tile->kernels->scale_rows(tile->count, problem->value_dim, tile->output, tile->output_row, factor, row);
  else
    tile->kernels->unpack(tile->rows, tile->count, problem->value_dim, tile->output, factor, row);
  for (int64_t r = 0; r < tile->count; r++)
    if (tile->sum[r] == 0) memset(row[r], 0, (size_t)problem->value_dim * sizeof(float));
}
