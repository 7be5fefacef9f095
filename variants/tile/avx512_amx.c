/* AMX: products of tiles of bfloat16, for vectors of AVX-512 between them. What no processor at hand can run is verified
 * as emulated_amx, from the same text; what is left here is one instruction to a line. */
#include "amx_configuration.h"
#include "avx512_bf16.h"

/* The processor has the unit, one for each thread: nothing of it is here. */
typedef char amx_unit;

/* gcc's intrinsics do not say that a tile is loaded from memory (gcc 12, amxtileintrin.h): without a barrier what was
 * stored last may be stored after. */
#define WRITTEN() __asm__ volatile("" ::: "memory")
#define amx_ldtilecfg(unit, memory) ((void)(unit), _tile_loadconfig(memory))
#define amx_tilerelease(unit) ((void)(unit), _tile_release())
#define amx_tilezero(unit, tile) _tile_zero(tile)
#define amx_tileloadd(unit, tile, memory, stride)                                                            \
  do {                                                                                                       \
    WRITTEN();                                                                                               \
    _tile_loadd(tile, memory, stride);                                                                       \
  } while (0)
#define amx_tileloaddt1(unit, tile, memory, stride)                                                          \
  do {                                                                                                       \
    WRITTEN();                                                                                               \
    _tile_stream_loadd(tile, memory, stride);                                                                \
  } while (0)
#define amx_tilestored(unit, tile, memory, stride) _tile_stored(tile, memory, stride)
#define amx_tdpbf16ps(unit, c, a, b) _tile_dpbf16ps(c, a, b)

#include "arithmetic.h"

#define ONLY_BFLOAT16
#include "kinds.h"
#define OWN_PRODUCTS
#include "pairs.h"

#include "amx.h"

/* A minimax fit of 2^f, f in [0, 1), with float32 coefficients, the first being 1. Weights that become bfloat16 and are summed as floats
 * need one degree less than exp2: 2.4u at worst (u = 2^-24), .1u on the average. */
static const float weight_polynomial[] = {0x1.e974fcp-10f, 0x1.27784ep-7f, 0x1.c91ce6p-5f,
                                          0x1.ebdb5cp-3f,  0x1.62e4bap-1f, 1.0f};
#define split_weight(t) split_power(t)
#include "amx_attend.h"

const tile_kernels tile_avx512_amx = AMX_TABLE("avx512_amx");
