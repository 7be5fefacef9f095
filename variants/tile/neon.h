/* NEON of aarch64, the vector operations: 32 registers of 4 floats. The register tile is 4 vectors of rows by 6 elements: 24
 * sums, 4 row vectors and a broadcast, 10 loads for 24 multiply-adds. */
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef float32x4_t vec;
enum { LANES = 4 };
#define MAX_VECTORS 4
#define GROUP(vectors) ((vectors) == 4 ? 6 : 8)
#define FEW_VECTORS 4

#define OP static inline __attribute__((always_inline))
OP vec load(const float *x) { return vld1q_f32(x); }
/* The first n < 4 elements, and zeros. */
OP vec load_part(const float *x, int n) {
  float some[LANES] = {0};
  for (int l = 0; l < n; l++) some[l] = x[l];
  return load(some);
}
OP void store(float *x, vec a) { vst1q_f32(x, a); }
OP vec broadcast(const float *x) { return vld1q_dup_f32(x); }
OP vec zero(void) { return vdupq_n_f32(0); }
OP vec add(vec a, vec b) { return vaddq_f32(a, b); }
OP vec subtract(vec a, vec b) { return vsubq_f32(a, b); }
OP vec multiply(vec a, vec b) { return vmulq_f32(a, b); }
OP vec divide(vec a, vec b) { return vdivq_f32(a, b); }
OP vec fused_multiply_add(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
/* b where either is NaN; NEON's own maximum is then NaN. */
OP vec maximum(vec a, vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
OP vec minimum(vec a, vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); } /* the same */
OP vec absolute(vec a) { return vabsq_f32(a); }
OP vec copy_sign(vec a, vec sign) { return vbslq_f32(vdupq_n_u32(0x80000000), sign, a); }
/* a where bits are 1, else 0. */
OP vec bits_of(vec a, vec bits) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(bits)));
}
OP vec select_less(vec a, vec b, vec yes, vec no) { return vbslq_f32(vcltq_f32(a, b), yes, no); }

/* x[i][j] and x[j][i] change places: pairs of elements, then pairs of pairs. */
OP void transpose(vec x[LANES]) {
  float64x2_t a[LANES];
  for (int i = 0; i < LANES; i += 2) {
    a[i] = vreinterpretq_f64_f32(vtrn1q_f32(x[i], x[i + 1]));
    a[i + 1] = vreinterpretq_f64_f32(vtrn2q_f32(x[i], x[i + 1]));
  }
  for (int i = 0; i < 2; i++) {
    x[i] = vreinterpretq_f32_f64(vtrn1q_f64(a[i], a[i + 2]));
    x[i + 2] = vreinterpretq_f32_f64(vtrn2q_f64(a[i], a[i + 2]));
  }
}

/* Lane l: the sum of the elements of x[l]. */
OP vec sums_of(const vec x[LANES]) { return vpaddq_f32(vpaddq_f32(x[0], x[1]), vpaddq_f32(x[2], x[3])); }

OP vec add_quotient(vec n, vec d, vec sum) { return vaddq_f32(sum, vdivq_f32(n, d)); }

OP vec zero_where_minus_infinity(vec a) {
  const uint32x4_t none = vceqq_f32(a, vdupq_n_f32(-__builtin_inff()));
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), none));
}

/* times_power makes no denormal numbers. */
OP unsigned flush_denormals(void) { return 0; }
OP void restore_denormals(unsigned mode) { (void)mode; }

/* As in avx2.c. A NaN stays one in NEON's own maximum. */
OP vec split_power(vec *t) {
  const vec magic = vdupq_n_f32(0x1.8p23f + 127.0f), whole = vmaxq_f32(vdupq_n_f32(-127.0f), *t);
  *t = vaddq_f32(whole, magic);
  return vsubq_f32(whole, vsubq_f32(*t, magic));
}
/* e^x = 2^t 2^f with t whole and |f| <= 1/2, for x from -88 to 0: f is exact but for the last places of log2(e). */
OP vec split_exponential(vec *x) {
  const vec base = vdupq_n_f32(0x1.715476p+0f), magic = vdupq_n_f32(0x1.8p23f + 127.0f);
  const vec shifted = vfmaq_f32(magic, *x, base), whole = vsubq_f32(shifted, magic);
  const vec fraction = vfmaq_f32(vnegq_f32(whole), *x, base);
  *x = shifted;
  return fraction;
}
OP vec times_power(vec p, vec shifted) {
  return vmulq_f32(p, vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23)));
}
static const float exp2_polynomial[] = {
    0x1.41d334p-13f, 0x1.5f456ap-10f, 0x1.3b2dbcp-7f, 0x1.c6aed4p-5f, 0x1.ebfbdap-3f, 0x1.62e430p-1f, 1.0f};
#define EXP_VECTORS 8

/* bfloat16 is the upper half of a float; to store it rounds to nearest, ties to even. A NaN stays one. */
OP vec widen_bfloat16(uint16x4_t x) { return vreinterpretq_f32_u32(vshll_n_u16(x, 16)); }
OP vec widen_float16(uint16x4_t x) { return vcvt_f32_f16(vreinterpret_f16_u16(x)); }
/* The first n < 4 elements, and zeros. */
OP uint16x4_t some_halves(const uint16_t *x, int n) {
  uint16_t some[LANES] = {0};
  for (int l = 0; l < n; l++) some[l] = x[l];
  return vld1_u16(some);
}
OP uint32_t bits_of_eight(const uint8_t *x) {
  static const uint8_t bits[] = {1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x8_t bytes = vld1_u8(x);
  return vaddv_u8(vand_u8(vtst_u8(bytes, bytes), vld1_u8(bits)));
}
OP uint32_t shown_bits(const uint8_t *x) {
  return bits_of_eight(x) | bits_of_eight(x + 8) << 8 | bits_of_eight(x + 16) << 16 |
         bits_of_eight(x + 24) << 24;
}
OP vec select_bit(vec x, int n, vec a, vec b) {
  return vbslq_f32(vtstq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(1u << n)), a, b);
}
OP vec load_bfloat16(const uint16_t *x) { return widen_bfloat16(vld1_u16(x)); }
OP vec load_bfloat16_part(const uint16_t *x, int n) { return widen_bfloat16(some_halves(x, n)); }
OP void store_bfloat16(uint16_t *x, vec a) {
  const uint32x4_t bits = vreinterpretq_u32_f32(a), last = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, last), vdupq_n_u32(0x7fff));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  vst1_u16(x, vshrn_n_u32(vbslq_u32(vceqq_f32(a, a), rounded, quiet), 16));
}
OP vec load_float16(const uint16_t *x) { return widen_float16(vld1_u16(x)); }
OP vec load_float16_part(const uint16_t *x, int n) { return widen_float16(some_halves(x, n)); }
OP void store_float16(uint16_t *x, vec a) { vst1_u16(x, vreinterpret_u16_f16(vcvt_f16_f32(a))); }
