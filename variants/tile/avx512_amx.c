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
#define AND_FLOAT16
#include "kinds.h"
#define OWN_PRODUCTS
#include "pairs.h"

#include "amx.h"

/* Within each quarter of a register, as the processor does it at once. */
OP void join_two(const uint16_t *low, const uint16_t *high, vec x[2]) {
  const __m512i lower = _mm512_loadu_si512(low), upper = _mm512_loadu_si512(high);
  x[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(lower, upper));
  x[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(lower, upper));
}
OP void joined(vec x[2]) {
  const vec first = x[0], second = x[1];
  x[0] = _mm512_shuffle_f32x4(first, second, 0x88);
  x[1] = _mm512_shuffle_f32x4(first, second, 0xdd);
}
OP void unjoined(vec x[2]) {
  const vec first = _mm512_shuffle_f32x4(x[0], x[1], 0x44), second = _mm512_shuffle_f32x4(x[0], x[1], 0xee);
  x[0] = _mm512_shuffle_f32x4(first, first, 0xd8);
  x[1] = _mm512_shuffle_f32x4(second, second, 0xd8);
}
#include "amx_few.h"

/* In a register from here on: what the compiler knows to be constant it would load anew, or make from a register of the
 * other kind at port 5, wherever it is used. */
#define KEEP(x) __asm__("" : "+v"(x))

/* Of weights_of, and of weights_as_pair: half a last place, what moves upper halves down, and where to. */
typedef struct weight_numbers {
  vec roots[2], magic, c1, c2;
  __m512i half, down;
  __mmask64 lower;
} weight_numbers;

INLINE weight_numbers numbers_of_weights(void) {
  static const float roots[2 * LANES] = {
      0x1p+0f,        0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f, 0x1.1d4874p+0f,
      0x1.2387a6p+0f, 0x1.29e9ep+0f,  0x1.306fep+0f,  0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f,
      0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f, 0x1.6a09e6p+0f, 0x1.71f75ep+0f,
      0x1.7a1148p+0f, 0x1.82589ap+0f, 0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
      0x1.ae89fap+0f, 0x1.b7f77p+0f,  0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f,
      0x1.ea4afap+0f, 0x1.f50766p+0f};
  const __m128i upper_halves = _mm_setr_epi8(2, 3, -1, -1, 6, 7, -1, -1, 10, 11, -1, -1, 14, 15, -1, -1);
  weight_numbers of = {.roots = {load(roots), load(roots + LANES)},
                       .magic = _mm512_set1_ps(0x1.8p18f), /* behind it floats are 1/32 apart */
                       .c1 = _mm512_set1_ps(0x1.62e11ep-1f),
                       .c2 = _mm512_set1_ps(0x1.f0f3e6p-3f),
                       .half = _mm512_set1_epi32(0x8000),
                       .down = _mm512_broadcast_i32x4(upper_halves),
                       .lower = 0x3333333333333333};
  KEEP(of.roots[0]);
  KEEP(of.roots[1]);
  KEEP(of.magic);
  KEEP(of.c1);
  KEEP(of.c2);
  KEEP(of.half);
  KEEP(of.down);
  __asm__("" : "+Yk"(of.lower));
  return of;
}

/* Rounded, ties away from zero. */
INLINE vec weights_as_pair(const weight_numbers *of, vec low, vec high) {
  const __m512i lower = _mm512_add_epi32(_mm512_castps_si512(low), of->half),
                upper = _mm512_add_epi32(_mm512_castps_si512(high), of->half);
  return _mm512_castsi512_ps(_mm512_mask_shuffle_epi8(upper, of->lower, lower, of->down));
}

INLINE vec first_part(vec x) {
  const __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32((int)0xffff0000u)));
}

/* x[i] = 2^x[i] = 2^floor(x) 2^(n/32) (1 + f c1 + f^2 c2), f in [0, 1/32): a minimax fit, 1.1u at worst (u = 2^-24),
 * which with what is rounded makes 3.0u, .2u on the average, and 2^0 is exact. Beside tiles multiply-adds, vreduceps,
 * vscalefps, multiplications and shifts have port 0 alone (variants/tile/README.md), permutations and additions
 * others too: a polynomial of degree 5 has 8 of the former, this has 6. */
INLINE void weights_of(const weight_numbers *of, const int n, vec x[]) {
  enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, FIVE_BITS = 5 << 4 };
  vec fraction[EXP_VECTORS], root[EXP_VECTORS];
  for (int i = 0; i < n; i++) fraction[i] = _mm512_reduce_ps(x[i], FIVE_BITS | DOWN);
  for (int i = 0; i < n; i++) {
    const __m512i number = _mm512_castps_si512(_mm512_add_round_ps(x[i], of->magic, DOWN));
    root[i] = _mm512_permutex2var_ps(of->roots[0], number, of->roots[1]);
  }
  for (int i = 0; i < n; i++) {
    const vec part = multiply(fraction[i], root[i]);
    root[i] = fused_multiply_add(part, fused_multiply_add(fraction[i], of->c2, of->c1), root[i]);
  }
  for (int i = 0; i < n; i++) x[i] = times_power(root[i], x[i]);
}
#include "amx_parts.h"
#include "amx_attend.h"

const tile_kernels tile_avx512_amx = AMX_TABLE("avx512_amx");
const tile_kernels tile_avx512_amx_parts = AMX_PARTS_TABLE("avx512_amx");
