/* Products of pairs of bfloat16, emulated, between vectors of 4 floats: so that what avx512_bf16.c compiles from the same
 * text is verified on any processor. */
#define EMULATES
#include "portable.h"

#include "arithmetic.h"

#define ONLY_BFLOAT16
#include "kinds.h"
#include "pairs.h"

const tile_kernels tile_emulated_bf16 = PAIR_TABLE("emulated_bf16");
