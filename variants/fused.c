/* Fused: online softmax (Milakov and Gimelshein 2018; Dao et al. 2022, FlashAttention). A tile of query
 * rows meets the keys a tile at a time and keeps, for each row, the largest score so far (max), the sum
 * of its weights (sum) and the weighted values (output), all relative to that maximum:
 *
 *     scores  = queries . keys
 *     max'    = largest of max and scores
 *     weights = 2^(scores - max')
 *     sum     = sum    2^(max - max') + sum over keys of weights
 *     output  = output 2^(max - max') + weights . values
 *
 * and output / sum after the last key is the answer. Scores never leave the L1 cache; the workspace does
 * not grow with T (where few rows meet many keys, up to 64 parts of those keep a state each). Key tiles that no row of a query tile sees are not visited. A few query tiles go past
 * the keys together, so that keys and values that come from afar serve them all. */
#include "attention.h"
#include "tile/schedule.h"

void online_softmax(query_tile *tiles, int64_t count, attn_range keys) {
  const int64_t step = query_tile_keys(tiles->few);
  for (int64_t j = keys.first; j < keys.end; j += step) {
    const int64_t last = j + step < keys.end ? j + step : keys.end;
    const tile_values values = query_tile_values(tiles, count, j, last);
    for (query_tile *tile = tiles; tile < tiles + count; tile++) {
      const int64_t first = j > tile->keys.first ? j : tile->keys.first;
      const int64_t end = last < tile->keys.end ? last : tile->keys.end;
      if (first >= end) continue;
      query_tile_scores(tile, first, end);
      const bool hidden = query_tile_hide(tile, first, end);
      query_tile_weights(tile, first, end);
      query_tile_accumulate(tile, first, end, values.row + (first - j) * values.stride, values.stride,
                            hidden);
    }
  }
}

static schedule_shape shape(void) { return (schedule_shape){.heads = 1, .rows = tile_select()->max_rows}; }

static const char *unsupported(const attn_problem *problem) {
  return problem->wants_weights ? "never holds the attention weights" : NULL;
}

static size_t workspace_size(const attn_problem *problem, int threads) {
  return schedule_workspace_size(problem, shape(), threads);
}

static void run(const attn_problem *problem, const attn_tensors *tensors, void *workspace, int threads) {
  schedule_run(problem, tensors, shape(), workspace, threads);
}

const attn_variant attn_fused = {
    .name = "fused",
    .summary = "online softmax over register tiles; scores never leave the caches",
    .function = ATTN_SOFTMAX,
    .dtypes = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .unsupported = unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
