/* The vector operations of any processor, through the vector extensions of gcc and clang. The file that includes this may
 * define LANES, what arithmetic.h wants besides, and IN_EACH_LANE(f), which is f(0), f(1) and so on, since they take their
 * numbers singly. Where nobody asks for speed it defines EMULATES. */
#include <stdint.h>
#include <string.h>

#include "../elements.h"

/* Else 4 floats, as SSE2 and NEON have. The register tile is 2 vectors of rows by 4 elements, which leaves room for
 * products where there is no fused multiply-add. */
#ifndef IN_EACH_LANE
enum { LANES = 4 };
#define IN_EACH_LANE(f) f(0), f(1), f(2), f(3)
#define MAX_VECTORS 2
#define GROUP(vectors) 4
#define FEW_VECTORS 2
#define EXP_VECTORS 4
#endif

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint32_t uvec __attribute__((vector_size(LANES * sizeof(uint32_t))));

#ifdef EMULATES
#define OP static inline
#else
#define OP static inline __attribute__((always_inline))
#endif
OP vec load(const float *x) {
  vec a;
  memcpy(&a, x, sizeof a);
  return a;
}
/* The first n < LANES elements, and zeros. */
OP vec load_part(const float *x, int n) {
  vec a = {0};
  for (int l = 0; l < n; l++) a[l] = x[l];
  return a;
}
OP void store(float *x, vec a) { memcpy(x, &a, sizeof a); }
OP vec set(float x) {
#define SAME(l) x
  return (vec){IN_EACH_LANE(SAME)};
#undef SAME
}
OP vec broadcast(const float *x) { return set(*x); }
OP vec zero(void) { return set(0.0f); }
OP vec add(vec a, vec b) { return a + b; }
OP vec subtract(vec a, vec b) { return a - b; }
OP vec multiply(vec a, vec b) { return a * b; }
OP vec divide(vec a, vec b) { return a / b; }
OP vec fused_multiply_add(vec a, vec b, vec c) { return a * b + c; }
OP vec blend(ivec condition, vec yes, vec no) {
  return (vec)((condition & (ivec)yes) | (~condition & (ivec)no));
}
OP vec maximum(vec a, vec b) { return blend(a > b, a, b); } /* b where either is NaN */
OP vec minimum(vec a, vec b) { return blend(a < b, a, b); } /* the same */
OP vec absolute(vec a) { return (vec)((ivec)a & INT32_MAX); }
OP vec copy_sign(vec a, vec sign) { return (vec)((ivec)absolute(a) | ((ivec)sign & INT32_MIN)); }
/* a where bits are 1, else 0. */
OP vec bits_of(vec a, vec bits) { return (vec)((ivec)a & (ivec)bits); }
OP vec select_less(vec a, vec b, vec yes, vec no) { return blend(a < b, yes, no); }
OP bool any_less(vec a, vec b) {
  bool any = false;
  for (int l = 0; l < LANES; l++) any = any || a[l] < b[l];
  return any;
}

/* x[i][j] and x[j][i] change places. */
OP void transpose(vec x[LANES]) {
  vec a[LANES];
#define FROM(l) x[l][i]
  for (int i = 0; i < LANES; i++) a[i] = (vec){IN_EACH_LANE(FROM)};
#undef FROM
  for (int i = 0; i < LANES; i++) x[i] = a[i];
}

/* Lane l: the sum of the elements of x[l]. */
OP vec sums_of(const vec x[LANES]) {
  vec a[LANES];
  memcpy(a, x, sizeof a);
  transpose(a);
  for (int left = LANES / 2; left > 0; left /= 2)
    for (int i = 0; i < left; i++) a[i] = a[2 * i] + a[2 * i + 1];
  return a[0];
}

OP vec add_quotient(vec n, vec d, vec sum) { return sum + n / d; }

OP vec zero_where_minus_infinity(vec a) { return (vec)((ivec)a & (a != set(-__builtin_inff()))); }

/* times_power makes no denormal numbers. */
OP unsigned flush_denormals(void) { return 0; }
OP void restore_denormals(unsigned mode) { (void)mode; }

/* As in avx2.c; 1.2 ulp at worst without a fused multiply-add. */
OP vec split_power(vec *t) {
  const vec magic = set(0x1.8p23f + 127.0f), whole = maximum(set(-127.0f), *t);
  *t = whole + magic;
  return whole - (*t - magic);
}
/* e^x = 2^t 2^f with t whole and |f| <= 1/2, for x from -88 to 0. Without fused operations: log2(e) is a number of 12
 * bits, whose product with one of 12 is exact, and a rest. */
OP vec split_exponential(vec *x) {
  const vec magic = set(0x1.8p23f + 127.0f), upper = (vec)((ivec)*x & ~0xfff), lower = *x - upper;
  const vec shifted = *x * set(0x1.715476p+0f) + magic;
  const vec fraction =
      (upper * set(0x1.714p+0f) - (shifted - magic)) + (lower * set(0x1.714p+0f) + *x * set(0x1.47652cp-12f));
  *x = shifted;
  return fraction;
}
OP vec times_power(vec p, vec shifted) { return p * (vec)((ivec)shifted << 23); }
static const float exp2_polynomial[] = {
    0x1.41d334p-13f, 0x1.5f456ap-10f, 0x1.3b2dbcp-7f, 0x1.c6aed4p-5f, 0x1.ebfbdap-3f, 0x1.62e430p-1f, 1.0f};

OP uint32_t shown_bits(const uint8_t *x) {
  uint32_t bits = 0;
  for (int n = 0; n < 32; n++) bits |= (uint32_t)(x[n] != 0) << n;
  return bits;
}
OP vec select_bit(vec x, int n, vec a, vec b) { return blend(((uvec)x & 1u << n) != 0, a, b); }
OP vec load_bfloat16_part(const uint16_t *x, int n) {
  vec a = {0};
  for (int l = 0; l < n; l++) a[l] = attn_from_bfloat16(x[l]);
  return a;
}
OP vec load_float16_part(const uint16_t *x, int n) {
  vec a = {0};
  for (int l = 0; l < n; l++) a[l] = attn_from_float16(x[l]);
  return a;
}
OP vec load_bfloat16(const uint16_t *x) { return load_bfloat16_part(x, LANES); }
OP vec load_float16(const uint16_t *x) { return load_float16_part(x, LANES); }
OP void store_bfloat16(uint16_t *x, vec a) {
  for (int l = 0; l < LANES; l++) x[l] = attn_to_bfloat16(a[l]);
}
OP void store_float16(uint16_t *x, vec a) {
  for (int l = 0; l < LANES; l++) x[l] = attn_to_float16(a[l]);
}

/* What avx512_bf16.c does with one instruction each. A product of two bfloat16 is exact, so that adding it rounds once. */
OP vec without_denormals(vec a) { return blend(absolute(a) < set(0x1p-126f), copy_sign(zero(), a), a); }
OP vec low_half(vec a) { return without_denormals((vec)((uvec)a << 16)); }
OP vec high_half(vec a) { return without_denormals((vec)((uvec)a & 0xffff0000)); }
OP vec multiply_add_pairs(vec a, vec b, vec sum) {
  sum = without_denormals(without_denormals(sum) + high_half(a) * high_half(b));
  return without_denormals(sum + low_half(a) * low_half(b));
}
OP vec broadcast_pair(const uint16_t *x) {
  float both;
  memcpy(&both, x, sizeof both);
  return set(both);
}
OP vec broadcast_half(const uint16_t *x) { return set(attn_float_of_bits(*x)); }
OP vec fused_multiply_subtract(vec a, vec b, vec c) { return a * b - c; }
OP vec flip_signs(vec a, uint32_t signs) { return (vec)((uvec)a ^ signs); }
OP vec pair(vec low, vec high) {
  uint16_t halves[LANES][2];
  low = without_denormals(low), high = without_denormals(high);
  for (int l = 0; l < LANES; l++)
    halves[l][0] = attn_to_bfloat16(low[l]), halves[l][1] = attn_to_bfloat16(high[l]);
  vec a;
  memcpy(&a, halves, sizeof a);
  return a;
}
enum { PAIR_COLUMNS = 8 };
OP void pairs_of_rows(const uint16_t *rows, int64_t stride, vec x[PAIR_COLUMNS]) {
  for (int n = 0; n < PAIR_COLUMNS; n++) {
    uint16_t halves[LANES][2];
    for (int l = 0; l < LANES; l++)
      for (int i = 0; i < 2; i++) halves[l][i] = rows[(2 * l + i) * stride + n];
    memcpy(&x[n], halves, sizeof x[n]);
  }
}
OP vec join_rows(const uint16_t *low, const uint16_t *high) {
  uint16_t halves[LANES][2];
  for (int l = 0; l < LANES; l++) halves[l][0] = low[l], halves[l][1] = high[l];
  vec a;
  memcpy(&a, halves, sizeof a);
  return a;
}
