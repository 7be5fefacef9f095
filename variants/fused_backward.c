/* The backward pass without T x T memory: weights are made again from the log-sum-exp, a tile of them at a time (Dao
 * et al. 2022, algorithm 4). The keys of a tile lie in the lanes of vectors and meet all queries that see them:
 *
 *     weights = 2^(queries . keys - lse)                              [queries, keys]
 *     grads   = weights (output_grad . values - delta)
 *     value_grad += weights' output_grad      key_grad += grads' queries      query_grad += grads keys
 *
 * The first two sums stay with the tile. For the third the keys of a key/value head are cut into parts that follow
 * from the problem alone: each has query gradients of its own, which are added up in the order of the parts, so that
 * bits do not depend on who computes what. Tiles of keys that are narrow (24 under AVX2) pass the queries several at
 * a time, or all that is of queries would stream through the caches for every 24 keys. A bias that entries or heads
 * share makes their tiles of the same keys one task, which adds up the bias's gradient in the order of entries, heads
 * and queries, in a strip as wide as the tile.
 *
 * With a rotary embedding it works on queries and keys that were rotated before, of which there are few for the pairs
 * that they make, and turns their gradients back behind (widen.c); and so on elements of 16 bits that were converted
 * before, and rounds gradients behind. A bias and its gradient, of which there is one for each pair, are converted a
 * row of a tile at a time. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "tile/base2.h"
#include "tile/tile.h"
#include "widen.h"

enum {
  QUERIES = TILE_KEYS,
  WANTED_TASKS = 16,
  LINE = 16,          /* floats of a cache line */
  KEYS_TOGETHER = 96, /* of several tiles that meet a tile of queries while it is in the L2 cache */
  MOST_TOGETHER = KEYS_TOGETHER / 4
};

typedef struct backward {
  const attn_problem *problem;
  const attn_tensors *tensors;
  const tile_kernels *kernels, *biases, *bias_grads; /* the last two for elements of their types */
  int64_t parts, part_keys; /* of the keys of a head; part p has those from p * part_keys */
  int64_t together;         /* tiles of keys that pass the queries at once */
  bool adds_bias_grads;     /* over axes that the bias lacks */
  int64_t entries, heads;   /* key/value heads; of a task: 1, or all where the bias lacks the axis */
  float *shift, *delta; /* [B, H, Tq]: the log-sum-exp in base 2, and the sum of output times its gradient */
  float *query_grads;   /* [parts, B, H, Tq, depth] */
  float *scratch;       /* of each thread */
} backward;

/* What a thread works with; rows: lanes for the keys of a tile. The first five are of one tile of those in `tiles`. */
typedef struct scratch {
  float *keys, *values;           /* [D, rows], [Dv, rows] columns; keys scaled as scores need them */
  float *key_rows;                /* [rows, depth], times the scale, with zeros up to whole vectors */
  float *key_grads, *value_grads; /* [D, rows], [Dv, rows] */
  float *tiles;
  float *weights, *grads, *slopes; /* [QUERIES, rows] */
  float *ones, *scales;            /* [rows] */
  float *bias_grads;               /* [heads, queries, rows]: a strip of those that are added up */
} scratch;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }
static int64_t whole_lines(int64_t floats) { return pieces(floats, LINE) * LINE; }

static int64_t at(const attn_layout *strides, int64_t b, int64_t h, int64_t i) {
  return b * strides->batch + h * strides->head + i * strides->position;
}

static int64_t depth_of(const attn_problem *problem, const tile_kernels *kernels) {
  return pieces(problem->head_dim, kernels->lanes) * kernels->lanes;
}

/* ---- memory ---- */

/* Query heads and queries of a strip of the bias's gradient. */
static int64_t strip_heads(const backward *of) {
  const attn_problem *p = of->problem;
  return p->bias.head == 0 ? 1 : of->heads * (p->query_heads / p->kv_heads);
}
static int64_t strip_queries(const backward *of) {
  const int64_t queries = of->problem->query_length;
  return of->problem->bias.position == 0 ? smaller(1, queries) : queries;
}

typedef struct scratch_part {
  float **place;
  int64_t floats;
} scratch_part;

/* Point into `memory`, or with NULL only count; return how many floats there are. */
static int64_t place_parts(const scratch_part *parts, size_t count, float *memory) {
  int64_t used = 0;
  for (size_t n = 0; n < count; n++) {
    *parts[n].place = memory ? memory + used : NULL;
    used += whole_lines(parts[n].floats);
  }
  return used;
}

/* Of a tile of keys. */
static int64_t place_keys(const backward *of, float *memory, scratch *to) {
  const int64_t rows = of->kernels->max_rows, D = of->problem->head_dim, Dv = of->problem->value_dim;
  const scratch_part parts[] = {{&to->keys, D * rows},
                                {&to->values, Dv * rows},
                                {&to->key_rows, rows * depth_of(of->problem, of->kernels)},
                                {&to->key_grads, D * rows},
                                {&to->value_grads, Dv * rows}};
  return place_parts(parts, sizeof parts / sizeof *parts, memory);
}

static int64_t place_scratch(const backward *of, float *memory, scratch *to) {
  const int64_t rows = of->kernels->max_rows;
  const scratch_part parts[] = {
      {&to->tiles, of->together * place_keys(of, NULL, to)},
      {&to->weights, QUERIES * rows},
      {&to->grads, QUERIES * rows},
      {&to->slopes, QUERIES * rows},
      {&to->ones, rows},
      {&to->scales, rows},
      {&to->bias_grads, of->adds_bias_grads ? strip_heads(of) * strip_queries(of) * rows : 0}};
  return place_parts(parts, sizeof parts / sizeof *parts, memory);
}

static int64_t query_rows(const attn_problem *problem) {
  return problem->batch * problem->query_heads * problem->query_length;
}

/* Floats of the parts' query gradients. */
static int64_t partial_floats(const backward *of) {
  return whole_lines(of->parts * query_rows(of->problem) * depth_of(of->problem, of->kernels));
}

/* For elements of a tensor; for those of none any. */
static const tile_kernels *kernels_of(const attn_call *call, const attn_layout *layout) {
  return tile_select_floats(call->isa, layout->type ? layout->type : ATTN_FLOAT32);
}

static backward plan(const attn_call *call) {
  const attn_problem *problem = call->problem;
  const tile_kernels *kernels = tile_select(call->isa, ATTN_FLOAT32);
  const int64_t tiles = pieces(problem->key_length, kernels->max_rows);
  const attn_layout *bias = &problem->bias;
  const int64_t entries = bias->type && bias->batch == 0 ? problem->batch : 1;
  const int64_t heads = bias->type && bias->head == 0 ? problem->kv_heads : 1;
  const int64_t tasks = problem->batch * problem->kv_heads / larger(1, entries * heads);
  const int64_t wanted = pieces(WANTED_TASKS, larger(1, tasks));
  const int64_t tiles_of_part = larger(1, pieces(tiles, larger(1, smaller(wanted, tiles / 2))));
  const bool adds_bias_grads = bias->type && (bias->batch == 0 || bias->head == 0 || bias->position == 0);
  const int64_t most = adds_bias_grads ? 1 : larger(1, KEYS_TOGETHER / kernels->max_rows);
  return (backward){.problem = problem,
                    .tensors = &call->tensors,
                    .kernels = kernels,
                    .biases = kernels_of(call, bias),
                    .bias_grads = kernels_of(call, &problem->bias_grad),
                    .parts = larger(1, pieces(tiles, tiles_of_part)),
                    .part_keys = tiles_of_part * kernels->max_rows,
                    .together = smaller(most, tiles_of_part),
                    .adds_bias_grads = adds_bias_grads,
                    .entries = entries,
                    .heads = heads};
}

static void place(backward *of, float *memory) {
  of->shift = memory;
  of->delta = of->shift + whole_lines(query_rows(of->problem));
  of->query_grads = of->delta + whole_lines(query_rows(of->problem));
  of->scratch = of->query_grads + partial_floats(of);
}

/* ---- before the keys ---- */

static float *query_grad_of(const backward *of, int64_t b, int64_t h, int64_t i) {
  return (float *)of->problem->query_grad_data + at(&of->problem->query_grad, b, h, i);
}

/* From key j on. */
static void *bias_grad_of(const backward *of, int64_t b, int64_t h, int64_t i, int64_t j) {
  return (char *)of->problem->bias_grad_data +
         (at(&of->problem->bias_grad, b, h, i) + j) * of->bias_grads->element_bytes;
}

static void write_bias_grad(const backward *of, int64_t count, const float *grads, void *row) {
  const float one = 1;
  of->bias_grads->scale_rows(1, count, (tile_matrix){grads, count}, &one, &row);
}

/* A row that sees nothing has no weight to make, and a log-sum-exp of -inf. */
static void prepare_row(const backward *of, int64_t n) {
  const attn_problem *p = of->problem;
  const int64_t b = n / p->query_length / p->query_heads, h = n / p->query_length % p->query_heads;
  const int64_t i = n % p->query_length;
  const float *output = (const float *)of->tensors->output + at(&p->output, b, h, i);
  const float *grad = (const float *)p->output_grad_data + at(&p->output_grad, b, h, i);
  const float lse = of->tensors->lse[at(&p->lse, b, h, i)];
  float sum = 0;
  for (int64_t e = 0; e < p->value_dim; e++) sum += grad[e] * output[e];
  of->shift[n] = lse == -INFINITY ? 0 : base2_bias(lse);
  of->delta[n] = sum;
  if (p->bias.type && !of->adds_bias_grads)
    memset(bias_grad_of(of, b, h, i, 0), 0, (size_t)(p->key_length * of->bias_grads->element_bytes));
}

static void solve_sink(const backward *of, int64_t h) {
  const attn_problem *p = of->problem;
  const float sink = of->tensors->sink[h * p->sink.head];
  float sum = 0;
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t i = 0; i < attn_query_count(p, b) && sink != -INFINITY; i++) {
      const float lse = of->tensors->lse[at(&p->lse, b, h, i)];
      sum -= expf(sink - lse) * of->delta[(b * p->query_heads + h) * p->query_length + i];
    }
  ((float *)p->sink_grad_data)[h * p->sink_grad.head] = sum;
}

/* ---- a tile of keys and a tile of queries ---- */

typedef struct pair_tile {
  int64_t b, h, i0, count;   /* queries, of one head */
  int64_t kv_head, j0, keys; /* keys that exist; the lanes are kernels->max_rows */
} pair_tile;

/* Scores that something happens to before they are weights come out in base e. */
static bool is_plain(const attn_problem *problem) {
  return problem->softcap == 0 && !problem->bias.type && !attn_has_position_bias(problem);
}

static float factor_of(const attn_problem *problem) {
  const float scale = (float)problem->scale;
  if (is_plain(problem)) return scale * log2e;
  return problem->softcap > 0 ? scale / (float)problem->softcap : scale;
}

/* Softcap, bias and positions; scores come to base 2, the slopes are those of the softcap. */
static void finish_scores(const backward *of, const pair_tile *tile, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t rows = of->kernels->max_rows;
  const float cap = (float)p->softcap;
  float added[2 * TILE_MAX_ROWS];
  if (cap > 0) {
    of->kernels->softcap(tile->count * rows, 1, cap, mine->weights);
    for (int64_t n = 0; n < tile->count * rows; n++) {
      const float tangent = mine->weights[n] / cap;
      mine->slopes[n] = 1 - tangent * tangent;
    }
  }
  for (int64_t n = 0; p->bias.type && n < tile->count; n++) {
    float *restrict score = mine->weights + n * rows;
    const int64_t first = at(&p->bias, tile->b, tile->h, tile->i0 + n) + tile->j0;
    of->biases->read(tile->keys, tile_element(of->biases, of->tensors->bias, first), added);
    for (int64_t r = 0; r < tile->keys; r++) score[r] += added[r];
  }
  if (attn_has_position_bias(p)) {
    const int64_t last = tile->count - 1;
    attn_position_biases(p, tile->h, attn_distance(p, tile->b, tile->i0 + last, tile->j0), rows + last,
                         added);
    of->kernels->add_run(rows, tile->count, added, 1, 1, mine->weights);
  }
  for (int64_t n = 0; n < tile->count * rows; n++) mine->weights[n] *= log2e;
}

static void hide(const backward *of, const pair_tile *tile, float *scores) {
  const int64_t rows = of->kernels->max_rows;
  uint8_t seen[TILE_MAX_ROWS] = {0};
  for (int64_t n = 0; n < tile->count; n++) {
    float *restrict score = scores + n * rows;
    attn_seen_row(of->problem, of->tensors, tile->b, tile->h, tile->i0 + n, tile->j0, tile->j0 + tile->keys,
                  seen);
    for (int64_t r = 0; r < rows; r++) score[r] = seen[r] ? score[r] : -INFINITY;
  }
}

/* What meets the values, or comes of them, of keys that are kept and that are dropped. */
static void drop(const backward *of, const pair_tile *tile, float *numbers) {
  const int64_t rows = of->kernels->max_rows;
  const float factor = attn_kept_factor(of->problem);
  for (int64_t n = 0; n < tile->count; n++) {
    const uint8_t *keep = attn_keep_row(of->problem, tile->b, tile->h, tile->i0 + n) + tile->j0;
    float *restrict row = numbers + n * rows;
    for (int64_t r = 0; r < tile->keys; r++) row[r] = keep[r] ? row[r] * factor : 0;
  }
}

/* Where a row of the strip is: of a query head and a query, by what the bias has of both. */
static float *strip_row(const backward *of, const scratch *mine, int64_t h, int64_t i) {
  const int64_t head = of->problem->bias.head == 0 ? 0 : h % strip_heads(of);
  const int64_t row = head * strip_queries(of) + (of->problem->bias.position == 0 ? 0 : i);
  return mine->bias_grads + row * of->kernels->max_rows;
}

static void add_bias_grads(const backward *of, const pair_tile *tile, const scratch *mine) {
  const int64_t rows = of->kernels->max_rows;
  for (int64_t n = 0; n < tile->count; n++) {
    float *restrict to = strip_row(of, mine, tile->h, tile->i0 + n);
    const float *restrict grads = mine->grads + n * rows;
    for (int64_t r = 0; r < rows; r++) to[r] += grads[r];
  }
}

/* Scores and products of output_grad with values become weights and gradients of scores. */
static void weigh(const backward *of, const pair_tile *tile, bool hides, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t rows = of->kernels->max_rows;
  const int64_t first = (tile->b * p->query_heads + tile->h) * p->query_length + tile->i0;
  of->kernels->grade(rows, tile->count, of->shift + first, of->delta + first, mine->weights, mine->grads);
  /* A weight of 0 times what overflowed is none for a key that is hidden, or has a bias of -inf. */
  if ((hides || !is_plain(p)) && !of->kernels->all_finite(tile->count, rows, (tile_rows){mine->grads, rows}))
    for (int64_t n = 0; n < tile->count * rows; n++)
      if (mine->weights[n] == 0) mine->grads[n] = 0;
  if (of->adds_bias_grads)
    add_bias_grads(of, tile, mine);
  else if (p->bias.type)
    for (int64_t n = 0; n < tile->count; n++)
      write_bias_grad(of, tile->keys, mine->grads + n * rows,
                      bias_grad_of(of, tile->b, tile->h, tile->i0 + n, tile->j0));
  if (p->softcap > 0)
    for (int64_t n = 0; n < tile->count * rows; n++) mine->grads[n] *= mine->slopes[n];
}

/* Those of a part, as wide as whole vectors. */
static float *query_grads_of(const backward *of, int64_t part, const pair_tile *tile) {
  const attn_problem *p = of->problem;
  const int64_t n = (tile->b * p->query_heads + tile->h) * p->query_length + tile->i0;
  return of->query_grads + (part * query_rows(p) + n) * depth_of(p, of->kernels);
}

/* query_grad += grads . keys: here the features lie in the lanes. */
static void add_query_grads(const backward *of, const pair_tile *tile, const scratch *mine, float *to) {
  const tile_kernels *kernels = of->kernels;
  const int64_t rows = kernels->max_rows, depth = depth_of(of->problem, kernels);
  for (int64_t d = 0; d < depth; d += rows)
    kernels->add_products((tile_size){smaller(rows, depth - d), tile->count, rows},
                          (tile_matrix){mine->key_rows + d, depth}, (tile_rows){mine->grads, rows},
                          (tile_target){to + d, depth});
}

static void solve_pair(const backward *of, int64_t part, const pair_tile *tile, const scratch *mine) {
  const attn_problem *p = of->problem;
  const tile_kernels *kernels = of->kernels;
  const int64_t rows = kernels->max_rows, i1 = tile->i0 + tile->count, j1 = tile->j0 + tile->keys;
  const attn_visibility seen = attn_visible_tile(p, tile->b, tile->h, tile->i0, i1, tile->j0, j1);
  if (seen == ATTN_EMPTY) return;
  const tile_rows query = {(const float *)of->tensors->query + at(&p->query, tile->b, tile->h, tile->i0),
                           p->query.position};
  const tile_rows output_grad = {(const float *)p->output_grad_data +
                                     at(&p->output_grad, tile->b, tile->h, tile->i0),
                                 p->output_grad.position};
  const tile_matrix weights = {mine->weights, rows}, grads = {mine->grads, rows};
  const tile_size of_keys = {rows, tile->count, p->head_dim}, of_values = {rows, tile->count, p->value_dim};
  kernels->scores(of_keys, (tile_matrix){mine->keys, rows}, query, 1, NULL,
                  (tile_target){mine->weights, rows});
  if (p->value_dim > 0)
    kernels->scores(of_values, (tile_matrix){mine->values, rows}, output_grad, 1, NULL,
                    (tile_target){mine->grads, rows});
  else
    memset(mine->grads, 0, (size_t)(tile->count * rows) * sizeof(float));
  if (!is_plain(p)) finish_scores(of, tile, mine);
  const bool hides = seen != ATTN_FULL || tile->keys < rows;
  if (hides) hide(of, tile, mine->weights);
  if (p->keep.type) drop(of, tile, mine->grads);
  weigh(of, tile, hides, mine);
  if (p->keep.type) drop(of, tile, mine->weights);
  kernels->accumulate(of_values, weights, output_grad, mine->ones, NULL,
                      (tile_target){mine->value_grads, rows});
  kernels->accumulate(of_keys, grads, query, mine->ones, NULL, (tile_target){mine->key_grads, rows});
  add_query_grads(of, tile, mine, query_grads_of(of, part, tile));
}

/* ---- tiles of keys and all queries ---- */

/* Tile n of those that pass the queries together. */
static scratch scratch_of(const backward *of, const scratch *mine, int64_t n) {
  scratch to = *mine;
  place_keys(of, mine->tiles + n * place_keys(of, NULL, &to), &to);
  return to;
}

static void load_keys(const backward *of, const pair_tile *tile, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t rows = of->kernels->max_rows, depth = depth_of(p, of->kernels);
  const void *key[TILE_MAX_ROWS], *value[TILE_MAX_ROWS];
  memset(mine->key_rows, 0, (size_t)(rows * depth) * sizeof(float));
  for (int64_t r = 0; r < tile->keys; r++) {
    const float *from = (const float *)of->tensors->key + at(&p->key, tile->b, tile->kv_head, tile->j0 + r);
    key[r] = from;
    value[r] = (const float *)of->tensors->value + at(&p->value, tile->b, tile->kv_head, tile->j0 + r);
    for (int64_t d = 0; d < p->head_dim; d++) mine->key_rows[r * depth + d] = (float)p->scale * from[d];
  }
  of->kernels->pack(rows, tile->keys, p->head_dim, key, factor_of(p), mine->keys);
  of->kernels->pack(rows, tile->keys, p->value_dim, value, 1, mine->values);
  memset(mine->key_grads, 0, (size_t)(p->head_dim * rows) * sizeof(float));
  memset(mine->value_grads, 0, (size_t)(p->value_dim * rows) * sizeof(float));
}

static void write_key_grads(const backward *of, const pair_tile *tile, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t rows = of->kernels->max_rows;
  void *key_grad[TILE_MAX_ROWS], *value_grad[TILE_MAX_ROWS];
  for (int64_t r = 0; r < tile->keys; r++) {
    key_grad[r] = (float *)p->key_grad_data + at(&p->key_grad, tile->b, tile->kv_head, tile->j0 + r);
    value_grad[r] = (float *)p->value_grad_data + at(&p->value_grad, tile->b, tile->kv_head, tile->j0 + r);
  }
  of->kernels->unpack(rows, tile->keys, p->head_dim, mine->key_grads, mine->scales, key_grad);
  of->kernels->unpack(rows, tile->keys, p->value_dim, mine->value_grads, mine->ones, value_grad);
}

/* The tiles of keys from `tile` on, before `end`: each sum is in the order that it would have with one after the other. */
static void solve_keys(const backward *of, int64_t part, pair_tile tile, int64_t end, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t rows = of->kernels->max_rows, group = p->query_heads / p->kv_heads;
  const int64_t count = pieces(end - tile.j0, rows);
  pair_tile tiles[MOST_TOGETHER];
  scratch own[MOST_TOGETHER];
  for (int64_t n = 0; n < count; n++) {
    tiles[n] = tile;
    tiles[n].j0 += n * rows;
    tiles[n].keys = smaller(rows, end - tiles[n].j0);
    own[n] = scratch_of(of, mine, n);
    load_keys(of, &tiles[n], &own[n]);
  }
  for (int64_t h = tile.kv_head * group; h < (tile.kv_head + 1) * group; h++)
    for (int64_t i0 = 0; i0 < p->query_length; i0 += QUERIES)
      for (int64_t n = 0; n < count; n++) {
        tiles[n].h = h;
        tiles[n].i0 = i0;
        tiles[n].count = smaller(QUERIES, p->query_length - i0);
        solve_pair(of, part, &tiles[n], &own[n]);
      }
  for (int64_t n = 0; n < count; n++) write_key_grads(of, &tiles[n], &own[n]);
}

/* What the tasks' entries and heads have added up for a tile of keys. */
static void write_bias_grads(const backward *of, const pair_tile *tile, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t first = tile->kv_head * (p->query_heads / p->kv_heads);
  for (int64_t h = first; h < first + strip_heads(of); h++)
    for (int64_t i = 0; i < strip_queries(of); i++)
      write_bias_grad(of, tile->keys, strip_row(of, mine, h, i), bias_grad_of(of, tile->b, h, i, tile->j0));
}

/* The keys of a part, of a head or of all those that share a row of a bias. */
static void solve_part(const backward *of, int64_t task, const scratch *mine) {
  const attn_problem *p = of->problem;
  const int64_t part = task % of->parts, n = task / of->parts, across = p->kv_heads / of->heads;
  const int64_t end = smaller(p->key_length, (part + 1) * of->part_keys);
  const int64_t group = p->query_heads / p->kv_heads, depth = depth_of(p, of->kernels);
  const pair_tile first = {.b = n / across * of->entries, .kv_head = n % across * of->heads};
  pair_tile tile = first;
  tile.j0 = part * of->part_keys;
  for (tile.b = first.b; tile.b < first.b + of->entries; tile.b++) {
    tile.h = first.kv_head * group;
    memset(query_grads_of(of, part, &tile), 0,
           (size_t)(of->heads * group * p->query_length * depth) * sizeof(float));
  }
  for (int64_t next; tile.j0 < end; tile.j0 = next) {
    next = smaller(end, tile.j0 + of->together * of->kernels->max_rows);
    tile.keys = next - tile.j0;
    if (of->adds_bias_grads)
      memset(mine->bias_grads, 0,
             (size_t)(strip_heads(of) * strip_queries(of) * of->kernels->max_rows) * sizeof(float));
    for (tile.b = first.b; tile.b < first.b + of->entries; tile.b++)
      for (tile.kv_head = first.kv_head; tile.kv_head < first.kv_head + of->heads; tile.kv_head++)
        solve_keys(of, part, tile, next, mine);
    tile.b = first.b;
    tile.kv_head = first.kv_head;
    if (of->adds_bias_grads) write_bias_grads(of, &tile, mine);
  }
}

static void join_parts(const backward *of, int64_t n) {
  const attn_problem *p = of->problem;
  float *restrict to = query_grad_of(of, n / p->query_length / p->query_heads,
                                     n / p->query_length % p->query_heads, n % p->query_length);
  for (int64_t part = 0; part < of->parts; part++) {
    const float *restrict from = of->query_grads + (part * query_rows(p) + n) * depth_of(p, of->kernels);
    for (int64_t d = 0; d < p->head_dim; d++) to[d] = part == 0 ? from[d] : to[d] + from[d];
  }
}

static void run_rotated(const attn_call *call) {
  const attn_problem *p = call->problem;
  backward of = plan(call);
  place(&of, call->workspace);
  const int64_t rows = query_rows(p), shared = larger(1, of.entries * of.heads);
  const int64_t tasks = p->batch * p->kv_heads / shared * of.parts;
#pragma omp parallel num_threads(call->threads)
  {
    scratch mine;
    const int64_t floats = place_scratch(&of, NULL, &mine);
    place_scratch(&of, of.scratch + omp_get_thread_num() * floats, &mine);
    for (int64_t r = 0; r < of.kernels->max_rows; r++) mine.ones[r] = 1, mine.scales[r] = (float)p->scale;
#pragma omp for schedule(static)
    for (int64_t n = 0; n < rows; n++) prepare_row(&of, n);
#pragma omp for schedule(static)
    for (int64_t h = 0; h < (p->sink.type ? p->query_heads : 0); h++) solve_sink(&of, h);
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) solve_part(&of, task, &mine);
#pragma omp for schedule(static)
    for (int64_t n = 0; n < rows; n++) join_parts(&of, n);
  }
}

static size_t rotated_workspace(const attn_call *call) {
  const backward of = plan(call);
  scratch unused;
  const int64_t of_thread = place_scratch(&of, NULL, &unused);
  return (size_t)(2 * whole_lines(query_rows(of.problem)) + partial_floats(&of) + call->threads * of_thread) *
         sizeof(float);
}

static size_t workspace_size(const attn_call *call) {
  return attn_widened_workspace(call, ATTN_BIAS, rotated_workspace);
}

static void run(const attn_call *call) { attn_widened_run(call, ATTN_BIAS, run_rotated); }

static const char *unsupported(const attn_call *call) { return tile_refusal(call->isa, ATTN_FLOAT32); }

const attn_variant attn_fused_backward = {
    .name = "fused_backward",
    .summary = "the backward pass over register tiles: weights are made again from the log-sum-exp",
    .function = ATTN_SOFTMAX_BACKWARD,
    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE |
                ATTN_SINK | ATTN_PATTERN | ATTN_DOCUMENTS | ATTN_BLOCKS | ATTN_TOPK | ATTN_QUERY_LENGTHS |
                ATTN_ALIBI | ATTN_RELATIVE | ATTN_T5 | ATTN_ROPE | ATTN_DROPOUT,
    .types = ATTN_ALL_FLOATS,
    .traits = ATTN_FINITE | ATTN_FLOAT32_WEIGHTS,
    .time_exponent = 2,
    .workspace_exponent = 1,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
