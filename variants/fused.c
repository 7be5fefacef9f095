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
 * and output / sum after the last key is the answer (tile/online_softmax.c). Scores never leave the L1 cache; the
 * workspace does not grow with T (where few rows meet many keys, up to 64 parts of those keep a state each). Key
 * tiles that no row of a query tile sees are not visited, be it by the band or by a pattern; those that all see whole
 * are not masked. A few query tiles go past the keys together, so that keys
 * and values that come from afar serve them all (tile/schedule.c).
 *
 * Of 16 bits, keys and values of a key tile become floats once for all query tiles that pass them; or, where the processor
 * multiplies pairs of bfloat16 (tile/products.h) or tiles of them (tile/amx.h, tile/amx_attend.h), are multiplied as they are,
 * weights being rounded after they were summed, as in FlashAttention. */
#include "attention.h"
#include "tile/schedule.h"

static schedule_shape choose(const attn_problem *problem, const tile_kernels *kernels) {
  (void)problem;
  return (schedule_shape){.heads = 1, .rows = kernels->max_rows};
}

static size_t workspace_size(const attn_call *call) { return schedule_workspace_size(call, choose); }

static void run(const attn_call *call) { schedule_run(call, choose); }

const attn_variant attn_fused = {
    .name = "fused",
    .summary = "online softmax over register tiles; scores never leave the caches",
    .function = ATTN_SOFTMAX,
    .features = SCHEDULE_FEATURES | SCHEDULE_PATTERNS,
    .types = SCHEDULE_TYPES,
    .traits = ATTN_BATCH_INVARIANT,
    .time_exponent = 2,
    .workspace_exponent = 0,
    .showcase = "full bf16",
    .unsupported = schedule_unsupported,
    .workspace_size = workspace_size,
    .run = run,
};
