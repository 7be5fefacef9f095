/* AVX-512 with products of pairs of bfloat16. */
#include "avx512_bf16.h"

#include "arithmetic.h"

#define ONLY_BFLOAT16
#include "kinds.h"
#include "pairs.h"

const tile_kernels tile_avx512_bf16 = PAIR_TABLE("avx512_bf16");
