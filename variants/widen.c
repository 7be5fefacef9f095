/* See widen.h. */
#include "widen.h"

#include <string.h>

#include "tile/tile.h"

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

enum {
  QUERY,
  KEY,
  VALUE,
  BIAS,
  OUTPUT_GRAD,
  OUTPUT, /* which the backward pass is given */
  WEIGHTS,
  QUERY_GRAD,
  KEY_GRAD,
  VALUE_GRAD,
  BIAS_GRAD,
  NARROW
};

static bool is_backward(const attn_problem *problem) {
  return problem->function == ATTN_SOFTMAX_BACKWARD || problem->function == ATTN_LINEAR_BACKWARD;
}
static bool is_written(const attn_problem *problem, int n) {
  return n > OUTPUT || (n == OUTPUT && !is_backward(problem));
}
static bool is_turned(const attn_problem *problem, int n) {
  return (n == QUERY || n == KEY) && attn_uses(problem, ATTN_ROPE);
}

static void layouts_of(attn_problem *problem, attn_layout *layouts[NARROW]) {
  attn_layout *all[NARROW] = {&problem->query,      &problem->key,         &problem->value,
                              &problem->bias,       &problem->output_grad, &problem->output,
                              &problem->weights,    &problem->query_grad,  &problem->key_grad,
                              &problem->value_grad, &problem->bias_grad};
  memcpy(layouts, all, sizeof all);
}

static bool is_narrow(const attn_layout *layout) {
  return layout->type == ATTN_BFLOAT16 || layout->type == ATTN_FLOAT16;
}

static bool is_kept(uint64_t kept, int n) { return (kept & ATTN_BIAS) && (n == BIAS || n == BIAS_GRAD); }

/* Whether any tensor has elements of 16 bits that are to be converted, or is rotated. */
static bool is_converted(const attn_problem *problem, uint64_t kept) {
  attn_problem copy = *problem;
  attn_layout *layouts[NARROW];
  layouts_of(&copy, layouts);
  for (int n = 0; n < NARROW; n++)
    if (is_narrow(layouts[n]) && !is_kept(kept, n)) return true;
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

static void widen(widened *wide, const attn_call *call, uint64_t kept) {
  const attn_problem *p = call->problem;
  wide->problem = *p;
  wide->call = *call;
  wide->call.problem = &wide->problem;
  attn_layout *layouts[NARROW];
  layouts_of(&wide->problem, layouts);
  wide->problem.features &= ~(uint64_t)ATTN_ROPE;
  for (int n = 0; n < NARROW; n++) {
    const bool of_keys = n == KEY || n == VALUE || n == KEY_GRAD || n == VALUE_GRAD;
    const bool of_pairs = n == BIAS || n == WEIGHTS || n == BIAS_GRAD;
    const bool of_values = n == VALUE || n == OUTPUT || n == OUTPUT_GRAD || n == VALUE_GRAD;
    wide->converted[n] = is_turned(p, n) || (is_narrow(layouts[n]) && !is_kept(kept, n));
    if (!wide->converted[n]) continue;
    wide->tensors[n] = describe(p, *layouts[n], of_keys ? p->kv_heads : p->query_heads,
                                of_keys ? p->key_length : p->query_length,
                                of_pairs    ? p->key_length
                                : of_values ? p->value_dim
                                            : p->head_dim,
                                is_turned(p, n));
    *layouts[n] = wide->tensors[n].to;
  }
}

/* Row n of those that are stored, in elements. */
static int64_t row_at(const narrow_tensor *t, attn_layout layout, int64_t n) {
  const int64_t b = n / t->length / t->heads, h = n / t->length % t->heads, i = n % t->length;
  return b * layout.batch + h * layout.head + i * layout.position;
}

/* Row by row with the tile kernels, which load and store by vectors. */
static void convert(const attn_call *call, const narrow_tensor *t, void *narrow, float *wide, bool back) {
  static const float one = 1;
  const tile_kernels *kernels = tile_select_floats(call->isa, t->from.type);
  const int64_t rows = t->width > 0 ? t->batch * t->heads * t->length : 0;
#pragma omp parallel for num_threads(call->threads)
  for (int64_t n = 0; n < rows; n++) {
    void *from = (char *)narrow + row_at(t, t->from, n) * kernels->element_bytes;
    float *to = wide + row_at(t, t->to, n);
    if (back)
      kernels->scale_rows(1, t->width, (tile_matrix){to, 0}, &one, &from);
    else
      kernels->read(t->width, from, to);
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

/* The gradients of what was rotated, where they lie as float32. */
static void turn_back(const attn_problem *problem, const attn_problem *wide, bool of_keys, int at_most) {
  const attn_layout layout = of_keys ? wide->key_grad : wide->query_grad;
  float *grads = of_keys ? wide->key_grad_data : wide->query_grad_data;
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

size_t attn_widened_workspace(const attn_call *call, uint64_t kept,
                              size_t (*workspace_size)(const attn_call *)) {
  if (!is_converted(call->problem, kept)) return workspace_size(call);
  widened wide;
  widen(&wide, call, kept);
  size_t floats = 0;
  for (int n = 0; n < NARROW; n++)
    if (wide.converted[n]) floats += floats_of(&wide.tensors[n]);
  return floats * sizeof(float) + workspace_size(&wide.call);
}

void attn_widened_run(const attn_call *call, uint64_t kept, void (*run)(const attn_call *)) {
  if (!is_converted(call->problem, kept)) {
    run(call);
    return;
  }
  widened wide;
  widen(&wide, call, kept);
  const attn_problem *p = call->problem;
  attn_problem *to = &wide.problem;
  attn_tensors *tensors = &wide.call.tensors;
  float *memory = call->workspace, *copies[NARROW] = {NULL};
  /* What is narrow or turned, as it was given. */
  void *given[NARROW] = {(void *)(uintptr_t)tensors->query,
                         (void *)(uintptr_t)tensors->key,
                         (void *)(uintptr_t)tensors->value,
                         (void *)(uintptr_t)tensors->bias,
                         (void *)(uintptr_t)p->output_grad_data,
                         tensors->output,
                         tensors->weights,
                         p->query_grad_data,
                         p->key_grad_data,
                         p->value_grad_data,
                         p->bias_grad_data};
  for (int n = 0; n < NARROW; n++) {
    if (!wide.converted[n]) continue;
    copies[n] = memory;
    memory += floats_of(&wide.tensors[n]);
    if (!is_written(p, n)) convert(call, &wide.tensors[n], given[n], copies[n], false);
    if (is_turned(p, n)) rotate(p, &wide.tensors[n], n == KEY, copies[n], call->threads);
  }
  if (copies[QUERY]) tensors->query = copies[QUERY];
  if (copies[KEY]) tensors->key = copies[KEY];
  if (copies[VALUE]) tensors->value = copies[VALUE];
  if (copies[BIAS]) tensors->bias = copies[BIAS];
  if (copies[OUTPUT]) tensors->output = copies[OUTPUT];
  if (copies[WEIGHTS]) tensors->weights = copies[WEIGHTS];
  if (copies[OUTPUT_GRAD]) to->output_grad_data = copies[OUTPUT_GRAD];
  if (copies[QUERY_GRAD]) to->query_grad_data = copies[QUERY_GRAD];
  if (copies[KEY_GRAD]) to->key_grad_data = copies[KEY_GRAD];
  if (copies[VALUE_GRAD]) to->value_grad_data = copies[VALUE_GRAD];
  if (copies[BIAS_GRAD]) to->bias_grad_data = copies[BIAS_GRAD];
  wide.call.workspace = memory;
  run(&wide.call);
  if (attn_uses(p, ATTN_ROPE) && is_backward(p)) {
    turn_back(p, to, false, call->threads);
    turn_back(p, to, true, call->threads);
  }
  for (int n = OUTPUT; n < NARROW; n++)
    if (copies[n] && is_written(p, n)) convert(call, &wide.tensors[n], given[n], copies[n], true);
}
