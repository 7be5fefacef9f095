/* Linear attention as a recurrence, one key at a time:
 *
 *     state += phi(k_j) v_j^T,  D x Dv        normaliser += phi(k_j)
 *     output = phi(q_i) state / (phi(q_i) . normaliser + epsilon)
 *
 * What a query sees of the keys before it is a state that does not grow: a decoding step costs the same after ten
 * keys and after a million. Nothing is kept of the keys but that, so each is read once and a head is one long chain,
 * whose products share no loads: linear takes keys by tiles, and is 22 times as fast without a band, 16 under a
 * causal one (Zen 5, AVX-512, T 16384, D 64) where there are many. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "widen.h"

/* One key/value head on its way along the keys. */
typedef struct walk {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, kv_head;
  int64_t next;      /* the keys before it are in the state */
  float *state;      /* [D, Dv] */
  float *normaliser; /* [D] */
  float *features;   /* [D], of a key or a query */
} walk;

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static void map_features(const attn_problem *problem, const float *restrict x, float *restrict features) {
  const int64_t depth = problem->head_dim;
  if (problem->feature_map == ATTN_ELU1)
    for (int64_t d = 0; d < depth; d++) features[d] = x[d] > 0 ? x[d] + 1 : expf(x[d]);
  else if (problem->feature_map == ATTN_RELU) /* a NaN stays one */
    for (int64_t d = 0; d < depth; d++) features[d] = x[d] < 0 ? 0 : x[d];
  else
    for (int64_t d = 0; d < depth; d++) features[d] = x[d];
}

/* y += factor * x */
static void add_row(int64_t count, float factor, const float *restrict x, float *restrict y) {
  for (int64_t e = 0; e < count; e++) y[e] += factor * x[e];
}

static void fade(walk *of) {
  const attn_problem *problem = of->problem;
  const float gate =
      expf(problem->decay_data[of->b * problem->decay.batch + of->kv_head * problem->decay.head + of->next]);
  for (int64_t n = 0; n < problem->head_dim * problem->value_dim; n++) of->state[n] *= gate;
  for (int64_t d = 0; d < problem->head_dim; d++) of->normaliser[d] *= gate;
}

static void add_key(walk *of) {
  const attn_problem *problem = of->problem;
  const float *key = (const float *)of->tensors->key + at(&problem->key, of->b, of->kv_head, of->next);
  const float *value = (const float *)of->tensors->value + at(&problem->value, of->b, of->kv_head, of->next);
  if (problem->decay.type) fade(of);
  map_features(problem, key, of->features);
  for (int64_t d = 0; d < problem->head_dim; d++) {
    of->normaliser[d] += of->features[d];
    add_row(problem->value_dim, of->features[d], value, of->state + d * problem->value_dim);
  }
  of->next++;
}

static void answer(const walk *of, int64_t h, int64_t i) {
  const attn_problem *problem = of->problem;
  const float *query = (const float *)of->tensors->query + at(&problem->query, of->b, h, i);
  float *output = (float *)of->tensors->output + at(&problem->output, of->b, h, i), sum = 0;
  for (int64_t e = 0; e < problem->value_dim; e++) output[e] = 0;
  if (of->next == 0 && !problem->states.state.type) return; /* which a NaN in the query must not undo */
  map_features(problem, query, of->features);
  for (int64_t d = 0; d < problem->head_dim; d++) {
    sum += of->features[d] * of->normaliser[d];
    add_row(problem->value_dim, of->features[d], of->state + d * problem->value_dim, output);
  }
  if (problem->unnormalised) return;
  for (int64_t e = 0; e < problem->value_dim; e++) output[e] /= sum + (float)problem->epsilon;
}

/* Zeros, or what keys before the first have left. */
static void begin_walk(const walk *of) {
  const attn_problem *problem = of->problem;
  const attn_linear_states *given = &problem->states;
  const size_t width = (size_t)problem->value_dim * sizeof(float);
  memset(of->state, 0, (size_t)problem->head_dim * width);
  memset(of->normaliser, 0, (size_t)problem->head_dim * sizeof(float));
  for (int64_t d = 0; given->state.type && d < problem->head_dim; d++) {
    memcpy(of->state + d * problem->value_dim, given->state_data + at(&given->state, of->b, of->kv_head, d),
           width);
    if (given->state_sum.type)
      of->normaliser[d] = given->state_sum_data[at(&given->state_sum, of->b, of->kv_head, 0) + d];
  }
}

/* The state that all keys leave, those too that no query sees. */
static void end_walk(walk *of) {
  const attn_problem *problem = of->problem;
  const attn_linear_states *wanted = &problem->states;
  const size_t width = (size_t)problem->value_dim * sizeof(float);
  const int64_t keys = problem->key_lengths ? problem->key_lengths[of->b] : problem->key_length;
  if (!wanted->final_state.type) return;
  while (of->next < keys) add_key(of);
  for (int64_t d = 0; d < problem->head_dim; d++) {
    memcpy(wanted->final_state_data + at(&wanted->final_state, of->b, of->kv_head, d),
           of->state + d * problem->value_dim, width);
    if (wanted->final_state_sum.type)
      wanted->final_state_sum_data[at(&wanted->final_state_sum, of->b, of->kv_head, 0) + d] =
          of->normaliser[d];
  }
}

static void solve_head(walk *of) {
  const attn_problem *problem = of->problem;
  const int64_t group = problem->query_heads / problem->kv_heads;
  begin_walk(of);
  for (int64_t i = 0; i < problem->query_length; i++) {
    const int64_t end = attn_visible_keys(problem, of->b, i).end;
    while (of->next < end) add_key(of);
    for (int64_t h = of->kv_head * group; h < (of->kv_head + 1) * group; h++) answer(of, h, i);
  }
  end_walk(of);
}

/* A line of the cache lies between what two threads write. */
static size_t thread_floats(const attn_problem *problem) {
  return (size_t)(problem->head_dim * (problem->value_dim + 2) + 31) / 16 * 16;
}

static const char *unsupported(const attn_call *call) {
  if (call->problem->left != ATTN_UNLIMITED)
    return "a recurrence cannot forget keys: needs an unlimited left";
  if (call->problem->decay.type && call->problem->right != 0)
    return "keys that have decayed are not ahead of a query: needs a causal band";
  return attn_portable_unsupported(call);
}

static size_t workspace_size(const attn_call *call) {
  return (size_t)call->threads * thread_floats(call->problem) * sizeof(float);
}

static void run(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const int64_t depth = problem->head_dim;
  const int64_t heads = problem->query_heads > 0 || problem->states.final_state.type ? problem->kv_heads : 0;
#pragma omp parallel for num_threads(call->threads) schedule(dynamic, 1)
  for (int64_t n = 0; n < problem->batch * heads; n++) {
    float *memory = (float *)call->workspace + (size_t)omp_get_thread_num() * thread_floats(problem);
    walk of = {problem, &call->tensors, n / heads, n % heads, 0, memory + 2 * depth, memory, memory + depth};
    solve_head(&of);
  }
}

const attn_variant attn_linear_recurrent = {
    .name = "linear_recurrent",
    .summary = "linear attention one key at a time: a state of D x Dv, and nothing else of the keys before",
    .function = ATTN_LINEAR,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP | ATTN_UNNORMALISED |
                ATTN_DECAY | ATTN_STATE | ATTN_FINAL_STATE,
    .types = 1u << ATTN_FLOAT32,
    .traits = ATTN_BATCH_INVARIANT | ATTN_DECODE_INVARIANT,
    .time_exponent = 1,
    .workspace_exponent = 0,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
