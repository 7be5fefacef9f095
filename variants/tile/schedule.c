/* Query tiles are independent, so the loop over batch x stacks of heads x blocks of tiles is parallel as it stands.
 * Where few rows meet many keys (decoding), the keys are cut into parts, each with a state of its own, joined
 * afterwards in their order (Dao et al. 2023, "Flash-Decoding for long-context inference"). Where there are few
 * blocks besides, threads take parts of the same block; else one thread takes a block's parts one after the other.
 *
 * What decides the bits of a row follows from the problem of one stack: tiles, key tiles and parts lie at places of
 * their own. Blocks, and who computes which part when, look at the batch, the heads and the threads, and change no
 * bit. */
#include "schedule.h"

#include <omp.h>

#include "online_softmax.h"

enum {
  SINGLE_ROWS = 2,  /* up to here AMX has nothing to gain: what is read takes the time */
  FLOATS_BLOCK = 4, /* query tiles that pass the keys together: 4 x 64 rows for each visit to L3 */
  COPIES_BLOCK = 8, /* where values are copied for each block, and keys that become floats */
  MAX_BLOCK = 32,   /* of the smaller tiles of attend */
  STACK_ROWS = COPIES_BLOCK * TILE_MAX_ROWS, /* of a block, but one of attend */
  ENOUGH_BLOCKS = 64,  /* work for many threads; blocks are made no larger than leaves this many */
  FEW_BLOCKS = 32,     /* fewer: threads share a block's parts */
  ATTENDED_BLOCKS = 2, /* for each thread the same where attend takes them */
  FEW_TILES = 32,      /* of the rows of a head; fewer: keys are cut into parts */
  WANTED_PARTS = 64,
  LEAST_KEYS = 1024 /* of a part, worth its merge */
};

/* All of a call that its parts look at, the instruction set chosen. */
typedef struct schedule_call {
  const attn_problem *problem;
  const attn_tensors *tensors;
  float *workspace;
  int threads;
  const tile_kernels *kernels, *output_kernels, *score_kernels;
  float *sums; /* of schedule_run_part */
} schedule_call;

/* How a problem is cut. */
typedef struct tiling {
  const query_tile_steps *steps;
  int64_t heads, rows;              /* of a stack, and of a full tile */
  int64_t period, tiles_per_period; /* tiles begin anew after so many rows, as blocks of the pattern do */
  int64_t stacks, tiles_per_stack;  /* stacks of a batch entry, and query tiles of each */
  int64_t parts, part_keys;         /* part p has keys from p * part_keys */
  int64_t most_tiles;               /* of a block, whatever T */
  int64_t row_floats;               /* for the rows of a block, where the stack is too small */
  int64_t block, blocks_per_stack, blocks; /* tiles of a block */
  int64_t shares; /* threads that a block's parts are for, each with a state for every part */
  query_tile_sizes floats;
} tiling;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

/* By the rows of one head, however many are stacked: so a row's parts do not follow from its stack. */
static void cut_keys(const attn_problem *problem, tiling *plan) {
  const int64_t tiles = pieces(problem->query_length, TILE_MAX_ROWS);
  const int64_t wanted = tiles < FEW_TILES ? WANTED_PARTS / larger(tiles, 1) : 1;
  const int64_t parts = larger(1, smaller(wanted, problem->key_length / LEAST_KEYS));
  plan->part_keys = larger(1, pieces(pieces(problem->key_length, parts), TILE_FEW_KEYS)) * TILE_FEW_KEYS;
  plan->parts = larger(1, pieces(problem->key_length, plan->part_keys));
}

/* Queries after which the pattern may be another, of its terms the fewest: a row has the same bits in whichever order
 * they are said. 0: it is not in blocks. */
static int64_t pattern_period(const attn_problem *problem) {
  if (problem->features & ATTN_BLOCKS) return problem->block_q;
  int64_t period = 0;
  for (int64_t n = 0; problem->features & ATTN_PATTERN && n < problem->term_count; n++) {
    const attn_term *term = &problem->terms[n];
    const bool in_blocks = term->kind == ATTN_RANDOM && problem->offset == 0 && !problem->offsets;
    if (in_blocks && (period == 0 || term->b < period)) period = term->b;
  }
  return period;
}

/* A tile that lies in two rows of blocks would take the keys of both. */
static void place_tiles(const attn_problem *problem, int64_t rows, tiling *plan) {
  plan->rows = larger(1, plan->rows);
  const int64_t wanted = plan->steps == &full_tile ? smaller(pattern_period(problem), rows) * plan->heads : 0;
  if (wanted > 0 && wanted < plan->rows) plan->rows = plan->rows / wanted * wanted;
  plan->period = wanted > plan->rows ? wanted : plan->rows;
  plan->tiles_per_period = pieces(plan->period, plan->rows);
  plan->tiles_per_stack =
      rows / plan->period * plan->tiles_per_period + pieces(rows % plan->period, plan->rows);
}

/* By head: those that share keys then have tiles of their own, as they see other ones of them. */
static bool patterns_differ(const attn_problem *problem) {
  return (problem->blocks.type && problem->blocks.head) || (problem->topk.type && problem->topk.head);
}

/* Queries that lie beside each other see none of each other's keys at a stride, and a tile computes the keys of all for all:
 * with one vector of rows least is computed in vain. Of 24 rows at T = 4096, stride 64, it took 1.4 times as long. */
static int64_t most_rows(const attn_problem *problem, const tile_kernels *kernels) {
  for (int64_t n = 0; n < problem->term_count; n++) {
    const attn_term *term = &problem->terms[n];
    const int64_t apart = term->kind == ATTN_STRIDED ? term->a : term->kind == ATTN_DILATED ? term->b : 0;
    if (apart > kernels->lanes) return kernels->lanes;
  }
  return TILE_MAX_ROWS;
}

/* As many as divide those of a period, at most `most`: tiles of other rows of blocks see other keys, for which those that
 * pass would be fetched, and copied, for fewer tiles. With 128 rows in six tiles, in blocks of three and not four, D = 128
 * takes .91 of the time. */
static int64_t tiles_of_block(const tiling *plan, int64_t most) {
  for (int64_t count = most; count > 1; count--)
    if (plan->tiles_per_period % count == 0) return count;
  return most;
}

/* Of tiles that attend takes: how many make a block; returns how many blocks are enough for threads to have each some. Values are
 * transposed once for a block, which takes as long as two of its tiles (Granite Rapids): of the sizes that leave each thread some
 * blocks the one with which all ends first, if tiles take the same time and half a block is what one thread waits for another. */
static int64_t size_attended_blocks(const schedule_call *call, tiling *plan) {
  enum { TRANSPOSED = 2 };
  const int64_t some = (int64_t)ATTENDED_BLOCKS * call->threads, enough = smaller(ENOUGH_BLOCKS, some);
  const int64_t stacks = call->problem->batch * plan->stacks;
  int64_t least = INT64_MAX;
  plan->block = 1;
  plan->most_tiles = MAX_BLOCK;
  plan->row_floats = MAX_BLOCK * TILE_CHUNK_ROWS * sizeof(query_tile_row) / sizeof(float);
  for (int64_t block = 1; block <= plan->most_tiles; block++) {
    const int64_t blocks = stacks * pieces(plan->tiles_per_stack, block);
    const int64_t time = pieces(blocks, call->threads) * (block + TRANSPOSED) + block / 2;
    if (blocks >= enough && time <= least) plan->block = block, least = time;
  }
  return smaller(FEW_BLOCKS, some);
}

/* Of others. Keys are rotated, and 16-bit values and keys copied, once for the tiles of a block, which are better many. */
static int64_t size_blocks(const schedule_call *call, tiling *plan) {
  const bool copies = call->kernels->step > 1 || call->kernels->copy_keys;
  const int64_t few = attn_uses(call->problem, ATTN_ROPE) ? 8 : 16,
                each = copies || few == 8 ? few : ENOUGH_BLOCKS;
  const int64_t enough = smaller(ENOUGH_BLOCKS, each * call->threads);
  const int64_t tiles = call->problem->batch * plan->stacks * plan->tiles_per_stack;
  plan->most_tiles = copies ? COPIES_BLOCK : FLOATS_BLOCK;
  plan->block = larger(1, smaller(plan->most_tiles, tiles / enough));
  return FEW_BLOCKS;
}

static tiling make_plan(const schedule_call *call, schedule_choice choose) {
  const attn_problem *problem = call->problem;
  tiling plan = {.blocks = 0};
  if (problem->query_heads == 0) return plan;
  schedule_shape shape = choose(problem, call->kernels);
  if (patterns_differ(problem)) shape.heads = 1;
  const int64_t rows = problem->query_length * shape.heads;
  plan.steps = rows <= call->kernels->few_rows ? &few_rows_tile : &full_tile;
  if (call->kernels->tiled_scores && rows > SINGLE_ROWS && rows <= tiled_rows_tile.rows)
    plan.steps = &tiled_rows_tile;
  plan.heads = shape.heads;
  const bool attends = plan.steps->attends && query_tile_attends(problem, call->kernels);
  plan.rows = smaller(smaller(shape.rows, plan.steps->rows), most_rows(problem, call->kernels));
  if (attends) plan.rows = smaller(plan.rows, TILE_CHUNK_ROWS);
  plan.stacks = problem->query_heads / shape.heads;
  place_tiles(problem, rows, &plan);
  cut_keys(problem, &plan);

  const int64_t enough = attends ? size_attended_blocks(call, &plan) : size_blocks(call, &plan);
  plan.block = plan.steps != &full_tile ? larger(1, plan.tiles_per_stack) : tiles_of_block(&plan, plan.block);
  plan.blocks_per_stack = pieces(plan.tiles_per_stack, plan.block);
  plan.blocks = problem->batch * plan.stacks * plan.blocks_per_stack;
  plan.shares = call->threads > 1 && plan.blocks > 0 && plan.blocks < enough
                    ? smaller(plan.parts, pieces(WANTED_PARTS, plan.blocks))
                    : 1;
  plan.floats = query_tile_measure(problem, call->kernels, plan.steps, smaller(rows, plan.rows));
  return plan;
}

/* Of each thread: queries and states of the largest block, so that the size does not depend on T, and scratch. A
 * thread that takes all parts of a block has a second state of each tile, for the part on its way. */
static size_t thread_floats(const tiling *plan) {
  const size_t states = plan->parts > 1 && plan->shares == 1 ? 2 : 1;
  return (size_t)plan->most_tiles * (plan->floats.queries + states * plan->floats.state) +
         plan->floats.scratch + (size_t)plan->row_floats;
}

/* Where threads share a block's parts, every part has states in the memory of all. */
static size_t shared_states(const tiling *plan) {
  return plan->shares > 1 ? (size_t)(plan->blocks * plan->parts * plan->block) : 0;
}

/* The tiles of a block on their way. */
typedef struct passage {
  const schedule_call *call;
  const tiling *plan;
  int64_t block, count;
  query_tile tiles[MAX_BLOCK];
  query_tile_row rows[STACK_ROWS];
  attn_range keys;              /* all that some tile sees */
  int64_t first_part, end_part; /* those with such keys; one where there is none */
  float *states;                /* [2][most_tiles], of this thread */
  key_tile *key_tile;           /* and what it copied */
} passage;

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

/* Places a block's tiles in memory of this thread. The last block of a stack comes first: under a causal mask it is
 * the longest, and the short ones at the end fill the gaps between threads. */
static void place(const schedule_call *call, const tiling *plan, int64_t block, passage *of) {
  const attn_problem *problem = call->problem;
  const int64_t stack = block / plan->blocks_per_stack, rows = problem->query_length * plan->heads;
  const int64_t first = (plan->blocks_per_stack - 1 - block % plan->blocks_per_stack) * plan->block;
  float *room = call->workspace + (size_t)omp_get_thread_num() * thread_floats(plan);
  float *scratch = room + plan->row_floats, *queries = scratch + plan->floats.scratch;
  query_tile_row *rows_of_block = plan->row_floats > 0 ? (query_tile_row *)(void *)room : of->rows;
  of->call = call;
  of->plan = plan;
  of->states = queries + (size_t)plan->most_tiles * plan->floats.queries;
  of->block = block;
  of->count = smaller(plan->block, plan->tiles_per_stack - first);
  for (int64_t t = 0; t < of->count; t++) {
    query_tile *tile = &of->tiles[t];
    tile->kernels = call->kernels;
    tile->output_kernels = call->output_kernels;
    tile->score_kernels = call->score_kernels;
    tile->steps = plan->steps;
    tile->problem = problem;
    tile->tensors = call->tensors;
    tile->heads = plan->heads;
    tile->sums = call->sums;
    tile->batch = stack / plan->stacks;
    tile->first_head = stack % plan->stacks * plan->heads;
    const int64_t within = (first + t) % plan->tiles_per_period * plan->rows;
    tile->first_row = (first + t) / plan->tiles_per_period * plan->period + within;
    tile->count = smaller(smaller(plan->rows, plan->period - within), rows - tile->first_row);
    tile->leads = t == 0;
    tile->row = rows_of_block + t * plan->rows;
    query_tile_place(tile);
    query_tile_use(tile, queries + (size_t)t * plan->floats.queries,
                   of->states + (size_t)t * plan->floats.state, scratch);
  }
  of->keys = keys_of(of->tiles, of->count);
  of->first_part = of->keys.first / plan->part_keys;
  of->end_part = larger(of->first_part + 1, pieces(of->keys.end, plan->part_keys));
}

/* The state that tile t keeps for a part of its keys. A thread with all parts of a block has two in turns: of the
 * parts so far, and of the one on its way. */
static float *state_of(const passage *of, int64_t part, int64_t t) {
  const tiling *plan = of->plan;
  if (plan->shares == 1)
    return of->states + (size_t)((part > of->first_part) * plan->most_tiles + t) * plan->floats.state;
  float *states = of->call->workspace + (size_t)of->call->threads * thread_floats(plan);
  return states + (size_t)((of->block * plan->parts + part) * plan->block + t) * plan->floats.state;
}

static void solve_part(passage *of, int64_t part) {
  const int64_t first = part * of->plan->part_keys, end = first + of->plan->part_keys;
  for (int64_t t = 0; t < of->count; t++) {
    query_tile_use_state(&of->tiles[t], state_of(of, part, t));
    query_tile_clear(&of->tiles[t]);
  }
  online_softmax(of->tiles, of->count,
                 (attn_range){larger(first, of->keys.first), smaller(end, of->keys.end)}, of->key_tile);
}

/* Joins a part to those before it. */
static void merge_part(passage *of, int64_t part) {
  for (int64_t t = 0; t < of->count; t++) {
    query_tile_use_state(&of->tiles[t], state_of(of, of->first_part, t));
    query_tile_merge(&of->tiles[t], state_of(of, part, t));
  }
}

static void finish(passage *of) {
  for (int64_t t = 0; t < of->count; t++) {
    query_tile_use_state(&of->tiles[t], state_of(of, of->first_part, t));
    query_tile_finish(&of->tiles[t]);
  }
}

/* One share of a block's parts; a block that is not shared out is joined on the way and finished. */
static void solve_share(passage *of, int64_t share) {
  const int64_t parts = of->end_part - of->first_part, shares = of->plan->shares;
  for (int64_t t = 0; t < of->count; t++) query_tile_pack(&of->tiles[t]);
  for (int64_t n = parts * share / shares; n < parts * (share + 1) / shares; n++) {
    solve_part(of, of->first_part + n);
    if (shares == 1 && n > 0) merge_part(of, of->first_part + n);
  }
  if (shares == 1) finish(of);
}

/* Queries that a matrix has turned are no elements any more, nor is the sum of a query and a key one. */
static bool scores_are_of_floats(const attn_problem *problem) {
  return attn_uses(problem, ATTN_GENERAL) || attn_uses(problem, ATTN_ADDITIVE);
}

/* What attend would take as parts of elements, those of the instruction set; else NULL. */
static const tile_kernels *kernels_of_parts(const char *isa, const attn_problem *problem) {
  const tile_kernels *kernels = tile_select_parts(isa, problem->query.type);
  return kernels && query_tile_attends(problem, kernels) ? kernels : NULL;
}

/* Queries and keys that are rotated are floats, and stay such: rounded to 16 bits again they would cost the scores their
 * accuracy. */
static schedule_call begin(const attn_call *call) {
  const attn_type type = call->problem->query.type;
  const tile_kernels *parts = kernels_of_parts(call->isa, call->problem);
  const tile_kernels *kernels = parts                                 ? parts
                                : scores_are_of_floats(call->problem) ? tile_select_floats(call->isa, type)
                                                                      : tile_select(call->isa, type);
  const bool rotated = attn_uses(call->problem, ATTN_ROPE);
  return (schedule_call){.problem = call->problem,
                         .tensors = &call->tensors,
                         .workspace = call->workspace,
                         .threads = call->threads,
                         .kernels = kernels,
                         .output_kernels = tile_select(call->isa, call->problem->output.type),
                         .score_kernels = rotated ? tile_select_floats(call->isa, ATTN_FLOAT32) : kernels};
}

const char *schedule_unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  if (p->key.type != p->query.type || p->value.type != p->query.type ||
      (p->bias.type && p->bias.type != p->query.type))
    return "takes queries, keys, values and bias of one type";
  if (kernels_of_parts(call->isa, p)) return NULL;
  /* Pairs of bfloat16 cannot hold a query that a matrix has turned, or would round it. */
  return tile_refusal(call->isa, scores_are_of_floats(p) ? ATTN_FLOAT32 : p->query.type);
}

size_t schedule_workspace_size(const attn_call *asked, schedule_choice choose) {
  const schedule_call call = begin(asked);
  const tiling plan = make_plan(&call, choose);
  if (plan.blocks == 0) return 0;
  return ((size_t)call.threads * thread_floats(&plan) + shared_states(&plan) * plan.floats.state) *
         sizeof(float);
}

void schedule_run(const attn_call *asked, schedule_choice choose) { schedule_run_part(asked, choose, NULL); }

void schedule_run_part(const attn_call *asked, schedule_choice choose, float *sums) {
  schedule_call call = begin(asked);
  call.sums = sums;
  const tiling plan = make_plan(&call, choose);

#pragma omp parallel num_threads(call.threads)
  {
    key_tile copied;
    query_tile_begin(&copied);
    /* The region ends with a barrier: a second one, of the loop, took 14 % of the time with T = 256 on two threads. */
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t item = 0; item < plan.blocks * plan.shares; item++) {
      passage of;
      place(&call, &plan, item / plan.shares, &of);
      of.key_tile = &copied;
      solve_share(&of, item % plan.shares);
    }
  }

  if (plan.shares == 1) return;
#pragma omp parallel for num_threads(call.threads) schedule(static)
  for (int64_t block = 0; block < plan.blocks; block++) {
    passage of;
    place(&call, &plan, block, &of);
    for (int64_t part = of.first_part + 1; part < of.end_part; part++) merge_part(&of, part);
    finish(&of);
  }
}
