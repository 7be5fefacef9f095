/* Random bits that are a function of a stream and a place, so that any one can be had without those
 * before it, on any thread: SplitMix64 (Steele, Lea and Flood 2014), whose state is a plain counter. */
#ifndef ATTN_HARNESS_RANDOM_H
#define ATTN_HARNESS_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static inline uint64_t random_bits(uint64_t stream, uint64_t place) {
  return random_mixed(stream + (place + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

#endif
