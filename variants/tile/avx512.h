/* AVX-512 (F, DQ, BW and VL), the vector operations: 32 registers of 16 floats. The register tile is 4 vectors of
 * rows by 6 elements: 24 sums, 4 row vectors and a broadcast, 10 loads for 24 multiply-adds. */
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

typedef __m512 vec;
enum { LANES = 16 };
#define MAX_VECTORS 4
#define GROUP(vectors) ((vectors) == 4 ? 6 : 8)
#define FEW_VECTORS 4

#define OP static inline __attribute__((always_inline))
OP vec load(const float *x) { return _mm512_loadu_ps(x); }
/* The first n < 16 elements, and zeros. */
OP vec load_part(const float *x, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x); }
OP void store(float *x, vec a) { _mm512_storeu_ps(x, a); }
OP vec broadcast(const float *x) { return _mm512_set1_ps(*x); }
OP vec zero(void) { return _mm512_setzero_ps(); }
OP vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
OP vec subtract(vec a, vec b) { return _mm512_sub_ps(a, b); }
OP vec multiply(vec a, vec b) { return _mm512_mul_ps(a, b); }
OP vec divide(vec a, vec b) { return _mm512_div_ps(a, b); }
OP vec fused_multiply_add(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
OP vec maximum(vec a, vec b) { return _mm512_max_ps(a, b); } /* b where either is NaN */
OP vec minimum(vec a, vec b) { return _mm512_min_ps(a, b); } /* the same */
OP vec absolute(vec a) { return _mm512_abs_ps(a); }
OP vec copy_sign(vec a, vec sign) {
  return _mm512_or_ps(_mm512_abs_ps(a), _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
}
/* a where bits are 1, else 0. */
OP vec bits_of(vec a, vec bits) { return _mm512_and_ps(a, bits); }
OP vec select_less(vec a, vec b, vec yes, vec no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}

/* x[i][j] and x[j][i] change places: within quarters of a register by unpacking, then whole quarters. */
OP void transpose(vec x[LANES]) {
  vec a[LANES], b[LANES];
  for (int i = 0; i < LANES; i += 2) {
    a[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < LANES; i += 4) {
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    vec low = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88),
        high = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    x[i] = _mm512_shuffle_f32x4(low, high, 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(low, high, 0xdd);
    low = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd), high = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
    x[i + 4] = _mm512_shuffle_f32x4(low, high, 0x88);
    x[i + 12] = _mm512_shuffle_f32x4(low, high, 0xdd);
  }
}

/* Lane l: the sum of the elements of x[l]. Two vectors are halved into one, until one is left. */
OP vec sums_of(const vec x[LANES]) {
  vec quarters[4];
  for (int i = 0; i < 4; i++) {
    vec a =
        _mm512_add_ps(_mm512_shuffle_f32x4(x[i], x[i + 4], 0x44), _mm512_shuffle_f32x4(x[i], x[i + 4], 0xee));
    vec b = _mm512_add_ps(_mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x44),
                          _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xee));
    quarters[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  }
  vec a = _mm512_add_ps(_mm512_unpacklo_ps(quarters[0], quarters[1]),
                        _mm512_unpackhi_ps(quarters[0], quarters[1]));
  vec b = _mm512_add_ps(_mm512_unpacklo_ps(quarters[2], quarters[3]),
                        _mm512_unpackhi_ps(quarters[2], quarters[3]));
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

/* sum + n / d, of d from 1 to 2^126: the quotient within 5u, by an estimate of 14 bits and a step of Newton's. */
OP vec add_quotient(vec n, vec d, vec sum) {
  const vec estimate = _mm512_rcp14_ps(d), step = _mm512_fnmadd_ps(d, estimate, _mm512_set1_ps(2.0f));
  return _mm512_fmadd_ps(_mm512_mul_ps(n, estimate), step, sum);
}

OP bool any_less(vec a, vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ) != 0; }
OP vec zero_where_minus_infinity(vec a) {
  __mmask16 keep = _mm512_cmp_ps_mask(a, _mm512_set1_ps(-__builtin_inff()), _CMP_NEQ_UQ);
  return _mm512_maskz_mov_ps(keep, a);
}

/* A result under 2^-126 costs vscalefps a microcode assist (measured: 75 ns a vector instead of 0.2) unless
 * such results are flushed to zero, so the loops of exponentials run in that mode. */
OP unsigned flush_denormals(void) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
  __asm__ volatile("" ::: "memory"); /* keeps the loops between the two */
  return mode;
}
OP void restore_denormals(unsigned mode) {
  __asm__ volatile("" ::: "memory");
  _mm_setcsr(mode);
}

/* 2^t = 2^floor(t) 2^f, 0 <= f < 1: vreduceps takes the fraction, vscalefps the power. The polynomial is a
 * minimax fit of 2^f with float32 coefficients, the first being 1 so that 2^0 is exact; 1.19 ulp at worst.
 * One degree less misses 2 ulp where t is just below 0, since f is rounded there. */
OP vec split_power(vec *t) { return _mm512_reduce_ps(*t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
OP vec times_power(vec p, vec t) { return _mm512_scalef_ps(p, t); }
static const float exp2_polynomial[] = {
    0x1.cb4a9ap-13f, 0x1.44bd62p-10f, 0x1.3d4ff8p-7f, 0x1.c68154p-5f, 0x1.ebfdb6p-3f, 0x1.62e42ap-1f, 1.0f};
#define EXP_VECTORS 8

/* elu(x) + 1. e^x = 2^n 2^f, where n is a multiple of 1/32 and |f| <= 1/64: adding 1.5 2^17 to half of x log2(e) leaves n in the
 * low bits. Five of them choose one of 32 roots, the others are added to its exponent; the bits of the choice are added as well,
 * and so the table lacks them. 2^f is nearly b ((f / 2 + d)^2 + e), of which the roots hold b. So of 12 operations four
 * multiply, and the others pass ports that products leave alone: these map vectors between their steps (map_vector), where sums
 * fill the registers and constants come from memory. Of all floats 4.4u + 0.22u |x| at worst. `again` is x. */
#define OWN_ELU1
typedef struct elu1_constants {
  uint32_t roots[2 * LANES];
  float half_log2e, magic, d, e, one;
  int32_t least;
} elu1_constants;
static const elu1_constants elu1_of_vectors = {
    {0x3f75fd7a, 0x3f77606b, 0x3f7870c7, 0x3f7740c5, 0x3f762088, 0x3f751068, 0x3f7410be, 0x3f7321e7,
     0x3f724441, 0x3f71782d, 0x3f70be0e, 0x3f701647, 0x3f6f8140, 0x3f6eff61, 0x3f6e9117, 0x3f6e36cf,
     0x3f6df0f9, 0x3f6dc008, 0x3f6da471, 0x3f6d9eab, 0x3f6daf31, 0x3f6dd67f, 0x3f6e1517, 0x3f6e6b79,
     0x3f6eda2c, 0x3f6f61b8, 0x3f7002a7, 0x3f70bd89, 0x3f7192ef, 0x3f72836d, 0x3f738f9c, 0x3f74b816},
    0x1.715476p-1f,
    0x1.8p17f,
    0x1.71568ap-1f,
    0x1.0a684cp-1f,
    1.0f,
    INT32_MIN + 0x42ae999a};
OP vec elu1_vec(vec x, vec again, const elu1_constants *of) {
  const vec half_log2e = broadcast(&of->half_log2e), magic = broadcast(&of->magic);
  const vec shifted = fused_multiply_add(x, half_log2e, magic);
  const vec f = add(_mm512_fmsub_ps(x, half_log2e, subtract(shifted, magic)), broadcast(&of->d));
  const __m512i bits = _mm512_castps_si512(shifted);
  const __m512i root =
      _mm512_permutex2var_epi32(_mm512_loadu_si512(of->roots), bits, _mm512_loadu_si512(of->roots + LANES));
  const vec power = _mm512_castsi512_ps(_mm512_add_epi32(root, _mm512_slli_epi32(bits, 18)));
  const vec square = fused_multiply_add(f, f, broadcast(&of->e));
  /* From -0 to -87.3 the bits rise from the least of all integers. Further down 0 is left; a NaN stays. */
  const __mmask16 decays = _mm512_cmple_epi32_mask(_mm512_castps_si512(again), _mm512_set1_epi32(of->least));
  return _mm512_mask_mul_ps(maximum(zero(), add(again, broadcast(&of->one))), decays, square, power);
}

OP uint32_t shown_bits(const uint8_t *x) {
  const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
  return _mm256_test_epi8_mask(bytes, bytes);
}
OP vec select_bit(vec x, int n, vec a, vec b) {
  const __m512i bit = _mm512_set1_epi32((int)(1u << n));
  return _mm512_mask_blend_ps(_mm512_test_epi32_mask(_mm512_castps_si512(x), bit), b, a);
}

/* bfloat16 is the upper half of a float; to store it rounds to nearest, ties to even. A NaN stays one. */
OP vec widen_bfloat16(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}
#define BFLOAT16_TURNED
OP vec low_bfloat16(vec two) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(two), 16)); }
OP vec high_bfloat16(vec two) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(two), _mm512_set1_epi32((int)0xffff0000u)));
}
OP __m256i some_halves(const uint16_t *x, int n) {
  return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), x);
}
OP vec load_bfloat16(const uint16_t *x) { return widen_bfloat16(_mm256_loadu_si256((const __m256i *)x)); }
OP vec load_bfloat16_part(const uint16_t *x, int n) { return widen_bfloat16(some_halves(x, n)); }
/* The even features are lower halves, the odd ones upper: an operation each, where widening in place takes two. */
#define BFLOAT16_IN_TWO
OP void load_two_bfloat16(const uint16_t *from, vec x[2]) {
  const __m512i pairs = _mm512_loadu_si512(from);
  x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
  x[1] = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000u)));
}
/* Of 32 floats those with these numbers, and with these plus `more`. */
OP void take(vec x[2], __m512i first, int more) {
  const vec taken = _mm512_permutex2var_ps(x[0], first, x[1]);
  x[1] = _mm512_permutex2var_ps(x[0], _mm512_add_epi32(first, _mm512_set1_epi32(more)), x[1]);
  x[0] = taken;
}
OP void even_and_odd(vec x[2]) {
  take(x, _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), 1);
}
OP void in_turn(vec x[2]) {
  take(x, _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0), 8);
}
OP __mmask16 denormals(vec a) {
  enum { DENORMAL = 0x20 };
  return _mm512_fpclass_ps_mask(a, DENORMAL);
}
OP void store_bfloat16(uint16_t *x, vec a) {
#ifdef __AVX512BF16__
  /* The instruction takes denormal numbers for 0, which are kept here. */
  if (__builtin_expect(denormals(a) == 0, 1)) {
    _mm256_storeu_si256((__m256i *)x, (__m256i)_mm512_cvtneps_pbh(a));
    return;
  }
#endif
  const __m512i bits = _mm512_castps_si512(a),
                last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, last), _mm512_set1_epi32(0x7fff));
  const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256((__m256i *)x, _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}
OP vec load_float16(const uint16_t *x) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)x)); }
OP vec load_float16_part(const uint16_t *x, int n) { return _mm512_cvtph_ps(some_halves(x, n)); }
OP void store_float16(uint16_t *x, vec a) {
  _mm256_storeu_si256((__m256i *)x, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
