/* What tests of tile kernels for float32 share: buffers, and a check of every instruction set. Included behind cmocka.h. */
#ifndef ATTN_TESTS_FLOAT_KERNELS_H
#define ATTN_TESTS_FLOAT_KERNELS_H

#include <string.h>

#include "emulated_avx512.h"
#include "variants/tile/tile.h"

enum { LARGEST = 1 << 15 };

static float a[LARGEST], b[LARGEST], c[LARGEST];

static inline void fill(float *x, uint32_t seed) {
  for (int n = 0; n < LARGEST; n++) {
    seed = seed * 1664525u + 1013904223u;
    x[n] = (float)(int32_t)seed * 0x1p-31f;
  }
}

/* Runs a check with the kernels of each instruction set in turn, and with those that are emulated. */
static inline void with_each(void (*check)(const tile_kernels *)) {
  for (const char *const *name = tile_instruction_sets(); *name; name++) {
    if (tile_refusal(*name, ATTN_FLOAT32)) continue;
    const tile_kernels *kernels = tile_select(*name, ATTN_FLOAT32);
    assert_string_equal(kernels->name, *name);
    check(kernels);
  }
  if (emulated_avx512(ATTN_FLOAT32)) check(emulated_avx512(ATTN_FLOAT32));
}

/* Numbers of both signs and many sizes in a and b; how many. */
static inline int numbers(void) {
  int count = 0;
  for (float x = 1e-6f; x < 90 && count < LARGEST - 32; x *= 1.003f) a[count++] = x, a[count++] = -x;
  while (count % 16) a[count++] = 0;
  memcpy(b, a, sizeof b);
  return count;
}

#endif
