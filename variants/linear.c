/* Linear attention (Katharopoulos et al. 2020): the weight of a key is phi(q).phi(k), phi(x) = elu(x) + 1 or another feature map,
 * and since that is a plain product the sum over keys can be taken first:
 *
 *     state  = sum_j phi(k_j) v_j^T,  D x Dv        normaliser = sum_j phi(k_j)
 *     output = phi(q_i) state / (phi(q_i) . normaliser + epsilon)
 *
 * One pass over keys and queries, O(T) time, and a state that does not grow. Under a causal mask the state
 * moves along with the query tiles: it holds what all rows of the tile see, and the few keys that only
 * some rows see are met pair by pair. The tile kernels of softmax attention do the products, with the
 * features of a value where those have rows: nothing is transposed but the queries of such pairs.
 *
 * Where keys decay, a chunk's keys fade to where its last one stands before they join the state, which has faded by all
 * gates of the chunk; pairs fade by the gates between them. Gates are multiplied, so that nothing is divided by what vanished.
 *
 * An initial state is what the walk begins with, and the final state what it holds when all keys have joined it.
 *
 * A head is one walk along its keys, so that its bits follow from nothing else. Where there are too few heads for the
 * threads, each thread first walks all keys with a slice of the features of phi(k), whose rows of the state need
 * nothing of the others, and leaves what the state holds where a share of the query tiles begins; then shares
 * are solved in parallel. Under a causal mask that is a second walk, worth it with threads that have no head. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "tile/query_tile.h"

enum {
  LEAST_LENGTH = 1024, /* of queries or keys, worth sharing a head out */
  LEAST_FEATURES = 4,  /* of a slice */
  KEY_GAP = 16
};

typedef struct linear_plan {
  const tile_kernels *kernels, *floats,
      *outputs;           /* of the inputs' type, of float32, and of the output's type */
  int64_t group, heads;   /* query heads to a key/value head; key/value heads of all batch entries */
  int64_t rows;           /* query rows of the largest tile */
  int64_t slices, shares; /* of each head, where it is shared out; else 1 */
  int64_t depth, width;   /* D and Dv, padded to whole vectors */
  size_t state_floats, thread_floats;
} linear_plan;

/* What one thread works in. The state lies in strips of the features that a kernel takes, one strip after the
 * other: columns that are twice as far apart would share half of the L1 cache (5% slower at Dv = 128). */
typedef struct linear_scratch {
  int64_t first_feature, features,
      pitch,         /* those of the keys that it takes, and their number in whole vectors */
      stride;        /* from key to key: of a power of two, all would share a few sets of the L1 cache */
  float *normaliser; /* [pitch] */
  float
      *state;  /* [features, width] in strips, right behind the normaliser, so that both are copied at once */
  float *keys; /* phi(k) [TILE_KEYS, stride] */
  float *values;  /* [TILE_KEYS, width], where those of the problem cannot be read as they are */
  float *queries; /* phi(q) [rows, depth] */
  float *columns; /* phi(q), columns [D, rows] */
  float *weights; /* columns [TILE_KEYS, rows] */
  float *output;  /* [rows, width] */
  float *sums;    /* [rows], the output's divisor */
  float *ones;    /* [TILE_MAX_ROWS] */
  float *gates;   /* [TILE_KEYS] of the loaded keys, where they decay */
} linear_scratch;

static const float one = 1;

static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
static size_t whole_lines(int64_t floats) { return (size_t)round_up(floats, 16); }

/* Whether some row of the entry sees less than the keys that it has: the first row sees the fewest. A band that hides
 * nothing is none, to the last bit. */
static bool is_causal(const attn_problem *problem, int64_t b) {
  const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  return attn_visible_keys(problem, b, 0).end < keys;
}

/* Query rows of a tile of entry b. Half a tile under a causal mask: pairs that only some rows see cost
 * rows * (D + Dv) a row. */
static int64_t tile_rows_of(const attn_problem *problem, const linear_plan *plan, int64_t b) {
  return is_causal(problem, b) ? 2 * plan->kernels->lanes : TILE_MAX_ROWS;
}

static int64_t tiles_of(const attn_problem *problem, const linear_plan *plan, int64_t b) {
  const int64_t rows = tile_rows_of(problem, plan, b);
  return problem->query_heads > 0 ? (problem->query_length * plan->group + rows - 1) / rows : 0;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* Slices that give all threads the same to do; none where heads do so already, or nearly. */
static int64_t wanted_slices(const attn_problem *problem, int64_t heads, int64_t threads, bool causal) {
  const int64_t slices =
      heads > 0 && heads < (causal ? threads : 4 * threads) ? threads / common_divisor(heads, threads) : 1;
  const int64_t most = (problem->head_dim + LEAST_FEATURES - 1) / LEAST_FEATURES;
  return slices < most ? slices : most;
}

static linear_plan make_plan(const attn_call *call) {
  const attn_problem *problem = call->problem;
  linear_plan plan = {.kernels = tile_select_floats(call->isa, problem->query.type),
                      .floats = tile_select_floats(call->isa, ATTN_FLOAT32),
                      .outputs = tile_select_floats(call->isa, problem->output.type),
                      .slices = 1,
                      .shares = 1};
  const int64_t lanes = plan.kernels->lanes;
  bool causal = false;
  if (problem->kv_heads == 0 || (problem->query_heads == 0 && !problem->states.final_state.type)) return plan;
  plan.group = problem->query_heads > 0 ? problem->query_heads / problem->kv_heads : 1;
  plan.heads = problem->batch * problem->kv_heads;
  for (int64_t b = 0; b < problem->batch; b++) {
    const int64_t rows = tile_rows_of(problem, &plan, b);
    if (rows > plan.rows) plan.rows = rows;
    causal |= is_causal(problem, b);
  }
  plan.slices = wanted_slices(problem, plan.heads, call->threads, causal);
  if (plan.slices > 1) plan.shares = 2 * plan.slices;
  plan.depth = round_up(problem->head_dim, lanes);
  plan.width = round_up(problem->value_dim, lanes);
  plan.state_floats = whole_lines(plan.depth + problem->head_dim * plan.width);
  plan.thread_floats =
      plan.state_floats + whole_lines(TILE_KEYS * (plan.depth + KEY_GAP + plan.width)) +
      whole_lines(plan.rows * (plan.depth + problem->head_dim + TILE_KEYS + plan.width + 1)) + TILE_MAX_ROWS +
      TILE_KEYS;
  return plan;
}

/* Lets the scratch take some features of the keys. */
static void take_features(const linear_plan *plan, linear_scratch *scratch, int64_t first, int64_t end) {
  scratch->first_feature = first;
  scratch->features = end - first;
  scratch->pitch = round_up(end - first, plan->kernels->lanes);
  scratch->stride = scratch->pitch + (scratch->pitch % 32 == 0 ? KEY_GAP : 0);
  scratch->state = scratch->normaliser + scratch->pitch;
}

static linear_scratch make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory) {
  linear_scratch scratch = {.normaliser = memory};
  take_features(plan, &scratch, 0, problem->head_dim);
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

/* Adds keys [first, end) to the state. */
static void advance(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
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

/* Output and sums from the state. */
static void apply_state(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch) {
  const attn_problem *problem = tile->problem;
  const tile_kernels *kernels = plan->kernels;
  const int64_t depth = problem->head_dim;
  const int64_t positions = tile_rows_of(problem, plan, tile->batch) / tile->heads;
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

/* Where the keys end that query row `row` of a head sees. They never end earlier for a later row. */
static int64_t end_of_row(const attn_problem *problem, const linear_plan *plan, int64_t b, int64_t row) {
  return attn_visible_keys(problem, b, row / plan->group).end;
}

/* The walk along the keys of a head, at one of its query tiles. Those before `ready` are in the state when it is
 * applied. The others, up to `end`, are seen by some rows only: they are met pair by pair and then join the state. */
typedef struct linear_stop {
  int64_t before, ready, end;
} linear_stop;

static linear_stop stop_at(const attn_problem *problem, const linear_plan *plan, int64_t b, int64_t index) {
  const int64_t rows = tile_rows_of(problem, plan, b), all_rows = problem->query_length * plan->group;
  const int64_t first = index * rows, last = first + rows < all_rows ? first + rows : all_rows;
  const int64_t all = end_of_row(problem, plan, b, first);
  linear_stop stop = {.before = index > 0 ? end_of_row(problem, plan, b, first - 1) : 0};
  stop.end = end_of_row(problem, plan, b, last - 1);
  /* Where other keys are seen by some rows only, what is not a whole tile of keys goes with them. */
  stop.ready = all == stop.end ? all : stop.before + (all - stop.before) / TILE_KEYS * TILE_KEYS;
  return stop;
}

/* One query tile, the state holding its keys up to stop.ready; then it reaches stop.end. */
static void solve_tile(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       linear_stop stop) {
  const attn_problem *problem = tile->problem;
  load_queries(tile, plan, scratch, stop.ready < stop.end);
  apply_state(tile, plan, scratch);
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

/* Tile `index` of a key/value head; its group of query heads is stacked, as in grouped_query. */
static void place(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                  int64_t head, int64_t index, query_tile *tile) {
  tile->batch = head / problem->kv_heads;
  const int64_t rows = tile_rows_of(problem, plan, tile->batch);
  const int64_t left = problem->query_length * plan->group - index * rows;
  tile->kernels = plan->kernels;
  tile->output_kernels = plan->outputs;
  tile->problem = problem;
  tile->tensors = tensors;
  tile->first_head = head % problem->kv_heads * plan->group;
  tile->heads = plan->group;
  tile->first_row = index * rows;
  tile->count = left < rows ? left : rows;
  tile->layout.rows = round_up(tile->count, plan->kernels->lanes);
  query_tile_place(tile);
}

/* ---- states ---- */

static int64_t state_place(const attn_layout *strides, const attn_problem *problem, int64_t head, int64_t d) {
  return head / problem->kv_heads * strides->batch + head % problem->kv_heads * strides->head +
         d * strides->position;
}

/* What the walk along the keys of a head begins with: those of the scratch's features of the initial state, or zeros. */
static void begin_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
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

/* The state of all features, which has all keys. */
static void end_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *scratch,
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

/* Where no query asks for them. */
static void place_keys(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                       int64_t head, query_tile *tile) {
  const int64_t b = head / problem->kv_heads, kv_head = head % problem->kv_heads;
  const tile_kernels *kernels = plan->kernels;
  *tile = (query_tile){.kernels = kernels,
                       .problem = problem,
                       .tensors = tensors,
                       .batch = b,
                       .first_head = kv_head * plan->group};
  tile->key =
      (tile_rows){tile_element(kernels, tensors->key, b * problem->key.batch + kv_head * problem->key.head),
                  problem->key.position};
  tile->value = (tile_rows){
      tile_element(kernels, tensors->value, b * problem->value.batch + kv_head * problem->value.head),
      problem->value.position};
}

/* The first tile of a share. */
static int64_t first_tile(const linear_plan *plan, int64_t tiles, int64_t share) {
  return tiles * share / plan->shares;
}

/* Copies a slice of the features into a whole state. */
static void leave_state(const attn_problem *problem, const linear_plan *plan, const linear_scratch *slice,
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

/* Walks the keys of a head with one slice of their features, and leaves what the state holds when the first tile of
 * each share finds it ready: key by key what it holds where one thread goes all the way. */
static void sum_slice(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                      linear_scratch *scratch, int64_t head, int64_t slice, float *states) {
  const int64_t b = head / problem->kv_heads, tiles = tiles_of(problem, plan, b);
  const int64_t granules = (problem->head_dim + LEAST_FEATURES - 1) / LEAST_FEATURES;
  const int64_t first = granules * slice / plan->slices * LEAST_FEATURES;
  const int64_t end = granules * (slice + 1) / plan->slices * LEAST_FEATURES;
  query_tile tile;
  place(problem, tensors, plan, head, 0, &tile);
  take_features(plan, scratch, first, end < problem->head_dim ? end : problem->head_dim);
  begin_state(problem, plan, scratch, head);
  for (int64_t index = 0, share = 0; share < plan->shares; index++) {
    const linear_stop stop = stop_at(problem, plan, b, index);
    advance(&tile, plan, scratch, stop.before, stop.ready);
    for (; share < plan->shares && first_tile(plan, tiles, share) == index; share++)
      leave_state(problem, plan, scratch, states + (size_t)share * plan->state_floats);
    advance(&tile, plan, scratch, stop.ready, stop.end);
  }
}

/* One share of the tiles of a head, in order, the state moving along. */
static void solve_share(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                        linear_scratch *scratch, int64_t head, int64_t share, const float *state) {
  const int64_t b = head / problem->kv_heads, tiles = tiles_of(problem, plan, b);
  const int64_t first = first_tile(plan, tiles, share), end = first_tile(plan, tiles, share + 1);
  const bool leaves = problem->states.final_state.type && share == plan->shares - 1;
  int64_t reached = 0; /* keys that are in the state */
  query_tile tile;
  if (first == end && !leaves) return;
  if (state)
    memcpy(scratch->normaliser, state, plan->state_floats * sizeof *state);
  else
    begin_state(problem, plan, scratch, head);
  for (int64_t index = first; index < end; index++) {
    const linear_stop stop = stop_at(problem, plan, b, index);
    place(problem, tensors, plan, head, index, &tile);
    if (index > first || !state) advance(&tile, plan, scratch, stop.before, stop.ready);
    solve_tile(&tile, plan, scratch, stop);
    reached = stop.end;
  }
  if (!leaves) return;
  if (first == end) place_keys(problem, tensors, plan, head, &tile);
  advance(&tile, plan, scratch, reached,
          problem->key_lengths ? problem->key_lengths[b] : problem->key_length);
  end_state(problem, plan, scratch, head);
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (p->left != ATTN_UNLIMITED) return "a running sum cannot forget keys: needs an unlimited left";
  if (p->decay.type && p->right != 0)
    return "keys that have decayed are not ahead of a query: needs a causal band";
  if (p->key.type != p->query.type || p->value.type != p->query.type)
    return "takes queries, keys and values of one type";
  return tile_refusal(call->isa, ATTN_FLOAT32);
}

static size_t workspace_size(const attn_call *call) {
  const linear_plan plan = make_plan(call);
  const size_t states = plan.slices > 1 ? (size_t)(plan.heads * plan.shares) : 0;
  return (states * plan.state_floats + (size_t)call->threads * plan.thread_floats) * sizeof(float);
}

static void run(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const attn_tensors *tensors = &call->tensors;
  const int threads = call->threads;
  linear_plan plan = make_plan(call);
  float *memory = call->workspace, *states = memory + (size_t)threads * plan.thread_floats;
  if (problem->query_length < LEAST_LENGTH && problem->key_length < LEAST_LENGTH)
    plan.slices = plan.shares = 1;
  if (problem->query_length == 0 || problem->query_heads == 0) {
    if (!problem->states.final_state.type) return;
    plan.slices = plan.shares = 1;
  }

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < (plan.slices > 1 ? plan.heads * plan.slices : 0); item++) {
    const int64_t head = item / plan.slices;
    linear_scratch scratch =
        make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
    sum_slice(problem, tensors, &plan, &scratch, head, item % plan.slices,
              states + (size_t)(head * plan.shares) * plan.state_floats);
  }

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < plan.heads * plan.shares; item++) {
    linear_scratch scratch =
        make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
    solve_share(problem, tensors, &plan, &scratch, item / plan.shares, item % plan.shares,
                plan.slices > 1 ? states + (size_t)item * plan.state_floats : NULL);
  }
}

const attn_variant attn_linear = {
    .name = "linear",
    .summary = "a feature map and associativity; causal by tiles with a running state",
    .function = ATTN_LINEAR,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP | ATTN_UNNORMALISED |
                ATTN_DECAY | ATTN_STATE | ATTN_FINAL_STATE,
    .types = 1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 1,
    .workspace_exponent = 0,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
