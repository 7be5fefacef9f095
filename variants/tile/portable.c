/* The tiles of a processor that has no set of its own. */
#include "portable.h"

#include "arithmetic.h"
#include "kinds.h"

const tile_kernels tile_portable[] = TILE_TABLES("portable");
