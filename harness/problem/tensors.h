/* The tensors of a problem, one row of a table each: who treats all of them alike (memory, guards, checksums,
 * checks, files) goes through the table and names none. */
#ifndef ATTN_HARNESS_TENSORS_H
#define ATTN_HARNESS_TENSORS_H

#include "variants/attention.h"

typedef enum tensor_id {
  TENSOR_QUERY,
  TENSOR_KEY,
  TENSOR_VALUE,
  TENSOR_MASK,
  TENSOR_BIAS,
  TENSOR_OUTPUT,
  TENSOR_LSE,
  TENSOR_WEIGHTS,
  TENSOR_SINK,
  TENSOR_QUERY_DOCUMENTS,
  TENSOR_KEY_DOCUMENTS,
  TENSOR_BLOCKS,
  TENSOR_TOPK,
  TENSOR_ALIBI,
  TENSOR_OUTPUT_GRAD,
  TENSOR_QUERY_GRAD,
  TENSOR_KEY_GRAD,
  TENSOR_VALUE_GRAD,
  TENSOR_BIAS_GRAD,
  TENSOR_SINK_GRAD,
  TENSOR_RELATIVE,
  TENSOR_T5,
  TENSOR_DECAY,
  TENSOR_ROPE_COS,
  TENSOR_ROPE_SIN,
  TENSOR_KEEP,
  TENSOR_W_Q,
  TENSOR_W_K,
  TENSOR_W_V,
  TENSOR_W_O,
  TENSOR_B_Q,
  TENSOR_B_K,
  TENSOR_B_V,
  TENSOR_B_O,
  TENSOR_GENERAL,
  TENSOR_ADDITIVE,
  TENSOR_STATE,
  TENSOR_STATE_SUM,
  TENSOR_FINAL_STATE,
  TENSOR_FINAL_STATE_SUM,
  TENSOR_DECAY_GRAD,
  TENSOR_STATE_GRAD,
  TENSOR_STATE_SUM_GRAD,
  TENSORS
} tensor_id;

typedef struct tensor_row {
  const char *name;  /* of its fields in attn_problem and attn_tensors */
  const char *words; /* in a sentence: "the queries" */
  const char *file;  /* in a case folder, without its ending; NULL: none */
  const char *
      axes; /* a letter each: B; H, K (Hkv); q, k; D, V (Dv), k; 1 for an axis that it lacks; of blocks u and v,
                        * of listed keys t, of a relative table r, of T5's s, of tables of angles p and n, of a layer
                        * M, d (H D), e (Hkv D), f (Hkv Dv) and g (H Dv): ask tensor_axes */
  size_t layout, data; /* where in attn_problem, and in attn_tensors or, if in_problem, there too */
  bool written;        /* an output of its pass: ask tensor_is_written */
  uint32_t types;      /* bits 1 << type: what its elements may be */
  bool in_problem;
  bool says_who_sees; /* of the pattern */
} tensor_row;

/* The problem is of the backward pass. */
bool tensors_are_backward(const attn_problem *problem);
bool function_is_backward(attn_function function);

/* It is an output: what the forward pass writes the backward pass reads. */
bool tensor_is_written(const attn_problem *problem, tensor_id id);

/* It belongs to the backward pass alone. */
bool tensor_is_gradient(tensor_id id);

/* The problem is of a layer: its queries are x, its keys a memory, and it has no values. */
bool tensors_are_of_layer(const attn_problem *problem);

/* The input that not every problem has, of which it is the gradient; TENSORS: of none. */
tensor_id tensor_of_gradient(tensor_id id);

/* It belongs to a layer alone: weights and biases of a projection. */
bool tensor_is_projection(tensor_id id);

/* It is of linear attention's final state: an output that has no rows of queries. */
bool tensor_is_final_state(tensor_id id);

/* Not every problem of this function has it. */
bool tensor_is_optional(const attn_problem *problem, tensor_id id);

extern const tensor_row tensor_table[TENSORS];

/* The row's, but of a layer what x, the memory and the output have. */
const char *tensor_axes(attn_function function, tensor_id id);

/* [batch, heads, length, width] */
typedef struct tensor_shape {
  int64_t batch, heads, length, width;
} tensor_shape;

const attn_layout *tensor_layout(const attn_problem *problem, tensor_id id);
attn_layout *tensor_layout_of(attn_problem *problem, tensor_id id);
const void *tensor_data(const attn_problem *problem, const attn_tensors *tensors, tensor_id id);
void tensor_set_data(attn_problem *problem, attn_tensors *tensors, tensor_id id, const void *data);

/* As attention.h has it, whether the problem has the tensor or not. */
tensor_shape tensor_shape_of(const attn_problem *problem, tensor_id id);

/* The same with 1 for each axis of stride 0: what lies in memory. */
tensor_shape tensor_stored_shape(const attn_problem *problem, tensor_id id);

/* Elements and bytes from the first to the last, gaps included; 0 for a tensor that is not there. The problem is
 * sound. */
size_t tensor_elements(const attn_problem *problem, tensor_id id);
size_t tensor_bytes(const attn_problem *problem, tensor_id id);

#endif
