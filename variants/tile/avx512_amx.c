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

/* x[i] = 2^x[i] = 2^floor(x) 2^(n/32) (1 + f c1 + f^2 c2), f in [0, 1/32): a minimax fit, 1.1u at worst (u = 2^-24),
 * which with what is rounded makes 3.0u, .2u on the average, and 2^0 is exact. Beside tiles multiply-adds, vreduceps,
 * vscalefps, multiplications and shifts have port 0 alone (variants/tile/README.md), permutations and additions
 * others too: a polynomial of degree 5 has 8 of the former, this has 6. */
INLINE void weights_of(const int n, vec x[]) {
  static const float roots[2 * LANES] = {
      0x1p+0f,        0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f, 0x1.1d4874p+0f,
      0x1.2387a6p+0f, 0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f,
      0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f,
      0x1.7a1148p+0f, 0x1.82589ap+0f, 0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
      0x1.ae89fap+0f, 0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f,
      0x1.ea4afap+0f, 0x1.f50766p+0f};
  enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, FIVE_BITS = 5 << 4 };
  const vec magic = _mm512_set1_ps(0x1.8p18f); /* behind it floats are 1/32 apart */
  const vec c1 = _mm512_set1_ps(0x1.62e11ep-1f), c2 = _mm512_set1_ps(0x1.f0f3e6p-3f);
  vec fraction[EXP_VECTORS], root[EXP_VECTORS];
  for (int i = 0; i < n; i++) fraction[i] = _mm512_reduce_ps(x[i], FIVE_BITS | DOWN);
  for (int i = 0; i < n; i++) {
    const __m512i number = _mm512_castps_si512(_mm512_add_round_ps(x[i], magic, DOWN));
    root[i] = _mm512_permutex2var_ps(load(roots), number, load(roots + LANES));
  }
  for (int i = 0; i < n; i++) {
    const vec slope = fused_multiply_add(c2, fraction[i], c1);
    root[i] = fused_multiply_add(multiply(fraction[i], root[i]), slope, root[i]);
  }
  for (int i = 0; i < n; i++) x[i] = times_power(root[i], x[i]);
}
#include "amx_attend.h"

const tile_kernels tile_avx512_amx = AMX_TABLE("avx512_amx");
