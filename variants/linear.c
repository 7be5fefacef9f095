/* Linear attention (Katharopoulos et al. 2020): the weight of a key is phi(q).phi(k), phi(x) = elu(x) + 1,
 * and since that is a plain product the sum over keys can be taken first:
 *
 *     state = sum_j phi(k_j) [v_j 1]^T        D x (Dv + 1), the last column being the normaliser's
 *     [output normaliser]_i = phi(q_i) state  and output / (normaliser + epsilon) is the answer
 *
 * One pass over keys and queries, O(T) time, and a state that does not grow. Under a causal mask the state
 * moves along with the query tiles: it holds what all rows of the tile see, and the few keys that only
 * some rows see are met pair by pair. The tile kernels of softmax attention do both products. */
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
  int64_t pitch; /* D, padded to whole vectors */
  size_t state_floats, thread_floats;
} linear_plan;

/* What one thread works in. */
typedef struct linear_scratch {
  float *state;   /* [Dv + 1, pitch] */
  float *keys;    /* phi(k) [TILE_KEYS, pitch] */
  float *queries; /* phi(q), columns [D, rows] */
  float *weights; /* columns [TILE_KEYS, rows] */
  float *output;  /* columns [Dv + 1, rows] */
  float *ones;    /* [TILE_MAX_ROWS] */
  float *finite;  /* [TILE_KEYS, Dv], for values that not all are */
} linear_scratch;

static const float one = 1;

static size_t whole_lines(size_t floats) { return (floats + 15) / 16 * 16; }

static linear_plan make_plan(const attn_problem *problem) {
  linear_plan plan = {.kernels = tile_select(), .parts = 1, .most_parts = 1};
  const int64_t lanes = plan.kernels->lanes;
  const bool causal = problem->right != ATTN_UNLIMITED;
  if (problem->query_heads == 0) return plan;
  plan.group = problem->query_heads / problem->kv_heads;
  plan.heads = problem->batch * problem->kv_heads;
  /* Half a tile under a causal mask: pairs that only some rows see cost rows * (D + Dv) a row. */
  plan.rows = causal ? 2 * lanes : plan.kernels->max_rows;
  plan.tiles = (problem->query_length * plan.group + plan.rows - 1) / plan.rows;
  if (plan.heads > 0 && (plan.heads < MANY_HEADS || !causal)) {
    if (plan.heads < WANTED_PARTS) plan.most_parts = WANTED_PARTS / plan.heads;
    plan.parts = problem->key_length / LEAST_KEYS;
    if (plan.parts > plan.most_parts) plan.parts = plan.most_parts;
    if (plan.parts < 1) plan.parts = 1;
  }
  plan.part_keys = (problem->key_length / plan.parts / TILE_KEYS + 1) * TILE_KEYS;
  plan.pitch = (problem->head_dim + lanes - 1) / lanes * lanes;
  plan.state_floats = whole_lines((size_t)((problem->value_dim + 1) * plan.pitch));
  plan.thread_floats =
      plan.state_floats + whole_lines((size_t)(TILE_KEYS * plan.pitch)) +
      whole_lines((size_t)(plan.rows * (problem->head_dim + TILE_KEYS + problem->value_dim + 1))) +
      whole_lines((size_t)(TILE_KEYS * problem->value_dim)) + TILE_MAX_ROWS;
  return plan;
}

static linear_scratch make_scratch(const attn_problem *problem, const linear_plan *plan, float *memory) {
  linear_scratch scratch = {.state = memory};
  scratch.keys = scratch.state + plan->state_floats;
  scratch.ones = scratch.keys + whole_lines((size_t)(TILE_KEYS * plan->pitch));
  scratch.finite = scratch.ones + TILE_MAX_ROWS;
  scratch.queries = scratch.finite + whole_lines((size_t)(TILE_KEYS * problem->value_dim));
  scratch.weights = scratch.queries + problem->head_dim * plan->rows;
  scratch.output = scratch.weights + TILE_KEYS * plan->rows;
  for (int64_t r = 0; r < TILE_MAX_ROWS; r++) scratch.ones[r] = 1;
  return scratch;
}

/* phi of keys [first, end), row by row. */
static void load_keys(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                      int64_t end) {
  const int64_t head_dim = tile->problem->head_dim;
  for (int64_t j = first; j < end; j++) {
    float *row = scratch->keys + (j - first) * plan->pitch;
    memcpy(row, tile->key + j * tile->problem->key.position, (size_t)head_dim * sizeof *row);
    memset(row + head_dim, 0, (size_t)(plan->pitch - head_dim) * sizeof *row);
  }
  plan->kernels->elu1((end - first) * plan->pitch, scratch->keys);
}

/* state += phi(k_j) [v_j 1]^T over keys [first, end). */
static void advance(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch, int64_t first,
                    int64_t end) {
  const attn_problem *problem = tile->problem;
  for (; first < end; first += TILE_KEYS) {
    const int64_t keys = end - first < TILE_KEYS ? end - first : TILE_KEYS;
    load_keys(tile, plan, scratch, first, first + keys);
    for (int64_t d = 0; d < plan->pitch; d += plan->kernels->max_rows) {
      const int64_t rows =
          plan->pitch - d < plan->kernels->max_rows ? plan->pitch - d : plan->kernels->max_rows;
      plan->kernels->accumulate(rows, keys, problem->value_dim, scratch->keys + d, plan->pitch,
                                tile->value + first * problem->value.position, problem->value.position,
                                scratch->ones, scratch->state + d);
      plan->kernels->accumulate(rows, keys, 1, scratch->keys + d, plan->pitch, &one, 0, scratch->ones,
                                scratch->state + problem->value_dim * plan->pitch + d);
    }
  }
}

/* Adds the keys [first, end), at most TILE_KEYS, that not every row sees. */
static void add_partly_visible(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                               int64_t first, int64_t end) {
  const attn_problem *problem = tile->problem;
  const int64_t rows = tile->rows, width = problem->value_dim, stride = problem->value.position;
  const float *value = tile->value + first * stride;
  /* A weight of 0 times a NaN or an infinity would reach rows that cannot see it. */
  const bool apart = !all_finite(value, stride, end - first, width);
  load_keys(tile, plan, scratch, first, end);
  plan->kernels->scores(rows, end - first, problem->head_dim, scratch->queries, scratch->keys, plan->pitch,
                        scratch->weights);
  for (int64_t j = first; j < end; j++)
    for (int64_t r = 0; r < tile->count; r++)
      if (j >= tile->visible[r].end) scratch->weights[(j - first) * rows + r] = 0;
  plan->kernels->accumulate(rows, end - first, 1, scratch->weights, rows, &one, 0, scratch->ones,
                            scratch->output + width * rows);
  if (apart) copy_finite(value, stride, end - first, width, scratch->finite);
  plan->kernels->accumulate(rows, end - first, width, scratch->weights, rows, apart ? scratch->finite : value,
                            apart ? width : stride, scratch->ones, scratch->output);
  if (!apart) return;
  for (int64_t r = 0; r < tile->count; r++)
    for (int64_t j = first; j < end && j < tile->visible[r].end; j++)
      for (int64_t e = 0; e < width; e++)
        if (!isfinite(value[(j - first) * stride + e]))
          scratch->output[e * rows + r] +=
              scratch->weights[(j - first) * rows + r] * value[(j - first) * stride + e];
}

static int64_t offset(const query_tile *tile, const attn_strides *strides, int64_t r) {
  const int64_t row = tile->first_row + r;
  return tile->batch * strides->batch + (tile->first_head + row % tile->heads) * strides->head +
         row / tile->heads * strides->position;
}

/* One query tile; the scratch's state holds keys [0, seen). */
static void solve_tile(const query_tile *tile, const linear_plan *plan, linear_scratch *scratch,
                       int64_t seen) {
  const attn_problem *problem = tile->problem;
  const float *query[TILE_MAX_ROWS];
  float *output[TILE_MAX_ROWS], factor[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->count; r++) {
    query[r] = (const float *)tile->tensors->query + offset(tile, &problem->query, r);
    output[r] = (float *)tile->tensors->output + offset(tile, &problem->output, r);
  }
  plan->kernels->pack(tile->rows, tile->count, problem->head_dim, query, 1, scratch->queries);
  plan->kernels->elu1(problem->head_dim * tile->rows, scratch->queries);
  plan->kernels->scores(tile->rows, problem->value_dim + 1, problem->head_dim, scratch->queries,
                        scratch->state, plan->pitch, scratch->output);
  for (int64_t first = seen; first < tile->keys.end; first += TILE_KEYS)
    add_partly_visible(tile, plan, scratch, first,
                       first + TILE_KEYS < tile->keys.end ? first + TILE_KEYS : tile->keys.end);
  for (int64_t r = 0; r < tile->count; r++)
    factor[r] = 1 / (scratch->output[problem->value_dim * tile->rows + r] + (float)problem->epsilon);
  plan->kernels->unpack(tile->rows, tile->count, problem->value_dim, scratch->output, factor, output);
  for (int64_t r = 0; r < tile->count; r++)
    if (tile->visible[r].end == 0) memset(output[r], 0, (size_t)problem->value_dim * sizeof(float));
}

/* Tile `index` of a key/value head; its group of query heads is stacked, as in grouped_query. */
static query_tile place(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                        int64_t head, int64_t index) {
  query_tile tile = {.kernels = plan->kernels, .problem = problem, .tensors = tensors, .heads = plan->group};
  const int64_t left = problem->query_length * plan->group - index * plan->rows;
  tile.batch = head / problem->kv_heads;
  tile.first_head = head % problem->kv_heads * plan->group;
  tile.first_row = index * plan->rows;
  tile.count = left < plan->rows ? left : plan->rows;
  query_tile_place(&tile);
  return tile;
}

/* Keys that every row of the tile sees: ends never fall along the rows. */
static int64_t seen_by_all(const query_tile *tile) { return tile->visible[0].end; }

/* The state of part p alone. */
static void sum_part(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                     linear_scratch *scratch, int64_t head, int64_t part) {
  const query_tile last = place(problem, tensors, plan, head, plan->tiles - 1);
  const int64_t first = part * plan->part_keys, end = first + plan->part_keys;
  memset(scratch->state, 0, plan->state_floats * sizeof *scratch->state);
  advance(&last, plan, scratch, first, end < last.keys.end ? end : last.keys.end);
}

/* Fills the state with as many whole parts of the keys as lie within [0, target); returns where they end. */
static int64_t join_parts(const linear_plan *plan, linear_scratch *scratch, const float *states,
                          int64_t target, int64_t last_key) {
  int64_t seen = 0;
  memset(scratch->state, 0, plan->state_floats * sizeof *scratch->state);
  for (int64_t part = 0; plan->parts > 1 && seen < target; part++) {
    const int64_t end = seen + plan->part_keys < last_key ? seen + plan->part_keys : last_key;
    if (end > target) break;
    for (size_t n = 0; n < plan->state_floats; n++)
      scratch->state[n] += states[(size_t)part * plan->state_floats + n];
    seen = end;
  }
  return seen;
}

/* One share of the tiles of a head, in order, the state moving along. */
static void solve_share(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                        linear_scratch *scratch, const float *states, int64_t head, int64_t share) {
  const int64_t first = plan->tiles * share / plan->parts, end = plan->tiles * (share + 1) / plan->parts;
  if (first == end) return;
  query_tile tile = place(problem, tensors, plan, head, plan->tiles - 1);
  const int64_t last_key = tile.keys.end;
  tile = place(problem, tensors, plan, head, first);
  int64_t seen = join_parts(plan, scratch, states, seen_by_all(&tile), last_key);
  for (int64_t index = first; index < end; index++) {
    tile = place(problem, tensors, plan, head, index);
    advance(&tile, plan, scratch, seen, seen_by_all(&tile));
    seen = seen_by_all(&tile);
    solve_tile(&tile, plan, scratch, seen);
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
    memcpy(states + (size_t)item * plan.state_floats, scratch.state, plan.state_floats * sizeof *states);
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
