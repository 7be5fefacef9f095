/* The variants, in the order in which people meet them: each file says what it changes against those
 * before it. */
#include "attention.h"
#include "tile/tile.h"

extern const attn_variant attn_naive, attn_blocked, attn_blas, attn_fused, attn_linear, attn_linear_recurrent,
    attn_sliding_window, attn_multi_query, attn_grouped_query, attn_block_sparse, attn_naive_backward,
    attn_fused_backward, attn_naive_linear_backward, attn_linear_backward, attn_layer_naive, attn_layer;

static const attn_variant *const variants[] = {
    &attn_naive,
    &attn_blocked,
#ifdef ATTN_HAVE_OPENBLAS
    &attn_blas,
#endif
    &attn_fused,
    &attn_linear,
    &attn_linear_recurrent,
    &attn_sliding_window,
    &attn_multi_query,
    &attn_grouped_query,
    &attn_block_sparse,
    &attn_naive_backward,
    &attn_fused_backward,
    &attn_naive_linear_backward,
    &attn_linear_backward,
    &attn_layer_naive,
#ifdef ATTN_HAVE_OPENBLAS
    &attn_layer,
#endif
};

const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants,
                                tile_instruction_sets};
