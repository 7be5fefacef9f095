/* The backward pass as its formula is written: all T x T weights of a head, and the gradients of their scores, are kept, and
 * what is asked for are sums over their rows and columns. */
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

/* Where the tensors of one head begin. */
typedef struct head {
  const attn_problem *problem;
  const attn_tensors *tensors;
  int64_t b, h, kv_head;
  float *weights,
      *grads; /* [Tq, Tk]: p as it meets the values, and the gradient of the product of a query and a key, its scale left out */
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
static const float *output_grad_of(const head *of, int64_t i) {
  return (const float *)of->problem->output_grad_data + at(&of->problem->output_grad, of->b, of->h, i);
}
static float lse_of(const head *of, int64_t i) {
  return of->tensors->lse[at(&of->problem->lse, of->b, of->h, i)];
}
static float delta_of(const head *of, int64_t i) {
  const float *output = (const float *)of->tensors->output + at(&of->problem->output, of->b, of->h, i);
  return dot(output_grad_of(of, i), output, of->problem->value_dim);
}

static void add(float *to, float factor, const float *vector, int64_t count) {
  for (int64_t d = 0; d < count; d++) to[d] += factor * vector[d];
}

/* Fills row i of the weights and the gradients; the gradient of the query with it. A key that is not seen is not read. */
static void solve_query(const head *of, int64_t i) {
  const attn_problem *problem = of->problem;
  const float *query = query_of(of, i), *output_grad = output_grad_of(of, i);
  const float lse = lse_of(of, i), delta = delta_of(of, i), cap = (float)problem->softcap;
  float *weights = of->weights + i * problem->key_length, *grads = of->grads + i * problem->key_length;
  const uint8_t *keep = attn_keep_row(problem, of->b, of->h, i);
  float *query_grad = (float *)problem->query_grad_data + at(&problem->query_grad, of->b, of->h, i);
  memset(query_grad, 0, (size_t)problem->head_dim * sizeof *query_grad);
  for (int64_t j = 0; j < problem->key_length; j++) {
    weights[j] = grads[j] = 0;
    if (!attn_sees(problem, of->tensors, of->b, of->h, i, j)) continue;
    float score = (float)problem->scale * dot(query, key_of(of, j), problem->head_dim), tangent = 0;
    if (cap > 0) score = cap * (tangent = tanhf(score / cap));
    if (problem->bias.type)
      score += ((const float *)of->tensors->bias)[at(&problem->bias, of->b, of->h, i) + j];
    if (attn_has_position_bias(problem))
      score += attn_position_bias(problem, of->h, attn_distance(problem, of->b, i, j));
    if (score == -INFINITY) continue;
    const float kept = !keep || keep[j] ? attn_kept_factor(problem) : 0;
    weights[j] = expf(score - lse);
    grads[j] = weights[j] * (kept * dot(output_grad, value_of(of, j), problem->value_dim) - delta);
    weights[j] *= kept;
    if (problem->bias.type)
      ((float *)problem->bias_grad_data)[at(&problem->bias_grad, of->b, of->h, i) + j] += grads[j];
    grads[j] *= 1 - tangent * tangent;
    add(query_grad, (float)problem->scale * grads[j], key_of(of, j), problem->head_dim);
  }
}

/* Adds what the queries of this head make of the gradients of key j and its value. */
static void solve_key(const head *of, int64_t j) {
  const attn_problem *problem = of->problem;
  float *key_grad = (float *)problem->key_grad_data + at(&problem->key_grad, of->b, of->kv_head, j);
  float *value_grad = (float *)problem->value_grad_data + at(&problem->value_grad, of->b, of->kv_head, j);
  for (int64_t i = 0; i < problem->query_length; i++) {
    const int64_t n = i * problem->key_length + j;
    if (!attn_sees(problem, of->tensors, of->b, of->h, i, j)) continue;
    add(key_grad, (float)problem->scale * of->grads[n], query_of(of, i), problem->head_dim);
    add(value_grad, of->weights[n], output_grad_of(of, i), problem->value_dim);
  }
}

static float sink_grad_of(const head *of) {
  const attn_problem *problem = of->problem;
  const float sink = of->tensors->sink[of->h * problem->sink.head];
  float sum = 0;
  for (int64_t i = 0; i < attn_query_count(problem, of->b) && sink != -INFINITY; i++)
    sum -= expf(sink - lse_of(of, i)) * delta_of(of, i);
  return sum;
}

static void solve_queries(const head *of, int threads) {
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < of->problem->query_length; i++) solve_query(of, i);
}

static void solve_head(const head *of, int threads) {
  const attn_problem *problem = of->problem;
  /* Rows of a bias that queries share are summed in the queries' order. */
  solve_queries(of, problem->bias.type && problem->bias.position == 0 ? 1 : threads);
#pragma omp parallel for num_threads(threads)
  for (int64_t j = 0; j < problem->key_length; j++) solve_key(of, j);
  if (problem->sink.type)
    ((float *)problem->sink_grad_data)[of->h * problem->sink_grad.head] += sink_grad_of(of);
}

static void clear(void *data, const attn_layout *layout, int64_t batch, int64_t heads, int64_t length,
                  int64_t width) {
  for (int64_t b = 0; b < batch; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t i = 0; i < length; i++)
        memset((float *)data + at(layout, b, h, i), 0, (size_t)width * sizeof(float));
}

static void run_rotated(const attn_call *call) {
  const attn_problem *p = call->problem;
  float *workspace = call->workspace;
  clear(p->key_grad_data, &p->key_grad, p->batch, p->kv_heads, p->key_length, p->head_dim);
  clear(p->value_grad_data, &p->value_grad, p->batch, p->kv_heads, p->key_length, p->value_dim);
  if (p->bias.type)
    clear(p->bias_grad_data, &p->bias_grad, p->batch, p->query_heads, p->query_length, p->key_length);
  if (p->sink.type) clear(p->sink_grad_data, &p->sink_grad, 1, p->query_heads, 1, 1);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->query_heads; h++) {
      const head of = {p,
                       &call->tensors,
                       b,
                       h,
                       h / (p->query_heads / p->kv_heads),
                       workspace,
                       workspace + p->query_length * p->key_length};
      solve_head(&of, call->threads);
    }
}

static size_t rotated_workspace(const attn_call *call) {
  return 2 * (size_t)(call->problem->query_length * call->problem->key_length) * sizeof(float);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, 0, rotated_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, 0, run_rotated); }

const attn_variant attn_naive_backward = {
    .name = "naive_backward",
    .summary = "the backward pass as written: all T x T weights of a head and their gradients are stored",
    .function = ATTN_SOFTMAX_BACKWARD,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK | ATTN_QUERY_LENGTHS |
                ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_DROPOUT,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 2,
    .unsupported = attn_portable_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
