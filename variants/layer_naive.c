/* A whole layer, naive: queries, keys and values are products of x and of the memory with the weights, attention is naive's, and
 * what comes out of the heads meets the weights of the output; each product three plain loops. */
#include "projections.h"

extern const attn_variant attn_naive;

static void multiply(const layer_product *of, int64_t batch, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t n = 0; n < batch * of->length; n++) {
    const int64_t b = n / of->length, i = n % of->length;
    const float *row = of->rows + b * of->by.batch + i * of->by.position;
    float *to = of->to + b * of->to_batch + i * of->to_position;
    for (int64_t d = 0; d < of->features; d++) {
      float sum = of->bias ? of->bias[d] : 0;
      for (int64_t m = 0; m < of->width; m++) sum += of->weights[d * of->pitch + m] * row[m];
      to[d] = sum;
    }
  }
}

/* Attention alone; its workspace lies behind what is projected. */
static attn_call attention_of(const attn_call *call, const attn_problem *inner, const layer_plan *plan) {
  attn_call of = *call;
  of.variant = &attn_naive;
  of.problem = inner;
  if (!call->workspace) return of;
  of.tensors = layer_tensors(call, (float *)call->workspace, plan);
  of.workspace = (float *)call->workspace + plan->rest;
  return of;
}

static size_t workspace_size(const attn_call *call) {
  const attn_problem inner = layer_attention(call->problem);
  const layer_plan plan = layer_plan_of(call->problem);
  const attn_call attention = attention_of(call, &inner, &plan);
  return plan.rest * sizeof(float) + attn_naive.workspace_size(&attention);
}

static void run(const attn_call *call) {
  const attn_problem inner = layer_attention(call->problem);
  const layer_plan plan = layer_plan_of(call->problem);
  const attn_call attention = attention_of(call, &inner, &plan);
  layer_product products[LAYER_PRODUCTS];
  if (!call->workspace) return; /* there are no rows */
  layer_products(call, (float *)call->workspace, &plan, products);
  for (int n = LAYER_QUERY; n < LAYER_OUTPUT; n++) multiply(&products[n], inner.batch, call->threads);
  attn_naive.run(&attention);
  multiply(&products[LAYER_OUTPUT], inner.batch, call->threads);
}

const attn_variant attn_layer_naive = {
    .name = "layer_naive",
    .summary = "a layer as written: projections in plain loops around naive",
    .function = ATTN_LAYER,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP |
                ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK | ATTN_QUERY_LENGTHS |
                ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_MEMORY | ATTN_PROJECTION_BIAS,
    .types = 1 << ATTN_FLOAT32,
    .traits = ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 2,
    .workspace_size = workspace_size,
    .run = run,
};
