/* Block-sparse attention (Child et al. 2019; Zaheer et al. 2020, BigBird): a mask says of blocks of queries and keys which
 * are seen. It is fused, and what that does with any pattern is all there is to it: a query tile asks for the next key
 * that it may see, so that blocks that are empty cost nothing; blocks that are full run as without a mask; and tiles of
 * queries begin anew where blocks do, so that none takes the keys of two rows of blocks (tile/schedule.c). Time follows
 * the pairs that are seen. */
#include "attention.h"
#include "tile/schedule.h"

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

static size_t workspace_size(const attn_call *call) { return schedule_workspace_size(call, choose); }

static void run(const attn_call *call) { schedule_run(call, choose); }

const attn_variant attn_block_sparse = {
    .name = "block_sparse",
    .summary = "fused on the blocks that a mask shows; empty ones are passed over",
    .function = ATTN_SOFTMAX,
    .features = SCHEDULE_FEATURES | SCHEDULE_PATTERNS,
    .types = SCHEDULE_TYPES,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .showcase = "blocks:128,128,0.1",
    .unsupported = schedule_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
