/* Grouped-query attention (Ainslie et al. 2023): each key/value head serves a group of query heads. The
 * rows of the whole group are stacked into one tile, so that a key or value is fetched once for the group
 * and not once for each of its heads. At full length the arithmetic is that of fused; the gain is in
 * memory traffic, and decoding (one query position against a long cache) is all memory traffic. */
#include "attention.h"
#include "tile/schedule.h"

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  const int64_t group = problem->kv_heads > 0 ? problem->query_heads / problem->kv_heads : 1;
  return (schedule_shape){.heads = group, .rows = kernels->max_rows};
}

static size_t workspace_size(const attn_call *call) { return schedule_workspace_size(call, choose); }

static void run(const attn_call *call) { schedule_run(call, choose); }

const attn_variant attn_grouped_query = {
    .name = "grouped_query",
    .summary = "fused, with the query heads of a group stacked on their shared keys and values",
    .function = ATTN_SOFTMAX,
    .features = SCHEDULE_FEATURES | SCHEDULE_PATTERNS,
    .types = SCHEDULE_TYPES,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .showcase = "Hkv:2",
    .unsupported = schedule_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
