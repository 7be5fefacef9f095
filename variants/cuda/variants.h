/* What the CUDA variants share. */
#ifndef ATTN_CUDA_VARIANTS_H
#define ATTN_CUDA_VARIANTS_H

#include "cuda.h"

enum {
  CUDA_SOFTMAX_FEATURES = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK | ATTN_BIAS | ATTN_SOFTCAP |
                          ATTN_LSE | ATTN_SINK,
  CUDA_ALL_TYPES = 1 << ATTN_FLOAT32 | 1 << ATTN_BFLOAT16 | 1 << ATTN_FLOAT16,
  CUDA_NARROW_TYPES = 1 << ATTN_BFLOAT16 | 1 << ATTN_FLOAT16
};

extern const attn_variant cuda_naive, cuda_cublas, cuda_tiled, cuda_fused, cuda_fused_hopper, cuda_linear;
extern const attn_variant cuda_sliding_window, cuda_multi_query, cuda_grouped_query, cuda_decode;

/* NULL, or why kernels of 16 bits cannot take the problem, whose rows have at most 128 or 256 features. */
const char *cuda_narrow_refusal(const attn_problem *problem, int64_t widest);

#endif
