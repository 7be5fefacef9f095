/* The variants for a GPU, in the order in which they tell their story (README.md). */
#include "variants.h"

static const attn_variant *const variants[] = {
    &cuda_naive,
#if !defined(__CUDACC__) || defined(ATTN_HAVE_CUBLAS)
    &cuda_cublas,
#endif
    &cuda_tiled,          &cuda_fused,       &cuda_fused_hopper,  &cuda_linear,
    &cuda_sliding_window, &cuda_multi_query, &cuda_grouped_query, &cuda_decode,
};

/* One binary holds the kernels for all GPUs, and CUDA chooses among them; the emulated device has orders to run in. */
#ifdef __CUDACC__
static const char *const *(*const instruction_sets)(void) = nullptr;
#else
static const char *const *instruction_sets(void) { return emulation::schedule_names(); }
#endif

extern "C" const attn_table attn_plugin;
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof variants[0], variants,
                                instruction_sets};
