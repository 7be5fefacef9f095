/* Query tiles are independent, so the loop over batch x heads x blocks of tiles is parallel as it stands.
 * Where that gives few tiles against many keys (decoding), the keys of a tile are split too, each part
 * with a state of its own, joined afterwards (Dao et al. 2023, "Flash-Decoding for long-context
 * inference"). Sizes of blocks and numbers of parts depend on the problem alone, never on the threads:
 * the bits must not. */
#include "schedule.h"

#include <omp.h>

enum {
  MAX_BLOCK = 4,      /* query tiles that pass the keys together: 4 x 64 rows for each visit to L3 */
  ENOUGH_BLOCKS = 64, /* work for many threads; blocks are made no larger than leaves this many */
  ENOUGH_TILES = 32,  /* fewer: keys are split */
  WANTED_PARTS = 64,
  LEAST_KEYS = 1024 /* of a part, worth its merge */
};

/* How a problem is cut. */
typedef struct tiling {
  int64_t tile_heads, tiles_per_head;     /* stacks of heads, and query tiles of each */
  int64_t block, blocks_per_head, blocks; /* tiles of a block */
  int64_t parts;                          /* of the keys of a block */
  size_t queries_floats, state_floats, scratch_floats;
} tiling;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

/* Rounded up to whole cache lines, so that threads share none. */
static size_t whole_lines(size_t floats) { return (floats + 15) / 16 * 16; }

static tiling make_plan(const attn_problem *problem, schedule_shape shape) {
  tiling plan = {.block = 1, .parts = 1};
  const int64_t lanes = tile_select()->lanes, rows = problem->query_length * shape.heads;
  if (problem->query_heads == 0) return plan;
  plan.tile_heads = problem->query_heads / shape.heads;
  plan.tiles_per_head = pieces(rows, shape.rows);
  const int64_t tiles = problem->batch * plan.tile_heads * plan.tiles_per_head;
  if (tiles < ENOUGH_TILES)
    plan.parts = larger(1, smaller(WANTED_PARTS / larger(tiles, 1), problem->key_length / LEAST_KEYS));
  plan.block = larger(1, smaller(MAX_BLOCK, tiles / ENOUGH_BLOCKS));
  plan.blocks_per_head = pieces(plan.tiles_per_head, plan.block);
  plan.blocks = problem->batch * plan.tile_heads * plan.blocks_per_head;
  const int64_t tile_rows = pieces(smaller(rows, shape.rows), lanes) * lanes;
  plan.queries_floats = whole_lines(query_tile_queries_floats(problem, tile_rows));
  plan.state_floats = whole_lines(query_tile_state_floats(problem, tile_rows));
  plan.scratch_floats = whole_lines(query_tile_scratch_floats(problem, tile_rows));
  return plan;
}

/* Of each thread: queries and states of the largest block, so that the size does not depend on T, and
 * scratch. Split keys have their states apart. */
static size_t thread_floats(const tiling *plan) {
  return MAX_BLOCK * (plan->queries_floats + plan->state_floats) + plan->scratch_floats;
}

size_t schedule_workspace_size(const attn_problem *problem, schedule_shape shape, int threads) {
  const tiling plan = make_plan(problem, shape);
  if (plan.blocks == 0) return 0;
  const size_t parts = plan.parts > 1 ? (size_t)(plan.blocks * plan.parts) : 0;
  return ((size_t)threads * thread_floats(&plan) + parts * plan.state_floats) * sizeof(float);
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
    tile->first_row = (first + t) * shape.rows;
    tile->count = smaller(shape.rows, rows - tile->first_row);
    query_tile_place(tile);
    float *queries = memory + plan->scratch_floats + (size_t)t * (plan->queries_floats + plan->state_floats);
    query_tile_use(tile, queries, queries + plan->queries_floats, memory);
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
static attn_range part_of(attn_range keys, int64_t part, int64_t parts) {
  const int64_t each = pieces(pieces(keys.end - keys.first, parts), TILE_KEYS) * TILE_KEYS;
  const int64_t first = smaller(keys.first + part * each, keys.end);
  return (attn_range){first, smaller(first + each, keys.end)};
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
    if (plan.parts > 1)
      query_tile_use(tiles, tiles->queries, states + (size_t)item * plan.state_floats, tiles->scores);
    for (int64_t t = 0; t < count; t++) query_tile_begin(&tiles[t]);
    online_softmax(tiles, count, part_of(keys_of(tiles, count), item % plan.parts, plan.parts));
    for (int64_t t = 0; t < count && plan.parts == 1; t++) query_tile_finish(&tiles[t]);
  }

  if (plan.parts == 1) return;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t block = 0; block < plan.blocks; block++) {
    query_tile tile[MAX_BLOCK];
    float *own = memory + (size_t)omp_get_thread_num() * thread_floats(&plan);
    float *state = states + (size_t)(block * plan.parts) * plan.state_floats;
    place(problem, tensors, shape, &plan, block, own, tile);
    query_tile_use(tile, tile->queries, state, tile->scores);
    for (int64_t part = 1; part < plan.parts; part++)
      query_tile_merge(tile, state + (size_t)part * plan.state_floats);
    query_tile_finish(tile);
  }
}
