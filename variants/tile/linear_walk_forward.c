/* The walk forward of linear attention's backward pass: see ../linear_backward.c. */
#include <string.h>

#include "linear_walks.h"

static const float one = 1;

/* ---- the state ---- */

static void keep_state(const linear_backward *of, linear_scratch *mine, linear_place at_head, int64_t first) {
  const int64_t depth = of->depth, rows = decaying_rows(of);
  if (first > 0 && attn_remainder(first - begin_of_tiles(of, at_head, rows), rows) != 0) return;
  float *kept = state_at(of, mine, at_head, first);
  memcpy(kept, mine->sums, (size_t)depth * sizeof *kept);
  memcpy(kept + depth, mine->state, (size_t)(depth * of->problem->value_dim) * sizeof *kept);
}

/* And the loaded keys, to where the last one stands. */
static void fade_keys(const linear_backward *of, linear_scratch *mine, int64_t count) {
  linear_fade_rows(count, of->depth, mine->gates.behind, mine->keys, of->depth);
  linear_fade_state(of, mine);
}

/* Zeros, or what keys before the first have left. */
static void begin_state(const linear_backward *of, linear_scratch *mine, linear_place at_head) {
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

/* ---- a tile of queries ---- */

typedef struct queries {
  linear_place at;
  int64_t first, count, rows; /* rows: count in whole vectors */
  int64_t ready, end;         /* keys before `ready` are in the state; those up to `end` are loaded */
} queries;

/* The gradients of the pairs' weights, times the normaliser: a column for each key that some rows see. Rows of a
 * vector meet the keys that the last of them sees. */
static void meet_keys(const linear_backward *of, linear_scratch *mine, const queries *tile) {
  const tile_kernels *kernels = of->kernels;
  const int64_t rows = tile->rows, lanes = kernels->lanes, keys = tile->end - tile->ready;
  const int64_t Dv = of->problem->value_dim;
  float from[ROWS] = {0}, to[ROWS] = {0};
  for (int64_t r = 0; r < tile->count; r++) {
    const int64_t seen = end_of(of, tile->at, tile->first + r) - tile->ready;
    to[r] = (float)(seen < 0 ? 0 : seen);
  }
  linear_pack_columns(of, rows, tile->count, Dv, output_grad_of(of, tile->at, tile->first), mine->columns);
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
    linear_add_pairs(of, mine, r, smaller(lanes, tile->count - r),
                     (int64_t)to[smaller(r + lanes, tile->count) - 1],
                     (tile_rows){mine->weight_grads + r, rows}, mine->keys);
}

/* What z is for each row: with the keys that it sees beyond those in the state, which fades by their gates. */
static void sum_prefixes(const linear_backward *of, linear_scratch *mine, const queries *tile) {
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
static void normalise(const linear_backward *of, linear_scratch *mine, const queries *tile) {
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

/* The state fades by the gates of the keys that a row sees beyond those in it: so do the row's products with it, and
 * the delta that meets z. Leaves behind what the keys in the state are to the row. */
static void fade_queries(const linear_backward *of, linear_scratch *mine, const queries *tile, float *delta) {
  const int64_t first = row_number(of, tile->at, tile->first);
  double products[ROWS];
  float fades[ROWS], fade = 1;
  linear_multiply_rows(of, tile->count, mine->queries, mine->grads, mine->delta, mine->sums, products);
  for (int64_t r = 0, j = tile->ready; r < tile->count; r++) {
    for (; j < end_of(of, tile->at, tile->first + r); j++) fade *= mine->gates.gate[j - tile->ready];
    fades[r] = fade;
    delta[r] = mine->delta[r] * fade;
    of->crossing[first + r] = (float)(products[r] * mine->inverse[r] * fade);
  }
  linear_fade_rows(tile->count, of->depth, fades, mine->grads, of->depth);
}

static void solve_queries(const linear_backward *of, linear_scratch *mine, const queries *tile) {
  const attn_problem *p = of->problem;
  float *row[ROWS], delta[ROWS];
  map_features(of, tile->count, query_of(of, tile->at, tile->first), mine->queries);
  const int64_t after = tile->first + tile->count;
  const tile_ahead next =
      soon(query_of(of, tile->at, after), p->head_dim, output_grad_of(of, tile->at, after), p->value_dim);
  linear_apply_state(of, mine, tile->count, output_grad_of(of, tile->at, tile->first),
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
static int64_t chunk_of(const linear_backward *of, linear_place at_head, int64_t first) {
  const int64_t rows = decaying_rows(of);
  if (!of->problem->decay.type) return ROWS;
  return rows - attn_remainder(first - begin_of_tiles(of, at_head, rows), rows);
}

static void advance(const linear_backward *of, linear_scratch *mine, linear_place at_head, int64_t first,
                    int64_t end) {
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
    linear_join_state(of, mine, next - first, mine->keys, value_of(of, at_head, first), (tile_rows){&one, 0},
                      next < of->problem->key_length ? &later : NULL);
    if (decays) keep_state(of, mine, at_head, next);
  }
}

void linear_walk_forward(const linear_backward *of, linear_scratch *mine, linear_place at_head) {
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
    linear_join_state(of, mine, tile.end - tile.ready, mine->keys, value_of(of, at_head, tile.ready),
                      (tile_rows){&one, 0}, NULL);
    joined = tile.end;
  }
}
