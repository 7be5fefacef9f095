/* AVX512_BF16, the vector operations: vdpbf16ps multiplies pairs of bfloat16 and adds both products to a float, twice
 * what a multiply-add of floats does. It rounds to nearest after each of the two additions, the upper half's first,
 * and takes denormal numbers for zero, in and out, whatever the mode (Intel, Instruction Set Extensions Programming
 * Reference, VDPBF16PS). */
#include "avx512.h"

/* With 4 vectors of rows 4 elements and not 6: a store of 64 bytes takes Zen 4 two cycles, and 16 of them at the end of a
 * group hide behind the next, where 24 keep it waiting for 34 cycles of its 768. */
#undef GROUP
#define GROUP(vectors) ((vectors) == 4 ? 4 : (vectors) == 3 ? 5 : 8)

OP vec broadcast_pair(const uint16_t *x) {
  int both;
  __builtin_memcpy(&both, x, sizeof both);
  return _mm512_castsi512_ps(_mm512_set1_epi32(both));
}
OP vec broadcast_half(const uint16_t *x) { return _mm512_castsi512_ps(_mm512_set1_epi32(*x)); }
OP vec multiply_add_pairs(vec a, vec b, vec sum) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
OP vec fused_multiply_subtract(vec a, vec b, vec c) { return _mm512_fmsub_ps(a, b, c); }
OP vec flip_signs(vec a, uint32_t signs) {
  return _mm512_xor_ps(a, _mm512_castsi512_ps(_mm512_set1_epi32((int)signs)));
}
/* The conversion leaves all of low before all of high. */
OP vec pair(vec low, vec high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return (vec)_mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}
#define BFLOAT16_IN_PAIRS
/* 2 LANES columns of LANES rows, times the rows' factors, as bfloat16 from element e of `count` rows on: of pairs
 * half as many have to be transposed. False, and nothing is stored, where a number is denormal, which the conversion
 * takes for 0. */
OP bool store_in_pairs(int64_t rows, int count, const float *columns, const float *factor, void *const *row,
                       int64_t e) {
  const vec factors = load_part(factor, count);
  vec square[LANES];
  __mmask16 denormal = 0;
  for (int x = 0; x < LANES; x++) {
    const vec low = multiply(load(columns + 2 * x * rows), factors),
              high = multiply(load(columns + (2 * x + 1) * rows), factors);
    denormal |= denormals(low) | denormals(high);
    square[x] = pair(low, high);
  }
  if (denormal) return false;
  transpose(square);
  for (int x = 0; x < count; x++) store((void *)((uint16_t *)row[x] + e), square[x]);
  return true;
}
enum { PAIR_COLUMNS = 8 };
/* Element l of x[n]: elements n of rows 2l and 2l + 1, a pair. A piece of a row is loaded into each quarter of a
 * register, so that a third of the permutations of `transpose` is none. */
OP void pairs_of_rows(const uint16_t *rows, int64_t stride, vec x[PAIR_COLUMNS]) {
  __m512i row[PAIR_COLUMNS], two[PAIR_COLUMNS], four[PAIR_COLUMNS];
  for (int j = 0; j < PAIR_COLUMNS; j++) {
    const uint16_t *at = rows + j * stride;
    const int64_t quarter = PAIR_COLUMNS * stride;
    row[j] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
    row[j] = _mm512_inserti32x4(row[j], _mm_loadu_si128((const __m128i *)(at + quarter)), 1);
    row[j] = _mm512_inserti32x4(row[j], _mm_loadu_si128((const __m128i *)(at + 2 * quarter)), 2);
    row[j] = _mm512_inserti32x4(row[j], _mm_loadu_si128((const __m128i *)(at + 3 * quarter)), 3);
  }
  for (int j = 0; j < PAIR_COLUMNS; j += 2) {
    two[j] = _mm512_unpacklo_epi16(row[j], row[j + 1]);
    two[j + 1] = _mm512_unpackhi_epi16(row[j], row[j + 1]);
  }
  for (int j = 0; j < PAIR_COLUMNS; j += 4)
    for (int i = 0; i < 2; i++) {
      four[j + 2 * i] = _mm512_unpacklo_epi32(two[j + i], two[j + i + 2]);
      four[j + 2 * i + 1] = _mm512_unpackhi_epi32(two[j + i], two[j + i + 2]);
    }
  for (int n = 0; n < PAIR_COLUMNS / 2; n++) {
    x[2 * n] = _mm512_castsi512_ps(_mm512_unpacklo_epi64(four[n], four[n + 4]));
    x[2 * n + 1] = _mm512_castsi512_ps(_mm512_unpackhi_epi64(four[n], four[n + 4]));
  }
}
/* Elements n of two rows as pairs. */
OP vec join_rows(const uint16_t *low, const uint16_t *high) {
  const __m512i lower = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)low)),
                upper = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)high));
  return _mm512_castsi512_ps(_mm512_or_si512(lower, _mm512_slli_epi32(upper, 16)));
}
