/* AVX2 and FMA: 16 registers of 8 floats. The register tile is 3 vectors of rows by 4 elements: 12 sums,
 * 3 row vectors and a broadcast, 7 loads for 12 multiply-adds. With 2 by 6 it is 8 loads, and instructions
 * are what a core runs out of here: 7% slower. */
#include <immintrin.h>
#include <stdint.h>

typedef __m256 vec;
enum { LANES = 8 };
#define MAX_VECTORS 3
#define GROUP(vectors) ((vectors) == 3 ? 4 : (vectors) == 2 ? 6 : 8)
#define FEW_VECTORS 2
/* Measured on a Zen 3, which drops a fetch where all buffers for misses are taken: asked for twice, lines for four rows of
 * floats take .94 of the time. What more rows of 16 bits than one compute counts beside it, and with it how often sums are loaded
 * and stored: four rows take .91 to .96 of the time, two .95 to .99, one 1.03 to 1.2. */
#define FEW_STEPS(rows, bytes) ((rows) > 1 && (bytes) == 2 ? 4 : 1)
#define FEW_TWICE 4
/* gcc loads a query again for each multiply-add, and of those and loads two are done in a cycle: .95 to .97. */
#define LOADED_ONCE(x) __asm__("" : "+x"(x))
/* A column of eight rows leaves few lanes empty, and nothing is added up across them: 8 rows take .72 to .9 of the time, 6 .85 to
 * 1. Elements of 16 bits would have to become floats first: 8 rows 1.05 to 1.27. */
#define FEW_OF_FLOATS 5
/* There a line that is asked for every 6 cycles is dropped as well: at the pace of tile_ahead linear attention takes .87 of the
 * time, and fused with 16 or 24 queries and 16384 keys .84. */
#define FETCHES_ARE_DROPPED

#define OP static inline __attribute__((always_inline))
OP vec load(const float *x) { return _mm256_loadu_ps(x); }
/* The first n < 8 elements, and zeros. */
OP vec load_part(const float *x, int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}
OP void store(float *x, vec a) { _mm256_storeu_ps(x, a); }
/* Not _mm256_broadcast_ss: its constants are stored and read again in every turn of a loop. */
OP vec broadcast(const float *x) { return _mm256_set1_ps(*x); }
OP vec zero(void) { return _mm256_setzero_ps(); }
OP vec add(vec a, vec b) { return _mm256_add_ps(a, b); }
OP vec subtract(vec a, vec b) { return _mm256_sub_ps(a, b); }
OP vec multiply(vec a, vec b) { return _mm256_mul_ps(a, b); }
OP vec divide(vec a, vec b) { return _mm256_div_ps(a, b); }
OP vec fused_multiply_add(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
OP vec maximum(vec a, vec b) { return _mm256_max_ps(a, b); } /* b where either is NaN */
OP vec minimum(vec a, vec b) { return _mm256_min_ps(a, b); } /* the same */
OP vec absolute(vec a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
OP vec copy_sign(vec a, vec sign) {
  return _mm256_or_ps(absolute(a), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}
/* a where bits are 1, else 0. */
OP vec bits_of(vec a, vec bits) { return _mm256_and_ps(a, bits); }
OP vec select_less(vec a, vec b, vec yes, vec no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* x[i][j] and x[j][i] change places: within halves of a register by unpacking, then whole halves. */
OP void transpose(vec x[LANES]) {
  vec a[LANES], b[LANES];
  for (int i = 0; i < LANES; i += 2) {
    a[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < LANES; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    x[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    x[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

/* Lane l: the sum of the elements of x[l]. Two vectors are halved into one, until one is left. */
OP vec sums_of(const vec x[LANES]) {
  vec halves[4];
  for (int i = 0; i < 4; i++)
    halves[i] = _mm256_add_ps(_mm256_permute2f128_ps(x[i], x[i + 4], 0x20),
                              _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
  return _mm256_hadd_ps(_mm256_hadd_ps(halves[0], halves[1]), _mm256_hadd_ps(halves[2], halves[3]));
}

/* sum + n / d, of d from 1 to 2^126: the quotient within 5u, by an estimate of 1.5 2^-12 and a step of Newton's. */
OP vec add_quotient(vec n, vec d, vec sum) {
  const vec estimate = _mm256_rcp_ps(d), step = _mm256_fnmadd_ps(d, estimate, _mm256_set1_ps(2.0f));
  return _mm256_fmadd_ps(_mm256_mul_ps(n, estimate), step, sum);
}

OP vec zero_where_minus_infinity(vec a) {
  return _mm256_and_ps(a, _mm256_cmp_ps(a, _mm256_set1_ps(-__builtin_inff()), _CMP_NEQ_UQ));
}

/* times_power makes no denormal numbers. */
OP unsigned flush_denormals(void) { return 0; }
OP void restore_denormals(unsigned mode) { (void)mode; }

/* 2^t = 2^n 2^f with n = t to nearest. Adding 1.5 2^23 + 127 leaves n + 127 in the low bits, which a shift
 * makes the float 2^n; n = -127 gives 0, where -inf and everything under 2^-126.5 end. Minimax polynomial
 * of 2^f, |f| <= 1/2, of degree 6 (degree 5 misses 2 ulp on this range); 0.94 ulp at worst. */
OP vec split_power(vec *t) {
  const vec magic = _mm256_set1_ps(0x1.8p23f + 127.0f), whole = _mm256_max_ps(_mm256_set1_ps(-127.0f), *t);
  *t = _mm256_add_ps(whole, magic);
  return _mm256_sub_ps(whole, _mm256_sub_ps(*t, magic));
}
/* e^x = 2^t 2^f with t whole and |f| <= 1/2, for x from -88 to 0: f is exact but for the last places of log2(e). */
OP vec split_exponential(vec *x) {
  const vec base = _mm256_set1_ps(0x1.715476p+0f), magic = _mm256_set1_ps(0x1.8p23f + 127.0f);
  const vec shifted = _mm256_fmadd_ps(*x, base, magic);
  const vec fraction = _mm256_fmsub_ps(*x, base, _mm256_sub_ps(shifted, magic));
  *x = shifted;
  return fraction;
}
OP vec times_power(vec p, vec shifted) {
  return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}
static const float exp2_polynomial[] = {
    0x1.41d334p-13f, 0x1.5f456ap-10f, 0x1.3b2dbcp-7f, 0x1.c6aed4p-5f, 0x1.ebfbdap-3f, 0x1.62e430p-1f, 1.0f};
#define EXP_VECTORS 6

OP uint32_t shown_bits(const uint8_t *x) {
  const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)x);
  return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_setzero_si256()));
}
/* The blend looks at the sign. */
OP vec select_bit(vec x, int n, vec a, vec b) {
  return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 31 - n)));
}

/* bfloat16 is the upper half of a float; to store it rounds to nearest, ties to even. A NaN stays one. */
OP vec load_bfloat16(const uint16_t *x) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x)), 16));
}
/* The even features are lower halves, the odd ones upper: an operation each, where widening in place takes two. */
#define BFLOAT16_IN_TWO
OP void load_two_bfloat16(const uint16_t *from, vec x[2]) {
  const __m256i pairs = _mm256_loadu_si256((const __m256i *)from);
  x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
  x[1] = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000u)));
}
OP vec halves_in_order(vec a) {
  return _mm256_castsi256_ps(_mm256_permute4x64_epi64(_mm256_castps_si256(a), _MM_SHUFFLE(3, 1, 2, 0)));
}
OP void even_and_odd(vec x[2]) {
  const vec even = _mm256_shuffle_ps(x[0], x[1], _MM_SHUFFLE(2, 0, 2, 0));
  x[1] = halves_in_order(_mm256_shuffle_ps(x[0], x[1], _MM_SHUFFLE(3, 1, 3, 1)));
  x[0] = halves_in_order(even);
}
OP void in_turn(vec x[2]) {
  const vec low = _mm256_unpacklo_ps(x[0], x[1]), high = _mm256_unpackhi_ps(x[0], x[1]);
  x[0] = _mm256_permute2f128_ps(low, high, 0x20);
  x[1] = _mm256_permute2f128_ps(low, high, 0x31);
}
OP void store_bfloat16(uint16_t *x, vec a) {
  const __m256i bits = _mm256_castps_si256(a),
                last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, last), _mm256_set1_epi32(0x7fff));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i halves = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  _mm_storeu_si128((__m128i *)x,
                   _mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)));
}
OP vec load_float16(const uint16_t *x) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)); }
OP void store_float16(uint16_t *x, vec a) {
  _mm_storeu_si128((__m128i *)x, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* The first n < 8 elements, and zeros. */
OP vec load_bfloat16_part(const uint16_t *x, int n) {
  uint16_t some[8] = {0};
  for (int l = 0; l < n; l++) some[l] = x[l];
  return load_bfloat16(some);
}
OP vec load_float16_part(const uint16_t *x, int n) {
  uint16_t some[8] = {0};
  for (int l = 0; l < n; l++) some[l] = x[l];
  return load_float16(some);
}

#include "arithmetic.h"
#include "kinds.h"

const tile_kernels tile_avx2[] = TILE_TABLES("avx2");
