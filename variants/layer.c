/* A whole layer as fast as its parts: the projections are products of a good matrix library, and attention between
 * them is fused's (tile/schedule.h), which reads queries, keys and values where the library has left them. For H D =
 * M = d_model the projections take 8 T M^2 operations and full attention 4 T^2 M: below T = 2 M it is the matrix
 * library that counts. */
#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <string.h>

#include "projections.h"
#include "tile/schedule.h"

/* Products are shared out in pieces of fixed size, of one entry's rows each: what sgemm rounds may depend on the
 * piece, so it must depend neither on the threads nor on the batch. */
enum { PIECE_ROWS = 256, PIECE_FEATURES = 256 };

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

static bool is_leading_dimension(int64_t stride, int64_t width) {
  return stride >= width && stride <= INT_MAX;
}

/* Attention alone; its workspace lies behind what is projected. */
static attn_call attention_of(const attn_call *call, const attn_problem *inner, const layer_plan *plan) {
  attn_call of = *call;
  of.problem = inner;
  if (!plan || !call->workspace) return of;
  of.tensors = layer_tensors(call, (float *)call->workspace, plan);
  of.workspace = (float *)call->workspace + plan->rest;
  return of;
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_layer_weights *l = &p->layer;
  const int64_t M = l->model_dim, O = p->query_heads * p->value_dim;
  if (!is_leading_dimension(p->query.position, M) ||
      (p->key.type && !is_leading_dimension(p->key.position, M)) ||
      !is_leading_dimension(p->output.position, M) || !is_leading_dimension(l->w_q.position, M) ||
      !is_leading_dimension(l->w_k.position, M) || !is_leading_dimension(l->w_v.position, M) ||
      (O > 0 && !is_leading_dimension(l->w_o.position, O)))
    return "sgemm needs position strides from the row's width to INT_MAX";
  if (p->query_heads * p->head_dim > INT_MAX || O > INT_MAX) return "sgemm needs features within int";
  const attn_problem inner = layer_attention(p);
  const attn_call attention = attention_of(call, &inner, NULL);
  return schedule_unsupported(&attention);
}

static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Piece n of a product. */
static void multiply_piece(const layer_product *of, int64_t n) {
  const int64_t of_features = pieces(of->features, PIECE_FEATURES), of_entry = pieces(of->length, PIECE_ROWS);
  const int64_t b = n / of_features / of_entry, i = n / of_features % of_entry * PIECE_ROWS;
  const int64_t d = n % of_features * PIECE_FEATURES;
  const int64_t rows = smaller(of->length - i, PIECE_ROWS),
                features = smaller(of->features - d, PIECE_FEATURES);
  float *to = of->to + b * of->to_batch + i * of->to_position + d;
  for (int64_t r = 0; r < rows; r++)
    if (of->bias)
      memcpy(to + r * of->to_position, of->bias + d, (size_t)features * sizeof *to);
    else if (of->width == 0)
      memset(to + r * of->to_position, 0, (size_t)features * sizeof *to);
  if (of->width > 0)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)features, (int)of->width, 1,
                of->rows + b * of->by.batch + i * of->by.position, (int)of->by.position,
                of->weights + d * of->pitch, (int)of->pitch, of->bias ? 1 : 0, to, (int)of->to_position);
}

static int64_t pieces_of(const layer_product *of, int64_t batch) {
  return batch * pieces(of->length, PIECE_ROWS) * pieces(of->features, PIECE_FEATURES);
}

/* Products that do not wait for each other. */
static void multiply(const layer_product *products, int count, int64_t batch, int threads) {
  int64_t ends[LAYER_PRODUCTS], all = 0;
  for (int n = 0; n < count; n++) ends[n] = all += pieces_of(&products[n], batch);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t n = 0; n < all; n++) {
    int which = 0;
    while (n >= ends[which]) which++;
    multiply_piece(&products[which], n - (which > 0 ? ends[which - 1] : 0));
  }
}

static size_t workspace_size(const attn_call *call) {
  const attn_problem inner = layer_attention(call->problem);
  const layer_plan plan = layer_plan_of(call->problem);
  const attn_call attention = attention_of(call, &inner, &plan);
  return plan.rest * sizeof(float) + schedule_workspace_size(&attention, choose);
}

static void run(const attn_call *call) {
  const attn_problem inner = layer_attention(call->problem);
  const layer_plan plan = layer_plan_of(call->problem);
  const attn_call attention = attention_of(call, &inner, &plan);
  layer_product products[LAYER_PRODUCTS];
  layer_products(call, (float *)call->workspace, &plan, products);
  /* The library must not start threads of its own inside ours, and a sequential build of it has no locks (blas.c). */
  const int threads = openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? 1 : call->threads;
  const int library_threads = openblas_get_num_threads();
  if (library_threads != 1) openblas_set_num_threads(1);
  multiply(products, LAYER_OUTPUT, inner.batch, threads);
  schedule_run(&attention, choose);
  multiply(&products[LAYER_OUTPUT], 1, inner.batch, threads);
  if (library_threads != 1) openblas_set_num_threads(library_threads);
}

const attn_variant attn_layer = {
    .name = "layer",
    .summary = "a layer: projections with OpenBLAS, fused attention between them",
    .function = ATTN_LAYER,
    .features = (SCHEDULE_FEATURES & ~(ATTN_LSE | ATTN_ROPE | ATTN_DROPOUT | ATTN_GENERAL | ATTN_ADDITIVE)) |
                SCHEDULE_PATTERNS | ATTN_MEMORY | ATTN_PROJECTION_BIAS,
    .types = 1 << ATTN_FLOAT32,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
