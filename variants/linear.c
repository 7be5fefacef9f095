/* Linear attention (Katharopoulos et al. 2020): the weight of a key is phi(q).phi(k), phi(x) = elu(x) + 1,
 * and since that is a plain product the sum over keys can be taken first:
 *
 *     state  = sum_j phi(k_j) v_j^T,  D x Dv        normaliser = sum_j phi(k_j)
 *     output = phi(q_i) state / (phi(q_i) . normaliser + epsilon)
 *
 * One pass over keys and queries, O(T) time, and a state that does not grow. Under a causal mask the state
 * moves along with the query tiles: it holds what all rows of the tile see, and the few keys that only
 * some rows see are met pair by pair. The tile kernels of softmax attention do the products, with the
 * features of a value where those have rows: nothing is transposed but the queries of such pairs. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "attention.h"
#include "tile/query_tile.h"

/* Parts of the keys whose states are summed in parallel where there are few heads, and the fewest keys of
 * a part. Under a causal mask parts cost a second pass over the keys, worth it for very few heads only. */
enum { WANTED_PARTS = 16, LEAST_KEYS = 512, MANY_HEADS = 4 };

typedef struct linear_plan {
  const tile_kernels *kernels;
  int64_t group, heads; /* query heads to a key/value head; key/value heads of all batch entries */
  int64_t rows, tiles;  /* query rows of a tile, and tiles of a key/value head */
  int64_t parts, most_parts, part_keys;
  int64_t depth, width; /* D and Dv, padded to whole vectors */
  size_t state_floats, thread_floats;
} linear_plan;

/* What one thread works in. The state lies in strips of the features that a kernel takes, one strip after the
 * other: columns that are twice as far apart would share half of the L1 cache (5% slower at Dv = 128). */
typedef struct linear_scratch {
  float *normaliser; /* [depth] */
  float *state;      /* [D, width] in strips, right behind the normaliser, so that both are summed at once */
  float *keys;       /* phi(k) [TILE_KEYS, depth] */
  float *values;     /* [TILE_KEYS, width], where those of the problem cannot be read as they are */
  float *queries;    /* phi(q) [rows, depth] */
  float *columns;    /* phi(q), columns [D, rows] */
  float *weights;    /* columns [TILE_KEYS, rows] */
  float *output;     /* [rows, width] */
  float *sums;       /* [rows], the output's divisor */
  float *ones;       /* [TILE_MAX_ROWS] */
} linear_scratch;

static const float one = 1;

static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
static size_t whole_lines(int64_t floats) { return (size_t)round_up(floats, 16); }

/* Whether some row sees less than the keys that its entry has: the first row sees the fewest. A band that hides
 * nothing is none, to the last bit. */
static bool is_causal(const attn_problem *problem) {
  for (int64_t b = 0; b < problem->batch; b++) {
    const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
    if (attn_visible_keys(problem, b, 0).end < keys) return true;
  }
  return false;
}

static linear_plan make_plan(const attn_problem *problem) {
  linear_plan plan = {.kernels = tile_select(), .parts = 1, .most_parts = 1};
  const int64_t lanes = plan.kernels->lanes;
  const bool causal = is_causal(problem);
  if (problem->query_heads == 0) return plan;
  plan.group = problem->query_heads / problem->kv_heads;
  plan.heads = problem->batch * problem->kv_heads;
  /* Half a tile under a causal mask: pairs that only some rows see cost rows * (D + Dv) a row. */
  plan.rows = causal ? 2 * lanes : TILE_MAX_ROWS;
  plan.tiles = (problem->query_length * plan.group + plan.rows - 1) / plan.rows;
  if (plan.heads > 0 && (plan.heads < MANY_HEADS || !causal)) {
    if (plan.heads < WANTED_PARTS) plan.most_parts = WANTED_PARTS / plan.heads;
    plan.parts = problem->key_length / LEAST_KEYS;
    if (plan.parts > plan.most_parts) plan.parts = plan.most_parts;
    if (plan.parts < 1) plan.parts = 1;
  }
  plan.part_keys = (problem->key_length / plan.parts / TILE_KEYS + 1) * TILE_KEYS;
  plan.depth = round_up(problem->head_dim, lanes);
  plan.width = round_up(problem->value_dim, lanes);
  plan.state_floats = whole_lines(plan.depth + problem->head_dim * plan.width);
  plan.thread_floats =
      plan.state_floats + whole_lines(TILE_KEYS * (plan.depth + plan.width)) +
      whole_lines(plan.rows * (plan.depth + problem->head_dim + TILE_KEYS + plan.width + 1)) + TILE_MAX_ROWS;
  return plan;
}

static linear_scratch make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory) {
  linear_scratch scratch = {.normaliser = memory};
  scratch.state = scratch.normaliser + plan->depth;
  scratch.ones = scratch.normaliser + plan->state_floats;
  scratch.keys = scratch.ones + TILE_MAX_ROWS;
  scratch.values = scratch.keys + TILE_KEYS * plan->depth;
  scratch.queries = scratch.keys + whole_lines(TILE_KEYS * (plan->depth + plan->width));
  scratch.columns = scratch.queries + plan->rows * plan->depth;
  scratch.weights = scratch.columns + problem->head_dim * plan->rows;
  scratch.output = scratch.weights + TILE_KEYS * plan->rows;
  scratch.sums = scratch.output + plan->rows * plan->width;
  for (int64_t r = 0; r < TILE_MAX_ROWS; r++) scratch.ones[r] = 1;
  return scratch;
}

/* Width of the strip that starts at feature e of `width`. */
static int64_t strip(const linear_plan *plan, int64_t width, int64_t e) {
  const int64_t left = width - e;
  return left < plan->kernels->max_rows ? left : plan->kernels->max_rows;
}

/* phi of keys [first, end). */
static void load_keys(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                      int64_t end) {
  const int64_t stride = tile->problem->key.position;
  plan->kernels->elu1(end - first, tile->problem->head_dim, tile->key + first * stride, stride, scratch->keys,
                      plan->depth);
}

/* Values in whole vectors: as they are, or copied; `finite` leaves out what is not. */
static tile_values load_values(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                               int64_t first, int64_t end, bool finite) {
  const int64_t stride = tile->problem->value.position, width = tile->problem->value_dim;
  const float *value = tile->value + first * stride;
  if (width == plan->width && !finite) return (tile_values){value, stride};
  memset(scratch->values, 0, (size_t)((end - first) * plan->width) * sizeof *scratch->values);
  for (int64_t j = 0; j < end - first; j++)
    for (int64_t e = 0; e < width; e++)
      if (!finite || isfinite(value[j * stride + e]))
        scratch->values[j * plan->width + e] = value[j * stride + e];
  return (tile_values){scratch->values, plan->width};
}

/* state += phi(k_j) v_j^T over the loaded keys [first, end), and the normaliser with it. */
static void add_to_state(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                         int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const int64_t depth = problem->head_dim;
  const tile_values values = load_values(tile, plan, scratch, first, end, false);
  const tile_ahead next = {
      .row = {tile->key + end * problem->key.position, tile->value + end * problem->value.position},
      .stride = {problem->key.position, problem->value.position},
      .width = {depth, problem->value_dim}};
  for (int64_t e = 0; e < plan->width; e += plan->kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    plan->kernels->accumulate(wide, end - first, depth, values.row + e, values.stride, scratch->keys,
                              plan->depth, scratch->ones, e == 0 && end < problem->key_length ? &next : NULL,
                              scratch->state + depth * e, wide);
  }
  for (int64_t d = 0; d < plan->depth; d += plan->kernels->max_rows)
    plan->kernels->accumulate(strip(plan, plan->depth, d), end - first, 1, scratch->keys + d, plan->depth,
                              &one, 0, scratch->ones, NULL, scratch->normaliser + d, 0);
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
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t j = first; j < end && j < tile->row[r].visible.end; j++)
      for (int64_t e = 0; e < tile->problem->value_dim; e++) {
        const float value = tile->value[j * tile->problem->value.position + e];
        if (!isfinite(value))
          scratch->output[r * plan->width + e] += scratch->weights[(j - first) * tile->rows + r] * value;
      }
}

static int64_t clamp_to_tile(int64_t j) { return j < 0 ? 0 : j > TILE_KEYS ? TILE_KEYS : j; }

/* Where the keys end that rows [r, r + lanes) see: those of the last. */
static int64_t last_seen(const float *to, int64_t rows, int64_t r, int64_t lanes) {
  return (int64_t)to[r + lanes < rows ? r + lanes - 1 : rows - 1];
}

/* Adds the loaded keys [first, end) to the output, pair by pair. A later row sees no fewer of them, so what the rows
 * see is a staircase, and each product takes a step of it for a vector of rows. The weights beyond the staircase
 * are written by hide alone. */
static void add_pairs(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                      int64_t end) {
  const int64_t rows = tile->rows, lanes = plan->kernels->lanes;
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const int64_t stride = tile->problem->value.position;
  const bool finite =
      plan->kernels->all_finite(end - first, tile->problem->value_dim, tile->value + first * stride, stride);
  const tile_values values = load_values(tile, plan, scratch, first, end, !finite);
  float from[TILE_MAX_ROWS] = {0}, to[TILE_MAX_ROWS] = {0};
  for (int64_t r = 0; r < tile->count; r++) to[r] = (float)clamp_to_tile(tile->row[r].visible.end - first);
  /* The keys that a vector of rows sees first, with all rows from there on. */
  for (int64_t r = 0, j = 0, seen; r < tile->count; r += lanes, j = seen) {
    seen = last_seen(to, tile->count, r, lanes);
    plan->kernels->scores(rows - r, seen - j, tile->problem->head_dim, scratch->columns + r, rows,
                          scratch->keys + j * plan->depth, plan->depth, NULL, scratch->weights + j * rows + r,
                          rows);
  }
  plan->kernels->hide(rows, end - first, from, to, 0, scratch->weights);
  plan->kernels->accumulate(rows, end - first, 1, scratch->weights, rows, &one, 0, scratch->ones, NULL,
                            scratch->sums, 0);
  /* A vector of rows at a time, each with the keys that its last row sees. */
  for (int64_t r = 0; r < tile->count; r += lanes) {
    const int64_t count = tile->count - r < lanes ? tile->count - r : lanes;
    for (int64_t e = 0; e < plan->width; e += plan->kernels->max_rows)
      plan->kernels->accumulate(strip(plan, plan->width, e), last_seen(to, tile->count, r, lanes), count,
                                values.row + e, values.stride, scratch->weights + r, rows, scratch->ones,
                                NULL, scratch->output + r * plan->width + e, plan->width);
  }
  if (!finite) add_nonfinite(tile, plan, scratch, first, end);
}

static float *output_row(const query_tile *tile, int64_t r) {
  return (float *)tile->tensors->output + query_tile_offset(tile, &tile->problem->output, r);
}

/* phi of the tile's queries, and where there will be pairs its columns. */
static void load_queries(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                         bool pairs) {
  const attn_strides *strides = &tile->problem->query;
  const float *row[TILE_MAX_ROWS];
  const int64_t step = tile->heads == 1 ? tile->count : 1; /* rows that are evenly apart */
  for (int64_t r = 0; r < tile->count; r += step)
    plan->kernels->elu1(step, tile->problem->head_dim,
                        (const float *)tile->tensors->query + query_tile_offset(tile, strides, r),
                        strides->position, scratch->queries + r * plan->depth, plan->depth);
  if (!pairs) return;
  for (int64_t r = 0; r < tile->count; r++) row[r] = scratch->queries + r * plan->depth;
  plan->kernels->pack(tile->rows, tile->count, tile->problem->head_dim, row, 1, scratch->columns);
}

/* Output and sums from the state. */
static void apply_state(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch) {
  const attn_problem *problem = tile->problem;
  const int64_t depth = problem->head_dim, positions = plan->rows / tile->heads;
  const tile_ahead next = {.row = {(const float *)tile->tensors->query +
                                       query_tile_offset(tile, &problem->query, 0) +
                                       positions * problem->query.position,
                                   output_row(tile, 0) + positions * problem->output.position},
                           .stride = {problem->query.position, problem->output.position},
                           .width = {depth, problem->value_dim}};
  for (int64_t e = 0; e < plan->width; e += plan->kernels->max_rows) {
    const int64_t wide = strip(plan, plan->width, e);
    plan->kernels->scores(wide, tile->count, depth, scratch->state + depth * e, wide, scratch->queries,
                          plan->depth, e == 0 ? &next : NULL, scratch->output + e, plan->width);
  }
  plan->kernels->dot_rows(tile->rows, plan->depth, scratch->queries, plan->depth, scratch->normaliser,
                          scratch->sums);
}

/* One query tile, the state holding keys [0, seen). The tile's other keys join the state on the way;
 * returns up to where it then reaches. */
static int64_t solve_tile(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                          int64_t seen) {
  const attn_problem *problem = tile->problem;
  load_queries(tile, plan, scratch, seen < tile->keys.end);
  apply_state(tile, plan, scratch);
  for (int64_t first = seen; first < tile->keys.end; first = seen) {
    seen = first + TILE_KEYS < tile->keys.end ? first + TILE_KEYS : tile->keys.end;
    load_keys(tile, plan, scratch, first, seen);
    add_pairs(tile, plan, scratch, first, seen);
    add_to_state(tile, plan, scratch, first, seen);
  }
  const float epsilon = (float)problem->epsilon;
  float *row[TILE_MAX_ROWS], factor[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++) factor[r] = 1 / (scratch->sums[r] + epsilon);
  for (int64_t r = 0; r < tile->count; r++) row[r] = output_row(tile, r);
  plan->kernels->scale_rows(tile->count, problem->value_dim, scratch->output, plan->width, factor, row);
  /* Rows that see nothing come first; a query that is not finite has made NaNs of the empty state. */
  for (int64_t r = 0; r < tile->count && tile->row[r].visible.end == 0; r++)
    memset(row[r], 0, (size_t)problem->value_dim * sizeof(float));
  return seen;
}

/* Tile `index` of a key/value head; its group of query heads is stacked, as in grouped_query. */
static void place(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                  int64_t head, int64_t index, query_tile *tile) {
  const int64_t left = problem->query_length * plan->group - index * plan->rows;
  tile->kernels = plan->kernels;
  tile->problem = problem;
  tile->tensors = tensors;
  tile->batch = head / problem->kv_heads;
  tile->first_head = head % problem->kv_heads * plan->group;
  tile->heads = plan->group;
  tile->first_row = index * plan->rows;
  tile->count = left < plan->rows ? left : plan->rows;
  tile->rows = round_up(tile->count, plan->kernels->lanes);
  query_tile_place(tile);
}

/* Keys that every row of the tile sees: ends never fall along the rows. */
static int64_t seen_by_all(const query_tile *tile) { return tile->row[0].visible.end; }

/* The state of part p alone. */
static void sum_part(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                     linear_scratch *scratch, int64_t head, int64_t part) {
  query_tile last;
  place(problem, tensors, plan, head, plan->tiles - 1, &last);
  const int64_t first = part * plan->part_keys, end = first + plan->part_keys;
  memset(scratch->normaliser, 0, plan->state_floats * sizeof *scratch->normaliser);
  advance(&last, plan, scratch, first, end < last.keys.end ? end : last.keys.end);
}

/* Fills the state with as many whole parts of the keys as lie within [0, target); returns where they end. */
static int64_t join_parts(const linear_plan *plan, linear_scratch *scratch, const float *states,
                          int64_t target, int64_t last_key) {
  int64_t seen = 0;
  memset(scratch->normaliser, 0, plan->state_floats * sizeof *scratch->normaliser);
  for (int64_t part = 0; plan->parts > 1 && seen < target; part++) {
    const int64_t end = seen + plan->part_keys < last_key ? seen + plan->part_keys : last_key;
    if (end > target) break;
    for (size_t n = 0; n < plan->state_floats; n++)
      scratch->normaliser[n] += states[(size_t)part * plan->state_floats + n];
    seen = end;
  }
  return seen;
}

/* One share of the tiles of a head, in order, the state moving along. */
static void solve_share(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                        linear_scratch *scratch, const float *states, int64_t head, int64_t share) {
  const int64_t first = plan->tiles * share / plan->parts, end = plan->tiles * (share + 1) / plan->parts;
  if (first == end) return;
  query_tile tile;
  place(problem, tensors, plan, head, plan->tiles - 1, &tile);
  const int64_t last_key = tile.keys.end;
  place(problem, tensors, plan, head, first, &tile);
  int64_t seen = join_parts(plan, scratch, states, seen_by_all(&tile), last_key);
  for (int64_t index = first; index < end; index++) {
    place(problem, tensors, plan, head, index, &tile);
    /* Where other keys are seen by some rows only, what is not a whole tile of keys goes with them. */
    const int64_t all = seen_by_all(&tile), whole = seen + (all - seen) / TILE_KEYS * TILE_KEYS;
    const int64_t ready = all == tile.keys.end ? all : whole;
    advance(&tile, plan, scratch, seen, ready);
    seen = solve_tile(&tile, plan, scratch, ready);
  }
}

static const char *unsupported(const attn_problem *problem) {
  return problem->left != ATTN_UNLIMITED ? "a running sum cannot forget keys: needs an unlimited left" : NULL;
}

static size_t workspace_size(const attn_problem *problem, int threads) {
  const linear_plan plan = make_plan(problem);
  /* As many as any length may use: the workspace does not depend on T. */
  const size_t states = plan.most_parts > 1 ? (size_t)(plan.heads * plan.most_parts) : 0;
  return (states * plan.state_floats + (size_t)threads * plan.thread_floats) * sizeof(float);
}

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  const linear_plan plan = make_plan(problem);
  const int64_t items = plan.tiles > 0 ? plan.heads * plan.parts : 0;
  float *memory = workspace, *states = memory + (size_t)threads * plan.thread_floats;

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < (plan.parts > 1 ? items : 0); item++) {
    linear_scratch scratch =
        make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
    sum_part(problem, tensors, &plan, &scratch, item / plan.parts, item % plan.parts);
    memcpy(states + (size_t)item * plan.state_floats, scratch.normaliser, plan.state_floats * sizeof *states);
  }

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < items; item++) {
    const int64_t head = item / plan.parts;
    linear_scratch scratch =
        make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
    solve_share(problem, tensors, &plan, &scratch, states + (size_t)(head * plan.parts) * plan.state_floats,
                head, item % plan.parts);
  }
}

const attn_variant attn_linear = {
    .name = "linear",
    .summary = "elu(x) + 1 feature map and associativity; causal by tiles with a running state",
    .function = ATTN_LINEAR,
    .dtypes = 1u << ATTN_FLOAT32,
    .time_exponent = 1,
    .workspace_exponent = 0,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
