/* NEON with products of floats: elements of 16 bits are converted before. */
#include "neon.h"

#include "arithmetic.h"
#include "kinds.h"

const tile_kernels tile_neon[] = TILE_TABLES("neon");
