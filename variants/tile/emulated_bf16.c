/* Products of pairs of bfloat16, emulated, between vectors of 4 floats: so that what avx512_bf16.c compiles from the same
 * text is verified on any processor. */
enum { LANES = 4 };
#define IN_EACH_LANE(f) f(0), f(1), f(2), f(3)
#define MAX_VECTORS 2
#define GROUP(vectors) 4
#define FEW_VECTORS 2
#define EXP_VECTORS 4
#define EMULATES
#include "portable.h"

#include "arithmetic.h"

#define ONLY_BFLOAT16
#include "kinds.h"
#include "pairs.h"

const tile_kernels tile_emulated_bf16 = PAIR_TABLE("emulated_bf16");
