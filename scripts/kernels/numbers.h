/* Random numbers for what is measured here, the same in each run. */
#ifndef ATTN_SCRIPTS_KERNELS_NUMBERS_H
#define ATTN_SCRIPTS_KERNELS_NUMBERS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/random.h"

/* In [-1/2, 1/2). */
static inline void fill_numbers(float *x, size_t count) {
  for (size_t n = 0; n < count; n++) x[n] = (float)(random_bits(1, n) >> 40) * 0x1p-24f - 0.5f;
}

/* In memory of their own, on huge pages where the system gives them; ends the program where there is none. */
static inline float *numbers(size_t count) {
  const size_t page = (size_t)2 << 20, bytes = (count * sizeof(float) + page) / page * page;
  float *x = aligned_alloc(page, bytes);
  if (!x) {
    fprintf(stderr, "no memory for %zu MiB of numbers\n", bytes >> 20);
    exit(2);
  }
  (void)madvise(x, bytes, MADV_HUGEPAGE);
  fill_numbers(x, count);
  return x;
}

#endif
