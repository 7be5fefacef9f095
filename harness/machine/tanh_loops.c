/* tanh in registers, as 1 - 2 / (e^2x + 1): e^2x by its fraction, a polynomial of degree 6 and a power of two, the
 * quotient by the processor's estimate and a step of Newton's: what the tile kernels take for one tanh
 * (variants/tile). Numbers come from where the compiler cannot look, and go there, so that it neither takes anything
 * out of the loop nor drops it. No step waits for the round before; a few stand beside each other, as many as the
 * scheduler holds.
 *
 * In intrinsics, unlike peak_loops.c: it is the order of steps that counts, and that may be the compiler's. */
#include "peak_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TWICE_LOG2E 2.885390082f

/* Of 2^f, 0 <= f < 1. */
static const float upwards[] = {
    0x1.cb4a9ap-13f, 0x1.44bd62p-10f, 0x1.3d4ff8p-7f, 0x1.c68154p-5f, 0x1.ebfdb6p-3f, 0x1.62e42ap-1f, 1.0f};
/* The same of f within 1/2 of 0. */
static const float nearest[] = {
    0x1.41d334p-13f, 0x1.5f456ap-10f, 0x1.3b2dbcp-7f, 0x1.c6aed4p-5f, 0x1.ebfbdap-3f, 0x1.62e430p-1f, 1.0f};

/* Compilers that leave these loops take the registers' place with memory. */
#define UNROLLED _Pragma("GCC unroll 8")

enum { TERMS = sizeof upwards / sizeof *upwards, WIDE_CHAINS = 8, NARROW_CHAINS = 5 };

__attribute__((target("avx512f,avx512dq"))) static void tanh_avx512(int64_t rounds) {
  const __m512 one = _mm512_set1_ps(1), two = _mm512_set1_ps(2), factor = _mm512_set1_ps(TWICE_LOG2E);
  __m512 x = _mm512_set1_ps(0.4f);
  for (int64_t n = 0; n < rounds; n++) {
    __m512 t[WIDE_CHAINS], fraction[WIDE_CHAINS], y[WIDE_CHAINS];
    UNROLLED for (int i = 0; i < WIDE_CHAINS; i++) {
      __asm__ volatile("" : "+v"(x));
      t[i] = _mm512_mul_ps(x, factor);
    }
    UNROLLED for (int i = 0; i < WIDE_CHAINS; i++) fraction[i] =
        _mm512_reduce_ps(t[i], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    UNROLLED for (int i = 0; i < WIDE_CHAINS; i++) y[i] = _mm512_set1_ps(upwards[0]);
    UNROLLED for (int k = 1; k < TERMS; k++) UNROLLED for (int i = 0; i < WIDE_CHAINS; i++) y[i] =
        _mm512_fmadd_ps(y[i], fraction[i], _mm512_set1_ps(upwards[k]));
    UNROLLED for (int i = 0; i < WIDE_CHAINS; i++) {
      y[i] = _mm512_add_ps(_mm512_scalef_ps(y[i], t[i]), one);
      const __m512 estimate = _mm512_rcp14_ps(y[i]), step = _mm512_fnmadd_ps(y[i], estimate, two);
      y[i] = _mm512_fnmadd_ps(_mm512_add_ps(estimate, estimate), step, one);
      __asm__ volatile("" : : "v"(y[i]));
    }
  }
}

__attribute__((target("avx2,fma"))) static void tanh_avx2(int64_t rounds) {
  const __m256 one = _mm256_set1_ps(1), two = _mm256_set1_ps(2), factor = _mm256_set1_ps(TWICE_LOG2E);
  const __m256 magic = _mm256_set1_ps(0x1.8p23f + 127.0f), least = _mm256_set1_ps(-127.0f);
  __m256 x = _mm256_set1_ps(0.4f);
  for (int64_t n = 0; n < rounds; n++) {
    __m256 whole[NARROW_CHAINS], fraction[NARROW_CHAINS], y[NARROW_CHAINS];
    UNROLLED for (int i = 0; i < NARROW_CHAINS; i++) {
      __asm__ volatile("" : "+x"(x));
      const __m256 t = _mm256_max_ps(least, _mm256_mul_ps(x, factor));
      whole[i] = _mm256_add_ps(t, magic);
      fraction[i] = _mm256_sub_ps(t, _mm256_sub_ps(whole[i], magic));
    }
    UNROLLED for (int i = 0; i < NARROW_CHAINS; i++) y[i] = _mm256_set1_ps(nearest[0]);
    UNROLLED for (int k = 1; k < TERMS; k++) UNROLLED for (int i = 0; i < NARROW_CHAINS; i++) y[i] =
        _mm256_fmadd_ps(y[i], fraction[i], _mm256_set1_ps(nearest[k]));
    UNROLLED for (int i = 0; i < NARROW_CHAINS; i++) {
      const __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(whole[i]), 23));
      y[i] = _mm256_fmadd_ps(y[i], power, one);
      const __m256 estimate = _mm256_rcp_ps(y[i]), step = _mm256_fnmadd_ps(y[i], estimate, two);
      y[i] = _mm256_fnmadd_ps(_mm256_add_ps(estimate, estimate), step, one);
      __asm__ volatile("" : : "x"(y[i]));
    }
  }
}

size_t tanh_loops_available(tanh_loops loops[PEAK_MAX_LOOPS]) {
  size_t count = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops[count++] = (tanh_loops){"tanh avx2", 8 * NARROW_CHAINS, tanh_avx2};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    loops[count++] = (tanh_loops){"tanh avx512", 16 * WIDE_CHAINS, tanh_avx512};
  return count;
}

#else

/* Of NEON there is none yet. */
size_t tanh_loops_available(tanh_loops loops[PEAK_MAX_LOOPS]) {
  (void)loops;
  return 0;
}

#endif
