/* Linear attention (Katharopoulos et al. 2020): the weight of a key is phi(q).phi(k), phi(x) = elu(x) + 1 or another feature map,
 * and since that is a plain product the sum over keys can be taken first:
 *
 *     state  = sum_j phi(k_j) v_j^T,  D x Dv        normaliser = sum_j phi(k_j)
 *     output = phi(q_i) state / (phi(q_i) . normaliser + epsilon)
 *
 * One pass over keys and queries, O(T) time, and a state that does not grow. Under a causal mask the state
 * moves along with the query tiles: it holds what all rows of the tile see, and the few keys that only
 * some rows see are met pair by pair. The tile kernels of softmax attention do the products, with the
 * features of a value where those have rows: nothing is transposed.
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
#include <omp.h>
#include <string.h>

#include "tile/linear_tile.h"

enum {
  CAUSAL_ROWS = 16,
  LEAST_LENGTH = 1024, /* of queries or keys, worth sharing a head out */
  LEAST_FEATURES = 4   /* of a slice */
};

/* Whether some row of the entry sees less than the keys that it has: the first row sees the fewest. A band that hides
 * nothing is none, to the last bit. */
static bool is_causal(const attn_problem *problem, int64_t b) {
  const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  return attn_visible_keys(problem, b, 0).end < keys;
}

/* Query rows of a tile of entry b. Few under a causal mask: pairs that only some rows see cost rows * (D + Dv) a row, and
 * keys that join the state Dv * D / rows. */
static int64_t tile_rows_of(const attn_problem *problem, const linear_plan *plan, int64_t b) {
  const int64_t few = CAUSAL_ROWS < plan->kernels->max_rows ? CAUSAL_ROWS : plan->kernels->max_rows;
  return is_causal(problem, b) ? few : TILE_MAX_ROWS;
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
  linear_measure(problem, &plan);
  return plan;
}

/* The tiles of a key/value head, whose group of query heads is stacked, as in grouped_query: none of them yet. */
static linear_tile tiles_at(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                            int64_t head) {
  const int64_t b = head / problem->kv_heads, kv_head = head % problem->kv_heads;
  const attn_layout *key = &problem->key, *value = &problem->value;
  return (linear_tile){
      .problem = problem,
      .tensors = tensors,
      .batch = b,
      .first_head = kv_head * plan->group,
      .heads = plan->group,
      .most = tile_rows_of(problem, plan, b),
      .key = {tile_element(plan->kernels, tensors->key, b * key->batch + kv_head * key->head), key->position},
      .value = {tile_element(plan->kernels, tensors->value, b * value->batch + kv_head * value->head),
                value->position}};
}

/* Tile `index` of these. */
static void move_to(linear_tile *tile, const linear_plan *plan, int64_t index) {
  const int64_t first = index * tile->most, left = tile->problem->query_length * tile->heads - first;
  tile->first_row = first;
  tile->count = left < tile->most ? left : tile->most;
  tile->rows = linear_round_up(tile->count, plan->kernels->lanes);
}

static linear_stop stop_at(const linear_tile *tile) {
  const int64_t all = linear_end_of_row(tile, 0);
  linear_stop stop = {.before = tile->first_row > 0 ? linear_end_of_row(tile, -1) : 0};
  stop.end = linear_end_of_row(tile, tile->count - 1);
  /* Where other keys are seen by some rows only, a few that all see go with them. */
  stop.ready = all == stop.end || stop.end - stop.before > TILE_KEYS ? all : stop.before;
  return stop;
}

/* The first tile of a share. */
static int64_t first_tile(const linear_plan *plan, int64_t tiles, int64_t share) {
  return tiles * share / plan->shares;
}

/* Walks the keys of a head with one slice of their features, and leaves what the state holds when the first tile of
 * each share finds it ready: key by key what it holds where one thread goes all the way. */
static void sum_slice(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                      linear_scratch *scratch, int64_t head, int64_t slice, float *states) {
  const int64_t b = head / problem->kv_heads, tiles = tiles_of(problem, plan, b);
  const int64_t granules = (problem->head_dim + LEAST_FEATURES - 1) / LEAST_FEATURES;
  const int64_t first = granules * slice / plan->slices * LEAST_FEATURES;
  const int64_t end = granules * (slice + 1) / plan->slices * LEAST_FEATURES;
  linear_tile tile = tiles_at(problem, tensors, plan, head);
  linear_take_features(plan, scratch, first, end < problem->head_dim ? end : problem->head_dim);
  linear_begin_state(problem, plan, scratch, head);
  for (int64_t index = 0, share = 0; share < plan->shares; index++) {
    move_to(&tile, plan, index);
    const linear_stop stop = stop_at(&tile);
    linear_advance(&tile, plan, scratch, stop.before, stop.ready);
    for (; share < plan->shares && first_tile(plan, tiles, share) == index; share++)
      linear_leave_state(problem, plan, scratch, states + (size_t)share * plan->state_floats);
    linear_advance(&tile, plan, scratch, stop.ready, stop.end);
  }
}

/* One share of the tiles of a head, in order, the state moving along. */
static void solve_share(const attn_problem *problem, const attn_tensors *tensors, const linear_plan *plan,
                        linear_scratch *scratch, int64_t head, int64_t share, const float *state) {
  const int64_t b = head / problem->kv_heads, tiles = tiles_of(problem, plan, b);
  const int64_t first = first_tile(plan, tiles, share), end = first_tile(plan, tiles, share + 1);
  const bool leaves = problem->states.final_state.type && share == plan->shares - 1;
  int64_t reached = 0; /* keys that are in the state */
  if (first == end && !leaves) return;
  linear_tile tile = tiles_at(problem, tensors, plan, head);
  if (state)
    memcpy(scratch->normaliser, state, plan->state_floats * sizeof *state);
  else
    linear_begin_state(problem, plan, scratch, head);
  for (int64_t index = first; index < end; index++) {
    move_to(&tile, plan, index);
    const linear_stop stop = stop_at(&tile);
    if (index > first || !state) linear_advance(&tile, plan, scratch, stop.before, stop.ready);
    linear_solve_tile(&tile, plan, scratch, stop);
    reached = stop.end;
  }
  if (!leaves) return;
  linear_advance(&tile, plan, scratch, reached, attn_key_count(problem, b));
  linear_end_state(problem, plan, scratch, head);
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
        linear_make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
    sum_slice(problem, tensors, &plan, &scratch, head, item % plan.slices,
              states + (size_t)(head * plan.shares) * plan.state_floats);
  }

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < plan.heads * plan.shares; item++) {
    linear_scratch scratch =
        linear_make_scratch(problem, &plan, memory + (size_t)omp_get_thread_num() * plan.thread_floats);
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
