/* See widen.h. */
#include "widen.h"

#include "elements.h"

enum { LINE = 16 };

/* A tensor that is converted, and where its copy lies. */
typedef struct narrow_tensor {
  attn_layout from, to;
  int64_t batch, heads, length, width; /* that are stored: 1 for an axis of stride 0 */
} narrow_tensor;

/* every: what lies in memory once may become another row at each place. */
static narrow_tensor describe(const attn_problem *problem, attn_layout layout, int64_t heads, int64_t length,
                              int64_t width, bool every) {
  narrow_tensor tensor = {
      layout, attn_packed(ATTN_FLOAT32, heads, length, width), problem->batch, heads, length, width};
  if (every) return tensor;
  tensor.batch = layout.batch == 0 && problem->batch > 1 ? 1 : problem->batch;
  tensor.heads = layout.head == 0 && heads > 1 ? 1 : heads;
  tensor.length = layout.position == 0 && length > 1 ? 1 : length;
  tensor.to = attn_packed(ATTN_FLOAT32, tensor.heads, tensor.length, width);
  if (tensor.batch < problem->batch) tensor.to.batch = 0;
  if (tensor.heads < heads) tensor.to.head = 0;
  if (tensor.length < length) tensor.to.position = 0;
  return tensor;
}

enum { QUERY, KEY, VALUE, BIAS, OUTPUT, WEIGHTS, NARROW };

/* Whether any tensor has elements of 16 bits, or is rotated. */
static bool is_converted(const attn_problem *problem) {
  const attn_type types[] = {problem->query.type, problem->key.type,    problem->value.type,
                             problem->bias.type,  problem->output.type, problem->weights.type};
  for (size_t n = 0; n < sizeof types / sizeof *types; n++)
    if (types[n] == ATTN_BFLOAT16 || types[n] == ATTN_FLOAT16) return true;
  return attn_uses(problem, ATTN_ROPE);
}

/* The call in float32, but for the data of converted tensors. */
typedef struct widened {
  attn_problem problem;
  attn_call call;
  narrow_tensor tensors[NARROW];
  bool converted[NARROW];
} widened;

static size_t floats_of(const narrow_tensor *t) {
  const size_t floats = (size_t)(t->batch * t->heads * t->length * t->width);
  return (floats + LINE - 1) / LINE * LINE;
}

static void widen(widened *wide, const attn_call *call) {
  const attn_problem *p = call->problem;
  wide->problem = *p;
  wide->call = *call;
  wide->call.problem = &wide->problem;
  attn_layout *layouts[NARROW] = {&wide->problem.query, &wide->problem.key,    &wide->problem.value,
                                  &wide->problem.bias,  &wide->problem.output, &wide->problem.weights};
  wide->problem.features &= ~(uint64_t)ATTN_ROPE;
  for (int n = 0; n < NARROW; n++) {
    const bool of_keys = n == KEY || n == VALUE, of_pairs = n == BIAS || n == WEIGHTS;
    const bool rotates = n <= KEY && attn_uses(p, ATTN_ROPE);
    wide->converted[n] = rotates || layouts[n]->type == ATTN_BFLOAT16 || layouts[n]->type == ATTN_FLOAT16;
    if (!wide->converted[n]) continue;
    wide->tensors[n] = describe(p, *layouts[n], of_keys ? p->kv_heads : p->query_heads,
                                of_keys ? p->key_length : p->query_length,
                                of_pairs                    ? p->key_length
                                : n == VALUE || n == OUTPUT ? p->value_dim
                                                            : p->head_dim,
                                rotates);
    *layouts[n] = wide->tensors[n].to;
  }
}

/* Row n of those that are stored, in elements. */
static int64_t row_at(const narrow_tensor *t, attn_layout layout, int64_t n) {
  const int64_t b = n / t->length / t->heads, h = n / t->length % t->heads, i = n % t->length;
  return b * layout.batch + h * layout.head + i * layout.position;
}

static void convert(const narrow_tensor *t, void *narrow, float *wide, bool back, int threads) {
  const int64_t rows = t->width > 0 ? t->batch * t->heads * t->length : 0;
#pragma omp parallel for num_threads(threads)
  for (int64_t n = 0; n < rows; n++) {
    const int64_t from = row_at(t, t->from, n), to = row_at(t, t->to, n);
    for (int64_t x = 0; x < t->width; x++)
      if (back)
        attn_store(narrow, t->from.type, from + x, wide[to + x]);
      else
        wide[to + x] = attn_load(narrow, t->from.type, from + x);
  }
}

/* Queries, or keys, as they were converted: each by its position. */
static void rotate(const attn_problem *problem, const narrow_tensor *t, bool of_keys, float *wide,
                   int at_most) {
  const int64_t rows = t->batch * t->heads * t->length;
#pragma omp parallel for num_threads(at_most)
  for (int64_t n = 0; n < rows; n++) {
    const int64_t b = n / t->length / t->heads, i = n % t->length;
    attn_rotate(problem, of_keys ? i : attn_rope_position(problem, b, i), false, wide + row_at(t, t->to, n));
  }
}

/* The gradients of what was rotated, where they lie. */
static void turn_back(const attn_problem *problem, bool of_keys, int at_most) {
  const attn_layout layout = of_keys ? problem->key_grad : problem->query_grad;
  float *grads = of_keys ? problem->key_grad_data : problem->query_grad_data;
  const int64_t heads = of_keys ? problem->kv_heads : problem->query_heads;
  const int64_t length = of_keys ? problem->key_length : problem->query_length;
#pragma omp parallel for num_threads(at_most)
  for (int64_t n = 0; n < problem->batch * heads * length; n++) {
    const int64_t b = n / length / heads, h = n / length % heads, i = n % length;
    attn_rotate(problem, of_keys ? i : attn_rope_position(problem, b, i), true,
                grads + b * layout.batch + h * layout.head + i * layout.position);
  }
}

const char *attn_portable_unsupported(const attn_call *call) {
  return call->isa ? "is the same code under every instruction set" : NULL;
}

size_t attn_widened_workspace(const attn_call *call, size_t (*workspace_size)(const attn_call *)) {
  if (!is_converted(call->problem)) return workspace_size(call);
  widened wide;
  widen(&wide, call);
  size_t floats = 0;
  for (int n = 0; n < NARROW; n++)
    if (wide.converted[n]) floats += floats_of(&wide.tensors[n]);
  return floats * sizeof(float) + workspace_size(&wide.call);
}

void attn_widened_run(const attn_call *call, void (*run)(const attn_call *)) {
  if (!is_converted(call->problem)) {
    run(call);
    return;
  }
  widened wide;
  widen(&wide, call);
  float *memory = call->workspace, *copies[NARROW] = {NULL};
  const void *inputs[] = {call->tensors.query, call->tensors.key, call->tensors.value, call->tensors.bias};
  void *outputs[] = {call->tensors.output, call->tensors.weights};
  for (int n = 0; n < NARROW; n++) {
    if (!wide.converted[n]) continue;
    copies[n] = memory;
    memory += floats_of(&wide.tensors[n]);
    if (n < OUTPUT) convert(&wide.tensors[n], (void *)(uintptr_t)inputs[n], copies[n], false, call->threads);
    if (n <= KEY && attn_uses(call->problem, ATTN_ROPE))
      rotate(call->problem, &wide.tensors[n], n == KEY, copies[n], call->threads);
  }
  attn_tensors *tensors = &wide.call.tensors;
  if (copies[QUERY]) tensors->query = copies[QUERY];
  if (copies[KEY]) tensors->key = copies[KEY];
  if (copies[VALUE]) tensors->value = copies[VALUE];
  if (copies[BIAS]) tensors->bias = copies[BIAS];
  if (copies[OUTPUT]) tensors->output = copies[OUTPUT];
  if (copies[WEIGHTS]) tensors->weights = copies[WEIGHTS];
  wide.call.workspace = memory;
  run(&wide.call);
  for (int n = OUTPUT; n < NARROW; n++)
    if (copies[n]) convert(&wide.tensors[n], outputs[n - OUTPUT], copies[n], true, call->threads);
  if (!attn_uses(call->problem, ATTN_ROPE) || call->problem->function != ATTN_SOFTMAX_BACKWARD) return;
  turn_back(call->problem, false, call->threads);
  turn_back(call->problem, true, call->threads);
}
