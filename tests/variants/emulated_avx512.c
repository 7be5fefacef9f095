/* See emulated_avx512.h. The Makefile has emulated/immintrin.h found before the compiler's, and nothing optimised: that takes
 * half a second, and the tests three more. */
#include "emulated_avx512.h"

#ifdef ATTN_X86_64

#define tile_avx512 tile_emulated_avx512
#include "variants/tile/avx512.c"

const tile_kernels *emulated_avx512(attn_type type) { return &tile_emulated_avx512[type - ATTN_FLOAT32]; }

#else

const tile_kernels *emulated_avx512(attn_type type) {
  (void)type;
  return NULL;
}

#endif
