/* Workloads as problems: strides of the layouts, and how much work and memory a workload stands for. */
#include "workload.h"

#include <math.h>

workload workload_default(void) {
  return (workload){
      .function = ATTN_SOFTMAX,
      .batch = 1,
      .query_heads = 4,
      .kv_heads = 4,
      .query_length = 1024,
      .key_length = 1024,
      .head_dim = 64,
      .value_dim = 64,
      .scale = NAN,
      .epsilon = 1e-6,
      .left = ATTN_UNLIMITED,
      .right = ATTN_UNLIMITED,
      .layout = LAYOUT_BHTD,
      .fill = FILL_UNIFORM,
      .seed = 1,
  };
}

/* Products saturate instead of overflowing: attn_check_problem then sees strides that are too large. */
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static attn_strides strides_of(workload_layout layout, int64_t heads, int64_t length, int64_t width) {
  attn_strides strides;
  switch (layout) {
    case LAYOUT_BTHD:
      strides.head = width;
      strides.position = times(heads, width);
      strides.batch = times(length, strides.position);
      break;
    case LAYOUT_PADDED: /* odd everywhere, so that hardly a row begins at a multiple of 16 bytes */
      strides.position = plus(width, 3) | 1;
      strides.head = plus(times(length, strides.position), 5) | 1;
      strides.batch = plus(times(heads, strides.head), 7) | 1;
      break;
    default:
      strides.position = width;
      strides.head = times(length, width);
      strides.batch = times(heads, strides.head);
  }
  return strides;
}

/* A mask or bias: axes that it does not vary over have stride 0. Only padding changes its layout. */
static attn_strides broadcast_strides(const workload *w, workload_axes axes) {
  workload_layout layout = w->layout == LAYOUT_PADDED ? LAYOUT_PADDED : LAYOUT_BHTD;
  attn_strides strides =
      strides_of(layout, axes.head ? w->query_heads : 1, axes.query ? w->query_length : 1, w->key_length);
  if (!axes.batch) strides.batch = 0;
  if (!axes.head) strides.head = 0;
  if (!axes.query) strides.position = 0;
  return strides;
}

attn_problem workload_problem(const workload *w) {
  const workload_layout rows = w->layout == LAYOUT_PADDED ? LAYOUT_PADDED : LAYOUT_BHTD;
  return (attn_problem){
      .function = w->function,
      .dtype = ATTN_FLOAT32,
      .batch = w->batch,
      .query_heads = w->query_heads,
      .kv_heads = w->kv_heads,
      .query_length = w->query_length,
      .key_length = w->key_length,
      .head_dim = w->head_dim,
      .value_dim = w->value_dim,
      .scale = isnan(w->scale) ? 1 / sqrt((double)w->head_dim) : w->scale,
      .softcap = w->softcap,
      .epsilon = w->epsilon,
      .left = w->left,
      .right = w->right,
      .offset = w->offset,
      .offsets = w->has_offsets ? w->offsets : NULL,
      .key_lengths = w->has_lengths ? w->lengths : NULL,
      .has_mask = w->mask.present,
      .has_bias = w->bias.present,
      .wants_lse = w->wants_lse,
      .wants_weights = w->wants_weights,
      .query = strides_of(w->layout, w->query_heads, w->query_length, w->head_dim),
      .key = strides_of(w->layout, w->kv_heads, w->key_length, w->head_dim),
      .value = strides_of(w->layout, w->kv_heads, w->key_length, w->value_dim),
      .output = strides_of(w->layout, w->query_heads, w->query_length, w->value_dim),
      .mask = broadcast_strides(w, w->mask),
      .bias = broadcast_strides(w, w->bias),
      .lse = strides_of(rows, w->query_heads, w->query_length, 1),
      .weights = strides_of(rows, w->query_heads, w->query_length, w->key_length),
  };
}

double workload_visible_pairs(const workload *w) {
  const attn_problem problem = workload_problem(w);
  /* Entries differ only where they are listed. */
  const bool listed = w->has_offsets || w->has_lengths;
  const int64_t entries = listed ? w->batch : w->batch > 0 ? 1 : 0;
  double pairs = 0;
  for (int64_t b = 0; b < entries; b++)
    for (int64_t i = 0; i < w->query_length; i++) {
      attn_range visible = attn_visible_keys(&problem, b, i);
      pairs += (double)(visible.end - visible.first);
    }
  return pairs * (double)w->query_heads * (listed ? 1 : (double)w->batch);
}

double workload_flops(const workload *w) {
  const double D = (double)w->head_dim, Dv = (double)w->value_dim;
  if (w->function == ATTN_LINEAR)
    return 2 * D * Dv * (double)w->batch *
           ((double)w->kv_heads * (double)w->key_length + (double)w->query_heads * (double)w->query_length);
  return 2 * (D + Dv) * workload_visible_pairs(w);
}

/* Elements that a tensor spans, gaps between rows included. */
static double extent(attn_strides strides, int64_t batch, int64_t heads, int64_t length, int64_t width) {
  if (batch <= 0 || heads <= 0 || length <= 0 || width <= 0) return 0;
  return (double)strides.batch * (double)(batch - 1) + (double)strides.head * (double)(heads - 1) +
         (double)strides.position * (double)(length - 1) + (double)width;
}

double workload_tensor_bytes(const workload *w) {
  const attn_problem p = workload_problem(w);
  const int64_t B = p.batch, H = p.query_heads, Hkv = p.kv_heads, Tq = p.query_length, Tk = p.key_length;
  double elements = extent(p.query, B, H, Tq, p.head_dim) + extent(p.key, B, Hkv, Tk, p.head_dim) +
                    extent(p.value, B, Hkv, Tk, p.value_dim) + extent(p.output, B, H, Tq, p.value_dim);
  if (p.has_bias) elements += extent(p.bias, B, H, Tq, Tk);
  if (p.wants_lse) elements += extent(p.lse, B, H, Tq, 1);
  if (p.wants_weights) elements += extent(p.weights, B, H, Tq, Tk);
  return 4 * elements + (p.has_mask ? extent(p.mask, B, H, Tq, Tk) : 0);
}
