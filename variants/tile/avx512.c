/* AVX-512 with products of floats: elements of 16 bits are converted before. */
#include "avx512.h"

#include "arithmetic.h"
#include "kinds.h"

const tile_kernels tile_avx512[] = TILE_TABLES("avx512");
