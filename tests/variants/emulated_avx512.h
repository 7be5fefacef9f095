/* The kernels of variants/tile/avx512.c for a type, with the vector operations of a processor emulated, so that their text is
 * tested on those that lack them. NULL where they are not compiled: they ask for the mode of an x86-64's arithmetic. */
#ifndef ATTN_TESTS_EMULATED_AVX512_H
#define ATTN_TESTS_EMULATED_AVX512_H

#include "variants/tile/tile.h"

const tile_kernels *emulated_avx512(attn_type type);

#endif
