/* Elements of 16 bits as float32 and back. bfloat16 is the upper half of a float32; float16 is IEEE 754's binary16. Both
 * ways are plain C: to load is exact, to store rounds to nearest, ties to even, whatever the mode. */
#ifndef ATTN_ELEMENTS_H
#define ATTN_ELEMENTS_H

#include <string.h>

#include "attention.h"

ATTN_INLINE float attn_float_of_bits(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

ATTN_INLINE uint32_t attn_bits_of_float(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

ATTN_INLINE float attn_from_bfloat16(uint16_t half) { return attn_float_of_bits((uint32_t)half << 16); }

ATTN_INLINE uint16_t attn_to_bfloat16(float number) {
  const uint32_t bits = attn_bits_of_float(number);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); /* a NaN stays one */
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The exponent of float16 is 15 more than the number's, that of float32 127: moving the bits up and multiplying by
 * 2^112 brings one to the other, denormal numbers included. */
ATTN_INLINE float attn_from_float16(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
  if ((half & 0x7c00) == 0x7c00) return attn_float_of_bits(sign | 0x7f800000 | rest);
  return attn_float_of_bits(sign | attn_bits_of_float(attn_float_of_bits(rest) * 0x1p112f));
}

/* Below the normal range adding a half, whose last bit is float16's smallest number, rounds. */
ATTN_INLINE uint16_t attn_to_float16(float number) {
  const uint32_t bits = attn_bits_of_float(number), size = bits & 0x7fffffff;
  const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x1ff));
  if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and more */
  if (size < 0x38800000)
    return (uint16_t)(sign | (attn_bits_of_float(attn_float_of_bits(size) + 0.5f) - 0x3f000000));
  return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}

/* Element n of a tensor of one of the floating-point types. */
ATTN_INLINE float attn_load(const void *tensor, attn_type type, int64_t n) {
  if (type == ATTN_FLOAT32) return ((const float *)tensor)[n];
  const uint16_t half = ((const uint16_t *)tensor)[n];
  return type == ATTN_BFLOAT16 ? attn_from_bfloat16(half) : attn_from_float16(half);
}

ATTN_INLINE void attn_store(void *tensor, attn_type type, int64_t n, float number) {
  if (type == ATTN_FLOAT32)
    ((float *)tensor)[n] = number;
  else
    ((uint16_t *)tensor)[n] = type == ATTN_BFLOAT16 ? attn_to_bfloat16(number) : attn_to_float16(number);
}

#endif
