/* Multi-query attention (Shazeer 2019): one key/value head serves all query heads. All heads are stacked
 * on it: the keys and values of a batch entry pass through the caches once for every block of tiles,
 * whichever heads their rows belong to. It is grouped_query with a single group. The bits of a row do not follow from
 * the batch; but from the number of heads they do, where some make 8 rows or fewer and others more (tile/README.md). */
#include "attention.h"
#include "tile/schedule.h"

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  return (schedule_shape){.heads = problem->query_heads, .rows = kernels->max_rows};
}

static const char *unsupported(const attn_call *call) {
  return call->problem->kv_heads == 1 ? schedule_unsupported(call) : "needs a single key/value head";
}

static size_t workspace_size(const attn_call *call) { return schedule_workspace_size(call, choose); }

static void run(const attn_call *call) { schedule_run(call, choose); }

const attn_variant attn_multi_query = {
    .name = "multi_query",
    .summary = "fused, with all query heads stacked on the one key/value head",
    .function = ATTN_SOFTMAX,
    .features = SCHEDULE_FEATURES | SCHEDULE_PATTERNS,
    .types = SCHEDULE_TYPES,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .showcase = "Hkv:1",
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
