/* What a tile of query rows does whichever way it lies in memory, and what depends on the problem: which rows, what is
 * hidden, where results go. */
#include "query_tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../elements.h"

enum { LINE = 16 }; /* floats of a cache line */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t whole_lines(int64_t floats) { return (floats + LINE - 1) / LINE * LINE; }

/* Of the copy of a key tile: its keys, and then its values. */
static int64_t copied_key_floats(const query_tile_layout *layout) {
  return layout->keys * layout->spread_key;
}

static int64_t copied_floats(const query_tile_layout *layout) {
  return copied_key_floats(layout) + layout->copied_rows * layout->spread_value;
}

/* Of queries as they are packed, zeros for their old sums, and what comes of them for one of several heads. */
static int64_t general_floats(const attn_problem *problem, const query_tile_layout *layout) {
  return attn_uses(problem, ATTN_GENERAL) ? whole_lines(layout->rows * (2 * layout->depth + 1)) : 0;
}

/* Columns of queries; of additive scores also of their powers and weights, of features up to a multiple of 4, a sum
 * and a factor. */
static int64_t query_floats(const attn_problem *problem, const query_tile_layout *layout) {
  return layout->query_rows *
         (attn_uses(problem, ATTN_ADDITIVE) ? 3 * query_tile_fours(layout->depth) + 2 : layout->depth);
}

enum { POINTER_FLOATS = sizeof(void *) / sizeof(float) };

static int64_t pointer_floats(const attn_problem *problem, int64_t rows) {
  return ((problem->bias.type != 0) + (problem->mask.type != 0)) * whole_lines(rows * POINTER_FLOATS);
}

/* Sought once, not for each key tile: a row follows from its position and its head. */
static void find_rows(query_tile *tile, float *room) {
  const attn_problem *problem = tile->problem;
  tile->bias = (const void **)(void *)room;
  if (problem->bias.type) room += whole_lines(tile->count * POINTER_FLOATS);
  tile->mask = (const uint8_t **)(void *)room;
  for (int64_t r = 0; problem->bias.type && r < tile->count; r++)
    tile->bias[r] =
        tile_element(tile->kernels, tile->tensors->bias, query_tile_offset(tile, &problem->bias, r));
  for (int64_t r = 0; problem->mask.type && r < tile->count; r++)
    tile->mask[r] = tile->tensors->mask + query_tile_offset(tile, &problem->mask, r);
}

/* Whether attend multiplies parts of elements, where what is not finite is left out. */
static bool in_parts(const query_tile_layout *layout, const tile_kernels *kernels) {
  return layout->chunk > 0 && kernels->parts > 1;
}

static int64_t finite_floats(const attn_problem *problem, const query_tile_layout *layout,
                             const tile_kernels *kernels) {
  return in_parts(layout, kernels) ? 0 : layout->score_keys * problem->value_dim;
}

query_tile_sizes query_tile_measure(const attn_problem *problem, const tile_kernels *kernels,
                                    const query_tile_steps *steps, int64_t count) {
  const query_tile_layout layout = steps->layout(problem, kernels, count);
  const int64_t scores = layout.rows * (layout.score_keys + 1),
                values = finite_floats(problem, &layout, kernels);
  return (query_tile_sizes){
      .queries = (size_t)(whole_lines(query_floats(problem, &layout)) + pointer_floats(problem, count)),
      .state = (size_t)whole_lines(layout.rows * (layout.width + 2)),
      .scratch = (size_t)(whole_lines(scores + values) + layout.copies * copied_floats(&layout) +
                          whole_lines(layout.run) + general_floats(problem, &layout)),
  };
}

bool query_tile_changes(const attn_problem *problem) {
  return problem->softcap > 0 || problem->bias.type || attn_has_position_bias(problem);
}

bool query_tile_attends(const attn_problem *problem, const tile_kernels *kernels) {
  const float factor = fabsf((float)(problem->scale / ln2));
  return kernels->attend && problem->head_dim > 0 && problem->head_dim % TILE_CHUNK == 0 &&
         problem->value_dim > 0 && problem->value_dim % kernels->lanes == 0 && factor > 0 &&
         factor <= FLT_MAX && !problem->keep.type &&
         (kernels->parts == 1 || (!query_tile_changes(problem) && !problem->mask.type)) &&
         !attn_has_pattern(problem) && !attn_uses(problem, ATTN_ROPE | ATTN_ADDITIVE | ATTN_GENERAL);
}

void query_tile_use_state(query_tile *tile, float *state) {
  tile->output = state;
  tile->state.max = tile->output + tile->layout.rows * tile->layout.width;
  tile->state.sum = tile->state.max + tile->layout.rows;
}

/* The copies first, where every tile of the passage finds them however many rows it has itself. */
void query_tile_use(query_tile *tile, float *queries, float *state, float *scratch) {
  tile->layout = tile->steps->layout(tile->problem, tile->kernels, tile->count);
  const int64_t keys = tile->layout.score_keys, rows = tile->layout.rows;
  tile->queries = queries;
  find_rows(tile, queries + whole_lines(query_floats(tile->problem, &tile->layout)));
  query_tile_use_state(tile, state);
  tile->copies = scratch;
  tile->scores = scratch + tile->layout.copies * copied_floats(&tile->layout);
  tile->state.rescale = tile->scores + rows * keys;
  tile->finite = tile->state.rescale + rows;
  tile->run = tile->scores +
              whole_lines(rows * (keys + 1) + finite_floats(tile->problem, &tile->layout, tile->kernels));
  tile->general = tile->run + whole_lines(tile->layout.run);
}

void query_tile_place(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const int64_t kv_head = tile->first_head / (problem->query_heads / problem->kv_heads);
  tile->key.x = tile_element(tile->kernels, tile->tensors->key,
                             tile->batch * problem->key.batch + kv_head * problem->key.head);
  tile->key.stride = problem->key.position;
  tile->value.x = tile_element(tile->kernels, tile->tensors->value,
                               tile->batch * problem->value.batch + kv_head * problem->value.head);
  tile->value.stride = problem->value.position;
  tile->next = -1;
  /* Counted up: the divisions of each row would take 3% of the time of causal linear attention. */
  int64_t position = tile->first_row / tile->heads, head = tile->first_row % tile->heads;
  for (int64_t r = 0; r < tile->count; r++) {
    tile->row[r] = (query_tile_row){position, tile->first_head + head};
    if (++head == tile->heads) head = 0, position++;
  }
  const attn_range keys = attn_keys_of(problem, tile->batch, tile->row[0].position, query_tile_end(tile));
  const bool attends = tile->steps->attends && query_tile_attends(problem, tile->kernels);
  const int64_t step = attends ? TILE_CHUNK : tile->kernels->step,
                after = (keys.end + step - 1) / step * step;
  tile->keys = (attn_range){keys.first / step * step, smaller(after, problem->key_length)};
}

/* Into the room for keys, of which there are none yet. */
static void rotate_queries(query_tile *tile, const void **row) {
  const int64_t stride = tile->layout.spread_key;
  for (int64_t r = 0; r < tile->count; r++) {
    float *rotated = tile->copies + r * stride;
    tile->kernels->rotate(tile->problem, 1, (tile_rows){row[r], 0},
                          attn_rope_position(tile->problem, tile->batch, tile->row[r].position), rotated,
                          stride);
    row[r] = rotated;
  }
}

/* All lines of a row at once: one by one, as rows are turned into columns, they would be waited for. */
static void fetch_row(const void *row, int64_t bytes) {
  enum { LINE_BYTES = 64 };
  for (int64_t b = 0; b < bytes; b += LINE_BYTES) __builtin_prefetch((const char *)row + b);
}

void query_tile_pack(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const void *row[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++) {
    row[r] = tile_element(tile->kernels, tile->tensors->query, query_tile_offset(tile, &problem->query, r));
    fetch_row(row[r], problem->head_dim * tile->kernels->element_bytes);
  }
  if (attn_uses(problem, ATTN_ROPE)) rotate_queries(tile, row);
  tile->unfit = 0;
  for (int64_t r = 0; in_parts(&tile->layout, tile->kernels) && r < tile->count; r++)
    if (!tile->kernels->all_finite(1, problem->head_dim, (tile_rows){row[r], 0}))
      tile->unfit |= UINT64_C(1) << r;
  const double unit = problem->softcap > 0 ? 1 / problem->softcap : 1 / ln2;
  tile->steps->pack(tile, row, (float)(problem->scale * unit));
}

void query_tile_clear(query_tile *tile) {
  memset(tile->output, 0, (size_t)(tile->state.max - tile->output) * sizeof(float));
  for (int64_t r = 0; r < tile->layout.rows; r++) {
    tile->state.max[r] = -INFINITY;
    tile->state.sum[r] = 0;
  }
}

/* Elements that are not floats are not what products take. */
static bool copies_values(const query_tile *tile) {
  return tile->layout.spread_value > 0 && tile->kernels->type != ATTN_FLOAT32;
}

/* Copied rows of values are as far apart in operands, of which a unit of 32 bits holds `step`. */
static tile_rows copied_values(const query_tile *tile, const key_tile *of) {
  return (tile_rows){of->copied_values, tile->layout.spread_value * tile->kernels->step};
}

/* Whether values of rows that lie so crowd a few sets of the L1 cache. A copy pays for more rows than one tile has, and
 * from this distance on: where the register tile is narrow and a value serves few rows at a time (AVX2), rows that share 8
 * of 64 sets, else those that share one. */
static bool crowds(const query_tile *tile, int64_t count, tile_rows value) {
  const int64_t line = LINE * (int64_t)sizeof(float);
  const int64_t crowded = (tile->kernels->max_rows < TILE_MAX_ROWS ? 8 : 64) * line;
  return tile->layout.spread_value > 0 && count * tile->layout.rows > TILE_MAX_ROWS &&
         value.stride * tile->kernels->element_bytes % crowded == 0;
}

/* Keys of additive scores as floats, and behind those of a row of a full tile their powers. */
static void prepare_additive(const query_tile *tile, int64_t keys, key_tile *of) {
  const query_tile_layout *layout = &tile->layout;
  const tile_kernels *kernels = tile->kernels;
  const int64_t width = tile->problem->head_dim, stride = layout->spread_key;
  if (stride == 0) return;
  if (attn_uses(tile->problem, ATTN_ROPE))
    kernels->rotate(tile->problem, keys, of->key, of->keys.first, of->copied_keys, stride);
  else
    kernels->copy_values(keys, width, of->key, of->copied_keys, stride); /* which makes floats of any type */
  of->key = (tile_rows){of->copied_keys, stride};
  if (layout->key_powers == 0) return;
  for (int64_t n = 0; n < keys; n++)
    memset(of->copied_keys + n * stride + width, 0, (size_t)(layout->key_powers - width) * sizeof(float));
  kernels->additive_powers(keys, width, of->copied_keys, of->copied_keys + layout->key_powers, stride);
}

/* Each chunk as a copy of its own: it is read from one place to the next. */
static void copy_chunks(const query_tile *tile, tile_rows value, int64_t keys, float *copy) {
  const int64_t chunk = tile->layout.chunk, width = tile->problem->value_dim;
  for (int64_t n = 0; n < keys; n += chunk)
    tile->kernels->copy_values(smaller(chunk, keys - n), width, tile_rows_from(tile->kernels, value, n),
                               copy + n / chunk * width * tile->layout.spread_value,
                               tile->layout.spread_value);
}

void query_tile_attend_waiting(const tile_kernels *kernels, key_tile *of) {
  /* cppcheck-suppress ctuuninitvar ; those that wait have been written */
  if (of->waiting > 0) kernels->attend(of->waiting, of->passages);
  of->waiting = 0;
}

/* Keys that are not finite, or whose values are not, and behind the last of all those that fill up a chunk. */
static void find_left_out(const query_tile *tile, int64_t keys, key_tile *of) {
  const tile_kernels *kernels = tile->kernels;
  const int64_t depth = tile->problem->head_dim, width = tile->problem->value_dim;
  const bool finite =
      kernels->all_finite(keys, depth, of->key) && kernels->all_finite(keys, width, of->value);
  memset(of->copy->left_out, 0, sizeof of->copy->left_out);
  for (int64_t j = finite ? keys : 0; j < keys || j % TILE_CHUNK != 0; j++)
    if (j >= keys || !kernels->all_finite(1, depth, tile_rows_from(kernels, of->key, j)) ||
        !kernels->all_finite(1, width, tile_rows_from(kernels, of->value, j)))
      of->copy->left_out[j / TILE_CHUNK] |= UINT64_C(1) << j % TILE_CHUNK;
}

void query_tile_begin(key_tile *of) {
  of->waiting = 0;
  for (int n = 0; n < TILE_COPIES; n++) of->copies[n].key = NULL;
}

static int64_t copy_number(const query_tile_layout *layout, int64_t first) {
  return smaller(first / layout->keys, layout->copies - 1);
}

/* A tile that sees fewer of its keys takes as many of the copy. */
static bool has_keys(const tile_copy *copy, const query_tile *tile, attn_range keys) {
  return copy->key == tile->key.x && copy->value == tile->value.x && copy->keys.first == keys.first &&
         copy->keys.end >= keys.end;
}

const float *query_tile_copy_of(const query_tile *tile, const key_tile *of, attn_range keys) {
  const int64_t n = copy_number(&tile->layout, keys.first);
  return has_keys(&of->copies[n], tile, keys) ? tile->copies + n * copied_floats(&tile->layout) : NULL;
}

/* For attend. */
static void prepare_chunks(const query_tile *tile, key_tile *of) {
  const int64_t length = of->keys.end - of->keys.first, stride = tile->layout.spread_key;
  if (!has_keys(of->copy, tile, of->keys)) {
    if (in_parts(&tile->layout, tile->kernels)) {
      find_left_out(tile, length, of);
      tile->kernels->copy_keys(length, tile->problem->head_dim, of->key, of->copied_keys, stride);
    }
    of->copy->finite =
        !tile->problem->mask.type || tile->kernels->all_finite(length, tile->problem->value_dim, of->value);
    copy_chunks(tile, of->value, length, of->copied_values);
    of->copy->key = tile->key.x;
    of->copy->value = tile->value.x;
    of->copy->keys = of->keys;
  }
  if (stride > 0) of->key = (tile_rows){of->copied_keys, stride};
  of->value = copied_values(tile, of);
}

void query_tile_prepare(const query_tile *tiles, int64_t count, attn_range keys, key_tile *of) {
  const tile_kernels *kernels = tiles->kernels;
  const query_tile_layout *layout = &tiles->layout;
  const int64_t length = keys.end - keys.first, width = tiles->problem->value_dim;
  if (of->keys.first == keys.first && of->keys.end == keys.end) return;
  query_tile_attend_waiting(kernels, of);
  of->keys = keys;
  of->key = tile_rows_from(kernels, tiles->key, keys.first);
  of->value = tile_rows_from(kernels, tiles->value, keys.first);
  const int64_t n = copy_number(layout, keys.first);
  of->copy = &of->copies[n];
  of->copied_keys = tiles->copies + n * copied_floats(layout);
  of->copied_values = of->copied_keys + copied_key_floats(layout);
  if (layout->chunk > 0) {
    prepare_chunks(tiles, of);
    return;
  }
  if (attn_uses(tiles->problem, ATTN_ADDITIVE)) {
    prepare_additive(tiles, length, of);
  } else if (attn_uses(tiles->problem, ATTN_ROPE)) {
    kernels->rotate(tiles->problem, length, of->key, keys.first, of->copied_keys, layout->spread_key);
    of->key = (tile_rows){of->copied_keys, layout->spread_key};
  } else if (layout->spread_key > 0) {
    kernels->copy_keys(length, tiles->problem->head_dim, of->key, of->copied_keys, layout->spread_key);
    of->key = (tile_rows){of->copied_keys, layout->spread_key};
  }
  if (copies_values(tiles) || crowds(tiles, count, of->value)) {
    kernels->copy_values(length, width, of->value, of->copied_values, layout->spread_value);
    of->value = copied_values(tiles, of);
  }
}

const float *query_tile_copied_value(const query_tile *tile, const key_tile *of, int64_t n) {
  const query_tile_layout *layout = &tile->layout;
  const int64_t chunk = layout->chunk;
  return of->copied_values + (chunk > 0 ? n / chunk * tile->problem->value_dim * layout->spread_value
                                        : n / tile->kernels->step * layout->copied_key);
}

/* Keys of the key tile from the n-th on. */
static tile_rows keys_from(const query_tile *tile, const key_tile *of, int64_t n) {
  if (of->key.x != of->copied_keys) return tile_rows_from(tile->kernels, of->key, n);
  return (tile_rows){of->copied_keys + n * tile->layout.spread_key, of->key.stride};
}

static tile_rows values_from(const query_tile *tile, const key_tile *of, int64_t n) {
  if (of->value.x != of->copied_values) return tile_rows_from(tile->kernels, of->value, n);
  return (tile_rows){query_tile_copied_value(tile, of, n), of->value.stride};
}

/* The key that comes next behind a key tile: fetching what is passed over would leave what is not to be waited for. */
static int64_t key_ahead(query_tile *tile, int64_t end) {
  return tile->leads && attn_has_pattern(tile->problem) ? query_tile_next(tile, end) : end;
}

/* Rows of keys, or of values, that are wanted soon: those of this key tile, or where they are copied of the next. */
static tile_rows rows_ahead(query_tile *tile, tile_rows rows, int64_t first, int64_t end) {
  return tile_rows_from(tile->kernels, rows, copies_values(tile) ? key_ahead(tile, end) : first);
}

void query_tile_fill_run(query_tile *tile, int64_t first, int64_t end) {
  enum { MOST_PLACES = TILE_MAX_ROWS + TILE_ATTENDED_KEYS };
  const int64_t skipped = tile->first_row % tile->heads,
                places = end - first + (skipped + tile->layout.rows - 1) / tile->heads;
  float bias[MOST_PLACES];
  const int64_t farthest = attn_distance(tile->problem, tile->batch, tile->row[0].position, end - 1);
  for (int64_t h = 0; h < tile->heads; h++) {
    attn_position_biases(tile->problem, tile->first_head + h, farthest - (places - 1), places, bias);
    for (int64_t n = 0; n < places; n++) tile->run[n * tile->heads + h] = log2e * bias[places - 1 - n];
  }
}

void query_tile_scores(query_tile *tile, const key_tile *of, int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const tile_rows key = keys_from(tile, of, first - of->keys.first);
  tile->after = end;
  query_tile_fetch_rows(tile, first, end);
  tile->steps->scores(tile, end - first, key, rows_ahead(tile, tile->value, first, end));
  if (problem->softcap > 0) tile->steps->softcap(tile, end - first, base2_cap(problem->softcap));
  if (problem->bias.type) tile->steps->bias(tile, first, end - first);
  if (attn_has_position_bias(problem)) tile->steps->position(tile, first, end - first);
}

attn_visibility query_tile_visibility(const query_tile *tile, int64_t first, int64_t end) {
  return attn_visible_tile(tile->problem, tile->batch, tile->first_head, tile->row[0].position,
                           query_tile_end(tile), first, end);
}

attn_visibility query_tile_look(const query_tile *tile, int64_t first, int64_t end) {
  const attn_layout *mask = &tile->problem->mask;
  const int64_t rows = mask->position == 0 && mask->head == 0 ? 1 : tile->count; /* that differ */
  if (!mask->type) return ATTN_FULL;
  /* A tile that is hidden is over before the next one's lines would be there. */
  const int64_t next = smaller(end + (end - first), tile->keys.end);
  for (int64_t r = 0; r < rows; r++) query_tile_fetch(tile->mask[r], end, next);
  return tile->kernels->look(rows, first, end, tile->mask);
}

int64_t query_tile_next(query_tile *tile, int64_t j) {
  if (tile->next < j)
    tile->next = attn_next_visible(tile->problem, tile->batch, tile->first_head, tile->row[0].position,
                                   query_tile_end(tile), j);
  return tile->next;
}

/* Which of keys [first, end) row r sees: 0 for those that it does not. */
static void seen_keys(const query_tile *tile, int64_t r, int64_t first, int64_t end, uint8_t *seen) {
  attn_seen_row(tile->problem, tile->tensors, tile->batch, tile->row[r].head, tile->row[r].position, first,
                end, seen);
}

static float clamp(int64_t j, int64_t most) { return (float)smaller(larger(j, 0), most); }

void query_tile_runs(const query_tile *tile, int64_t first, int64_t end, float *from, float *to) {
  const attn_band band = attn_band_of(tile->problem, tile->batch);
  const int64_t last = smaller(end, band.length) - first;
  int64_t r = 0;
  for (; r < tile->count && tile->row[r].position < band.queries; r++) {
    const int64_t i = tile->row[r].position;
    from[r] = clamp(i + band.before - first, end - first);
    to[r] = clamp(i + band.behind - first, last);
  }
  for (; r < tile->layout.rows; r++) from[r] = to[r] = 0;
}

/* Where a row sees one run of keys and no more, whole vectors are compared with its ends. */
static void hide_outside(query_tile *tile, int64_t first, int64_t end) {
  float from[TILE_MAX_ROWS], to[TILE_MAX_ROWS];
  bool outside = false;
  query_tile_runs(tile, first, end, from, to);
  for (int64_t r = 0; r < tile->layout.rows; r++)
    outside = outside || from[r] > 0 || to[r] < (float)(end - first);
  if (outside) tile->steps->hide(tile, end - first, from, to);
}

void query_tile_hide(query_tile *tile, int64_t first, int64_t end, attn_visibility shown) {
  const int64_t keys = query_tile_pitch(tile->kernels, end - first);
  uint8_t seen[TILE_MAX_ROWS * TILE_MOST_KEYS]; /* or of few rows more keys */
  const uint8_t *rows[TILE_MAX_ROWS];
  tile->knows_largest = false;
  if (!attn_has_pattern(tile->problem)) {
    hide_outside(tile, first, end);
    if (shown == ATTN_PARTIAL) tile->steps->hide_masked(tile, first, end, tile->mask);
    return;
  }
  for (int64_t r = 0; r < tile->count; r++) {
    seen_keys(tile, r, first, end, seen + r * keys);
    rows[r] = seen + r * keys;
  }
  tile->steps->hide_masked(tile, 0, end - first, rows);
}

void query_tile_weights(query_tile *tile, int64_t first, int64_t end) {
  tile->weightless = tile->steps->weights(tile, end - first) == 0;
}

void query_tile_drop(query_tile *tile, int64_t first, int64_t end) {
  const uint8_t *keep[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++)
    keep[r] = attn_keep_row(tile->problem, tile->batch, tile->row[r].head, tile->row[r].position) + first;
  tile->steps->drop(tile, end - first, keep);
}

/* Adds the values of key j that are not finite to row r. */
static void add_nonfinite(query_tile *tile, int64_t r, int64_t j, float weight) {
  enum { AT_ONCE = 64 };
  const query_tile_layout *layout = &tile->layout;
  const tile_rows row = tile_rows_from(tile->kernels, tile->value, j);
  const int64_t width = tile->problem->value_dim;
  float value[AT_ONCE];
  for (int64_t from = 0; from < width; from += AT_ONCE) {
    const int64_t count = width - from < AT_ONCE ? width - from : AT_ONCE;
    float *output = tile->output + r * layout->output_row + from * layout->output_feature;
    tile->kernels->read(count, tile_element(tile->kernels, row.x, from), value);
    for (int64_t e = 0; e < count; e++)
      if (!(fabsf(value[e]) <= FLT_MAX)) output[e * layout->output_feature] += weight * value[e];
  }
}

/* The weight of row r and the n-th key, of pairs where these are multiplied. */
static float weight_of(const query_tile *tile, int64_t r, int64_t n) {
  const query_tile_layout *layout = &tile->layout;
  if (!copies_values(tile) || tile->kernels->step == 1)
    return tile->scores[r * layout->score_row + n * layout->score_key];
  const uint16_t *halves = (const uint16_t *)(const void *)(tile->scores + n / 2 * layout->score_key + r);
  return attn_from_bfloat16(halves[n % 2]);
}

void query_tile_accumulate_nonfinite(query_tile *tile, int64_t first, int64_t end) {
  for (int64_t r = 0; r < tile->count; r++) {
    uint8_t visible[TILE_FEW_KEYS] = {0};
    seen_keys(tile, r, first, end, visible);
    for (int64_t n = 0; n < end - first; n++)
      if (visible[n]) add_nonfinite(tile, r, first + n, weight_of(tile, r, n));
  }
}

/* Values with 0 for those that are not finite. A second copy takes the place of the first, which is forgotten. */
static tile_rows finite_values(query_tile *tile, key_tile *of, int64_t keys, tile_rows value) {
  const int64_t width = tile->problem->value_dim;
  const tile_rows finite = {tile->finite, width};
  tile->kernels->copy_finite(keys, width, value, tile->finite);
  if (!copies_values(tile)) return finite;
  tile->kernels->copy_values(keys, width, finite, of->copied_values, tile->layout.spread_value);
  of->copy->key = NULL;
  of->keys = (attn_range){0, 0};
  return copied_values(tile, of);
}

void query_tile_accumulate(query_tile *tile, key_tile *of, int64_t first, int64_t end, bool hidden) {
  const int64_t keys = end - first;
  const tile_rows elements = tile_rows_from(tile->kernels, tile->value, first);
  tile_rows value = values_from(tile, of, first - of->keys.first);
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool finite =
      (!hidden && !tile->weightless) || tile->kernels->all_finite(keys, tile->problem->value_dim, elements);
  const bool apart = hidden && !finite;
  if (tile->weightless && finite) return;
  if (apart) value = finite_values(tile, of, keys, elements);
  const tile_rows next = copies_values(tile) ? tile->value : tile->key; /* wanted next */
  tile->steps->accumulate(tile, keys, value, tile_rows_from(tile->kernels, next, key_ahead(tile, end)));
  if (apart) query_tile_accumulate_nonfinite(tile, first, end);
}

void query_tile_merge(query_tile *tile, const float *other_state) {
  const tile_state *state = &tile->state;
  const float *other_max = other_state + (state->max - tile->output);
  const float *other_sum = other_max + tile->layout.rows;
  const int64_t rows = tile->layout.rows, padded = query_tile_pitch(tile->kernels, rows);
  float ours[TILE_MAX_ROWS] = {0}, theirs[TILE_MAX_ROWS] = {0};
  for (int64_t r = 0; r < rows; r++) {
    const float max = fmaxf(state->max[r], other_max[r]);
    /* -inf minus -inf must not be NaN where neither saw a key, nor be left out: the sum may be NaN. */
    const float shift = max == -INFINITY ? 0 : max;
    ours[r] = state->max[r] - shift;
    theirs[r] = other_max[r] - shift;
    state->max[r] = max;
  }
  tile->kernels->exp2(padded, ours);
  tile->kernels->exp2(padded, theirs);
  for (int64_t r = 0; r < rows; r++) state->sum[r] = state->sum[r] * ours[r] + other_sum[r] * theirs[r];
  tile->steps->merge(tile, other_state, ours, theirs);
}

/* Sinks join the sums of their rows; left: what that leaves of the weights. Where a sink is far above the scores these
 * must not vanish before: hence after the last key. */
static void join_sinks(query_tile *tile, float left[TILE_MAX_ROWS]) {
  const int64_t queries = attn_query_count(tile->problem, tile->batch);
  for (int64_t r = 0; r < tile->count && tile->row[r].position < queries; r++) {
    float *max = &tile->state.max[r], *sum = &tile->state.sum[r];
    const float sink = log2e * tile->tensors->sink[tile->row[r].head * tile->problem->sink.head],
                before = *max;
    *max = fmaxf(before, sink);
    const float shift = *max == -INFINITY ? 0 : *max;
    left[r] = exp2f(before - shift);
    *sum = *sum * left[r] + exp2f(sink - shift);
  }
}

static void write_lse(const query_tile *tile) {
  const float *max = tile->state.max, *sum = tile->state.sum;
  for (int64_t r = 0; r < tile->count; r++) {
    const int64_t at = query_tile_offset(tile, &tile->problem->lse, r);
    tile->tensors->lse[at] = tile->sums ? max[r] : (float)((double)max[r] * ln2 + log((double)sum[r]));
    if (tile->sums) tile->sums[at] = sum[r];
  }
}

void query_tile_finish(query_tile *tile) {
  const attn_problem *problem = tile->problem;
  const int64_t count = tile->count, bytes = tile->output_kernels->element_bytes;
  const float kept = attn_kept_factor(problem);
  float seen[TILE_MAX_ROWS]; /* the sum without the sink; 0: the row saw no key */
  float factor[TILE_MAX_ROWS];
  void *row[TILE_MAX_ROWS] = {NULL}; /* a compiler need not see that a tile has rows */
  int blind = 0;
  for (int64_t r = 0; r < count; r++) {
    seen[r] = tile->state.sum[r];
    blind += seen[r] == 0;
    factor[r] = 1;
  }
  if (problem->sink.type) join_sinks(tile, factor);
  if (problem->lse.type) write_lse(tile);
  for (int64_t r = 0; r < count; r++) {
    factor[r] = factor[r] / tile->state.sum[r] * kept;
    row[r] = (char *)tile->tensors->output + query_tile_offset(tile, &problem->output, r) * bytes;
  }
  tile->steps->unpack(tile, factor, row);
  for (int64_t r = 0; blind > 0 && r < count; r++)
    if (seen[r] == 0) memset(row[r], 0, (size_t)(problem->value_dim * bytes));
}
