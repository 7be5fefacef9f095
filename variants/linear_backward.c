/* The backward pass of linear attention in O(T). Of a weight's gradient, g_ij = (do_i . v_j - delta_i) / n_i, both parts are products of
 * something of the query and something of the key, so that sums over keys and over queries can be taken first, as linear does:
 *
 *     S = sum_j v_j phi(k_j)^T,  z = sum_j phi(k_j)              dphi(q_i) = (do_i S - delta_i z) / n_i
 *     R = sum_i (do_i / n_i) phi(q_i)^T,                         dphi(k_j) = v_j R - r
 *     r = sum_i (delta_i / n_i) phi(q_i)                         dv_j = R phi(k_j)
 *
 * Two walks along a head: one forward, with the keys that all queries of a tile see in S, which also leaves n and delta behind; one backward
 * over tiles of keys, with the queries that see all of them in R. The few pairs of which a tile sees some are met one by one. These
 * are five products with a state of D x Dv for each position, where linear has two. A head is one walk along its positions, so that
 * its bits follow from nothing else.
 *
 * Where keys decay, S stands where the last of its keys does and R behind the last key of a tile; both fade on their way, and keys, queries
 * and pairs by the gates between. A decay's gradient is the sum of g w over all pairs that it lies between. Of tiles of keys that begin
 * where a tile of queries finds S ready, these are
 *
 *     keys before the tile, queries behind it       <S, R> - z.r faded by the tile's gates: so S is kept where tiles begin
 *     its keys before the decay, queries behind it  phi(k_j).(v_j R - r)
 *     keys before the tile, its queries             phi(q_i).(do_i S - delta_i z) / n_i, which the walk forward leaves behind
 *     its keys before the decay, its queries        pair by pair
 *
 * None is a difference of sums that have much in common, as the sums of q.dq - k.dk up to a position are. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "attention.h"
#include "tile/linear_gates.h"

enum { LINE = 16 /* floats of a cache line */, ROWS = TILE_MAX_ROWS };
static const float one = 1;

typedef struct backward {
  const attn_problem *problem;
  const attn_tensors *tensors;
  const tile_kernels *kernels;
  int64_t group, depth, width; /* query heads that share a key; D and Dv in whole vectors */
  float *inverse, *minus;      /* [B, H, Tq]: 1 / n, and delta / n */
  float *crossing; /* [B, H, Tq], where keys decay: what the keys before its tile are to a query */
  float *scratch;  /* of each thread */
} backward;

/* What a thread works with. The state, [Dv, D], lies in strips of the features that a kernel takes, as linear's does. */
typedef struct scratch {
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
} scratch;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static int64_t keys_of(const attn_problem *p, int64_t b) {
  return p->key_lengths ? p->key_lengths[b] : p->key_length;
}

/* ---- memory ---- */

static int64_t decaying_rows(const backward *of) { return 2 * of->kernels->lanes; }

/* Of z and S, and how many of them there are. */
static int64_t state_floats(const backward *of) {
  return round_up(of->depth * (of->problem->value_dim + 1), LINE);
}
static int64_t states_of(const backward *of) {
  return of->problem->decay.type ? of->problem->key_length / decaying_rows(of) + 2 : 0;
}

/* Points into `memory`, or with NULL only counts; returns how many floats there are. */
static int64_t place_scratch(const backward *of, float *memory, scratch *to) {
  const int64_t D = of->problem->head_dim, Dv = of->problem->value_dim, depth = of->depth, width = of->width;
  const struct {
    float **place;
    int64_t floats;
  } places[] = {{&to->sums, depth},
                {&to->state, Dv * depth},
                {&to->keys, ROWS * depth},
                {&to->queries, ROWS * depth},
                {&to->grads, ROWS * depth},
                {&to->key_columns, D * ROWS},
                {&to->columns, Dv * ROWS},
                {&to->value_grads, Dv * ROWS},
                {&to->output_grads, ROWS * width},
                {&to->weights, (int64_t)ROWS * ROWS},
                {&to->weight_grads, (int64_t)ROWS * ROWS},
                {&to->prefix, ROWS * depth},
                {&to->states, states_of(of) * state_floats(of)},
                {&to->delta, ROWS},
                {&to->inverse, ROWS},
                {&to->ones, ROWS}};
  int64_t used = 0;
  for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
    *places[n].place = memory ? memory + used : NULL;
    used += round_up(places[n].floats, LINE);
  }
  for (int64_t r = 0; memory && r < ROWS; r++) to->ones[r] = 1;
  return used;
}

static int64_t query_rows(const attn_problem *problem) {
  return round_up(problem->batch * problem->query_heads * problem->query_length, LINE);
}

/* Arrays of so many. */
static int64_t kept_rows(const attn_problem *problem) { return problem->decay.type ? 3 : 2; }

static backward plan(const attn_call *call, float *memory) {
  const attn_problem *p = call->problem;
  const tile_kernels *kernels = tile_select(call->isa, ATTN_FLOAT32);
  backward of = {.problem = p,
                 .tensors = &call->tensors,
                 .kernels = kernels,
                 .group = p->kv_heads > 0 ? p->query_heads / p->kv_heads : 0,
                 .depth = round_up(p->head_dim, kernels->lanes),
                 .width = round_up(p->value_dim, kernels->lanes)};
  if (!memory) return of;
  of.inverse = memory;
  of.minus = memory + query_rows(p);
  of.crossing = memory + 2 * query_rows(p); /* or the scratch, where there is none */
  of.scratch = memory + kept_rows(p) * query_rows(p);
  return of;
}

/* ---- rows of tensors ---- */

typedef struct place {
  int64_t b, h, kv_head; /* h: the query head that is looked at */
} place;

static tile_rows query_of(const backward *of, place at_head, int64_t i) {
  const attn_layout *strides = &of->problem->query;
  return (tile_rows){(const float *)of->tensors->query + at(strides, at_head.b, at_head.h, i),
                     strides->position};
}
static tile_rows key_of(const backward *of, place at_head, int64_t j) {
  const attn_layout *strides = &of->problem->key;
  return (tile_rows){(const float *)of->tensors->key + at(strides, at_head.b, at_head.kv_head, j),
                     strides->position};
}
static tile_rows value_of(const backward *of, place at_head, int64_t j) {
  const attn_layout *strides = &of->problem->value;
  return (tile_rows){(const float *)of->tensors->value + at(strides, at_head.b, at_head.kv_head, j),
                     strides->position};
}
static tile_rows output_grad_of(const backward *of, place at_head, int64_t i) {
  const attn_layout *strides = &of->problem->output_grad;
  return (tile_rows){(const float *)of->problem->output_grad_data + at(strides, at_head.b, at_head.h, i),
                     strides->position};
}
static tile_matrix matrix_of(tile_rows rows) { return (tile_matrix){rows.x, rows.stride}; }

static int64_t row_number(const backward *of, place at_head, int64_t i) {
  return (at_head.b * of->problem->query_heads + at_head.h) * of->problem->query_length + i;
}

/* Where the keys end that a query sees; never earlier than for the query before. */
static int64_t end_of(const backward *of, place at_head, int64_t i) {
  return attn_visible_keys(of->problem, at_head.b, i).end;
}

/* Rows of a tile: fewer where some pairs of it are met one by one, which cost their number. */
static int64_t tile_of(const backward *of, place at_head) {
  const bool causal =
      of->problem->query_length > 0 && end_of(of, at_head, 0) < keys_of(of->problem, at_head.b);
  if (of->problem->decay.type) return decaying_rows(of);
  return causal ? 2 * of->kernels->lanes : ROWS;
}

static void map_features(const backward *of, int64_t rows, tile_rows x, float *to) {
  const attn_problem *p = of->problem;
  if (p->feature_map == ATTN_ELU1)
    of->kernels->elu1(rows, p->head_dim, x, (tile_target){to, of->depth});
  else
    of->kernels->at_least(rows, p->head_dim, p->feature_map == ATTN_RELU ? 0 : -INFINITY, x,
                          (tile_target){to, of->depth});
}

/* Rows of two tensors that are wanted soon: into the L2 cache while a product computes. */
static tile_ahead soon(tile_rows x, int64_t width, tile_rows y, int64_t other) {
  const int64_t bytes = (int64_t)sizeof(float);
  return (tile_ahead){.of = {{x.x, x.stride * bytes, width * bytes}, {y.x, y.stride * bytes, other * bytes}}};
}

/* ---- products ---- */

static int64_t strip(const backward *of, int64_t d) { return smaller(of->kernels->max_rows, of->depth - d); }

/* state[e, d] += sum_n value[n, e] features[n, d];  sums[d] += sum_n factor[n * step] features[n, d] */
static void join_state(const backward *of, scratch *mine, int64_t count, const float *features,
                       tile_rows value, tile_rows factor, const tile_ahead *next) {
  const int64_t Dv = of->problem->value_dim;
  for (int64_t d = 0; count > 0 && d < of->depth; d += of->kernels->max_rows) {
    const int64_t wide = strip(of, d);
    of->kernels->accumulate((tile_size){wide, count, Dv}, (tile_matrix){features + d, of->depth}, value,
                            mine->ones, d == 0 ? next : NULL, (tile_target){mine->state + Dv * d, wide});
    of->kernels->accumulate((tile_size){wide, count, 1}, (tile_matrix){features + d, of->depth}, factor,
                            mine->ones, NULL, (tile_target){mine->sums + d, 0});
  }
}

/* grads[n, d] = sum_e rows[n, e] state[e, d] */
static void apply_state(const backward *of, scratch *mine, int64_t count, tile_rows rows,
                        const tile_ahead *next) {
  const int64_t Dv = of->problem->value_dim;
  if (Dv == 0) memset(mine->grads, 0, (size_t)(count * of->depth) * sizeof(float));
  for (int64_t d = 0; Dv > 0 && d < of->depth; d += of->kernels->max_rows) {
    const int64_t wide = strip(of, d);
    of->kernels->scores((tile_size){wide, count, Dv}, (tile_matrix){mine->state + Dv * d, wide}, rows, 1,
                        d == 0 ? next : NULL, (tile_target){mine->grads + d, of->depth});
  }
}

/* value_grads[e, j] = sum_d state[e, d] key_columns[d, j] for a tile of `rows` lanes */
static void apply_state_to_keys(const backward *of, scratch *mine, int64_t rows) {
  const int64_t Dv = of->problem->value_dim, D = of->problem->head_dim, most = of->kernels->max_rows;
  for (int64_t j = 0; j < rows; j += most)
    for (int64_t d = 0; d < D; d += most) {
      const tile_size size = {smaller(most, rows - j), Dv, smaller(most, D - d)};
      const tile_matrix columns = {mine->key_columns + d * rows + j, rows};
      const tile_rows state = {mine->state + Dv * d, strip(of, d)};
      const tile_target to = {mine->value_grads + j, rows};
      if (d == 0)
        of->kernels->scores(size, columns, state, 1, NULL, to);
      else
        of->kernels->add_products(size, columns, state, to);
    }
}

/* grads[n, d] += sum_m weights[m, n] features[m, d] for n < count of a vector, m < terms */
static void add_pairs(const backward *of, scratch *mine, int64_t first, int64_t count, int64_t terms,
                      tile_rows weights, const float *features) {
  for (int64_t d = 0; d < of->depth; d += of->kernels->max_rows)
    of->kernels->accumulate((tile_size){strip(of, d), terms, count}, (tile_matrix){features + d, of->depth},
                            weights, mine->ones, NULL,
                            (tile_target){mine->grads + first * of->depth + d, of->depth});
}

static void pack(const backward *of, int64_t rows, int64_t count, int64_t width, tile_rows from,
                 float *columns) {
  const void *row[ROWS];
  for (int64_t r = 0; r < count; r++) row[r] = (const float *)from.x + r * from.stride;
  of->kernels->pack(rows, count, width, row, 1, columns);
}

/* ---- decay ---- */

/* Tiles of keys that decay begin where a tile of queries finds the state ready: at such a position, and 0. */
static int64_t begin_of_tiles(const backward *of, place at_head, int64_t rows) {
  return of->problem->decay.type ? attn_remainder(attn_offset_of(of->problem, at_head.b) + 1, rows) : 0;
}

/* z and S of the tile that begins at key `first`. */
static float *state_at(const backward *of, const scratch *mine, place at_head, int64_t first) {
  const int64_t rows = decaying_rows(of);
  return mine->states + (first + rows - begin_of_tiles(of, at_head, rows)) / rows * state_floats(of);
}

static void keep_state(const backward *of, scratch *mine, place at_head, int64_t first) {
  const int64_t depth = of->depth, rows = decaying_rows(of);
  if (first > 0 && attn_remainder(first - begin_of_tiles(of, at_head, rows), rows) != 0) return;
  float *kept = state_at(of, mine, at_head, first);
  memcpy(kept, mine->sums, (size_t)depth * sizeof *kept);
  memcpy(kept + depth, mine->state, (size_t)(depth * of->problem->value_dim) * sizeof *kept);
}

static void load_gates(const backward *of, scratch *mine, place at_head, int64_t first, int64_t end) {
  linear_load_gates(of->kernels, of->problem, at_head.b, at_head.kv_head, first, end, &mine->gates);
}

/* The state fades by the loaded gates. */
static void fade_state(const backward *of, scratch *mine) {
  const int64_t depth = of->depth;
  linear_fade_rows(1, depth, &mine->gates.all, mine->sums, depth);
  linear_fade_rows(1, depth * of->problem->value_dim, &mine->gates.all, mine->state, 0);
}

/* And the loaded keys, to where the last one stands. */
static void fade_keys(const backward *of, scratch *mine, int64_t count) {
  linear_fade_rows(count, of->depth, mine->gates.behind, mine->keys, of->depth);
  fade_state(of, mine);
}

/* rows[r] . (x[r] - minus[r] y) of vectors of features */
static void multiply_rows(const backward *of, int64_t count, const float *rows, const float *x,
                          const float *minus, const float *y, double *products) {
  const int64_t depth = of->depth;
  float with_x[ROWS], with_y[ROWS];
  of->kernels->dot_pairs(count, depth, (tile_matrix){rows, depth}, (tile_matrix){x, depth}, with_x);
  of->kernels->dot_pairs(count, depth, (tile_matrix){rows, depth}, (tile_matrix){y, 0}, with_y);
  for (int64_t r = 0; r < count; r++) products[r] = with_x[r] - (double)minus[r] * with_y[r];
}

/* ---- an initial state ---- */

static int64_t state_row(const attn_layout *strides, place at_head, int64_t d) {
  return at(strides, at_head.b, at_head.kv_head, d);
}

/* Zeros, or what keys before the first have left. */
static void begin_state(const backward *of, scratch *mine, place at_head) {
  const attn_problem *p = of->problem;
  const attn_linear_states *given = &p->states;
  const int64_t Dv = p->value_dim, most = of->kernels->max_rows;
  memset(mine->sums, 0, (size_t)of->depth * sizeof(float));
  memset(mine->state, 0, (size_t)(Dv * of->depth) * sizeof(float));
  for (int64_t d = 0; given->state.type && d < p->head_dim; d++) {
    const float *row = given->state_data + state_row(&given->state, at_head, d);
    const int64_t first = d / most * most, wide = strip(of, first);
    for (int64_t e = 0; e < Dv; e++) mine->state[Dv * first + e * wide + d - first] = row[e];
    if (given->state_sum.type)
      mine->sums[d] = given->state_sum_data[state_row(&given->state_sum, at_head, 0) + d];
  }
}

/* The state of queries that all of them have joined is its gradient. */
static void end_state(const backward *of, const scratch *mine, place at_head) {
  const attn_problem *p = of->problem;
  const int64_t Dv = p->value_dim, most = of->kernels->max_rows;
  for (int64_t d = 0; d < p->head_dim; d++) {
    float *row = p->state_grad_data + state_row(&p->state_grad, at_head, d);
    const int64_t first = d / most * most, wide = strip(of, first);
    for (int64_t e = 0; e < Dv; e++) row[e] = mine->state[Dv * first + e * wide + d - first];
    if (p->state_sum_grad.type)
      p->state_sum_grad_data[state_row(&p->state_sum_grad, at_head, 0) + d] = -mine->sums[d];
  }
}

/* ---- forward: a tile of queries ---- */

typedef struct queries {
  place at;
  int64_t first, count, rows; /* rows: count in whole vectors */
  int64_t ready, end;         /* keys before `ready` are in the state; those up to `end` are loaded */
} queries;

/* The gradients of the pairs' weights, times the normaliser: a column for each key that some rows see. Rows of a vector meet the keys
 * that the last of them sees. */
static void meet_keys(const backward *of, scratch *mine, const queries *tile) {
  const tile_kernels *kernels = of->kernels;
  const int64_t rows = tile->rows, lanes = kernels->lanes, keys = tile->end - tile->ready;
  const int64_t Dv = of->problem->value_dim;
  float from[ROWS] = {0}, to[ROWS] = {0};
  for (int64_t r = 0; r < tile->count; r++) {
    const int64_t seen = end_of(of, tile->at, tile->first + r) - tile->ready;
    to[r] = (float)(seen < 0 ? 0 : seen);
  }
  pack(of, rows, tile->count, Dv, output_grad_of(of, tile->at, tile->first), mine->columns);
  for (int64_t j = 0; j < keys; j++)
    for (int64_t r = 0; r < rows; r++) mine->weight_grads[j * rows + r] = -mine->delta[r];
  for (int64_t r = 0, j = 0; r < tile->count; r += lanes) {
    const int64_t seen = (int64_t)to[smaller(r + lanes, tile->count) - 1];
    if (Dv > 0)
      kernels->add_products((tile_size){rows - r, seen - j, Dv}, (tile_matrix){mine->columns + r, rows},
                            value_of(of, tile->at, tile->ready + j),
                            (tile_target){mine->weight_grads + j * rows + r, rows});
    j = seen;
  }
  kernels->hide(rows, keys, from, to, 0, mine->weight_grads);
  if (of->problem->decay.type) linear_fade_pairs(&mine->gates, keys, rows, to, mine->weight_grads);
  for (int64_t r = 0; r < tile->count; r += lanes)
    add_pairs(of, mine, r, smaller(lanes, tile->count - r), (int64_t)to[smaller(r + lanes, tile->count) - 1],
              (tile_rows){mine->weight_grads + r, rows}, mine->keys);
}

/* What z is for each row: with the keys that it sees beyond those in the state, which fades by their gates. */
static void sum_prefixes(const backward *of, scratch *mine, const queries *tile) {
  const float *before = mine->sums;
  for (int64_t r = 0, j = tile->ready; r < tile->count; r++) {
    float *restrict row = mine->prefix + r * of->depth;
    memcpy(row, before, (size_t)of->depth * sizeof *row);
    for (const int64_t end = end_of(of, tile->at, tile->first + r); j < end; j++) {
      const float *restrict key = mine->keys + (j - tile->ready) * of->depth;
      const float gate = of->problem->decay.type ? mine->gates.gate[j - tile->ready] : 1;
      for (int64_t d = 0; d < of->depth; d++) row[d] = row[d] * gate + key[d];
    }
    before = row;
  }
}

/* 1 / n and delta of each row; what the walk backward needs of them is kept. */
static void normalise(const backward *of, scratch *mine, const queries *tile) {
  const attn_problem *p = of->problem;
  const int64_t first = row_number(of, tile->at, tile->first);
  const tile_matrix output = {(const float *)of->tensors->output +
                                  at(&p->output, tile->at.b, tile->at.h, tile->first),
                              p->output.position};
  const tile_matrix phi = {mine->queries, of->depth};
  if (p->unnormalised) {
    memset(mine->delta, 0, (size_t)tile->rows * sizeof(float));
  } else {
    of->kernels->dot_pairs(tile->count, p->value_dim, matrix_of(output_grad_of(of, tile->at, tile->first)),
                           output, mine->delta);
    sum_prefixes(of, mine, tile);
    of->kernels->dot_pairs(tile->count, of->depth, phi, (tile_matrix){mine->prefix, of->depth},
                           mine->inverse);
  }
  for (int64_t r = 0; r < tile->count; r++) {
    mine->inverse[r] = p->unnormalised ? 1 : 1 / (mine->inverse[r] + (float)p->epsilon);
    of->inverse[first + r] = mine->inverse[r];
    of->minus[first + r] = mine->delta[r] * mine->inverse[r];
  }
}

/* The state fades by the gates of the keys that a row sees beyond those in it: so do the row's products with it, and the delta that
 * meets z. Leaves behind what the keys in the state are to the row. */
static void fade_queries(const backward *of, scratch *mine, const queries *tile, float *delta) {
  const int64_t first = row_number(of, tile->at, tile->first);
  double products[ROWS];
  float fades[ROWS], fade = 1;
  multiply_rows(of, tile->count, mine->queries, mine->grads, mine->delta, mine->sums, products);
  for (int64_t r = 0, j = tile->ready; r < tile->count; r++) {
    for (; j < end_of(of, tile->at, tile->first + r); j++) fade *= mine->gates.gate[j - tile->ready];
    fades[r] = fade;
    delta[r] = mine->delta[r] * fade;
    of->crossing[first + r] = (float)(products[r] * mine->inverse[r] * fade);
  }
  linear_fade_rows(tile->count, of->depth, fades, mine->grads, of->depth);
}

static void solve_queries(const backward *of, scratch *mine, const queries *tile) {
  const attn_problem *p = of->problem;
  float *row[ROWS], delta[ROWS];
  map_features(of, tile->count, query_of(of, tile->at, tile->first), mine->queries);
  const int64_t after = tile->first + tile->count;
  const tile_ahead next =
      soon(query_of(of, tile->at, after), p->head_dim, output_grad_of(of, tile->at, after), p->value_dim);
  apply_state(of, mine, tile->count, output_grad_of(of, tile->at, tile->first),
              after < p->query_length ? &next : NULL);
  normalise(of, mine, tile);
  memcpy(delta, mine->delta, sizeof delta);
  if (p->decay.type) fade_queries(of, mine, tile, delta);
  if (tile->ready < tile->end) meet_keys(of, mine, tile);
  for (int64_t r = 0; r < tile->count; r++)
    row[r] = (float *)p->query_grad_data + at(&p->query_grad, tile->at.b, tile->at.h, tile->first + r);
  of->kernels->scale_slopes(tile->count, p->head_dim, p->feature_map, (tile_matrix){mine->grads, of->depth},
                            delta, mine->sums, mine->inverse, (tile_matrix){mine->queries, of->depth}, row);
  /* Rows that see nothing come first. */
  for (int64_t r = 0; r < tile->count && !p->states.state.type && end_of(of, tile->at, tile->first + r) == 0;
       r++)
    memset(row[r], 0, (size_t)p->head_dim * sizeof(float));
}

/* Keys that decay by no more than reach to where a tile of them begins. */
static int64_t chunk_of(const backward *of, place at_head, int64_t first) {
  const int64_t rows = decaying_rows(of);
  if (!of->problem->decay.type) return ROWS;
  return rows - attn_remainder(first - begin_of_tiles(of, at_head, rows), rows);
}

static void advance(const backward *of, scratch *mine, place at_head, int64_t first, int64_t end) {
  const bool decays = of->problem->decay.type;
  for (int64_t next; first < end; first = next) {
    next = smaller(end, first + chunk_of(of, at_head, first));
    map_features(of, next - first, key_of(of, at_head, first), mine->keys);
    if (decays) {
      load_gates(of, mine, at_head, first, next);
      fade_keys(of, mine, next - first);
    }
    const tile_ahead later = soon(key_of(of, at_head, next), of->problem->head_dim,
                                  value_of(of, at_head, next), of->problem->value_dim);
    join_state(of, mine, next - first, mine->keys, value_of(of, at_head, first), (tile_rows){&one, 0},
               next < of->problem->key_length ? &later : NULL);
    if (decays) keep_state(of, mine, at_head, next);
  }
}

static void walk_forward(const backward *of, scratch *mine, place at_head) {
  const attn_problem *p = of->problem;
  const int64_t rows = tile_of(of, at_head), Tq = p->query_length;
  int64_t joined = 0;
  begin_state(of, mine, at_head);
  if (p->decay.type) keep_state(of, mine, at_head, 0);
  for (int64_t i = 0; i < Tq; i += rows) {
    queries tile = {.at = at_head, .first = i, .count = smaller(rows, Tq - i)};
    tile.rows = round_up(tile.count, of->kernels->lanes);
    tile.ready = end_of(of, at_head, i);
    tile.end = end_of(of, at_head, i + tile.count - 1);
    advance(of, mine, at_head, joined, tile.ready);
    map_features(of, tile.end - tile.ready, key_of(of, at_head, tile.ready), mine->keys);
    if (p->decay.type) load_gates(of, mine, at_head, tile.ready, tile.end);
    for (tile.at.h = at_head.h; tile.at.h < at_head.h + of->group; tile.at.h++)
      solve_queries(of, mine, &tile);
    if (p->decay.type) fade_keys(of, mine, tile.end - tile.ready);
    join_state(of, mine, tile.end - tile.ready, mine->keys, value_of(of, at_head, tile.ready),
               (tile_rows){&one, 0}, NULL);
    joined = tile.end;
  }
}

/* ---- backward: a tile of keys ---- */

typedef struct keys {
  place at;
  int64_t first, count, rows;
  int64_t some, all; /* queries from `some` on see a key of it, those from `all` on every one */
} keys;

/* phi of queries, and their output gradients over the normaliser. */
static void load_queries(const backward *of, scratch *mine, place at_head, int64_t first, int64_t count) {
  void *row[ROWS];
  map_features(of, count, query_of(of, at_head, first), mine->queries);
  for (int64_t r = 0; r < count; r++) row[r] = mine->output_grads + r * of->width;
  of->kernels->scale_rows(count, of->problem->value_dim, matrix_of(output_grad_of(of, at_head, first)),
                          of->inverse + row_number(of, at_head, first), row);
}

/* Queries [first, end) of all heads that share the keys. */
static void join_queries(const backward *of, scratch *mine, place at_head, int64_t first, int64_t end) {
  for (int64_t next; first < end; end = next) {
    next = end - ROWS > first ? end - ROWS : first;
    place of_query = at_head;
    for (of_query.h = at_head.h; of_query.h < at_head.h + of->group; of_query.h++) {
      const int64_t below = next - ROWS > 0 ? next - ROWS : 0;
      const tile_ahead later = soon(query_of(of, of_query, below), of->problem->head_dim,
                                    output_grad_of(of, of_query, below), of->problem->value_dim);
      load_queries(of, mine, of_query, next, end - next);
      join_state(of, mine, end - next, mine->queries, (tile_rows){mine->output_grads, of->width},
                 (tile_rows){of->minus + row_number(of, of_query, next), 1}, next >= ROWS ? &later : NULL);
    }
  }
}

/* Where keys decay: the gradients of decays that queries behind the tile make, and keys before it or in it; what these are to the keys of
 * the tile fades, and the state on its way to the first of them. */
static void begin_decays(const backward *of, scratch *mine, const keys *tile) {
  const int64_t depth = of->depth, Dv = of->problem->value_dim;
  double products[ROWS], sum = 0;
  load_gates(of, mine, tile->at, tile->first, tile->first + tile->count);
  if ((tile->first > 0 || of->problem->states.state.type) && tile->all < of->problem->query_length) {
    const float *before = state_at(of, mine, tile->at, tile->first);
    sum = mine->gates.all * (linear_product(depth * Dv, before + depth, mine->state) -
                             linear_product(depth, before, mine->sums));
  }
  multiply_rows(of, tile->count, mine->keys, mine->grads, mine->ones, mine->sums, products);
  for (int64_t r = 0; r < tile->count; r++) {
    mine->decay_grads[r] = sum;
    sum += mine->gates.behind[r] * products[r];
  }
  linear_fade_rows(tile->count, depth, mine->gates.behind, mine->grads, depth);
  linear_fade_columns(Dv, tile->rows, mine->gates.behind, mine->value_grads);
  fade_state(of, mine);
}

/* Those that queries of the tile make: its pairs fade, and `fades` is by what queries do to the first of its keys. */
static void meet_decays(const backward *of, scratch *mine, const keys *tile) {
  const float *crossing = of->crossing + row_number(of, tile->at, tile->some);
  for (int64_t n = 0; n < tile->all - tile->some; n++)
    mine->fades[n] = linear_meet_decays(&mine->gates, end_of(of, tile->at, tile->some + n) - tile->first,
                                        crossing[n], mine->weights + n * tile->rows,
                                        mine->weight_grads + n * tile->rows, mine->decay_grads);
}

/* Queries of the tile, and their deltas, stand where the state of queries goes on. */
static void fade_queries_of_tile(const backward *of, scratch *mine, const keys *tile, float *minus) {
  const int64_t count = tile->all - tile->some;
  linear_fade_rows(count, of->width, mine->fades, mine->output_grads, of->width);
  for (int64_t n = 0; n < count; n++) minus[n] *= mine->fades[n];
}

/* The pairs of the tile with the loaded queries, `some` to `all` of one head: a row for each. A vector of keys meets the queries from
 * the first on that sees one of it. */
static void meet_queries(const backward *of, scratch *mine, const keys *tile) {
  const tile_kernels *kernels = of->kernels;
  const int64_t rows = tile->rows, lanes = kernels->lanes, count = tile->all - tile->some;
  const int64_t Dv = of->problem->value_dim, D = of->problem->head_dim, depth = of->depth;
  const float *minus = of->minus + row_number(of, tile->at, tile->some);
  float from[ROWS], to[ROWS];
  for (int64_t r = 0, n = 0; r < rows; r++) {
    while (n < count && end_of(of, tile->at, tile->some + n) <= tile->first + r) n++;
    from[r] = (float)n;
    to[r] = (float)count;
  }
  for (int64_t n = 0; n < count; n++)
    for (int64_t r = 0; r < rows; r++) mine->weight_grads[n * rows + r] = -minus[n];
  for (int64_t r = 0; r < rows; r += lanes) {
    const int64_t n = (int64_t)from[r], next = r + lanes < rows ? (int64_t)from[r + lanes] : count;
    const tile_rows output_grads = {mine->output_grads + n * of->width, of->width};
    kernels->scores((tile_size){r + lanes, next - n, D}, (tile_matrix){mine->key_columns, rows},
                    (tile_rows){mine->queries + n * depth, depth}, 1, NULL,
                    (tile_target){mine->weights + n * rows, rows});
    if (Dv > 0)
      kernels->add_products((tile_size){r + lanes, next - n, Dv}, (tile_matrix){mine->columns, rows},
                            output_grads, (tile_target){mine->weight_grads + n * rows, rows});
  }
  kernels->hide(rows, count, from, to, 0, mine->weights);
  kernels->hide(rows, count, from, to, 0, mine->weight_grads);
  if (of->problem->decay.type) meet_decays(of, mine, tile);
  for (int64_t r = 0; r < rows; r += lanes) {
    const int64_t n = (int64_t)from[r];
    kernels->accumulate((tile_size){lanes, count - n, Dv}, (tile_matrix){mine->weights + n * rows + r, rows},
                        (tile_rows){mine->output_grads + n * of->width, of->width}, mine->ones, NULL,
                        (tile_target){mine->value_grads + r, rows});
    add_pairs(of, mine, r, smaller(lanes, tile->count - r), count - n,
              (tile_rows){mine->weight_grads + n * rows + r, rows}, mine->queries + n * depth);
  }
}

static void write_keys(const backward *of, scratch *mine, const keys *tile) {
  const attn_problem *p = of->problem;
  float *key_grad[ROWS];
  void *value_grad[ROWS];
  for (int64_t r = 0; r < tile->count; r++) {
    key_grad[r] = (float *)p->key_grad_data + at(&p->key_grad, tile->at.b, tile->at.kv_head, tile->first + r);
    value_grad[r] =
        (float *)p->value_grad_data + at(&p->value_grad, tile->at.b, tile->at.kv_head, tile->first + r);
    if (p->decay.type)
      p->decay_grad_data[at(&p->decay_grad, tile->at.b, tile->at.kv_head, tile->first + r)] =
          (float)mine->decay_grads[r];
  }
  const float *behind = p->decay.type ? mine->gates.behind : mine->ones;
  of->kernels->scale_slopes(tile->count, p->head_dim, p->feature_map, (tile_matrix){mine->grads, of->depth},
                            behind, mine->prefix, mine->ones, (tile_matrix){mine->keys, of->depth}, key_grad);
  of->kernels->unpack(tile->rows, tile->count, p->value_dim, mine->value_grads, mine->ones, value_grad);
}

static void solve_keys(const backward *of, scratch *mine, keys tile) {
  const int64_t D = of->problem->head_dim, Dv = of->problem->value_dim;
  const int64_t first_head = tile.at.h, count = tile.all - tile.some;
  const tile_rows value = value_of(of, tile.at, tile.first);
  map_features(of, tile.count, key_of(of, tile.at, tile.first), mine->keys);
  pack(of, tile.rows, tile.count, D, (tile_rows){mine->keys, of->depth}, mine->key_columns);
  const int64_t before = tile.first - tile.rows;
  const tile_ahead next =
      before >= 0 ? soon(key_of(of, tile.at, before), D, value_of(of, tile.at, before), Dv) : (tile_ahead){0};
  apply_state(of, mine, tile.count, value, before >= 0 ? &next : NULL);
  apply_state_to_keys(of, mine, tile.rows);
  memcpy(mine->prefix, mine->sums, (size_t)of->depth * sizeof(float));
  if (of->problem->decay.type) begin_decays(of, mine, &tile);
  if (count > 0) pack(of, tile.rows, tile.count, Dv, value, mine->columns);
  for (; count > 0 && tile.at.h < first_head + of->group; tile.at.h++) {
    const int64_t below = tile.some - ROWS > 0 ? tile.some - ROWS : 0;
    const tile_ahead queries_before =
        soon(query_of(of, tile.at, below), D, output_grad_of(of, tile.at, below), Dv);
    load_queries(of, mine, tile.at, tile.some, count);
    float minus[ROWS];
    memcpy(minus, of->minus + row_number(of, tile.at, tile.some), (size_t)count * sizeof *minus);
    meet_queries(of, mine, &tile);
    if (of->problem->decay.type) fade_queries_of_tile(of, mine, &tile, minus);
    join_state(of, mine, count, mine->queries, (tile_rows){mine->output_grads, of->width},
               (tile_rows){minus, 1}, tile.some >= ROWS ? &queries_before : NULL);
  }
  write_keys(of, mine, &tile);
}

static void clear_keys(const attn_problem *p, place at_head, int64_t first) {
  for (int64_t j = first; j < p->key_length; j++) {
    memset((float *)p->key_grad_data + at(&p->key_grad, at_head.b, at_head.kv_head, j), 0,
           (size_t)p->head_dim * sizeof(float));
    memset((float *)p->value_grad_data + at(&p->value_grad, at_head.b, at_head.kv_head, j), 0,
           (size_t)p->value_dim * sizeof(float));
    if (p->decay.type) p->decay_grad_data[at(&p->decay_grad, at_head.b, at_head.kv_head, j)] = 0;
  }
}

static void walk_backward(const backward *of, scratch *mine, place at_head) {
  const attn_problem *p = of->problem;
  const int64_t rows = tile_of(of, at_head), Tk = keys_of(p, at_head.b);
  int64_t joined = p->query_length;
  memset(mine->sums, 0, (size_t)of->depth * sizeof(float));
  memset(mine->state, 0, (size_t)(p->value_dim * of->depth) * sizeof(float));
  clear_keys(p, at_head, Tk);
  const int64_t begin = begin_of_tiles(of, at_head, rows);
  for (int64_t end = Tk, j; end > 0; end = j) {
    j = end - 1 - attn_remainder(end - 1 - begin, rows);
    if (j < 0) j = 0;
    keys tile = {.at = at_head, .first = j, .count = end - j, .all = joined};
    tile.rows = round_up(tile.count, of->kernels->lanes);
    while (tile.all > 0 && end_of(of, at_head, tile.all - 1) >= j + tile.count) tile.all--;
    tile.some = tile.all;
    while (tile.some > 0 && end_of(of, at_head, tile.some - 1) > j) tile.some--;
    join_queries(of, mine, at_head, tile.all, joined);
    solve_keys(of, mine, tile);
    joined = tile.some;
  }
  if (!p->states.state.type) return;
  join_queries(of, mine, at_head, 0, joined);
  end_state(of, mine, at_head);
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const backward of = plan(call, call->workspace);
  const int64_t heads = p->batch * p->kv_heads;
#pragma omp parallel num_threads(call->threads)
  {
    scratch mine;
    const int64_t floats = place_scratch(&of, NULL, &mine);
    place_scratch(&of, of.scratch + omp_get_thread_num() * floats, &mine);
#pragma omp for schedule(dynamic, 1)
    for (int64_t n = 0; n < heads; n++) {
      const place at_head = {n / p->kv_heads, n % p->kv_heads * of.group, n % p->kv_heads};
      walk_forward(&of, &mine, at_head);
      walk_backward(&of, &mine, at_head);
    }
  }
}

static size_t workspace_size(const attn_call *call) {
  const backward of = plan(call, NULL);
  scratch unused;
  return (size_t)(kept_rows(of.problem) * query_rows(of.problem) +
                  call->threads * place_scratch(&of, NULL, &unused)) *
         sizeof(float);
}

static const char *unsupported(const attn_call *call) {
  if (call->problem->left != ATTN_UNLIMITED)
    return "a running sum cannot forget keys: needs an unlimited left";
  if (call->problem->decay.type && call->problem->right != 0)
    return "keys that have decayed are not ahead of a query: needs a causal band";
  return tile_refusal(call->isa, ATTN_FLOAT32);
}

const attn_variant attn_linear_backward = {
    .name = "linear_backward",
    .summary = "the backward pass of linear attention in O(T): a running state of keys, then one of queries",
    .function = ATTN_LINEAR_BACKWARD,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_FEATURE_MAP | ATTN_UNNORMALISED |
                ATTN_DECAY | ATTN_STATE,
    .types = 1u << ATTN_FLOAT32,
    .traits = ATTN_FINITE,
    .time_exponent = 1,
    .workspace_exponent = 1,
    .showcase = "causal",
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
