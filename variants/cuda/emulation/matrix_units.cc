/* The matrix units of an emulated device: what a warp's lanes brought, dealt out as the PTX manual says
 * (../cuda.h). */
#include "../../elements.h"
#include "engine.h"

namespace emulation {

/* ---- ldmatrix ---- */

static void deal_out(void *const brought[WARP], bool transposed) {
  for (unsigned lane = 0; lane < WARP; lane++)
    for (unsigned m = 0; m < 4; m++) {
      const unsigned group = lane / 4, member = lane % 4;
      uint32_t halves[2];
      for (unsigned n = 0; n < 2; n++) {
        const unsigned row = transposed ? 2 * member + n : group,
                       column = transposed ? group : 2 * member + n;
        halves[n] = static_cast<matrices *>(brought[8 * m + row])->row[column];
      }
      static_cast<matrices *>(brought[lane])->to[m] = halves[1] << 16 | halves[0];
    }
}

void perform_ldmatrix(void *const brought[WARP], unsigned) { deal_out(brought, false); }
void perform_ldmatrix_transposed(void *const brought[WARP], unsigned) { deal_out(brought, true); }

/* ---- mma ---- */

static void multiply(void *const brought[WARP], attn_type type) {
  double a[16][16], b[16][8], sum[16][8];
  for (unsigned lane = 0; lane < WARP; lane++) {
    const fragments *of = static_cast<fragments *>(brought[lane]);
    const unsigned group = lane / 4, member = lane % 4;
    for (unsigned n = 0; n < 8; n++) /* half n % 2 of register n / 2 */
      a[group + 8 * (n / 2 % 2)][2 * member + 8 * (n / 4) + n % 2] = (double)attn_load(of->a, type, n);
    for (unsigned n = 0; n < 4; n++) {
      b[2 * member + 8 * (n / 2) + n % 2][group] = (double)attn_load(of->b, type, n);
      sum[group + 8 * (n / 2)][2 * member + n % 2] = (double)of->sum[n];
    }
  }
  for (unsigned i = 0; i < 16; i++)
    for (unsigned k = 0; k < 16; k++)
      for (unsigned j = 0; j < 8; j++) sum[i][j] += a[i][k] * b[k][j];
  for (unsigned lane = 0; lane < WARP; lane++)
    for (unsigned n = 0; n < 4; n++)
      static_cast<fragments *>(brought[lane])->sum[n] =
          truncated(sum[lane / 4 + 8 * (n / 2)][2 * (lane % 4) + n % 2]);
}

void perform_mma_bfloat16(void *const brought[WARP], unsigned) { multiply(brought, ATTN_BFLOAT16); }
void perform_mma_float16(void *const brought[WARP], unsigned) { multiply(brought, ATTN_FLOAT16); }

} // namespace emulation
