/* Products of pairs of bfloat16, behind kinds.h: the file defines broadcast_pair, broadcast_half, multiply_add_pairs,
 * pair, flip_signs and fused_multiply_subtract besides; with OWN_PRODUCTS, which leaves the products to another text
 * (amx.h), the last three. */
#define KIND pairs
#define STEP 2
#define operand uint16_t
#define BROADCAST(x) broadcast_pair(x)
#define BROADCAST_HALF(x) broadcast_half(x)
#define MULTIPLY_ADD(a, b, sum) multiply_add_pairs(a, b, sum)
#define SCALED(score, factor) multiply(score, factor)
#define SHIFT(score, factor, shift) fused_multiply_subtract(score, factor, shift)
#define PAIR(low, high) pair(low, high)
#include "products.h"

#define PAIR_TABLE(set)                                                                                      \
  TILE_TABLE(set, ATTN_BFLOAT16, bfloat16, pairs, pairs, 2, NULL, copy_pairs, false, pack_pairs)
