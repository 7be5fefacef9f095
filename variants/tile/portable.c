/* Any processor: 4 floats, as SSE2 and NEON have. The register tile is 2 vectors of rows by 4 elements, which leaves
 * room for products where there is no fused multiply-add. */
enum { LANES = 4 };
#define IN_EACH_LANE(f) f(0), f(1), f(2), f(3)
#define MAX_VECTORS 2
#define GROUP(vectors) 4
#define FEW_VECTORS 2
#define EXP_VECTORS 4
#include "portable.h"

#include "arithmetic.h"
#include "kinds.h"

const tile_kernels tile_portable[] = TILE_TABLES("portable");
