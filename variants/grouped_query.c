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

static size_t workspace_size(const attn_problem *problem, int threads) {
  return schedule_workspace_size(problem, threads, choose);
}

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  schedule_run(problem, tensors, workspace, threads, choose);
}

const attn_variant attn_grouped_query = {
    .name = "grouped_query",
    .summary = "fused, with the query heads of a group stacked on their shared keys and values",
    .function = ATTN_SOFTMAX,
    .dtypes = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .unsupported = schedule_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
