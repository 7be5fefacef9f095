/* FEAT_BF16 of Armv8.6: BFDOT multiplies pairs of bfloat16, adds both products, and adds their sum to a float. It rounds to
 * odd after each of the two additions, so by up to a whole last place, twice what rounding to nearest does, and takes
 * denormal numbers for zero, in and out, whatever the mode (Arm Architecture Reference Manual, BFDotAdd). With half as many
 * roundings that is within the error bound: reference/README.md, "Rounding to odd". */
#include "neon.h"

OP vec broadcast_bits(uint32_t bits) { return vreinterpretq_f32_u32(vdupq_n_u32(bits)); }
OP vec broadcast_pair(const uint16_t *x) {
  uint32_t both;
  memcpy(&both, x, sizeof both);
  return broadcast_bits(both);
}
OP vec broadcast_half(const uint16_t *x) { return broadcast_bits(*x); }
OP vec multiply_add_pairs(vec a, vec b, vec sum) {
  return vbfdotq_f32(sum, vreinterpretq_bf16_f32(a), vreinterpretq_bf16_f32(b));
}
OP vec fused_multiply_subtract(vec a, vec b, vec c) { return vfmaq_f32(vnegq_f32(c), a, b); }
OP vec flip_signs(vec a, uint32_t signs) {
  return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a), vdupq_n_u32(signs)));
}
OP vec pair(vec low, vec high) {
  return vreinterpretq_f32_u16(vzip1q_u16(vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(low)),
                                          vreinterpretq_u16_bf16(vcvtq_low_bf16_f32(high))));
}

#include "arithmetic.h"

#define ONLY_BFLOAT16
#include "kinds.h"
#include "pairs.h"

const tile_kernels tile_neon_bf16 = PAIR_TABLE("neon_bf16");
