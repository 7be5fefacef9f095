/* See linear_tile.h. The tile kernels of softmax attention do the products, with the features of a value where those have rows:
 * nothing is transposed. */
#include "linear_tile.h"

#include <math.h>
#include <string.h>

enum {
  KEY_GAP = 16,
  /* Features that are mapped beside products: two tiles of more crowd the L1 cache (with D = 128 full takes 1.01 of the time). */
  MOST_MAPPED = 64
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t whole_lines(int64_t floats) { return (size_t)linear_round_up(floats, 16); }

static size_t key_floats(const linear_plan *plan) { return whole_lines(TILE_KEYS * (plan->depth + KEY_GAP)); }
static size_t query_floats(const linear_plan *plan) { return whole_lines(TILE_MAX_ROWS * plan->depth); }

/* Whether products map what comes next: rows of whole vectors, in strips of all rows. */
static bool maps_beside(const attn_problem *problem, const linear_plan *plan) {
  return problem->feature_map == ATTN_ELU1 && plan->kernels->maps_beside &&
         plan->kernels->type == ATTN_FLOAT32 && problem->head_dim == plan->depth &&
         plan->depth <= MOST_MAPPED && plan->width >= plan->kernels->max_rows;
}

void linear_measure(const attn_problem *problem, linear_plan *plan) {
  const int64_t lanes = plan->kernels->lanes;
  const int64_t least = problem->head_dim < problem->value_dim ? problem->head_dim : problem->value_dim;
  /* Rows of D + Dv floats take D Dv multiply-adds, 96 in a step on AVX2: the fewer, the more is to be fetched in each. */
  plan->pace = least < 24 ? 64 : least < 48 ? 32 : 16;
  plan->depth = linear_round_up(problem->head_dim, lanes);
  plan->width = linear_round_up(problem->value_dim, lanes);
  plan->state_floats = whole_lines(plan->depth + problem->head_dim * plan->width);
  plan->maps_beside = maps_beside(problem, plan);
  plan->thread_floats = plan->state_floats + whole_lines(TILE_KEYS * plan->width) +
                        (plan->maps_beside ? 2 : 1) * (key_floats(plan) + query_floats(plan)) +
                        whole_lines(plan->rows * (TILE_KEYS + plan->width + 1)) + TILE_MAX_ROWS + TILE_KEYS;
}

void linear_take_features(const linear_plan *plan, linear_scratch *scratch, int64_t first, int64_t end) {
  scratch->first_feature = first;
  scratch->features = end - first;
  scratch->pitch = linear_round_up(end - first, plan->kernels->lanes);
  scratch->keys.stride = scratch->pitch + (scratch->pitch % 32 == 0 ? KEY_GAP : 0);
  scratch->state = scratch->normaliser + scratch->pitch;
}

linear_scratch linear_make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory) {
  linear_scratch scratch = {.normaliser = memory};
  linear_take_features(plan, &scratch, 0, problem->head_dim);
  scratch.ones = scratch.normaliser + plan->state_floats;
  scratch.gates = scratch.ones + TILE_MAX_ROWS;
  scratch.keys.now = scratch.gates + TILE_KEYS;
  scratch.keys.next = scratch.keys.now + (plan->maps_beside ? key_floats(plan) : 0);
  scratch.queries.stride = plan->depth;
  scratch.queries.now = scratch.keys.next + key_floats(plan);
  scratch.queries.next = scratch.queries.now + (plan->maps_beside ? query_floats(plan) : 0);
  scratch.values = scratch.queries.next + query_floats(plan);
  scratch.weights = scratch.values + whole_lines(TILE_KEYS * plan->width);
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

/* Whether rows [first, end) are those that products have mapped meanwhile: then what they have left of them is mapped, and all
 * are there. */
static bool take_coming(const linear_plan *plan, int64_t first, int64_t end, linear_features *of) {
  float *now = of->next;
  if (first != of->coming.first || end > of->coming.end) return false;
  plan->kernels->elu1(of->mapping.rows, of->mapping.width, (tile_rows){of->mapping.x.x, of->mapping.x.stride},
                      of->mapping.y);
  of->next = of->now;
  of->now = now;
  of->mapped = of->coming;
  return true;
}

/* Products are to map `rows` rows behind those that are mapped, of so many features from x on. */
static void begin_mapping(int64_t rows, int64_t width, tile_rows x, linear_features *of) {
  of->coming = (attn_range){of->mapped.end, of->mapped.end + rows};
  of->mapping = (tile_mapping){rows, width, 0, {x.x, x.stride}, {of->next, of->stride}};
}

/* Rows of them that come behind what is looked at and are mapped already, or soon. */
static int64_t mapped_ahead(const linear_features *of, int64_t rows) {
  return of->coming.end > of->mapped.end ? 2 * rows : rows;
}

/* Gates of keys [first, end). */
static void load_gates(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const int64_t kv_head = tile->first_head / plan->group;
  const float *decay =
      problem->decay_data + tile->batch * problem->decay.batch + kv_head * problem->decay.head + first;
  for (int64_t j = 0; j < TILE_KEYS; j++)
    scratch->gates[j] = j < end - first ? decay[j] * 0x1.715476p+0f : 0; /* log2(e) */
  plan->floats->exp2(TILE_KEYS, scratch->gates);
}

static tile_rows key_rows(const linear_tile *tile, const linear_plan *plan, const linear_scratch *scratch,
                          int64_t j) {
  const tile_rows key = tile_rows_from(plan->kernels, tile->key, j);
  return (tile_rows){tile_element(plan->kernels, key.x, scratch->first_feature), key.stride};
}

/* phi of keys [first, end) and of all behind them that fit, unless they are there. */
static void need_keys(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                      int64_t first, int64_t end) {
  const int64_t length = attn_key_count(tile->problem, tile->batch);
  linear_features *keys = &scratch->keys;
  if (first >= keys->mapped.first && end <= keys->mapped.end) return;
  if (!take_coming(plan, first, end, keys)) {
    keys->mapped = (attn_range){first, smaller(first + TILE_KEYS, length)};
    map_features(tile->problem, plan->kernels, keys->mapped.end - first, scratch->features,
                 key_rows(tile, plan, scratch, first), (tile_target){keys->now, keys->stride});
  }
  if (tile->problem->decay.type) load_gates(tile, plan, scratch, first, keys->mapped.end);
  /* Tiles that end within those keys would have what was mapped go to waste. */
  if (plan->maps_beside && scratch->features == scratch->pitch && tile->most % tile->heads == 0)
    begin_mapping(smaller(TILE_KEYS, length - keys->mapped.end), scratch->features,
                  key_rows(tile, plan, scratch, keys->mapped.end), keys);
}

/* phi of a mapped key, and its gate. */
static float *mapped_key(const linear_scratch *scratch, int64_t j) {
  return scratch->keys.now + (j - scratch->keys.mapped.first) * scratch->keys.stride;
}
static const float *gate_of(const linear_scratch *scratch, int64_t j) {
  return scratch->gates + (j - scratch->keys.mapped.first);
}

/* Values as floats in whole vectors: as they are, or copied; `finite` leaves out what is not. */
static tile_matrix load_values(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
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

/* Lets keys [first, end) fade to where the last one stands, each by the gates behind it. Returns what the keys
 * before them fade by. Gates are multiplied and no logarithms are taken from each other, so that one of 0 does no harm. */
static float fade_keys(const linear_scratch *scratch, int64_t first, int64_t end) {
  float fade = 1;
  for (int64_t j = end - 1; j >= first; j--) {
    float *key = mapped_key(scratch, j);
    for (int64_t d = 0; d < scratch->pitch; d++) key[d] *= fade;
    fade *= *gate_of(scratch, j);
  }
  return fade;
}

/* state += phi(k_j) v_j^T over keys [first, end), which are mapped, and the normaliser with it. Keys that decay are no longer
 * there afterwards. */
static void add_to_state(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                         int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = plan->kernels;
  const int64_t features = scratch->features, pitch = scratch->pitch;
  const tile_matrix values = load_values(tile, plan, scratch, first, end, false);
  const float *keys = mapped_key(scratch, first);
  float fades[TILE_MAX_ROWS];
  if (problem->decay.type) {
    const float fade = fade_keys(scratch, first, end);
    for (int64_t r = 0; r < TILE_MAX_ROWS; r++) fades[r] = fade;
    for (int64_t d = 0; d < pitch; d++) scratch->normaliser[d] *= fade;
  }
  const int64_t behind = first + TILE_KEYS;
  const tile_rows next_key = key_rows(tile, plan, scratch, first + mapped_ahead(&scratch->keys, TILE_KEYS));
  const int64_t bytes = kernels->element_bytes;
  const tile_ahead next = {.rows = behind < problem->key_length ? end - first : 0,
                           .of = {{next_key.x, next_key.stride * bytes, features * bytes},
                                  {tile_rows_from(kernels, tile->value, behind).x, tile->value.stride * bytes,
                                   problem->value_dim * bytes}},
                           .pace = plan->pace,
                           .mapping = &scratch->keys.mapping};
  for (int64_t e = 0; e < plan->width; e += kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    const tile_ahead ahead = tile_share(next, e, wide, plan->width);
    kernels->accumulate((tile_size){wide, end - first, features}, from_column(values, e),
                        (tile_rows){keys, scratch->keys.stride}, problem->decay.type ? fades : NULL, &ahead,
                        (tile_target){scratch->state + features * e, wide});
  }
  for (int64_t d = 0; d < pitch; d += kernels->max_rows)
    kernels->add_rows(end - first, strip(plan, pitch, d), (tile_matrix){keys + d, scratch->keys.stride},
                      scratch->normaliser + d);
}

void linear_advance(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                    int64_t end) {
  for (int64_t next; first < end; first = next) {
    next = first + TILE_KEYS < end ? first + TILE_KEYS : end;
    need_keys(tile, plan, scratch, first, next);
    add_to_state(tile, plan, scratch, first, next);
  }
}

/* Adds what load_values left out, to the rows that see it. */
static void add_nonfinite(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                          int64_t first, int64_t end) {
  const int64_t width = tile->problem->value_dim;
  for (int64_t j = first; j < end; j++) {
    float *value = scratch->values; /* which are in the output */
    plan->kernels->read(width, tile_rows_from(plan->kernels, tile->value, j).x, value);
    for (int64_t r = 0; r < tile->count; r++)
      for (int64_t e = 0; e < width && j < linear_end_of_row(tile, r); e++)
        if (!isfinite(value[e]))
          scratch->output[r * plan->width + e] += scratch->weights[(j - first) * tile->rows + r] * value[e];
  }
}

/* Lets the weights of keys [first, first + count) fade, each by the gates from behind its key to the last that the
 * row sees, and the rows' queries, which meet the keys before, by those of all. */
static void fade_pairs(const linear_tile *tile, const linear_plan *plan, const linear_scratch *scratch,
                       int64_t first, int64_t count, const int64_t *seen, float *queries) {
  const int64_t rows = tile->rows;
  float fades[TILE_MAX_ROWS];
  for (int64_t r = 0; r < TILE_MAX_ROWS; r++) fades[r] = 1;
  for (int64_t j = count - 1; j >= 0; j--) {
    const float gate = *gate_of(scratch, first + j);
    float *weights = scratch->weights + j * rows;
    for (int64_t r = 0; r < rows; r++) {
      weights[r] *= fades[r];
      fades[r] *= seen[r] > j ? gate : 1;
    }
  }
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t d = 0; d < plan->depth; d++) queries[r * plan->depth + d] *= fades[r];
}

/* What keys [first, end) weigh in the rows that see them: a later row no fewer. seen: how many each row sees. So few are
 * worth no columns of queries: sums over features, of what is seen, take 0.7 of the time. */
static void weigh_pairs(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                        int64_t first, int64_t end, float *queries, int64_t *seen) {
  const int64_t rows = tile->rows;
  /* Mostly each row sees one key more than the row before. */
  const int64_t least = linear_end_of_row(tile, 0) - first, more = tile->count - 1;
  const bool diagonal = tile->heads == 1 && linear_end_of_row(tile, more) - first == least + more;
  for (int64_t r = 0; r < rows; r++)
    seen[r] = r > more ? end - first : diagonal ? least + r : linear_end_of_row(tile, r) - first;
  need_keys(tile, plan, scratch, first, end);
  plan->kernels->dot_rows((tile_size){rows, end - first, plan->depth}, (tile_matrix){queries, plan->depth},
                          (tile_matrix){mapped_key(scratch, first), scratch->keys.stride}, seen,
                          (tile_target){scratch->weights, rows});
  if (tile->problem->decay.type) fade_pairs(tile, plan, scratch, first, end - first, seen, queries);
}

/* Element offset of row r in a tensor with these strides. */
static int64_t offset_of(const linear_tile *tile, const attn_layout *strides, int64_t r) {
  const int64_t row = tile->first_row + r, position = linear_position(tile, row);
  return tile->batch * strides->batch + (tile->first_head + row - position * tile->heads) * strides->head +
         position * strides->position;
}

static void *output_row(const linear_tile *tile, const linear_plan *plan, int64_t r) {
  return (char *)tile->tensors->output +
         offset_of(tile, &tile->problem->output, r) * plan->outputs->element_bytes;
}

/* Query row r, and those behind it that are evenly apart. */
static tile_rows query_rows(const linear_tile *tile, const linear_plan *plan, int64_t r) {
  const attn_layout *strides = &tile->problem->query;
  return (tile_rows){tile_element(plan->kernels, tile->tensors->query, offset_of(tile, strides, r)),
                     strides->position};
}

/* phi of the tile's queries; where rows are evenly apart, of as many behind them as fit, for the tiles that come next. */
static float *map_queries(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch) {
  const int64_t first = tile->first_row, end = first + tile->count;
  const int64_t depth = tile->problem->head_dim, all = tile->problem->query_length * tile->heads;
  const bool even = tile->heads == 1;
  linear_features *queries = &scratch->queries;
  if (first >= queries->mapped.first && end <= queries->mapped.end)
    return queries->now + (first - queries->mapped.first) * queries->stride;
  if (!take_coming(plan, first, end, queries)) {
    const int64_t rows = even ? smaller(TILE_MAX_ROWS, all - first) : tile->count, step = even ? rows : 1;
    for (int64_t r = 0; r < rows; r += step)
      map_features(tile->problem, plan->kernels, step, depth, query_rows(tile, plan, r),
                   (tile_target){queries->now + r * queries->stride, queries->stride});
    queries->mapped = (attn_range){first, first + rows};
  }
  if (plan->maps_beside && even)
    begin_mapping(smaller(TILE_MAX_ROWS, all - queries->mapped.end), depth,
                  query_rows(tile, plan, queries->mapped.end - first), queries);
  return queries->now;
}

/* factor[r]: what the output of row r is divided by, inverted. */
static void find_factors(const linear_tile *tile, const linear_plan *plan, const linear_scratch *scratch,
                         const float *queries, int64_t pairs, float *factor) {
  const int64_t rows = tile->rows;
  const float epsilon = (float)tile->problem->epsilon;
  if (tile->problem->unnormalised) {
    for (int64_t r = 0; r < tile->count; r++) factor[r] = 1;
    return;
  }
  plan->kernels->dot_rows((tile_size){rows, 1, plan->depth}, (tile_matrix){queries, plan->depth},
                          (tile_matrix){scratch->normaliser, 0}, NULL, (tile_target){scratch->sums, 0});
  plan->kernels->add_rows(pairs, rows, (tile_matrix){scratch->weights, rows}, scratch->sums);
  for (int64_t r = 0; r < tile->count; r++) factor[r] = 1 / (scratch->sums[r] + epsilon);
}

/* Rows of the output: what the state and pairs give. */
static void sum_rows(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch, tile_sum of,
                     tile_target rows) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = plan->kernels;
  const int64_t depth = problem->head_dim, positions = linear_position(tile, tile->most);
  const int64_t behind = tile->heads > 1 ? positions : TILE_MAX_ROWS;
  const tile_rows queries = tile_rows_from(kernels, query_rows(tile, plan, 0),
                                           mapped_ahead(&scratch->queries, behind)),
                  outputs = tile_rows_from(plan->outputs,
                                           (tile_rows){output_row(tile, plan, 0), problem->output.position},
                                           behind);
  const tile_ahead next = {
      .rows = positions,
      .of = {{queries.x, queries.stride * kernels->element_bytes, depth * kernels->element_bytes},
             {outputs.x, outputs.stride * plan->outputs->element_bytes,
              problem->value_dim * plan->outputs->element_bytes}},
      .pace = plan->pace,
      .mapping = &scratch->queries.mapping};
  const tile_matrix values = of.values;
  for (int64_t e = 0; e < plan->width; e += kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    const tile_ahead ahead = tile_share(next, e, wide, plan->width);
    of.columns = scratch->state + depth * e;
    if (of.seen) of.values = from_column(values, e);
    kernels->sum_products(wide, tile->count, &of, &ahead, (tile_target){rows.x + e, rows.stride});
  }
}

/* Whether the rows of the output are of floats in whole vectors, and evenly apart. */
static bool has_even_rows(const linear_tile *tile, const linear_plan *plan) {
  return tile->heads == 1 && plan->outputs->element_bytes == sizeof(float) &&
         tile->problem->value_dim == plan->width;
}

/* A value that is not finite makes the last row so, which sees all keys. */
static bool is_finite(const linear_tile *tile, const linear_plan *plan, tile_target rows) {
  const float *last = rows.x + (tile->count - 1) * rows.stride;
  return plan->floats->all_finite(1, tile->problem->value_dim, (tile_rows){last, 0});
}

/* The rows in the scratch, from where they go to the output. A weight of 0 times a NaN or an infinity would reach
 * rows that cannot see it: where there is one, those are left out and added to the rows that do. */
static void solve_apart(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                        linear_stop stop, tile_sum of) {
  const tile_target rows = {scratch->output, plan->width};
  const float *factor = of.factor;
  void *row[TILE_MAX_ROWS];
  of.factor = scratch->ones;
  sum_rows(tile, plan, scratch, of, rows);
  if (of.seen && !is_finite(tile, plan, rows)) {
    of.values = load_values(tile, plan, scratch, stop.ready, stop.end, true);
    sum_rows(tile, plan, scratch, of, rows);
    add_nonfinite(tile, plan, scratch, stop.ready, stop.end);
  }
  for (int64_t r = 0; r < tile->count; r++) row[r] = output_row(tile, plan, r);
  plan->outputs->scale_rows(tile->count, tile->problem->value_dim,
                            (tile_matrix){scratch->output, plan->width}, factor, row);
}

void linear_solve_tile(const linear_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       linear_stop stop) {
  const attn_problem *problem = tile->problem;
  const int64_t pairs = stop.end - stop.ready;
  float *queries = map_queries(tile, plan, scratch), factor[TILE_MAX_ROWS];
  int64_t seen[TILE_MAX_ROWS];
  tile_sum of = {.depth = problem->head_dim, .x = {queries, plan->depth}, .factor = factor};
  if (pairs > 0) {
    weigh_pairs(tile, plan, scratch, stop.ready, stop.end, queries, seen);
    of.seen = seen;
    of.weights = (tile_matrix){scratch->weights, tile->rows};
    of.values = load_values(tile, plan, scratch, stop.ready, stop.end, false);
  }
  find_factors(tile, plan, scratch, queries, pairs, factor);
  if (has_even_rows(tile, plan)) {
    const tile_target rows = {output_row(tile, plan, 0), problem->output.position};
    sum_rows(tile, plan, scratch, of, rows);
    if (pairs > 0 && !is_finite(tile, plan, rows)) solve_apart(tile, plan, scratch, stop, of);
  } else {
    solve_apart(tile, plan, scratch, stop, of);
  }
  /* Rows that see nothing come first; a query that is not finite has made NaNs of the empty state. */
  for (int64_t r = 0; r < tile->count && !problem->states.state.type && linear_end_of_row(tile, r) == 0; r++)
    memset(output_row(tile, plan, r), 0, (size_t)(problem->value_dim * plan->outputs->element_bytes));
  if (pairs > 0) add_to_state(tile, plan, scratch, stop.ready, stop.end);
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
