/* See linear_tile.h. The tile kernels of softmax attention do the products, with the features of a value where those have rows:
 * nothing is transposed but the queries of pairs. */
#include "linear_tile.h"

#include <math.h>
#include <string.h>

enum { KEY_GAP = 16 };

static const float one = 1;

static size_t whole_lines(int64_t floats) { return (size_t)linear_round_up(floats, 16); }

void linear_measure(const attn_problem *problem, linear_plan *plan) {
  const int64_t lanes = plan->kernels->lanes;
  plan->depth = linear_round_up(problem->head_dim, lanes);
  plan->width = linear_round_up(problem->value_dim, lanes);
  plan->state_floats = whole_lines(plan->depth + problem->head_dim * plan->width);
  plan->thread_floats =
      plan->state_floats + whole_lines(TILE_KEYS * (plan->depth + KEY_GAP + plan->width)) +
      whole_lines(plan->rows * (plan->depth + problem->head_dim + TILE_KEYS + plan->width + 1)) +
      TILE_MAX_ROWS + TILE_KEYS;
}

void linear_take_features(const linear_plan *plan, linear_scratch *scratch, int64_t first, int64_t end) {
  scratch->first_feature = first;
  scratch->features = end - first;
  scratch->pitch = linear_round_up(end - first, plan->kernels->lanes);
  scratch->stride = scratch->pitch + (scratch->pitch % 32 == 0 ? KEY_GAP : 0);
  scratch->state = scratch->normaliser + scratch->pitch;
}

linear_scratch linear_make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory) {
  linear_scratch scratch = {.normaliser = memory};
  linear_take_features(plan, &scratch, 0, problem->head_dim);
  scratch.ones = scratch.normaliser + plan->state_floats;
  scratch.gates = scratch.ones + TILE_MAX_ROWS;
  scratch.keys = scratch.gates + TILE_KEYS;
  scratch.values = scratch.keys + TILE_KEYS * (plan->depth + KEY_GAP);
  scratch.queries = scratch.keys + whole_lines(TILE_KEYS * (plan->depth + KEY_GAP + plan->width));
  scratch.columns = scratch.queries + plan->rows * plan->depth;
  scratch.weights = scratch.columns + problem->head_dim * plan->rows;
  scratch.output = scratch.weights + TILE_KEYS * plan->rows;
  scratch.sums = scratch.output + plan->rows * plan->width;
  for (int64_t r = 0; r < TILE_MAX_ROWS; r++) scratch.ones[r] = 1;
  return scratch;
}

/* phi of rows of `count` elements, filled up with zeros. */
static void map_features(const attn_problem *problem, const tile_kernels *kernels, int64_t rows,
                         int64_t count, tile_rows x, tile_target y) {
  if (problem->feature_map == ATTN_ELU1)
    kernels->elu1(rows, count, x, y);
  else
    kernels->at_least(rows, count, problem->feature_map == ATTN_RELU ? 0 : -INFINITY, x, y);
}

/* Width of the strip that starts at feature e of `width`. */
static int64_t strip(const linear_plan *plan, int64_t width, int64_t e) {
  const int64_t left = width - e;
  return left < plan->kernels->max_rows ? left : plan->kernels->max_rows;
}

/* Gates of keys [first, end). */
static void load_gates(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const int64_t kv_head = tile->first_head / plan->group;
  const float *decay =
      problem->decay_data + tile->batch * problem->decay.batch + kv_head * problem->decay.head + first;
  for (int64_t j = 0; j < TILE_KEYS; j++)
    scratch->gates[j] = j < end - first ? decay[j] * 0x1.715476p+0f : 0; /* log2(e) */
  plan->floats->exp2(TILE_KEYS, scratch->gates);
}

/* phi of keys [first, end). */
static void load_keys(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                      int64_t end) {
  const tile_rows key = tile_rows_from(plan->kernels, tile->key, first);
  map_features(tile->problem, plan->kernels, end - first, scratch->features,
               (tile_rows){tile_element(plan->kernels, key.x, scratch->first_feature), key.stride},
               (tile_target){scratch->keys, scratch->stride});
  if (tile->problem->decay.type) load_gates(tile, plan, scratch, first, end);
}

/* Values as floats in whole vectors: as they are, or copied; `finite` leaves out what is not. */
static tile_matrix load_values(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                               int64_t first, int64_t end, bool finite) {
  const int64_t width = tile->problem->value_dim;
  const tile_rows value = tile_rows_from(plan->kernels, tile->value, first);
  if (width == plan->width && !finite && plan->kernels->element_bytes == sizeof(float))
    return (tile_matrix){value.x, value.stride};
  for (int64_t j = 0; j < end - first; j++) {
    float *row = scratch->values + j * plan->width;
    plan->kernels->read(width, tile_rows_from(plan->kernels, value, j).x, row);
    memset(row + width, 0, (size_t)(plan->width - width) * sizeof *row);
    for (int64_t e = 0; finite && e < width; e++)
      if (!isfinite(row[e])) row[e] = 0;
  }
  return (tile_matrix){scratch->values, plan->width};
}

/* From column e on. */
static tile_matrix from_column(tile_matrix of, int64_t e) { return (tile_matrix){of.x + e, of.stride}; }

/* Lets the loaded keys, count of them, fade to where the last one stands, each by the gates behind it. Returns what the keys
 * before them fade by. Gates are multiplied and no logarithms are taken from each other, so that one of 0 does no harm. */
static float fade_keys(const linear_scratch *scratch, int64_t count) {
  float fade = 1;
  for (int64_t j = count - 1; j >= 0; j--) {
    for (int64_t d = 0; d < scratch->pitch; d++) scratch->keys[j * scratch->stride + d] *= fade;
    fade *= scratch->gates[j];
  }
  return fade;
}

/* state += phi(k_j) v_j^T over the loaded keys [first, end), and the normaliser with it. Keys that decay are no longer
 * there afterwards. */
static void add_to_state(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                         int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = plan->kernels;
  const int64_t features = scratch->features, pitch = scratch->pitch;
  const tile_matrix values = load_values(tile, plan, scratch, first, end, false);
  float fades[TILE_MAX_ROWS] = {0};
  const float *rescale = scratch->ones;
  if (problem->decay.type) {
    const float fade = fade_keys(scratch, end - first);
    for (int64_t r = 0; r < TILE_MAX_ROWS; r++) fades[r] = fade;
    rescale = fades;
  }
  const tile_rows next_key = tile_rows_from(kernels, tile->key, end);
  const int64_t bytes = kernels->element_bytes;
  const tile_ahead next = {.of = {{tile_element(kernels, next_key.x, scratch->first_feature),
                                   next_key.stride * bytes, features * bytes},
                                  {tile_rows_from(kernels, tile->value, end).x, tile->value.stride * bytes,
                                   problem->value_dim * bytes}}};
  for (int64_t e = 0; e < plan->width; e += kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    kernels->accumulate((tile_size){wide, end - first, features}, from_column(values, e),
                        (tile_rows){scratch->keys, scratch->stride}, rescale,
                        e == 0 && end < problem->key_length ? &next : NULL,
                        (tile_target){scratch->state + features * e, wide});
  }
  for (int64_t d = 0; d < pitch; d += kernels->max_rows)
    kernels->accumulate((tile_size){strip(plan, pitch, d), end - first, 1},
                        (tile_matrix){scratch->keys + d, scratch->stride}, (tile_rows){&one, 0}, rescale,
                        NULL, (tile_target){scratch->normaliser + d, 0});
}

void linear_advance(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                    int64_t end) {
  for (int64_t next; first < end; first = next) {
    next = first + TILE_KEYS < end ? first + TILE_KEYS : end;
    load_keys(tile, plan, scratch, first, next);
    add_to_state(tile, plan, scratch, first, next);
  }
}

/* Adds what load_values left out, to the rows that see it. */
static void add_nonfinite(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                          int64_t first, int64_t end) {
  const int64_t width = tile->problem->value_dim;
  for (int64_t j = first; j < end; j++) {
    float *value = scratch->values; /* which are in the output */
    plan->kernels->read(width, tile_rows_from(plan->kernels, tile->value, j).x, value);
    for (int64_t r = 0; r < tile->count; r++)
      for (int64_t e = 0; e < width && j < tile->row[r].visible.end; e++)
        if (!isfinite(value[e]))
          scratch->output[r * plan->width + e] +=
              scratch->weights[(j - first) * tile->layout.rows + r] * value[e];
  }
}

static int64_t clamp_to_tile(int64_t j) { return j < 0 ? 0 : j > TILE_KEYS ? TILE_KEYS : j; }

/* Where the keys end that rows [r, r + lanes) see: those of the last. */
static int64_t last_seen(const float *to, int64_t rows, int64_t r, int64_t lanes) {
  return (int64_t)to[r + lanes < rows ? r + lanes - 1 : rows - 1];
}

/* Lets the weights of the loaded keys fade, each by the gates from behind its key to the last that the row sees, and what the
 * rows have of the keys before by those of all. to: where the keys end that a row sees. */
static void fade_pairs(const query_tile *tile, const linear_plan *plan, const linear_scratch *scratch,
                       int64_t count, const float *to, float *fades) {
  const int64_t rows = tile->layout.rows;
  for (int64_t r = 0; r < rows; r++) fades[r] = 1;
  for (int64_t j = count - 1; j >= 0; j--) {
    float *weights = scratch->weights + j * rows;
    for (int64_t r = 0; r < rows; r++) {
      weights[r] *= fades[r];
      fades[r] *= to[r] > (float)j ? scratch->gates[j] : 1;
    }
  }
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t e = 0; e < plan->width; e++) scratch->output[r * plan->width + e] *= fades[r];
}

/* Adds the loaded keys [first, end) to the output, pair by pair. A later row sees no fewer of them, so what the rows
 * see is a staircase, and each product takes a step of it for a vector of rows. The weights beyond the staircase
 * are written by hide alone. */
static void add_pairs(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                      int64_t end) {
  const tile_kernels *kernels = plan->kernels;
  const int64_t rows = tile->layout.rows, lanes = kernels->lanes, depth = tile->problem->head_dim;
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool finite =
      kernels->all_finite(end - first, tile->problem->value_dim, tile_rows_from(kernels, tile->value, first));
  const tile_matrix values = load_values(tile, plan, scratch, first, end, !finite);
  float from[TILE_MAX_ROWS] = {0}, to[TILE_MAX_ROWS] = {0};
  for (int64_t r = 0; r < tile->count; r++) to[r] = (float)clamp_to_tile(tile->row[r].visible.end - first);
  /* The keys that a vector of rows sees first, with all rows from there on. */
  for (int64_t r = 0, j = 0, seen; r < tile->count; r += lanes, j = seen) {
    seen = last_seen(to, tile->count, r, lanes);
    kernels->scores((tile_size){rows - r, seen - j, depth}, (tile_matrix){scratch->columns + r, rows},
                    (tile_rows){scratch->keys + j * scratch->stride, scratch->stride}, 1, NULL,
                    (tile_target){scratch->weights + j * rows + r, rows});
  }
  kernels->hide(rows, end - first, from, to, 0, scratch->weights);
  float fades[TILE_MAX_ROWS] = {0};
  if (tile->problem->decay.type) fade_pairs(tile, plan, scratch, end - first, to, fades);
  kernels->accumulate((tile_size){rows, end - first, 1}, (tile_matrix){scratch->weights, rows},
                      (tile_rows){&one, 0}, tile->problem->decay.type ? fades : scratch->ones, NULL,
                      (tile_target){scratch->sums, 0});
  /* A vector of rows at a time, each with the keys that its last row sees. */
  for (int64_t r = 0; r < tile->count; r += lanes) {
    const int64_t count = tile->count - r < lanes ? tile->count - r : lanes;
    const int64_t seen = last_seen(to, tile->count, r, lanes);
    for (int64_t e = 0; e < plan->width; e += kernels->max_rows)
      kernels->accumulate((tile_size){strip(plan, plan->width, e), seen, count}, from_column(values, e),
                          (tile_rows){scratch->weights + r, rows}, scratch->ones, NULL,
                          (tile_target){scratch->output + r * plan->width + e, plan->width});
  }
  if (!finite) add_nonfinite(tile, plan, scratch, first, end);
}

static void *output_row(const query_tile *tile, int64_t r) {
  return (char *)tile->tensors->output +
         query_tile_offset(tile, &tile->problem->output, r) * tile->output_kernels->element_bytes;
}

/* Query row r, and those behind it that are evenly apart. */
static tile_rows query_rows(const query_tile *tile, int64_t r) {
  const attn_layout *strides = &tile->problem->query;
  return (tile_rows){tile_element(tile->kernels, tile->tensors->query, query_tile_offset(tile, strides, r)),
                     strides->position};
}

/* phi of the tile's queries, and where there will be pairs its columns. */
static void load_queries(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                         bool pairs) {
  const void *row[TILE_MAX_ROWS];
  const int64_t depth = tile->problem->head_dim, step = tile->heads == 1 ? tile->count : 1;
  for (int64_t r = 0; r < tile->count; r += step)
    map_features(tile->problem, plan->kernels, step, depth, query_rows(tile, r),
                 (tile_target){scratch->queries + r * plan->depth, plan->depth});
  if (!pairs) return;
  for (int64_t r = 0; r < tile->count; r++) row[r] = scratch->queries + r * plan->depth;
  plan->floats->pack(tile->layout.rows, tile->count, depth, row, 1, scratch->columns);
}

/* Output and sums from the state. The next tile begins so many positions further on. */
static void apply_state(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                        int64_t positions) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = plan->kernels;
  const int64_t depth = problem->head_dim;
  const tile_rows queries = tile_rows_from(kernels, query_rows(tile, 0), positions),
                  outputs = tile_rows_from(
                      plan->outputs, (tile_rows){output_row(tile, 0), problem->output.position}, positions);
  const tile_ahead next = {
      .of = {{queries.x, queries.stride * kernels->element_bytes, depth * kernels->element_bytes},
             {outputs.x, outputs.stride * plan->outputs->element_bytes,
              problem->value_dim * plan->outputs->element_bytes}}};
  for (int64_t e = 0; e < plan->width; e += kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    kernels->scores((tile_size){wide, tile->count, depth}, (tile_matrix){scratch->state + depth * e, wide},
                    (tile_rows){scratch->queries, plan->depth}, 1, e == 0 ? &next : NULL,
                    (tile_target){scratch->output + e, plan->width});
  }
  kernels->dot_rows(tile->layout.rows, plan->depth, (tile_matrix){scratch->queries, plan->depth},
                    scratch->normaliser, scratch->sums);
}

void linear_solve_tile(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       linear_stop stop) {
  const attn_problem *problem = tile->problem;
  load_queries(tile, plan, scratch, stop.ready < stop.end);
  apply_state(tile, plan, scratch, stop.rows / tile->heads);
  for (int64_t first = stop.ready, next; first < stop.end; first = next) {
    next = first + TILE_KEYS < stop.end ? first + TILE_KEYS : stop.end;
    load_keys(tile, plan, scratch, first, next);
    add_pairs(tile, plan, scratch, first, next);
    add_to_state(tile, plan, scratch, first, next);
  }
  const float epsilon = (float)problem->epsilon;
  void *row[TILE_MAX_ROWS];
  float factor[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++)
    factor[r] = problem->unnormalised ? 1 : 1 / (scratch->sums[r] + epsilon);
  for (int64_t r = 0; r < tile->count; r++) row[r] = output_row(tile, r);
  plan->outputs->scale_rows(tile->count, problem->value_dim, (tile_matrix){scratch->output, plan->width},
                            factor, row);
  /* Rows that see nothing come first; a query that is not finite has made NaNs of the empty state. */
  for (int64_t r = 0; r < tile->count && tile->row[r].visible.end == 0 && !problem->states.state.type; r++)
    memset(row[r], 0, (size_t)(problem->value_dim * plan->outputs->element_bytes));
}

/* ---- states ---- */

static int64_t state_place(const attn_layout *strides, const attn_problem *problem, int64_t head, int64_t d) {
  return head / problem->kv_heads * strides->batch + head % problem->kv_heads * strides->head +
         d * strides->position;
}

void linear_begin_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
                        int64_t head) {
  const attn_linear_states *given = &problem->states;
  memset(scratch->normaliser, 0, plan->state_floats * sizeof *scratch->normaliser);
  for (int64_t d = 0; given->state.type && d < scratch->features; d++) {
    const int64_t feature = scratch->first_feature + d;
    const float *row = given->state_data + state_place(&given->state, problem, head, feature);
    for (int64_t e = 0; e < problem->value_dim; e += plan->kernels->max_rows) {
      const int64_t left = problem->value_dim - e, wide = strip(plan, plan->width, e);
      memcpy(scratch->state + scratch->features * e + d * wide, row + e,
             (size_t)(left < wide ? left : wide) * sizeof *row);
    }
    if (given->state_sum.type)
      scratch->normaliser[d] =
          given->state_sum_data[state_place(&given->state_sum, problem, head, 0) + feature];
  }
}

void linear_end_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
                      int64_t head) {
  const attn_linear_states *wanted = &problem->states;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    float *row = wanted->final_state_data + state_place(&wanted->final_state, problem, head, d);
    for (int64_t e = 0; e < problem->value_dim; e += plan->kernels->max_rows) {
      const int64_t left = problem->value_dim - e, wide = strip(plan, plan->width, e);
      memcpy(row + e, scratch->state + problem->head_dim * e + d * wide,
             (size_t)(left < wide ? left : wide) * sizeof *row);
    }
    if (wanted->final_state_sum.type)
      wanted->final_state_sum_data[state_place(&wanted->final_state_sum, problem, head, 0) + d] =
          scratch->normaliser[d];
  }
}

void linear_leave_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *slice,
                        float *whole) {
  const int64_t first = slice->first_feature, count = slice->features;
  float *state = whole + plan->depth;
  memcpy(whole + first, slice->normaliser, (size_t)count * sizeof *whole);
  if (first + count == problem->head_dim) /* the padding is the last slice's as well */
    memset(whole + problem->head_dim, 0, (size_t)(plan->depth - problem->head_dim) * sizeof *whole);
  for (int64_t e = 0; e < plan->width; e += plan->kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    memcpy(state + problem->head_dim * e + first * wide, slice->state + count * e,
           (size_t)(count * wide) * sizeof *whole);
  }
}
