/* The tiles of AMX, emulated, between vectors of as many floats as those of a processor that has it: so that what
 * avx512_amx.c compiles from the same text is verified on any. */
enum { LANES = 16 };
#define IN_EACH_LANE(f)                                                                                      \
  f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#define MAX_VECTORS 4
#define GROUP(vectors) 4
#define FEW_VECTORS 2
#define EXP_VECTORS 8
#define EMULATES
#include "portable.h"

#include "amx_emulated.h"
#include "arithmetic.h"

#define ONLY_BFLOAT16
#define AND_FLOAT16
#include "kinds.h"
#define OWN_PRODUCTS
#include "pairs.h"

#include "amx.h"

/* In turn. */
INLINE void join_two(const uint16_t *low, const uint16_t *high, vec x[2]) {
  for (int n = 0; n < 2; n++) x[n] = join_rows(low + n * LANES, high + n * LANES);
}
INLINE void joined(vec x[2]) { (void)x; }
INLINE void unjoined(vec x[2]) { (void)x; }
#include "amx_few.h"

/* Constants are the compiler's here. */
typedef char weight_numbers;

INLINE weight_numbers numbers_of_weights(void) { return 0; }

INLINE void weights_of(const weight_numbers *of, const int n, vec x[]) {
  (void)of;
  for (int i = 0; i < n; i++) x[i] = minimum(set(128.0f), x[i]);
  exp2_each(n, x);
}

INLINE vec weights_as_pair(const weight_numbers *of, vec low, vec high) {
  (void)of;
  return (vec)((((uvec)low + 0x8000) >> 16) | (((uvec)high + 0x8000) & 0xffff0000));
}

INLINE vec first_part(vec x) { return (vec)(((uvec)x + 0x8000) & 0xffff0000); }
#include "amx_parts.h"
#include "amx_attend.h"

const tile_kernels tile_emulated_amx = AMX_TABLE("emulated_amx");
const tile_kernels tile_emulated_amx_parts = AMX_PARTS_TABLE("emulated_amx");
