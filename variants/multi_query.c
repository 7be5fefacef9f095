/* Multi-query attention (Shazeer 2019): one key/value head serves all query heads. All heads are stacked
 * on it: the keys and values of a batch entry pass through the caches once for every block of tiles,
 * whichever heads their rows belong to. It is grouped_query with a single group. The bits of a row do not follow from
 * the batch; but from the number of heads they do, where some make 8 rows or fewer and others more (tile/README.md). */
#include "attention.h"
#include "tile/schedule.h"

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  return (schedule_shape){.heads = problem->query_heads, .rows = kernels->max_rows};
}

static const char *unsupported(const attn_problem *problem) {
  return problem->kv_heads != 1 ? "needs a single key/value head" : schedule_unsupported(problem);
}

static size_t workspace_size(const attn_problem *problem, int threads) {
  return schedule_workspace_size(problem, threads, choose);
}

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  schedule_run(problem, tensors, workspace, threads, choose);
}

const attn_variant attn_multi_query = {
    .name = "multi_query",
    .summary = "fused, with all query heads stacked on the one key/value head",
    .function = ATTN_SOFTMAX,
    .dtypes = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
