/* Query tiles are independent, so the loop over batch x heads x blocks of tiles is parallel as it stands.
 * Where that gives few tiles against many keys (decoding), the keys of a tile are split too, each part
 * with a state of its own, joined afterwards (Dao et al. 2023, "Flash-Decoding for long-context
 * inference"). Sizes of blocks and numbers of parts depend on the problem alone, never on the threads:
 * the bits must not. */
#include "schedule.h"

#include <omp.h>

enum {
  FEW_ROWS = 2 * TILE_FEW_ROWS, /* of a stack: up to here the kernels for few rows are faster */
  MAX_BLOCK = 4,      /* query tiles that pass the keys together: 4 x 64 rows for each visit to L3 */
  ENOUGH_BLOCKS = 64, /* work for many threads; blocks are made no larger than leaves this many */
  FEW_BLOCKS = 32,    /* fewer: keys are split */
  WANTED_PARTS = 64,
  LEAST_KEYS = 1024 /* of a part, worth its merge */
};

/* How a problem is cut. */
typedef struct tiling {
  bool few;                               /* rows to a stack of heads */
  int64_t rows;                           /* of a full tile */
  int64_t tile_heads, tiles_per_head;     /* stacks of heads, and query tiles of each */
  int64_t block, blocks_per_head, blocks; /* tiles of a block */
  int64_t parts;                          /* of the keys of a block */
  query_tile_sizes floats;
} tiling;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

/* Rows that a tile of count rows has with its padding. */
static int64_t padded_rows(const tiling *plan, int64_t count) {
  const int64_t lanes = tile_select()->lanes;
  return plan->few ? count : pieces(count, lanes) * lanes;
}

static tiling make_plan(const attn_problem *problem, schedule_shape shape) {
  tiling plan = {.block = 1, .parts = 1};
  const int64_t rows = problem->query_length * shape.heads;
  if (problem->query_heads == 0) return plan;
  plan.few = rows <= FEW_ROWS;
  plan.rows = plan.few ? TILE_FEW_ROWS : shape.rows;
  plan.tile_heads = problem->query_heads / shape.heads;
  plan.tiles_per_head = pieces(rows, plan.rows);
  const int64_t tiles = problem->batch * plan.tile_heads * plan.tiles_per_head;
  plan.block = larger(1, plan.few ? plan.tiles_per_head : smaller(MAX_BLOCK, tiles / ENOUGH_BLOCKS));
  plan.blocks_per_head = pieces(plan.tiles_per_head, plan.block);
  plan.blocks = problem->batch * plan.tile_heads * plan.blocks_per_head;
  if (plan.blocks < FEW_BLOCKS)
    plan.parts = larger(1, smaller(WANTED_PARTS / larger(plan.blocks, 1), problem->key_length / LEAST_KEYS));
  plan.floats = query_tile_measure(problem, padded_rows(&plan, smaller(rows, plan.rows)), plan.few);
  return plan;
}

/* Of each thread: queries and states of the largest block, so that the size does not depend on T, and
 * scratch. Split keys have their states apart. */
static size_t thread_floats(const tiling *plan) {
  return MAX_BLOCK * (plan->floats.queries + plan->floats.state) + plan->floats.scratch;
}

size_t schedule_workspace_size(const attn_problem *problem, schedule_shape shape, int threads) {
  const tiling plan = make_plan(problem, shape);
  if (plan.blocks == 0) return 0;
  const size_t states = plan.parts > 1 ? (size_t)(plan.blocks * plan.parts * plan.block) : 0;
  return ((size_t)threads * thread_floats(&plan) + states * plan.floats.state) * sizeof(float);
}

/* The tiles of a block, in memory of this thread; returns how many. The last block of a head comes first:
 * under a causal mask it is the longest, and the short ones at the end fill the gaps between threads. */
static int64_t place(const attn_problem *problem, const attn_tensors *tensors, schedule_shape shape,
                     const tiling *plan, int64_t block, float *memory, query_tile tiles[MAX_BLOCK]) {
  const int64_t head = block / plan->blocks_per_head, rows = problem->query_length * shape.heads;
  const int64_t first = (plan->blocks_per_head - 1 - block % plan->blocks_per_head) * plan->block;
  const int64_t count = smaller(plan->block, plan->tiles_per_head - first);
  for (int64_t t = 0; t < count; t++) {
    query_tile *tile = &tiles[t];
    tile->kernels = tile_select();
    tile->problem = problem;
    tile->tensors = tensors;
    tile->heads = shape.heads;
    tile->batch = head / plan->tile_heads;
    tile->first_head = head % plan->tile_heads * shape.heads;
    tile->first_row = (first + t) * plan->rows;
    tile->count = smaller(plan->rows, rows - tile->first_row);
    tile->leads = t == 0;
    tile->few = plan->few;
    tile->rows = padded_rows(plan, tile->count);
    query_tile_place(tile);
    float *queries = memory + plan->floats.scratch + (size_t)t * (plan->floats.queries + plan->floats.state);
    query_tile_use(tile, queries, queries + plan->floats.queries, memory);
  }
  return count;
}

/* All keys that some tile of the block sees. */
static attn_range keys_of(const query_tile *tiles, int64_t count) {
  attn_range keys = tiles[0].keys;
  for (int64_t t = 1; t < count; t++) {
    if (tiles[t].keys.first == tiles[t].keys.end) continue;
    if (keys.first == keys.end) keys = tiles[t].keys;
    keys.first = smaller(keys.first, tiles[t].keys.first);
    keys.end = larger(keys.end, tiles[t].keys.end);
  }
  return keys;
}

/* Part p of the keys, cut at multiples of the key tile. */
static attn_range part_of(attn_range keys, int64_t tile_keys, int64_t part, int64_t parts) {
  const int64_t each = pieces(pieces(keys.end - keys.first, parts), tile_keys) * tile_keys;
  const int64_t first = smaller(keys.first + part * each, keys.end);
  return (attn_range){first, smaller(first + each, keys.end)};
}

/* The state that tile t of a block keeps for one part of its keys. */
static float *part_state(const tiling *plan, float *states, int64_t block, int64_t part, int64_t t) {
  return states + (size_t)((block * plan->parts + part) * plan->block + t) * plan->floats.state;
}

void schedule_run(const attn_problem *problem, const attn_tensors *tensors, schedule_shape shape,
                  void *workspace, int threads) {
  const tiling plan = make_plan(problem, shape);
  float *memory = workspace, *states = memory + (size_t)threads * thread_floats(&plan);

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < plan.blocks * plan.parts; item++) {
    query_tile tiles[MAX_BLOCK];
    float *own = memory + (size_t)omp_get_thread_num() * thread_floats(&plan);
    const int64_t count = place(problem, tensors, shape, &plan, item / plan.parts, own, tiles);
    for (int64_t t = 0; t < count && plan.parts > 1; t++)
      query_tile_use(&tiles[t], tiles[t].queries,
                     part_state(&plan, states, item / plan.parts, item % plan.parts, t), tiles[t].scores);
    for (int64_t t = 0; t < count; t++) query_tile_begin(&tiles[t]);
    online_softmax(tiles, count,
                   part_of(keys_of(tiles, count), query_tile_keys(plan.few), item % plan.parts, plan.parts));
    for (int64_t t = 0; t < count && plan.parts == 1; t++) query_tile_finish(&tiles[t]);
  }

  if (plan.parts == 1) return;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < plan.blocks; block++) {
    query_tile tiles[MAX_BLOCK];
    float *own = memory + (size_t)omp_get_thread_num() * thread_floats(&plan);
    const int64_t count = place(problem, tensors, shape, &plan, block, own, tiles);
    for (int64_t t = 0; t < count; t++) {
      query_tile_use(&tiles[t], tiles[t].queries, part_state(&plan, states, block, 0, t), tiles[t].scores);
      for (int64_t part = 1; part < plan.parts; part++)
        query_tile_merge(&tiles[t], part_state(&plan, states, block, part, t));
      query_tile_finish(&tiles[t]);
    }
  }
}
