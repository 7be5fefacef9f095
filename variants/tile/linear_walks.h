/* What the backward pass of linear attention (../linear_backward.c) and its two walks along a head share: what a
 * thread works with, rows of tensors, and the products with a running state. */
#ifndef ATTN_LINEAR_WALKS_H
#define ATTN_LINEAR_WALKS_H

#include <math.h>

#include "linear_gates.h"

enum { LINE = 16 /* floats of a cache line */, ROWS = TILE_MAX_ROWS };

typedef struct linear_backward {
  const attn_problem *problem;
  const attn_tensors *tensors;
  const tile_kernels *kernels;
  int64_t group, depth, width; /* query heads that share a key; D and Dv in whole vectors */
  float *inverse, *minus;      /* [B, H, Tq]: 1 / n, and delta / n */
  float *crossing; /* [B, H, Tq], where keys decay: what the keys before its tile are to a query */
  float *scratch;  /* of each thread */
} linear_backward;

/* What a thread works with. The state, [Dv, D], lies in strips of the features that a kernel takes, as linear's does. */
typedef struct linear_scratch {
  float *sums;           /* [depth]: z or r */
  float *state;          /* S or R */
  float *keys, *queries; /* phi [ROWS, depth] */
  float
      *grads; /* [ROWS, depth] of the keys or queries of a tile, before they are multiplied with the slopes */
  float *key_columns;            /* phi(k) [D, ROWS] */
  float *columns;                /* [Dv, ROWS] of output gradients or values */
  float *value_grads;            /* [Dv, ROWS] */
  float *output_grads;           /* [ROWS, width], each divided by its normaliser */
  float *weights, *weight_grads; /* [ROWS, ROWS] */
  float *prefix;          /* [ROWS, depth]: what z is for each row; of sums before a tile's queries join */
  float *states;          /* where keys decay: z and S where tiles of keys begin */
  float *delta, *inverse; /* [ROWS] */
  float *ones;            /* [ROWS] */
  linear_gates gates;     /* of the tile's keys, where they decay */
  double decay_grads[ROWS];
  float fades[ROWS]; /* of the tile's queries */
} linear_scratch;

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

static inline int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static inline int64_t keys_of(const attn_problem *p, int64_t b) {
  return p->key_lengths ? p->key_lengths[b] : p->key_length;
}

/* Of a tile of keys that decay. */
static inline int64_t decaying_rows(const linear_backward *of) { return 2 * of->kernels->lanes; }

/* Of z and S. */
static inline int64_t state_floats(const linear_backward *of) {
  return round_up(of->depth * (of->problem->value_dim + 1), LINE);
}

/* ---- rows of tensors ---- */

typedef struct linear_place {
  int64_t b, h, kv_head; /* h: the query head that is looked at */
} linear_place;

static inline tile_rows query_of(const linear_backward *of, linear_place at_head, int64_t i) {
  const attn_layout *strides = &of->problem->query;
  return (tile_rows){(const float *)of->tensors->query + at(strides, at_head.b, at_head.h, i),
                     strides->position};
}
static inline tile_rows key_of(const linear_backward *of, linear_place at_head, int64_t j) {
  const attn_layout *strides = &of->problem->key;
  return (tile_rows){(const float *)of->tensors->key + at(strides, at_head.b, at_head.kv_head, j),
                     strides->position};
}
static inline tile_rows value_of(const linear_backward *of, linear_place at_head, int64_t j) {
  const attn_layout *strides = &of->problem->value;
  return (tile_rows){(const float *)of->tensors->value + at(strides, at_head.b, at_head.kv_head, j),
                     strides->position};
}
static inline tile_rows output_grad_of(const linear_backward *of, linear_place at_head, int64_t i) {
  const attn_layout *strides = &of->problem->output_grad;
  return (tile_rows){(const float *)of->problem->output_grad_data + at(strides, at_head.b, at_head.h, i),
                     strides->position};
}
static inline tile_matrix matrix_of(tile_rows rows) { return (tile_matrix){rows.x, rows.stride}; }

static inline int64_t row_number(const linear_backward *of, linear_place at_head, int64_t i) {
  return (at_head.b * of->problem->query_heads + at_head.h) * of->problem->query_length + i;
}

/* Where the keys end that a query sees; never earlier than for the query before. */
static inline int64_t end_of(const linear_backward *of, linear_place at_head, int64_t i) {
  return attn_visible_keys(of->problem, at_head.b, i).end;
}

/* Rows of a tile: fewer where some pairs of it are met one by one, which cost their number. */
static inline int64_t tile_of(const linear_backward *of, linear_place at_head) {
  const bool causal =
      of->problem->query_length > 0 && end_of(of, at_head, 0) < keys_of(of->problem, at_head.b);
  if (of->problem->decay.type) return decaying_rows(of);
  return causal ? 2 * of->kernels->lanes : ROWS;
}

static inline void map_features(const linear_backward *of, int64_t rows, tile_rows x, float *to) {
  const attn_problem *p = of->problem;
  if (p->feature_map == ATTN_ELU1)
    of->kernels->elu1(rows, p->head_dim, x, (tile_target){to, of->depth});
  else
    of->kernels->at_least(rows, p->head_dim, p->feature_map == ATTN_RELU ? 0 : -INFINITY, x,
                          (tile_target){to, of->depth});
}

/* Rows of two tensors that are wanted soon: into the L2 cache while a product computes. */
static inline tile_ahead soon(tile_rows x, int64_t width, tile_rows y, int64_t other) {
  const int64_t bytes = (int64_t)sizeof(float);
  return (tile_ahead){.rows = TILE_KEYS,
                      .of = {{x.x, x.stride * bytes, width * bytes}, {y.x, y.stride * bytes, other * bytes}}};
}

/* ---- products ---- */

static inline int64_t strip(const linear_backward *of, int64_t d) {
  return smaller(of->kernels->max_rows, of->depth - d);
}

/* state[e, d] += sum_n value[n, e] features[n, d];  sums[d] += sum_n factor[n * step] features[n, d] */
void linear_join_state(const linear_backward *of, linear_scratch *mine, int64_t count, const float *features,
                       tile_rows value, tile_rows factor, const tile_ahead *next);

/* grads[n, d] = sum_e rows[n, e] state[e, d] */
void linear_apply_state(const linear_backward *of, linear_scratch *mine, int64_t count, tile_rows rows,
                        const tile_ahead *next);

/* grads[n, d] += sum_m weights[m, n] features[m, d] for n < count of a vector, m < terms */
void linear_add_pairs(const linear_backward *of, linear_scratch *mine, int64_t first, int64_t count,
                      int64_t terms, tile_rows weights, const float *features);

/* [count, width] to [width, rows] */
void linear_pack_columns(const linear_backward *of, int64_t rows, int64_t count, int64_t width,
                         tile_rows from, float *columns);

/* ---- decay, and an initial state ---- */

/* Tiles of keys that decay begin where a tile of queries finds the state ready: at such a position, and 0. */
static inline int64_t begin_of_tiles(const linear_backward *of, linear_place at_head, int64_t rows) {
  return of->problem->decay.type ? attn_remainder(attn_offset_of(of->problem, at_head.b) + 1, rows) : 0;
}

/* z and S of the tile that begins at key `first`. */
static inline float *state_at(const linear_backward *of, const linear_scratch *mine, linear_place at_head,
                              int64_t first) {
  const int64_t rows = decaying_rows(of);
  return mine->states + (first + rows - begin_of_tiles(of, at_head, rows)) / rows * state_floats(of);
}

static inline void load_gates(const linear_backward *of, linear_scratch *mine, linear_place at_head,
                              int64_t first, int64_t end) {
  linear_load_gates(of->kernels, of->problem, at_head.b, at_head.kv_head, first, end, &mine->gates);
}

/* The state fades by the loaded gates. */
void linear_fade_state(const linear_backward *of, linear_scratch *mine);

/* rows[r] . (x[r] - minus[r] y) of vectors of features */
void linear_multiply_rows(const linear_backward *of, int64_t count, const float *rows, const float *x,
                          const float *minus, const float *y, double *products);

static inline int64_t state_row(const attn_layout *strides, linear_place at_head, int64_t d) {
  return at(strides, at_head.b, at_head.kv_head, d);
}

/* ---- the walks ---- */

/* Over tiles of queries: their gradients, and what the other walk needs of each row. */
void linear_walk_forward(const linear_backward *of, linear_scratch *mine, linear_place at_head);

/* Back over tiles of keys, of which it writes all gradients, with those of a state. */
void linear_walk_backward(const linear_backward *of, linear_scratch *mine, linear_place at_head);

#endif
