/* Tiles are independent, so the loop over batch x heads x query tiles is parallel as it stands. Where that
 * gives few tiles against many keys (decoding), the keys of a tile are split too, each part with a state
 * of its own, joined afterwards (Dao et al. 2023, "Flash-Decoding for long-context inference"). The number
 * of parts depends on the problem alone, never on the threads: the bits must not. */
#include "schedule.h"

#include <omp.h>

/* Parts for the threads to share, and keys that make a part worth its merge. */
enum { ENOUGH_TILES = 32, WANTED_PARTS = 64, LEAST_KEYS = 1024 };

typedef struct tiling {
  int64_t tiles_per_head, tile_heads, tiles, parts;
  int64_t rows; /* of the largest tile, padded */
  size_t scratch_floats, state_floats;
} tiling;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rounded up to whole cache lines, so that threads share none. */
static size_t whole_lines(size_t floats) { return (floats + 15) / 16 * 16; }

static tiling make_plan(const attn_problem *problem, schedule_shape shape) {
  const int64_t lanes = tile_select()->lanes, rows = problem->query_length * shape.heads;
  tiling plan = {.parts = 1};
  if (problem->query_heads == 0) return (tiling){0};
  plan.tile_heads = problem->query_heads / shape.heads;
  plan.tiles_per_head = (rows + shape.rows - 1) / shape.rows;
  plan.tiles = problem->batch * plan.tile_heads * plan.tiles_per_head;
  plan.rows = (smaller(rows, shape.rows) + lanes - 1) / lanes * lanes;
  if (plan.tiles > 0 && plan.tiles < ENOUGH_TILES)
    plan.parts = smaller(WANTED_PARTS / plan.tiles, problem->key_length / LEAST_KEYS);
  if (plan.parts < 1) plan.parts = 1;
  plan.scratch_floats = whole_lines(query_tile_scratch_floats(problem, plan.rows));
  plan.state_floats = whole_lines(query_tile_state_floats(problem, plan.rows));
  return plan;
}

/* Scratch of each thread, then the states: one a thread, or one a part where keys are split. */
static size_t states(const tiling *plan, int threads) {
  return plan->parts > 1 ? (size_t)(plan->tiles * plan->parts) : (size_t)threads;
}

size_t schedule_workspace_size(const attn_problem *problem, schedule_shape shape, int threads) {
  const tiling plan = make_plan(problem, shape);
  if (plan.tiles == 0) return 0;
  return ((size_t)threads * plan.scratch_floats + states(&plan, threads) * plan.state_floats) * sizeof(float);
}

/* The last tile of a head comes first: under a causal mask it is the longest, and the short ones at the
 * end fill the gaps between threads. */
static query_tile place(const attn_problem *problem, const attn_tensors *tensors, schedule_shape shape,
                        const tiling *plan, int64_t index) {
  query_tile tile = {.kernels = tile_select(), .problem = problem, .tensors = tensors, .heads = shape.heads};
  const int64_t head = index / plan->tiles_per_head, rows = problem->query_length * shape.heads;
  tile.batch = head / plan->tile_heads;
  tile.first_head = head % plan->tile_heads * shape.heads;
  tile.first_row = (plan->tiles_per_head - 1 - index % plan->tiles_per_head) * shape.rows;
  tile.count = smaller(shape.rows, rows - tile.first_row);
  query_tile_place(&tile);
  return tile;
}

/* Part p of the keys of a tile, cut at multiples of the key tile. */
static attn_range part_of(attn_range keys, int64_t part, int64_t parts) {
  const int64_t each = ((keys.end - keys.first + parts - 1) / parts + TILE_KEYS - 1) / TILE_KEYS * TILE_KEYS;
  const int64_t first = smaller(keys.first + part * each, keys.end);
  return (attn_range){first, smaller(first + each, keys.end)};
}

void schedule_run(const attn_problem *problem, const attn_tensors *tensors, schedule_shape shape,
                  void *workspace, int threads) {
  const tiling plan = make_plan(problem, shape);
  float *scratch = workspace, *state = scratch + (size_t)threads * plan.scratch_floats;

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int64_t item = 0; item < plan.tiles * plan.parts; item++) {
    const size_t thread = (size_t)omp_get_thread_num();
    query_tile tile = place(problem, tensors, shape, &plan, item / plan.parts);
    query_tile_use(&tile, scratch + thread * plan.scratch_floats,
                   state + (plan.parts > 1 ? (size_t)item : thread) * plan.state_floats);
    query_tile_begin(&tile);
    online_softmax(&tile, part_of(tile.keys, item % plan.parts, plan.parts));
    if (plan.parts == 1) query_tile_finish(&tile);
  }

  if (plan.parts <= 1) return;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t index = 0; index < plan.tiles; index++) {
    query_tile tile = place(problem, tensors, shape, &plan, index);
    float *first = state + (size_t)(index * plan.parts) * plan.state_floats;
    query_tile_use(&tile, scratch + (size_t)omp_get_thread_num() * plan.scratch_floats, first);
    for (int64_t part = 1; part < plan.parts; part++)
      query_tile_merge(&tile, first + (size_t)part * plan.state_floats);
    query_tile_finish(&tile);
  }
}
