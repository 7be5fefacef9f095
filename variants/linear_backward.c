/* The backward pass of linear attention in O(T). Of a weight's gradient, g_ij = (do_i . v_j - delta_i) / n_i, both
 * parts are products of something of the query and something of the key, so that sums over keys and over queries can
 * be taken first, as linear does:
 *
 *     S = sum_j v_j phi(k_j)^T,  z = sum_j phi(k_j)              dphi(q_i) = (do_i S - delta_i z) / n_i
 *     R = sum_i (do_i / n_i) phi(q_i)^T,                         dphi(k_j) = v_j R - r
 *     r = sum_i (delta_i / n_i) phi(q_i)                         dv_j = R phi(k_j)
 *
 * Two walks along a head: one forward, with the keys that all queries of a tile see in S, which also leaves n and
 * delta behind; one backward over tiles of keys, with the queries that see all of them in R. The few pairs of which a
 * tile sees some are met one by one. These are five products with a state of D x Dv for each position, where linear
 * has two. A head is one walk along its positions, so that its bits follow from nothing else.
 *
 * Where keys decay, S stands where the last of its keys does and R behind the last key of a tile; both fade on their
 * way, and keys, queries and pairs by the gates between. A decay's gradient is the sum of g w over all pairs that it
 * lies between. Of tiles of keys that begin where a tile of queries finds S ready, these are
 *
 *     keys before the tile, queries behind it       <S, R> - z.r faded by the tile's gates: so S is kept where tiles begin
 *     its keys before the decay, queries behind it  phi(k_j).(v_j R - r)
 *     keys before the tile, its queries             phi(q_i).(do_i S - delta_i z) / n_i, which the walk forward leaves behind
 *     its keys before the decay, its queries        pair by pair
 *
 * None is a difference of sums that have much in common, as the sums of q.dq - k.dk up to a position are.
 *
 * Elements of 16 bits are converted before, and gradients rounded behind (widen.c). */
#include <omp.h>

#include "tile/linear_walks.h"
#include "widen.h"

/* ---- memory ---- */

/* How many of them are kept. */
static int64_t states_of(const linear_backward *of) {
  return of->problem->decay.type ? of->problem->key_length / decaying_rows(of) + 2 : 0;
}

/* Points into `memory`, or with NULL only counts; returns how many floats there are. */
static int64_t place_scratch(const linear_backward *of, float *memory, linear_scratch *to) {
  const int64_t D = of->problem->head_dim, Dv = of->problem->value_dim, depth = of->depth, width = of->width;
  const struct {
    float **place;
    int64_t floats;
  } places[] = {{&to->sums, depth},
                {&to->state, Dv * depth},
                {&to->keys, ROWS * depth},
                {&to->queries, ROWS * depth},
                {&to->grads, ROWS * depth},
                {&to->key_columns, D * ROWS},
                {&to->columns, Dv * ROWS},
                {&to->value_grads, Dv * ROWS},
                {&to->output_grads, ROWS * width},
                {&to->weights, (int64_t)ROWS * ROWS},
                {&to->weight_grads, (int64_t)ROWS * ROWS},
                {&to->prefix, ROWS * depth},
                {&to->states, states_of(of) * state_floats(of)},
                {&to->delta, ROWS},
                {&to->inverse, ROWS},
                {&to->ones, ROWS}};
  int64_t used = 0;
  for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
    *places[n].place = memory ? memory + used : NULL;
    used += round_up(places[n].floats, LINE);
  }
  for (int64_t r = 0; memory && r < ROWS; r++) to->ones[r] = 1;
  return used;
}

static int64_t query_rows(const attn_problem *problem) {
  return round_up(problem->batch * problem->query_heads * problem->query_length, LINE);
}

/* Arrays of so many. */
static int64_t kept_rows(const attn_problem *problem) { return problem->decay.type ? 3 : 2; }

static linear_backward plan(const attn_call *call, float *memory) {
  const attn_problem *p = call->problem;
  const tile_kernels *kernels = tile_select(call->isa, ATTN_FLOAT32);
  linear_backward of = {.problem = p,
                        .tensors = &call->tensors,
                        .kernels = kernels,
                        .group = p->kv_heads > 0 ? p->query_heads / p->kv_heads : 0,
                        .depth = round_up(p->head_dim, kernels->lanes),
                        .width = round_up(p->value_dim, kernels->lanes)};
  if (!memory) return of;
  of.inverse = memory;
  of.minus = memory + query_rows(p);
  of.crossing = memory + 2 * query_rows(p); /* or the scratch, where there is none */
  of.scratch = memory + kept_rows(p) * query_rows(p);
  return of;
}

static void run_float32(const attn_call *call) {
  const attn_problem *p = call->problem;
  const linear_backward of = plan(call, call->workspace);
  const int64_t heads = p->batch * p->kv_heads;
#pragma omp parallel num_threads(call->threads)
  {
    linear_scratch mine;
    const int64_t floats = place_scratch(&of, NULL, &mine);
    place_scratch(&of, of.scratch + omp_get_thread_num() * floats, &mine);
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < heads; n++) {
      const linear_place at_head = {n / p->kv_heads, n % p->kv_heads * of.group, n % p->kv_heads};
      linear_walk_forward(&of, &mine, at_head);
      linear_walk_backward(&of, &mine, at_head);
    }
  }
}

static size_t float32_workspace(const attn_call *call) {
  const linear_backward of = plan(call, NULL);
  linear_scratch unused;
  return (size_t)(kept_rows(of.problem) * query_rows(of.problem) +
                  call->threads * place_scratch(&of, NULL, &unused)) *
         sizeof(float);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, float32_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_float32); }

static const char *unsupported(const attn_call *call) {
  if (call->problem->left != ATTN_UNLIMITED)
    return "a running sum cannot forget keys: needs an unlimited left";
  if (call->problem->decay.type && call->problem->right != 0)
    return "keys that have decayed are not ahead of a query: needs a causal band";
  return tile_refusal(call->isa, ATTN_FLOAT32);
}

const attn_variant attn_linear_backward = {
    .name = "linear_backward",
    .summary = "the backward pass of linear attention in O(T): a running state of keys, then one of queries",
    .function = ATTN_LINEAR_BACKWARD,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP | ATTN_UNNORMALISED |
                ATTN_DECAY | ATTN_STATE,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_FINITE,
    .time_exponent = 1,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
