/* What the layers of variants/ share: the problem of softmax attention that is left of a layer once queries, keys and values are
 * projected, each to [B, T, H D], in a workspace. */
#ifndef ATTN_PROJECTIONS_H
#define ATTN_PROJECTIONS_H

#include "attention.h"

enum { LAYER_ALIGNMENT = 64 };

/* Where the workspace has what, in elements from its beginning; all at cache lines. */
typedef struct layer_plan {
  size_t query, key, value, output, rest;
} layer_plan;

static inline size_t layer_piece(int64_t batch, int64_t length, int64_t features) {
  const size_t floats = (size_t)(batch * length * features), line = LAYER_ALIGNMENT / sizeof(float);
  return (floats + line - 1) / line * line;
}

static inline layer_plan layer_plan_of(const attn_problem *p) {
  layer_plan plan = {0};
  plan.key = plan.query + layer_piece(p->batch, p->query_length, p->query_heads * p->head_dim);
  plan.value = plan.key + layer_piece(p->batch, p->key_length, p->kv_heads * p->head_dim);
  plan.output = plan.value + layer_piece(p->batch, p->key_length, p->kv_heads * p->value_dim);
  plan.rest = plan.output + layer_piece(p->batch, p->query_length, p->query_heads * p->value_dim);
  return plan;
}

/* [B, T, H, D] */
static inline attn_layout layer_by_positions(int64_t length, int64_t heads, int64_t width) {
  return (attn_layout){ATTN_FLOAT32, length * heads * width, width, heads * width};
}

/* The problem between the projections. */
static inline attn_problem layer_attention(const attn_problem *p) {
  attn_problem inner = *p;
  inner.function = ATTN_SOFTMAX;
  inner.features &= ~(uint64_t)(ATTN_MEMORY | ATTN_PROJECTION_BIAS);
  inner.layer = (attn_layer_weights){.model_dim = 0};
  inner.query = layer_by_positions(p->query_length, p->query_heads, p->head_dim);
  inner.key = layer_by_positions(p->key_length, p->kv_heads, p->head_dim);
  inner.value = layer_by_positions(p->key_length, p->kv_heads, p->value_dim);
  inner.output = layer_by_positions(p->query_length, p->query_heads, p->value_dim);
  return inner;
}

static inline attn_tensors layer_tensors(const attn_call *call, float *workspace, const layer_plan *plan) {
  attn_tensors tensors = call->tensors;
  tensors.query = workspace + plan->query;
  tensors.key = workspace + plan->key;
  tensors.value = workspace + plan->value;
  tensors.output = workspace + plan->output;
  return tensors;
}

/* Rows [B, T, width] by a matrix [features, width] with a bias or without: rows [B, T, features]. */
typedef struct layer_product {
  const float *rows;
  attn_layout by; /* of rows: batch and position */
  int64_t length, width, features;
  const float *weights;
  int64_t pitch; /* of these, from row to row */
  const float *bias;
  float *to;
  int64_t to_batch, to_position;
} layer_product;

enum { LAYER_QUERY, LAYER_KEY, LAYER_VALUE, LAYER_OUTPUT, LAYER_PRODUCTS };

/* All four, in this order. */
static inline void layer_products(const attn_call *call, float *workspace, const layer_plan *plan,
                                  layer_product to[LAYER_PRODUCTS]) {
  const attn_problem *p = call->problem;
  const attn_layer_weights *l = &p->layer;
  const bool has_memory = p->key.type != ATTN_ABSENT;
  const float *memory = (const float *)(has_memory ? call->tensors.key : call->tensors.query);
  const attn_layout by_memory = has_memory ? p->key : p->query;
  const int64_t Q = p->query_heads * p->head_dim, K = p->kv_heads * p->head_dim;
  const int64_t V = p->kv_heads * p->value_dim, O = p->query_heads * p->value_dim;
  const int64_t Tq = p->query_length, Tk = p->key_length, M = l->model_dim;
  const attn_layout packed = {ATTN_FLOAT32, Tq * O, 0, O};
  to[LAYER_QUERY] = (layer_product){(const float *)call->tensors.query,
                                    p->query,
                                    Tq,
                                    M,
                                    Q,
                                    l->w_q_data,
                                    l->w_q.position,
                                    l->b_q_data,
                                    workspace + plan->query,
                                    Tq * Q,
                                    Q};
  to[LAYER_KEY] = (layer_product){
      memory, by_memory, Tk, M, K, l->w_k_data, l->w_k.position, l->b_k_data, workspace + plan->key,
      Tk * K, K};
  to[LAYER_VALUE] = (layer_product){
      memory, by_memory, Tk, M, V, l->w_v_data, l->w_v.position, l->b_v_data, workspace + plan->value,
      Tk * V, V};
  to[LAYER_OUTPUT] = (layer_product){workspace + plan->output,
                                     packed,
                                     Tq,
                                     O,
                                     M,
                                     l->w_o_data,
                                     l->w_o.position,
                                     l->b_o_data,
                                     (float *)call->tensors.output,
                                     p->output.batch,
                                     p->output.position};
}

#endif
