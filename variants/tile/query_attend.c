/* What a tile of query rows does where attend takes its keys, whole chunks of them, and what is left over to other steps. */
#include <math.h>
#include <string.h>

#include "query_tile.h"

enum { FLOATS_AT_ONCE = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* What the tile writes in the end, where its rows lie at equal distances: it would be waited for. */
static tile_ahead output_ahead(const query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const int64_t bytes = tile->kernels->element_bytes;
  const void *output =
      tile_element(tile->kernels, tile->tensors->output, query_tile_offset(tile, &problem->output, 0));
  return (tile_ahead){.rows =
                          tile->heads == 1 && problem->output.type == tile->kernels->type ? tile->count : 0,
                      .of = {{output, problem->output.position * bytes, problem->value_dim * bytes}}};
}

/* A copy in which each key has so many bytes, from its n-th on. */
static void fetch_copy(tile_ahead *ahead, int i, const float *copy, int64_t bytes, int64_t n) {
  ahead->of[i].x = (const char *)copy + n * bytes;
  ahead->of[i].stride = ahead->of[i].width = bytes;
}

/* Of the keys behind this key tile that the next one has, or of their copy, the part that this one of `count` tiles fetches. */
static tile_ahead keys_ahead(const query_tile *tile, const query_tile *tiles, int64_t count,
                             const key_tile *of) {
  const int64_t end = of->keys.end, last = smaller(end + tile->layout.keys, tiles[count - 1].keys.end);
  if (last <= end) return output_ahead(tile);
  const int64_t keys = last - end, n = tile - tiles, first = keys * n / count;
  const int64_t bytes = tile->kernels->element_bytes, parts = tile->kernels->parts;
  const tile_rows key = tile_rows_from(tile->kernels, tile->key, end + first),
                  value = tile_rows_from(tile->kernels, tile->value, end + first);
  tile_ahead ahead = {.rows = keys * (n + 1) / count - first,
                      .of = {{key.x, key.stride * bytes, tile->problem->head_dim * bytes},
                             {value.x, value.stride * bytes, tile->problem->value_dim * bytes}}};
  const float *copy = query_tile_copy_of(tile, of, (attn_range){end, last});
  if (!copy) return ahead;
  if (parts > 1) fetch_copy(&ahead, 0, copy, tile->layout.spread_key * (int64_t)sizeof(float), first);
  fetch_copy(&ahead, 1, copy + (of->copied_values - of->copied_keys),
             tile->problem->value_dim * bytes * parts, first);
  return ahead;
}

enum { HALF = TILE_CHUNK / 2 };

/* What query_tile_scores and query_tile_hide do with scores besides, of a chunk's keys from key `key` of the passage on. A run is of all
 * keys of a passage. */
static void change_chunk(const tile_passage *of, int64_t key, float *const scores[2]) {
  query_tile *tile = of->tile;
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = tile->kernels;
  const bool has_run = attn_has_position_bias(problem);
  const int64_t first = of->first_key + key;
  float scale = tile->factor;
  query_tile_fetch_rows(tile, first + TILE_CHUNK, first + 2 * TILE_CHUNK); /* the next chunk's */
  for (int half = 0; half < 2 && problem->softcap > 0; half++)
    kernels->softcap(TILE_CHUNK_ROWS * HALF, scale, base2_cap(problem->softcap), scores[half]);
  if (problem->softcap > 0) scale = 1;
  for (int half = 0; half < 2 && problem->bias.type; half++) {
    const int64_t from = first + half * HALF;
    kernels->add_bias(TILE_CHUNK_ROWS, tile->count, from, from + HALF, tile->bias, scale, scores[half]);
  }
  if (problem->bias.type) scale = 1;
  if (has_run && key == 0) query_tile_fill_run(tile, of->first_key, of->first_key + of->keys);
  for (int half = 0; half < 2 && has_run; half++) {
    const float *run = query_tile_run(tile, of->keys - key - (half + 1) * HALF);
    kernels->add_run(TILE_CHUNK_ROWS, HALF, run, tile->heads, scale, scores[half]);
  }
  for (int half = 0; half < 2 && of->masked >> key / TILE_CHUNK & 1; half++) {
    const int64_t from = first + half * HALF;
    kernels->hide_masked(TILE_CHUNK_ROWS, tile->count, from, from + HALF, tile->mask, -INFINITY,
                         scores[half]);
  }
}

/* Whole chunks, whose copied values are given; masked: of which the mask hides something. */
static void attend_chunks(query_tile *tile, key_tile *of, int64_t first, int64_t end, attn_visibility seen,
                          uint64_t masked, const void *values, tile_ahead ahead) {
  const attn_problem *problem = tile->problem;
  float(*const run)[TILE_CHUNK_ROWS] = of->runs[of->waiting];
  const bool all = seen == ATTN_FULL && tile->unfit == 0, in_parts = tile->kernels->parts > 1;
  const bool changes = query_tile_changes(problem);
  const int64_t n = first - of->keys.first;
  const tile_rows copy = {of->copied_keys + n * tile->layout.spread_key, 2 * tile->layout.spread_key};
  if (!all) query_tile_runs(tile, first, end, run[0], run[1]);
  for (int64_t r = 0; tile->unfit >> r != 0; r++)
    if (tile->unfit >> r & 1) run[0][r] = run[1][r] = 0;
  of->passages[of->waiting] =
      (tile_passage){.keys = end - first,
                     .depth = tile->problem->head_dim,
                     .width = tile->problem->value_dim,
                     .queries = tile->queries,
                     .factor = changes ? 1 : tile->factor,
                     .change = changes || masked ? change_chunk : NULL,
                     .masked = masked,
                     .grows = attn_has_position_bias(problem),
                     .tile = tile,
                     .first_key = first,
                     .key = in_parts ? copy : tile_rows_from(tile->kernels, tile->key, first),
                     .values = values,
                     .first = all ? NULL : run[0],
                     .end = all ? NULL : run[1],
                     .left_out = in_parts ? of->copy->left_out + n / TILE_CHUNK : NULL,
                     .scores = tile->scores,
                     .state = tile->state,
                     .output = tile->output,
                     .ahead = ahead};
  query_tile_fetch_rows(tile, first, first + TILE_CHUNK);
  if (++of->waiting == TILE_TOGETHER) query_tile_attend_waiting(tile->kernels, of);
}

/* Chunk by chunk, since what accumulate_nonfinite adds takes the weights of each. Both copies of a chunk's values, as elements
 * and as operands, have room in that for all whose scores are there. */
static void attend_nonfinite(query_tile *tile, key_tile *of, int64_t first, int64_t end,
                             attn_visibility seen) {
  const tile_kernels *kernels = tile->kernels;
  const int64_t chunk = tile->layout.chunk, width = tile->problem->value_dim;
  const tile_rows finite = {tile->finite, width};
  float *copy = (float *)tile->finite + chunk * width / kernels->step;
  query_tile_attend_waiting(kernels, of);
  for (int64_t j = first; j < end; j += chunk) {
    const attn_visibility shown = query_tile_look(tile, j, j + chunk);
    if (shown == ATTN_EMPTY) continue;
    kernels->copy_finite(chunk, width, tile_rows_from(kernels, tile->value, j), tile->finite);
    kernels->copy_values(chunk, width, finite, copy, tile->layout.spread_value);
    const uint64_t masked = shown == ATTN_PARTIAL; /* the only one */
    attend_chunks(tile, of, j, j + chunk, seen, masked, copy, (tile_ahead){.rows = 0});
    query_tile_attend_waiting(kernels, of);
    query_tile_accumulate_nonfinite(tile, j, j + chunk);
  }
}

_Static_assert(TILE_ATTENDED_KEYS / TILE_CHUNK <= 64, "a bit for each chunk of a passage");

/* Runs of chunks, each of which the mask shows some of; the rows ahead are fetched with the first run. */
static void attend_shown(query_tile *tile, key_tile *of, int64_t first, int64_t end, attn_visibility seen,
                         tile_ahead ahead) {
  const int64_t chunk = tile->layout.chunk;
  for (int64_t from = first, to = first; from < end; from = to += chunk) {
    uint64_t masked = 0;
    for (; to < end; to += chunk) {
      const attn_visibility shown = query_tile_look(tile, to, to + chunk);
      if (shown == ATTN_EMPTY) break;
      if (shown == ATTN_PARTIAL) masked |= UINT64_C(1) << (to - from) / chunk;
    }
    if (to == from) continue;
    const float *values = query_tile_copied_value(tile, of, from - of->keys.first);
    attend_chunks(tile, of, from, to, seen, masked, values, ahead);
    ahead.rows = 0;
  }
}

/* Of values whose keys not all rows see: a mask may hide any. */
static bool hidden_are_finite(const query_tile *tile, const key_tile *of, int64_t first, int64_t end) {
  if (tile->problem->mask.type) return of->copy->finite;
  const int64_t width = tile->problem->value_dim;
  const attn_band band = attn_band_of(tile->problem, tile->batch);
  const bool exist = query_tile_end(tile) <= band.queries;              /* else some see nothing */
  int64_t from = larger(first, query_tile_end(tile) - 1 + band.before), /* what all see */
      to = smaller(exist ? end : first, smaller(band.length, tile->row[0].position + band.behind));
  if (from >= to) from = to = end;
  return tile->kernels->all_finite(from - first, width, tile_rows_from(tile->kernels, tile->value, first)) &&
         tile->kernels->all_finite(end - to, width, tile_rows_from(tile->kernels, tile->value, to));
}

/* The sum of products of row r's query and key j. */
static double score_of(const query_tile *tile, int64_t r, int64_t j) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = tile->kernels;
  const int64_t row = query_tile_offset(tile, &problem->query, r), depth = problem->head_dim;
  const tile_rows key = tile_rows_from(kernels, tile->key, j);
  double sum = 0;
  for (int64_t from = 0; from < depth; from += FLOATS_AT_ONCE) {
    const int64_t count = smaller(depth - from, FLOATS_AT_ONCE);
    float q[FLOATS_AT_ONCE], k[FLOATS_AT_ONCE];
    kernels->read(count, tile_element(kernels, tile->tensors->query, row + from), q);
    kernels->read(count, tile_element(kernels, key.x, from), k);
    for (int64_t d = 0; d < count; d++) sum += (double)q[d] * (double)k[d];
  }
  return sum;
}

/* One step of the online softmax, of one row and one key. */
static void take_singly(query_tile *tile, int64_t r, int64_t j) {
  const query_tile_layout *layout = &tile->layout;
  const tile_rows value = tile_rows_from(tile->kernels, tile->value, j);
  const float score = (float)(score_of(tile, r, j) * tile->problem->scale / ln2), old = tile->state.max[r];
  const float max = fmaxf(old, score), shift = max > -INFINITY ? max : 0;
  const float rescale = exp2f(old - shift), weight = exp2f(score - shift);
  tile->state.max[r] = max;
  tile->state.sum[r] = tile->state.sum[r] * rescale + weight;
  for (int64_t from = 0; from < layout->width; from += FLOATS_AT_ONCE) {
    const int64_t count = smaller(layout->width - from, FLOATS_AT_ONCE);
    float v[FLOATS_AT_ONCE], *output = tile->output + r * layout->output_row + from * layout->output_feature;
    tile->kernels->read(count, tile_element(tile->kernels, value.x, from), v);
    for (int64_t e = 0; e < count; e++, output += layout->output_feature)
      *output = *output * rescale + weight * v[e];
  }
}

/* Elements in parts, which no mask is beside: all chunks, and then what is not finite, which changes no bit of a row that does not see it. */
static void attend_parts(query_tile *tile, key_tile *of, int64_t first, int64_t end, attn_visibility seen,
                         tile_ahead ahead) {
  const int64_t chunk = tile->layout.chunk, n = first - of->keys.first,
                chunks = (end - first + chunk - 1) / chunk;
  const uint64_t *left_out = of->copy->left_out + n / chunk;
  uint64_t any = tile->unfit;
  for (int64_t c = 0; c < chunks && c < (end - first) / chunk; c++) any |= left_out[c];
  if ((end - first) % chunk != 0) any |= left_out[chunks - 1] << (chunk - (end - first) % chunk);
  attend_chunks(tile, of, first, first + chunks * chunk, seen, 0, query_tile_copied_value(tile, of, n),
                ahead);
  if (any == 0) return;
  query_tile_attend_waiting(tile->kernels, of);
  float from[TILE_MAX_ROWS], to[TILE_MAX_ROWS];
  query_tile_runs(tile, first, end, from, to);
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t j = (int64_t)from[r]; j < (int64_t)to[r]; j++)
      if ((tile->unfit >> r | left_out[j / chunk] >> j % chunk) & 1) take_singly(tile, r, first + j);
}

void query_tile_attend(query_tile *tile, const query_tile *tiles, int64_t count, key_tile *of, int64_t first,
                       int64_t end, attn_visibility seen) {
  const int64_t chunk = tile->layout.chunk, whole = (end - first) / chunk * chunk, last = first + whole;
  const bool hidden = seen != ATTN_FULL;
  if (tile->kernels->parts > 1) {
    attend_parts(tile, of, first, end, seen, keys_ahead(tile, tiles, count, of));
    return;
  }
  if (hidden && !hidden_are_finite(tile, of, first, last))
    attend_nonfinite(tile, of, first, last, seen);
  else if (whole > 0)
    attend_shown(tile, of, first, last, seen, keys_ahead(tile, tiles, count, of));
  const attn_visibility shown = last < end ? query_tile_look(tile, last, end) : ATTN_EMPTY;
  if (shown == ATTN_EMPTY) return;
  query_tile_attend_waiting(tile->kernels, of);
  query_tile_scores(tile, of, last, end);
  if (hidden) query_tile_hide(tile, last, end, shown);
  query_tile_weights(tile, last, end);
  query_tile_accumulate(tile, of, last, end, hidden);
}
