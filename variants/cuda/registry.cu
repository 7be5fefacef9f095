/* The variants for a GPU, in the order in which they tell their story (README.md). */
#include "variants.h"

static const attn_variant *const variants[] = {
    &cuda_naive,          &cuda_tiled,       &cuda_fused,         &cuda_linear,
    &cuda_sliding_window, &cuda_multi_query, &cuda_grouped_query, &cuda_decode,
};

#ifdef __CUDACC__
/* What the device can run of what was compiled. */
static const char *const *instruction_sets(void) {
  static const char *const sets[] = {"sm_80", nullptr};
  return sets;
}
#else
/* The orders in which an emulated device runs warps, and lets copies land. */
static const char *const *instruction_sets(void) {
  static const char *const sets[] = {"forwards", "backwards", "random", "early_copies", nullptr};
  return sets;
}
#endif

extern "C" const attn_table attn_plugin;
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof variants[0], variants,
                                instruction_sets};
