/* What the tests of an emulated device's instructions have in common: random elements, and in words what
 * differs from plain loops over them. */
#ifndef ATTN_TESTS_DEVICE_PLAIN_H
#define ATTN_TESTS_DEVICE_PLAIN_H

#include <stdio.h>

#include "variants/cuda/cuda.h"

namespace {

char difference[256];

uint32_t random_bits(uint32_t n) { /* Murmur3's finalizer */
  n ^= n >> 16;
  n *= 0x85ebca6bu;
  n ^= n >> 13;
  n *= 0xc2b2ae35u;
  return n ^ n >> 16;
}

/* Multiples of 1/8 up to 4, which both types hold; sums of 16 products are exact. */
float random_eighth(uint32_t n) { return (float)(int)(random_bits(n) % 65) / 8 - 4; }

template <attn_type type> uint16_t narrow(float number) {
  uint16_t half;
  attn_store(&half, type, 0, number);
  return half;
}

bool differs(const char *what, unsigned lane, double is, double expected) {
  if (is == expected) return false;
  snprintf(difference, sizeof difference, "%s: lane %u holds %g, plain loops give %g", what, lane, is,
           expected);
  return true;
}

} // namespace

#endif
