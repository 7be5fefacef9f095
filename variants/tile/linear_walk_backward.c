/* The walk backward of linear attention's backward pass: see ../linear_backward.c. */
#include <string.h>

#include "linear_walks.h"

/* value_grads[e, j] = sum_d state[e, d] key_columns[d, j] for a tile of `rows` lanes */
static void apply_state_to_keys(const linear_backward *of, linear_scratch *mine, int64_t rows) {
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

/* The state of queries that all of them have joined is its gradient. */
static void end_state(const linear_backward *of, const linear_scratch *mine, linear_place at_head) {
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

/* ---- a tile of keys ---- */

typedef struct keys {
  linear_place at;
  int64_t first, count, rows;
  int64_t some, all; /* queries from `some` on see a key of it, those from `all` on every one */
} keys;

/* phi of queries, and their output gradients over the normaliser. */
static void load_queries(const linear_backward *of, linear_scratch *mine, linear_place at_head, int64_t first,
                         int64_t count) {
  void *row[ROWS];
  map_features(of, count, query_of(of, at_head, first), mine->queries);
  for (int64_t r = 0; r < count; r++) row[r] = mine->output_grads + r * of->width;
  of->kernels->scale_rows(count, of->problem->value_dim, matrix_of(output_grad_of(of, at_head, first)),
                          of->inverse + row_number(of, at_head, first), row);
}

/* Queries [first, end) of all heads that share the keys. */
static void join_queries(const linear_backward *of, linear_scratch *mine, linear_place at_head, int64_t first,
                         int64_t end) {
  for (int64_t next; first < end; end = next) {
    next = end - ROWS > first ? end - ROWS : first;
    linear_place of_query = at_head;
    for (of_query.h = at_head.h; of_query.h < at_head.h + of->group; of_query.h++) {
      const int64_t below = next - ROWS > 0 ? next - ROWS : 0;
      const tile_ahead later = soon(query_of(of, of_query, below), of->problem->head_dim,
                                    output_grad_of(of, of_query, below), of->problem->value_dim);
      load_queries(of, mine, of_query, next, end - next);
      linear_join_state(of, mine, end - next, mine->queries, (tile_rows){mine->output_grads, of->width},
                        (tile_rows){of->minus + row_number(of, of_query, next), 1},
                        next >= ROWS ? &later : NULL);
    }
  }
}

/* Where keys decay: the gradients of decays that queries behind the tile make, and keys before it or in it; what
 * these are to the keys of the tile fades, and the state on its way to the first of them. */
static void begin_decays(const linear_backward *of, linear_scratch *mine, const keys *tile) {
  const int64_t depth = of->depth, Dv = of->problem->value_dim;
  double products[ROWS], sum = 0;
  load_gates(of, mine, tile->at, tile->first, tile->first + tile->count);
  if ((tile->first > 0 || of->problem->states.state.type) && tile->all < of->problem->query_length) {
    const float *before = state_at(of, mine, tile->at, tile->first);
    sum = mine->gates.all * (linear_product(depth * Dv, before + depth, mine->state) -
                             linear_product(depth, before, mine->sums));
  }
  linear_multiply_rows(of, tile->count, mine->keys, mine->grads, mine->ones, mine->sums, products);
  for (int64_t r = 0; r < tile->count; r++) {
    mine->decay_grads[r] = sum;
    sum += mine->gates.behind[r] * products[r];
  }
  linear_fade_rows(tile->count, depth, mine->gates.behind, mine->grads, depth);
  linear_fade_columns(Dv, tile->rows, mine->gates.behind, mine->value_grads);
  linear_fade_state(of, mine);
}

/* Those that queries of the tile make: its pairs fade, and `fades` is by what queries do to the first of its keys. */
static void meet_decays(const linear_backward *of, linear_scratch *mine, const keys *tile) {
  const float *crossing = of->crossing + row_number(of, tile->at, tile->some);
  for (int64_t n = 0; n < tile->all - tile->some; n++)
    mine->fades[n] = linear_meet_decays(&mine->gates, end_of(of, tile->at, tile->some + n) - tile->first,
                                        crossing[n], mine->weights + n * tile->rows,
                                        mine->weight_grads + n * tile->rows, mine->decay_grads);
}

/* Queries of the tile, and their deltas, stand where the state of queries goes on. */
static void fade_queries_of_tile(const linear_backward *of, linear_scratch *mine, const keys *tile,
                                 float *minus) {
  const int64_t count = tile->all - tile->some;
  linear_fade_rows(count, of->width, mine->fades, mine->output_grads, of->width);
  for (int64_t n = 0; n < count; n++) minus[n] *= mine->fades[n];
}

/* A query whose normaliser is 0 has no finite rows here, and a weight of 0 times those would reach values that it does
 * not see: adds what it is to those that it sees, one by one. Leaves zeros in its place. */
static void add_apart(const linear_backward *of, linear_scratch *mine, int64_t rows, int64_t n,
                      int64_t seen) {
  const int64_t Dv = of->problem->value_dim;
  float *output_grad = mine->output_grads + n * of->width;
  for (int64_t r = 0; r < seen; r++)
    for (int64_t e = 0; e < Dv; e++)
      mine->value_grads[e * rows + r] += mine->weights[n * rows + r] * output_grad[e];
  memset(output_grad, 0, (size_t)Dv * sizeof *output_grad);
}

/* The pairs of the tile with the loaded queries, `some` to `all` of one head: a row for each. A vector of keys meets
 * the queries from the first on that sees one of it. */
static void meet_queries(const linear_backward *of, linear_scratch *mine, const keys *tile) {
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
  const bool apart = !kernels->all_finite(count, Dv, (tile_rows){mine->output_grads, of->width});
  for (int64_t n = 0; apart && n < count; n++)
    if (!kernels->all_finite(1, Dv, (tile_rows){mine->output_grads + n * of->width, of->width}))
      add_apart(of, mine, rows, n, end_of(of, tile->at, tile->some + n) - tile->first);
  for (int64_t r = 0; r < rows; r += lanes) {
    const int64_t n = (int64_t)from[r];
    kernels->accumulate((tile_size){lanes, count - n, Dv}, (tile_matrix){mine->weights + n * rows + r, rows},
                        (tile_rows){mine->output_grads + n * of->width, of->width}, NULL, NULL,
                        (tile_target){mine->value_grads + r, rows});
    linear_add_pairs(of, mine, r, smaller(lanes, tile->count - r), count - n,
                     (tile_rows){mine->weight_grads + n * rows + r, rows}, mine->queries + n * depth);
  }
  if (apart) load_queries(of, mine, tile->at, tile->some, count);
}

static void write_keys(const linear_backward *of, linear_scratch *mine, const keys *tile) {
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

static void solve_keys(const linear_backward *of, linear_scratch *mine, keys tile) {
  const int64_t D = of->problem->head_dim, Dv = of->problem->value_dim;
  const int64_t first_head = tile.at.h, count = tile.all - tile.some;
  const tile_rows value = value_of(of, tile.at, tile.first);
  map_features(of, tile.count, key_of(of, tile.at, tile.first), mine->keys);
  linear_pack_columns(of, tile.rows, tile.count, D, (tile_rows){mine->keys, of->depth}, mine->key_columns);
  const int64_t before = tile.first - tile.rows;
  const tile_ahead next =
      before >= 0 ? soon(key_of(of, tile.at, before), D, value_of(of, tile.at, before), Dv) : (tile_ahead){0};
  linear_apply_state(of, mine, tile.count, value, before >= 0 ? &next : NULL);
  apply_state_to_keys(of, mine, tile.rows);
  memcpy(mine->prefix, mine->sums, (size_t)of->depth * sizeof(float));
  if (of->problem->decay.type) begin_decays(of, mine, &tile);
  if (count > 0) linear_pack_columns(of, tile.rows, tile.count, Dv, value, mine->columns);
  for (; count > 0 && tile.at.h < first_head + of->group; tile.at.h++) {
    const int64_t below = tile.some - ROWS > 0 ? tile.some - ROWS : 0;
    const tile_ahead queries_before =
        soon(query_of(of, tile.at, below), D, output_grad_of(of, tile.at, below), Dv);
    load_queries(of, mine, tile.at, tile.some, count);
    float minus[ROWS];
    memcpy(minus, of->minus + row_number(of, tile.at, tile.some), (size_t)count * sizeof *minus);
    meet_queries(of, mine, &tile);
    if (of->problem->decay.type) fade_queries_of_tile(of, mine, &tile, minus);
    linear_join_state(of, mine, count, mine->queries, (tile_rows){mine->output_grads, of->width},
                      (tile_rows){minus, 1}, tile.some >= ROWS ? &queries_before : NULL);
  }
  write_keys(of, mine, &tile);
}

static void clear_keys(const attn_problem *p, linear_place at_head, int64_t first) {
  for (int64_t j = first; j < p->key_length; j++) {
    memset((float *)p->key_grad_data + at(&p->key_grad, at_head.b, at_head.kv_head, j), 0,
           (size_t)p->head_dim * sizeof(float));
    memset((float *)p->value_grad_data + at(&p->value_grad, at_head.b, at_head.kv_head, j), 0,
           (size_t)p->value_dim * sizeof(float));
    if (p->decay.type) p->decay_grad_data[at(&p->decay_grad, at_head.b, at_head.kv_head, j)] = 0;
  }
}

void linear_walk_backward(const linear_backward *of, linear_scratch *mine, linear_place at_head) {
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
