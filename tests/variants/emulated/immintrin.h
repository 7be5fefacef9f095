/* What variants/tile/avx512.h uses of AVX-512, lane by lane as Intel's Intrinsics Guide says it, under the names of the
 * intrinsics: in the place of the compiler's header it makes kernels that any processor runs (emulated_avx512.c). */
#ifndef ATTN_TESTS_EMULATED_IMMINTRIN_H
#define ATTN_TESTS_EMULATED_IMMINTRIN_H

#include <emmintrin.h> /* the mode of the arithmetic, and what is no wider than 16 bytes */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "variants/elements.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are what this is for. */

typedef struct __m512 {
  float f[16];
} __m512;
typedef struct __m512i {
  uint32_t u[16];
} __m512i;
typedef struct __m256i {
  uint16_t h[16];
} __m256i;
typedef uint16_t __mmask16;

enum { _CMP_LT_OQ = 0x11, _CMP_UNORD_Q = 0x03, _CMP_NEQ_UQ = 0x04 };
enum { _MM_FROUND_TO_NEAREST_INT = 0, _MM_FROUND_TO_NEG_INF = 1, _MM_FROUND_NO_EXC = 8 };

#define EACH_LANE for (int l = 0; l < 16; l++)
/* Optimised each by itself: with their callers (emulated_avx512.c) it would take half a minute to compile. */
#ifdef __clang__
#define EMULATED static inline
#else
#define EMULATED __attribute__((optimize("O2"))) static inline
#endif

/* `result` finds a lane of the first operand from those of all. */
#define OF_ONE(name, type, result)                                                                           \
  EMULATED type name(type a) {                                                                               \
    EACH_LANE result;                                                                                        \
    return a;                                                                                                \
  }
#define OF_TWO(name, type, result)                                                                           \
  EMULATED type name(type a, type b) {                                                                       \
    EACH_LANE result;                                                                                        \
    return a;                                                                                                \
  }
#define OF_THREE(name, result)                                                                               \
  EMULATED __m512 name(__m512 a, __m512 b, __m512 c) {                                                       \
    EACH_LANE result;                                                                                        \
    return a;                                                                                                \
  }
OF_TWO(_mm512_add_ps, __m512, a.f[l] += b.f[l])
OF_TWO(_mm512_sub_ps, __m512, a.f[l] -= b.f[l])
OF_TWO(_mm512_mul_ps, __m512, a.f[l] *= b.f[l])
OF_TWO(_mm512_div_ps, __m512, a.f[l] /= b.f[l])
OF_TWO(_mm512_max_ps, __m512, a.f[l] = a.f[l] > b.f[l] ? a.f[l] : b.f[l])
OF_TWO(_mm512_min_ps, __m512, a.f[l] = a.f[l] < b.f[l] ? a.f[l] : b.f[l])
OF_THREE(_mm512_fmadd_ps, a.f[l] = fmaf(a.f[l], b.f[l], c.f[l]))
OF_THREE(_mm512_fmsub_ps, a.f[l] = fmaf(a.f[l], b.f[l], -c.f[l]))
OF_THREE(_mm512_fnmadd_ps, a.f[l] = fmaf(-a.f[l], b.f[l], c.f[l]))
OF_ONE(_mm512_abs_ps, __m512, a.f[l] = fabsf(a.f[l]))
/* An estimate of 14 bits. */
OF_ONE(_mm512_rcp14_ps, __m512, a.f[l] = (1 + 0x1p-15f) / a.f[l])
OF_TWO(_mm512_add_epi32, __m512i, a.u[l] += b.u[l])
OF_TWO(_mm512_and_si512, __m512i, a.u[l] &= b.u[l])

EMULATED __m512i _mm512_castps_si512(__m512 a) {
  __m512i bits;
  memcpy(&bits, &a, sizeof bits);
  return bits;
}
EMULATED __m512 _mm512_castsi512_ps(__m512i a) {
  __m512 floats;
  memcpy(&floats, &a, sizeof floats);
  return floats;
}
EMULATED __m512 _mm512_and_ps(__m512 a, __m512 b) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
EMULATED __m512 _mm512_or_ps(__m512 a, __m512 b) {
  __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
  EACH_LANE x.u[l] |= y.u[l];
  return _mm512_castsi512_ps(x);
}
EMULATED __m512i _mm512_slli_epi32(__m512i a, unsigned bits) {
  EACH_LANE a.u[l] <<= bits;
  return a;
}
EMULATED __m512i _mm512_srli_epi32(__m512i a, unsigned bits) {
  EACH_LANE a.u[l] >>= bits;
  return a;
}

EMULATED __m512 _mm512_set1_ps(float x) {
  __m512 all;
  EACH_LANE all.f[l] = x;
  return all;
}
EMULATED __m512 _mm512_setzero_ps(void) { return _mm512_set1_ps(0); }
EMULATED __m512i _mm512_set1_epi32(int x) {
  __m512i all;
  EACH_LANE all.u[l] = (uint32_t)x;
  return all;
}
#define _mm512_set_epi32(...) integers_from_the_last((const uint32_t[]){__VA_ARGS__})
EMULATED __m512i integers_from_the_last(const uint32_t *x) {
  __m512i all;
  EACH_LANE all.u[l] = x[15 - l];
  return all;
}

EMULATED __m512 _mm512_loadu_ps(const float *x) {
  __m512 all;
  memcpy(&all, x, sizeof all);
  return all;
}
EMULATED __m512i _mm512_loadu_si512(const void *x) {
  __m512i all;
  memcpy(&all, x, sizeof all);
  return all;
}
EMULATED __m256i _mm256_loadu_si256(const __m256i *x) {
  __m256i all;
  memcpy(&all, x, sizeof all);
  return all;
}
EMULATED void _mm512_storeu_ps(float *x, __m512 a) { memcpy(x, &a, sizeof a); }
EMULATED void _mm256_storeu_si256(__m256i *x, __m256i a) { memcpy(x, &a, sizeof a); }

/* Under masks: lanes whose bit is not set are those of `kept`, or 0. */

EMULATED bool is_set(__mmask16 mask, int l) { return (mask >> l & 1) != 0; }

EMULATED __m512 _mm512_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  EACH_LANE if (is_set(mask, l)) a.f[l] = b.f[l];
  return a;
}
EMULATED __m512 _mm512_maskz_mov_ps(__mmask16 mask, __m512 a) {
  return _mm512_mask_blend_ps(mask, _mm512_setzero_ps(), a);
}
EMULATED __m512 _mm512_mask_mul_ps(__m512 kept, __mmask16 mask, __m512 a, __m512 b) {
  return _mm512_mask_blend_ps(mask, kept, _mm512_mul_ps(a, b));
}
EMULATED __m512i _mm512_mask_or_epi32(__m512i kept, __mmask16 mask, __m512i a, __m512i b) {
  EACH_LANE if (is_set(mask, l)) kept.u[l] = a.u[l] | b.u[l];
  return kept;
}
EMULATED __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const float *x) {
  __m512 some = _mm512_setzero_ps();
  EACH_LANE if (is_set(mask, l)) some.f[l] = x[l];
  return some;
}
EMULATED __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void *x) {
  __m256i some = {{0}};
  EACH_LANE if (is_set(mask, l)) some.h[l] = ((const uint16_t *)x)[l];
  return some;
}
EMULATED bool holds(float a, float b, int comparison) {
  switch (comparison) {
    case _CMP_LT_OQ: return a < b;
    case _CMP_UNORD_Q: return isnan(a) || isnan(b);
    default: return !(a == b); /* _CMP_NEQ_UQ */
  }
}
EMULATED __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int comparison) {
  unsigned mask = 0;
  EACH_LANE mask |= (unsigned)holds(a.f[l], b.f[l], comparison) << l;
  return (__mmask16)mask;
}
EMULATED __mmask16 _mm512_cmple_epi32_mask(__m512i a, __m512i b) {
  unsigned mask = 0;
  EACH_LANE mask |= (unsigned)((int32_t)a.u[l] <= (int32_t)b.u[l]) << l;
  return (__mmask16)mask;
}
EMULATED uint32_t _mm256_test_epi8_mask(__m256i a, __m256i b) {
  uint32_t mask = 0;
  for (int n = 0; n < 32; n++) mask |= (uint32_t)((a.h[n / 2] & b.h[n / 2] & 0xff << n % 2 * 8) != 0) << n;
  return mask;
}
EMULATED __mmask16 _mm512_test_epi32_mask(__m512i a, __m512i b) {
  unsigned mask = 0;
  EACH_LANE mask |= (unsigned)((a.u[l] & b.u[l]) != 0) << l;
  return (__mmask16)mask;
}
/* Which are denormal: no other class is asked for. */
EMULATED __mmask16 _mm512_fpclass_ps_mask(__m512 a, int denormal) {
  unsigned mask = 0;
  EACH_LANE mask |= (unsigned)(denormal && fpclassify(a.f[l]) == FP_SUBNORMAL) << l;
  return (__mmask16)mask;
}

/* Lanes in another order. */

EMULATED __m512i _mm512_permutex2var_epi32(__m512i a, __m512i chosen, __m512i b) {
  __m512i all;
  EACH_LANE all.u[l] = (chosen.u[l] & 16 ? b : a).u[chosen.u[l] & 15];
  return all;
}
EMULATED __m512 _mm512_permutex2var_ps(__m512 a, __m512i chosen, __m512 b) {
  return _mm512_castsi512_ps(
      _mm512_permutex2var_epi32(_mm512_castps_si512(a), chosen, _mm512_castps_si512(b)));
}
EMULATED __m512 _mm512_unpacklo_ps(__m512 a, __m512 b) {
  __m512 all;
  EACH_LANE all.f[l] = (l % 2 ? b : a).f[l / 4 * 4 + l % 4 / 2];
  return all;
}
EMULATED __m512 _mm512_unpackhi_ps(__m512 a, __m512 b) {
  __m512 all;
  EACH_LANE all.f[l] = (l % 2 ? b : a).f[l / 4 * 4 + 2 + l % 4 / 2];
  return all;
}
/* Two bits of `chosen` for each of four. */
EMULATED __m512 _mm512_shuffle_ps(__m512 a, __m512 b, int chosen) {
  __m512 all;
  EACH_LANE all.f[l] = (l % 4 < 2 ? a : b).f[l / 4 * 4 + (chosen >> l % 4 * 2 & 3)];
  return all;
}
EMULATED __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int chosen) {
  __m512 all;
  EACH_LANE all.f[l] = (l < 8 ? a : b).f[(chosen >> l / 4 * 2 & 3) * 4 + l % 4];
  return all;
}

/* Exponents, and other types. */

/* What is behind the point, of infinities 0. */
EMULATED __m512 _mm512_reduce_ps(__m512 a, int rounding) {
  (void)rounding; /* down */
  EACH_LANE a.f[l] = isinf(a.f[l]) ? 0 : a.f[l] - floorf(a.f[l]);
  return a;
}
/* a times 2^floor(b), which the mode may flush. */
EMULATED __m512 _mm512_scalef_ps(__m512 a, __m512 b) {
  const bool flushes = (_mm_getcsr() & _MM_FLUSH_ZERO_ON) != 0;
  EACH_LANE {
    const float exponent = fmaxf(-300, fminf(300, floorf(b.f[l])));
    a.f[l] = isnan(b.f[l]) ? b.f[l] : scalbnf(a.f[l], (int)exponent);
    if (flushes && fpclassify(a.f[l]) == FP_SUBNORMAL) a.f[l] = copysignf(0, a.f[l]);
  }
  return a;
}
EMULATED __m512i _mm512_cvtepu8_epi32(__m128i a) {
  uint8_t bytes[16];
  memcpy(bytes, &a, sizeof bytes);
  __m512i wide;
  EACH_LANE wide.u[l] = bytes[l];
  return wide;
}
EMULATED __m512 _mm512_cvtepi32_ps(__m512i a) {
  __m512 floats;
  EACH_LANE floats.f[l] = (float)(int32_t)a.u[l];
  return floats;
}
EMULATED __m512i _mm512_cvtepu16_epi32(__m256i a) {
  __m512i wide;
  EACH_LANE wide.u[l] = a.h[l];
  return wide;
}
EMULATED __m256i _mm512_cvtepi32_epi16(__m512i a) {
  __m256i low;
  EACH_LANE low.h[l] = (uint16_t)a.u[l];
  return low;
}
EMULATED __m512 _mm512_cvtph_ps(__m256i a) {
  __m512 floats;
  EACH_LANE floats.f[l] = attn_from_float16(a.h[l]);
  return floats;
}
EMULATED __m256i _mm512_cvtps_ph(__m512 a, int rounding) {
  __m256i halves;
  (void)rounding; /* to nearest */
  EACH_LANE halves.h[l] = attn_to_float16(a.f[l]);
  return halves;
}

/* NOLINTEND(bugprone-reserved-identifier) */

#endif
