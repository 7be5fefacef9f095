/* See tensors.h. */
#include "tensors.h"

#include <string.h>

#include "reference/reference.h"
#include "types.h"

#define FLOATS (1u << ATTN_FLOAT32 | 1u << ATTN_BFLOAT16 | 1u << ATTN_FLOAT16)
#define ROW(field, words, file, axes, written, types)                                                        \
  {                                                                                                          \
#field, words, file, axes, offsetof(attn_problem, field), offsetof(attn_tensors, field), written, types, \
        false, false                                                                                         \
  }
#define IN_PROBLEM(field, words, file, axes, types, says_who_sees)                                           \
  {                                                                                                          \
#field, words, file, axes, offsetof(attn_problem, field), offsetof(attn_problem, field##_data), false,   \
        types, true, says_who_sees                                                                           \
  }
#define GRADIENT(field, words, axes, written, types)                                                         \
  {                                                                                                          \
#field, words, #field, axes, offsetof(attn_problem, field), offsetof(attn_problem, field##_data),        \
        written, types, true, false                                                                          \
  }
#define PATTERN(field, words, file, axes, types) IN_PROBLEM(field, words, file, axes, types, true)
#define POSITION(field, words, file, axes) IN_PROBLEM(field, words, file, axes, 1u << ATTN_FLOAT32, false)

#define PROJECTION(field, words, axes)                                                                       \
  {                                                                                                          \
#field, words, #field, axes, offsetof(attn_problem, layer.field),                                        \
        offsetof(attn_problem, layer.field##_data), false, 1u << ATTN_FLOAT32, true, false                   \
  }
#define STATE(field, words, axes, written)                                                                   \
  {                                                                                                          \
#field, words, #field, axes, offsetof(attn_problem, states.field),                                       \
        offsetof(attn_problem, states.field##_data), written, 1u << ATTN_FLOAT32, true, false                \
  }

const tensor_row tensor_table[TENSORS] = {
    [TENSOR_QUERY] = ROW(query, "the queries", "q", "BHqD", false, FLOATS),
    [TENSOR_KEY] = ROW(key, "the keys", "k", "BKkD", false, FLOATS),
    [TENSOR_VALUE] = ROW(value, "the values", "v", "BKkV", false, FLOATS),
    [TENSOR_MASK] = ROW(mask, "the mask", "mask", "BHqk", false, 1u << ATTN_UINT8),
    [TENSOR_BIAS] = ROW(bias, "the bias", "bias", "BHqk", false, FLOATS),
    [TENSOR_OUTPUT] = ROW(output, "the output", "output", "BHqV", true, FLOATS),
    [TENSOR_LSE] = ROW(lse, "the log-sum-exp", "lse", "BHq1", true, 1u << ATTN_FLOAT32),
    [TENSOR_WEIGHTS] = ROW(weights, "the weights", NULL, "BHqk", true, FLOATS),
    [TENSOR_SINK] = ROW(sink, "the sinks", "sink", "1H11", false, 1u << ATTN_FLOAT32),
    [TENSOR_QUERY_DOCUMENTS] =
        PATTERN(query_documents, "the documents of the queries", "docs_q", "B1q1", 1u << ATTN_INT32),
    [TENSOR_KEY_DOCUMENTS] =
        PATTERN(key_documents, "the documents of the keys", "docs_k", "B1k1", 1u << ATTN_INT32),
    [TENSOR_BLOCKS] = PATTERN(blocks, "the block mask", "blocks", "BHuv", 1u << ATTN_UINT8),
    [TENSOR_TOPK] = PATTERN(topk, "the listed keys", "topk", "BHqt", 1u << ATTN_INT32),
    [TENSOR_ALIBI] = POSITION(alibi, "the slopes", "alibi", "1H11"),
    [TENSOR_OUTPUT_GRAD] = GRADIENT(output_grad, "the gradient of the output", "BHqV", false, FLOATS),
    [TENSOR_QUERY_GRAD] = GRADIENT(query_grad, "the gradient of the queries", "BHqD", true, FLOATS),
    [TENSOR_KEY_GRAD] = GRADIENT(key_grad, "the gradient of the keys", "BKkD", true, FLOATS),
    [TENSOR_VALUE_GRAD] = GRADIENT(value_grad, "the gradient of the values", "BKkV", true, FLOATS),
    [TENSOR_BIAS_GRAD] = GRADIENT(bias_grad, "the gradient of the bias", "BHqk", true, FLOATS),
    [TENSOR_SINK_GRAD] = GRADIENT(sink_grad, "the gradient of the sinks", "1H11", true, 1u << ATTN_FLOAT32),
    [TENSOR_DECAY_GRAD] = GRADIENT(decay_grad, "the gradient of the decay", "BKk1", true, 1u << ATTN_FLOAT32),
    [TENSOR_STATE_GRAD] =
        GRADIENT(state_grad, "the gradient of the initial state", "BKDV", true, 1u << ATTN_FLOAT32),
    [TENSOR_STATE_SUM_GRAD] = GRADIENT(state_sum_grad, "the gradient of the initial sums of features", "BK1D",
                                       true, 1u << ATTN_FLOAT32),
    [TENSOR_RELATIVE] = POSITION(relative, "the relative table", "rel", "1H1r"),
    [TENSOR_T5] = POSITION(t5, "the numbers of T5's buckets", "t5", "1H1s"),
    [TENSOR_DECAY] = POSITION(decay, "the decay", "decay", "BK1k"),
    [TENSOR_ROPE_COS] = POSITION(rope_cos, "the cosines", "cos", "11pn"),
    [TENSOR_ROPE_SIN] = POSITION(rope_sin, "the sines", "sin", "11pn"),
    [TENSOR_GENERAL] = POSITION(general, "the matrices of general scores", "general", "1HDD"),
    [TENSOR_ADDITIVE] = POSITION(additive, "the weights of additive scores", "additive", "1H1D"),
    [TENSOR_KEEP] = IN_PROBLEM(keep, "the keep mask", "keep", "BHqk", 1u << ATTN_UINT8, false),
    [TENSOR_W_Q] = PROJECTION(w_q, "the weights of the queries' projection", "11dM"),
    [TENSOR_W_K] = PROJECTION(w_k, "the weights of the keys' projection", "11eM"),
    [TENSOR_W_V] = PROJECTION(w_v, "the weights of the values' projection", "11fM"),
    [TENSOR_W_O] = PROJECTION(w_o, "the weights of the output's projection", "11Mg"),
    [TENSOR_B_Q] = PROJECTION(b_q, "the bias of the queries' projection", "111d"),
    [TENSOR_B_K] = PROJECTION(b_k, "the bias of the keys' projection", "111e"),
    [TENSOR_B_V] = PROJECTION(b_v, "the bias of the values' projection", "111f"),
    [TENSOR_B_O] = PROJECTION(b_o, "the bias of the output's projection", "111M"),
    [TENSOR_STATE] = STATE(state, "the initial state", "BKDV", false),
    [TENSOR_STATE_SUM] = STATE(state_sum, "the initial sums of features", "BK1D", false),
    [TENSOR_FINAL_STATE] = STATE(final_state, "the final state", "BKDV", true),
    [TENSOR_FINAL_STATE_SUM] = STATE(final_state_sum, "the final sums of features", "BK1D", true),
};

bool tensors_are_backward(const attn_problem *problem) { return function_is_backward(problem->function); }

bool function_is_backward(attn_function function) {
  const reference_function *of = reference_function_of(function);
  return of && of->forward != function;
}

bool tensors_are_of_layer(const attn_problem *problem) { return problem->function == ATTN_LAYER; }

const char *tensor_axes(attn_function function, tensor_id id) {
  if (function == ATTN_LAYER && (id == TENSOR_QUERY || id == TENSOR_OUTPUT)) return "B1qM";
  if (function == ATTN_LAYER && id == TENSOR_KEY) return "B1kM";
  return tensor_table[id].axes;
}

bool tensor_is_gradient(tensor_id id) {
  return (id >= TENSOR_OUTPUT_GRAD && id <= TENSOR_SINK_GRAD) || id >= TENSOR_DECAY_GRAD;
}

tensor_id tensor_of_gradient(tensor_id id) {
  switch (id) {
    case TENSOR_BIAS_GRAD: return TENSOR_BIAS;
    case TENSOR_SINK_GRAD: return TENSOR_SINK;
    case TENSOR_DECAY_GRAD: return TENSOR_DECAY;
    case TENSOR_STATE_GRAD: return TENSOR_STATE;
    case TENSOR_STATE_SUM_GRAD: return TENSOR_STATE_SUM;
    default: return TENSORS;
  }
}

bool tensor_is_final_state(tensor_id id) { return id == TENSOR_FINAL_STATE || id == TENSOR_FINAL_STATE_SUM; }

bool tensor_is_written(const attn_problem *problem, tensor_id id) {
  const bool of_forward = tensor_table[id].written && !tensor_is_gradient(id);
  return of_forward ? !tensors_are_backward(problem) : tensor_table[id].written;
}

bool tensor_is_optional(const attn_problem *problem, tensor_id id) {
  const bool projects = id >= TENSOR_W_Q && id <= TENSOR_W_O;
  const bool of_heads = id == TENSOR_KEY || id == TENSOR_VALUE;
  if (id == TENSOR_QUERY || id == TENSOR_OUTPUT) return false;
  return tensors_are_of_layer(problem) ? !projects : !of_heads;
}

bool tensor_is_projection(tensor_id id) { return id >= TENSOR_W_Q && id <= TENSOR_B_O; }

const attn_layout *tensor_layout(const attn_problem *problem, tensor_id id) {
  return (const attn_layout *)(const void *)((const char *)problem + tensor_table[id].layout);
}

attn_layout *tensor_layout_of(attn_problem *problem, tensor_id id) {
  return (attn_layout *)(void *)((char *)problem + tensor_table[id].layout);
}

const void *tensor_data(const attn_problem *problem, const attn_tensors *tensors, tensor_id id) {
  const void *where = tensor_table[id].in_problem ? (const void *)problem : (const void *)tensors, *data;
  memcpy(&data, (const char *)where + tensor_table[id].data, sizeof data);
  return data;
}

void tensor_set_data(attn_problem *problem, attn_tensors *tensors, tensor_id id, const void *data) {
  void *where = tensor_table[id].in_problem ? (void *)problem : (void *)tensors;
  memcpy((char *)where + tensor_table[id].data, &data, sizeof data);
}

static int64_t blocks_of(int64_t length, int64_t block) {
  return block > 0 ? length / block + (length % block != 0) : 0;
}

/* Of a distance that is not sound, any. */
static int64_t distances_of(int64_t reach) {
  return reach >= 0 && reach <= ATTN_FARTHEST ? 2 * reach + 1 : INT64_MAX;
}

static int64_t product(int64_t a, int64_t b) {
  int64_t both;
  return __builtin_mul_overflow(a, b, &both) ? INT64_MAX : both;
}

static int64_t axis_size(const attn_problem *p, char axis) {
  switch (axis) {
    case 'B': return p->batch;
    case 'H': return p->query_heads;
    case 'K': return p->kv_heads;
    case 'q': return p->query_length;
    case 'k': return p->key_length;
    case 'D': return p->head_dim;
    case 'V': return p->value_dim;
    case 'u': return blocks_of(p->query_length, p->block_q);
    case 'v': return blocks_of(p->key_length, p->block_k);
    case 't': return p->topk_count;
    case 's': return p->t5_buckets;
    case 'r': return distances_of(p->relative_distance);
    case 'p': return p->rope_positions;
    case 'n': return p->rope_features / 2;
    case 'M': return p->layer.model_dim;
    case 'd': return product(p->query_heads, p->head_dim);
    case 'e': return product(p->kv_heads, p->head_dim);
    case 'f': return product(p->kv_heads, p->value_dim);
    case 'g': return product(p->query_heads, p->value_dim);
    default: return 1;
  }
}

tensor_shape tensor_shape_of(const attn_problem *p, tensor_id id) {
  const char *axes = tensor_axes(p->function, id);
  return (tensor_shape){axis_size(p, axes[0]), axis_size(p, axes[1]), axis_size(p, axes[2]),
                        axis_size(p, axes[3])};
}

static int64_t stored(int64_t size, int64_t stride) { return stride == 0 && size > 1 ? 1 : size; }

tensor_shape tensor_stored_shape(const attn_problem *p, tensor_id id) {
  const attn_layout *layout = tensor_layout(p, id);
  const tensor_shape whole = tensor_shape_of(p, id);
  return (tensor_shape){stored(whole.batch, layout->batch), stored(whole.heads, layout->head),
                        stored(whole.length, layout->position), whole.width};
}

size_t tensor_elements(const attn_problem *p, tensor_id id) {
  const attn_layout *layout = tensor_layout(p, id);
  const tensor_shape shape = tensor_shape_of(p, id);
  if (!layout->type || shape.batch <= 0 || shape.heads <= 0 || shape.length <= 0 || shape.width <= 0)
    return 0;
  return (size_t)(layout->batch * (shape.batch - 1) + layout->head * (shape.heads - 1) +
                  layout->position * (shape.length - 1) + shape.width);
}

size_t tensor_bytes(const attn_problem *p, tensor_id id) {
  const element_type *type = element_type_of(tensor_layout(p, id)->type);
  return type ? tensor_elements(p, id) * type->bytes : 0;
}
