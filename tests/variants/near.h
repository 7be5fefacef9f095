/* What tests of tile kernels share. Included behind cmocka.h. */
#ifndef ATTN_TESTS_NEAR_H
#define ATTN_TESTS_NEAR_H

#include <math.h>

#include "variants/tile/tile.h"

static inline void assert_near(const tile_kernels *kernels, const char *what, double computed,
                               double expected, double allowed) {
  if (!(fabs(computed - expected) <= allowed))
    fail_msg("%s %s: %.9g instead of %.9g, more than %.3g apart", kernels->name, what, computed, expected,
             allowed);
}

#endif
