/* The backward pass of linear attention as its formula is written: all T x T weights of a head and their gradients
 * are kept, each divided by its row's normaliser, and what is asked for are sums over their rows and columns. Where
 * keys decay both fade, and what each weight takes its gradient for, g w, counts for all decays from behind its key
 * to its query: so it is kept as sums over the keys before each. */
#include <math.h>
#include <string.h>

#include "widen.h"

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static float dot(const float *x, const float *y, int64_t count) {
  float sum = 0;
  for (int64_t d = 0; d < count; d++) sum += x[d] * y[d];
  return sum;
}

static float phi(const attn_problem *problem, float x) {
  if (problem->feature_map == ATTN_ELU1) return x > 0 ? x + 1 : expf(x);
  return problem->feature_map == ATTN_IDENTITY || x > 0 ? x : 0;
}

static float slope(const attn_problem *problem, float x) {
  if (problem->feature_map == ATTN_ELU1) return x > 0 ? 1 : expf(x);
  return problem->feature_map == ATTN_IDENTITY || x > 0 ? 1 : 0;
}

static float weight_of(const attn_problem *problem, const float *query, const float *key) {
  float sum = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) sum += phi(problem, query[d]) * phi(problem, key[d]);
  return sum;
}

/* Where the tensors of one head begin. */
typedef struct head {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, h, kv_head;
  float *weights, *grads; /* [Tq, Tk]: phi(q).phi(k) and its gradient, over the normaliser, both faded */
  float *before; /* [Tq, Tk], where keys decay: the sum of g w over the keys before, and an initial state */
  float *seen;   /* [Tq]: by what a state has faded for a row, over its normaliser */
  float *deltas; /* [Tq] */
} head;

static const float *query_of(const head *of, int64_t i) {
  return (const float *)of->tensors->query + at(&of->problem->query, of->b, of->h, i);
}
static const float *key_of(const head *of, int64_t j) {
  return (const float *)of->tensors->key + at(&of->problem->key, of->b, of->kv_head, j);
}
static const float *value_of(const head *of, int64_t j) {
  return (const float *)of->tensors->value + at(&of->problem->value, of->b, of->kv_head, j);
}
static const float *output_of(const head *of, int64_t i) {
  return (const float *)of->tensors->output + at(&of->problem->output, of->b, of->h, i);
}
static const float *output_grad_of(const head *of, int64_t i) {
  return (const float *)of->problem->output_grad_data + at(&of->problem->output_grad, of->b, of->h, i);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Row d of the initial state; one of its sums of features, 0 where there are none. */
static const float *state_of(const head *of, int64_t d) {
  const attn_linear_states *states = &of->problem->states;
  return states->state_data + at(&states->state, of->b, of->kv_head, d);
}
static float state_sum_of(const head *of, int64_t d) {
  const attn_linear_states *states = &of->problem->states;
  return states->state_sum.type ? states->state_sum_data[at(&states->state_sum, of->b, of->kv_head, 0) + d]
                                : 0;
}

/* Keys from here on have no decay that the query stands behind. */
static int64_t decay_end(const head *of, int64_t i) {
  return smaller(i + attn_offset_of(of->problem, of->b) + 1, attn_key_count(of->problem, of->b));
}

/* By what the weights of row i fade: the gates from behind each key to the query's own. Returns by what a state does,
 * all up to its own. */
static float set_fades(const head *of, int64_t i, float *fades) {
  const attn_layout *decay = &of->problem->decay;
  float fade = 1;
  for (int64_t j = of->problem->key_length - 1; j >= 0; j--) {
    fades[j] = fade;
    if (decay->type && j < decay_end(of, i))
      fade *= expf(of->problem->decay_data[of->b * decay->batch + of->kv_head * decay->head + j]);
  }
  return fade;
}

/* What the state is to a row: adds its part of the gradient of the query, and returns the row's g w with it. */
static float meet_state(const head *of, int64_t i, float *query_grad) {
  const attn_problem *problem = of->problem;
  float sum = 0;
  for (int64_t d = 0; problem->states.state.type && d < problem->head_dim; d++) {
    const float gap =
        dot(output_grad_of(of, i), state_of(of, d), problem->value_dim) - of->deltas[i] * state_sum_of(of, d);
    query_grad[d] += of->seen[i] * gap;
    sum += of->seen[i] * gap * phi(problem, query_of(of, i)[d]);
  }
  return sum;
}

/* Fills row i of the weights and their gradients, and the gradient of the query. A key that is not seen is not read. */
static void solve_query(const head *of, int64_t i) {
  const attn_problem *problem = of->problem;
  const int64_t D = problem->head_dim, Dv = problem->value_dim, Tk = problem->key_length;
  const float *query = query_of(of, i), *output_grad = output_grad_of(of, i);
  const float delta = problem->unnormalised ? 0 : dot(output_grad, output_of(of, i), Dv);
  float *weights = of->weights + i * Tk, *grads = of->grads + i * Tk;
  float *query_grad = (float *)problem->query_grad_data + at(&problem->query_grad, of->b, of->h, i);
  float normaliser = (float)problem->epsilon;
  of->seen[i] = set_fades(of, i, grads);
  of->deltas[i] = delta;
  for (int64_t d = 0; problem->states.state.type && d < D; d++)
    normaliser += of->seen[i] * phi(problem, query[d]) * state_sum_of(of, d);
  for (int64_t j = 0; j < Tk; j++) {
    const bool is_seen = attn_sees(problem, of->tensors, of->b, of->h, i, j);
    weights[j] = is_seen ? grads[j] * weight_of(problem, query, key_of(of, j)) : 0;
    normaliser += weights[j];
  }
  if (problem->unnormalised) normaliser = 1;
  of->seen[i] /= normaliser;
  memset(query_grad, 0, (size_t)D * sizeof *query_grad);
  float before = meet_state(of, i, query_grad);
  for (int64_t j = 0; j < Tk; j++) {
    const float fade = grads[j];
    grads[j] = 0;
    if (of->before) of->before[i * Tk + j] = before;
    if (!attn_sees(problem, of->tensors, of->b, of->h, i, j)) continue;
    grads[j] = (dot(output_grad, value_of(of, j), Dv) - delta) / normaliser;
    before += grads[j] * weights[j];
    grads[j] *= fade;
    weights[j] /= normaliser;
    for (int64_t d = 0; d < D; d++) query_grad[d] += grads[j] * phi(problem, key_of(of, j)[d]);
  }
  for (int64_t d = 0; d < D; d++) query_grad[d] *= slope(problem, query[d]);
}

/* Adds what the queries of this head make of the gradients of key j and its value; of the key still to be multiplied. */
static void solve_key(const head *of, int64_t j) {
  const attn_problem *problem = of->problem;
  float *key_grad = (float *)problem->key_grad_data + at(&problem->key_grad, of->b, of->kv_head, j);
  float *value_grad = (float *)problem->value_grad_data + at(&problem->value_grad, of->b, of->kv_head, j);
  for (int64_t i = 0; i < problem->query_length; i++) {
    const int64_t n = i * problem->key_length + j;
    if (!attn_sees(problem, of->tensors, of->b, of->h, i, j)) continue;
    for (int64_t d = 0; d < problem->head_dim; d++)
      key_grad[d] += of->grads[n] * phi(problem, query_of(of, i)[d]);
    for (int64_t e = 0; e < problem->value_dim; e++)
      value_grad[e] += of->weights[n] * output_grad_of(of, i)[e];
  }
}

static float *decay_grad_of(const attn_problem *p, int64_t b, int64_t kv_head, int64_t j) {
  return p->decay_grad_data + at(&p->decay_grad, b, kv_head, j);
}

/* The queries from the key's own on have let fade what lies before it. */
static void solve_decay(const head *of, int64_t j) {
  const attn_problem *problem = of->problem;
  float *decay_grad = decay_grad_of(problem, of->b, of->kv_head, j);
  for (int64_t i = 0; i < problem->query_length; i++)
    if (j < decay_end(of, i)) *decay_grad += of->before[i * problem->key_length + j];
}

/* Adds what the queries of this head make of the gradients of a state. */
static void solve_state(const head *of, int64_t d) {
  const attn_problem *problem = of->problem;
  float *grad = problem->state_grad_data + at(&problem->state_grad, of->b, of->kv_head, d);
  for (int64_t i = 0; i < problem->query_length; i++) {
    const float seen = of->seen[i] * phi(problem, query_of(of, i)[d]);
    for (int64_t e = 0; e < problem->value_dim; e++) grad[e] += seen * output_grad_of(of, i)[e];
    if (problem->state_sum_grad.type)
      problem->state_sum_grad_data[at(&problem->state_sum_grad, of->b, of->kv_head, 0) + d] -=
          seen * of->deltas[i];
  }
}

static void clear_state(const attn_problem *p, int64_t b, int64_t kv_head, int64_t d) {
  memset(p->state_grad_data + at(&p->state_grad, b, kv_head, d), 0, (size_t)p->value_dim * sizeof(float));
  if (p->state_sum_grad.type) p->state_sum_grad_data[at(&p->state_sum_grad, b, kv_head, 0) + d] = 0;
}

static void clear_key(const attn_problem *p, int64_t b, int64_t kv_head, int64_t j) {
  if (p->decay.type) *decay_grad_of(p, b, kv_head, j) = 0;
  memset((float *)p->key_grad_data + at(&p->key_grad, b, kv_head, j), 0, (size_t)p->head_dim * sizeof(float));
  memset((float *)p->value_grad_data + at(&p->value_grad, b, kv_head, j), 0,
         (size_t)p->value_dim * sizeof(float));
}

static void finish_key(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t kv_head,
                       int64_t j) {
  const float *key = (const float *)tensors->key + at(&p->key, b, kv_head, j);
  float *key_grad = (float *)p->key_grad_data + at(&p->key_grad, b, kv_head, j);
  for (int64_t d = 0; d < p->head_dim; d++) key_grad[d] *= slope(p, key[d]);
}

/* A key/value head, its query heads one after the other. */
static void solve_head(const attn_call *call, int64_t b, int64_t kv_head) {
  const attn_problem *p = call->problem;
  const int64_t group = p->query_heads / p->kv_heads;
  float *workspace = call->workspace;
  const int64_t states = p->states.state.type ? p->head_dim : 0; /* rows of one */
  for (int64_t j = 0; j < p->key_length; j++) clear_key(p, b, kv_head, j);
  for (int64_t d = 0; d < states; d++) clear_state(p, b, kv_head, d);
  for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++) {
    const int64_t pairs = p->query_length * p->key_length;
    float *rows = workspace + (p->decay.type ? 3 : 2) * pairs;
    const head of = {p,
                     &call->tensors,
                     b,
                     h,
                     kv_head,
                     workspace,
                     workspace + pairs,
                     p->decay.type ? workspace + 2 * pairs : NULL,
                     rows,
                     rows + p->query_length};
#pragma omp parallel for num_threads(call->threads)
    for (int64_t i = 0; i < p->query_length; i++) solve_query(&of, i);
#pragma omp parallel for num_threads(call->threads)
    for (int64_t j = 0; j < p->key_length; j++) {
      solve_key(&of, j);
      if (of.before) solve_decay(&of, j);
    }
#pragma omp parallel for num_threads(call->threads)
    for (int64_t d = 0; d < states; d++) solve_state(&of, d);
  }
  for (int64_t j = 0; j < p->key_length; j++) finish_key(p, &call->tensors, b, kv_head, j);
}

static void run_float32(const attn_call *call) {
  const attn_problem *p = call->problem;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t kv_head = 0; kv_head < p->kv_heads; kv_head++) solve_head(call, b, kv_head);
}

static size_t float32_workspace(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t pairs = (p->decay.type ? 3 : 2) * p->key_length;
  return (size_t)(p->query_length * (pairs + 2)) * sizeof(float);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, float32_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_float32); }

const attn_variant attn_naive_linear_backward = {
    .name = "naive_linear_backward",
    .summary =
        "the backward pass of linear attention as written: T x T weights and their gradients are stored",
    .function = ATTN_LINEAR_BACKWARD,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP | ATTN_UNNORMALISED |
                ATTN_DECAY | ATTN_STATE,
    .types = ATTN_ALL_FLOATS,
    .time_exponent = 2,
    .workspace_exponent = 2,
    .unsupported = attn_portable_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
