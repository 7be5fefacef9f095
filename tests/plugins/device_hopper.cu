/* What sm_90a has beyond device_instructions.cu beside plain loops: copies of boxes, products of four
 * warps, and barriers in shared memory. */
#include "device_plain.h"
#include "variants/cuda/hopper.h"

namespace {

/* By the definition, for both: bits 7 to 9 of an address are added to bits 4 to 6, of which as many count
 * as the span of a swizzle has. */
unsigned plainly_swizzled(unsigned address, unsigned span) {
  return span == 128  ? address ^ (address >> 7 & 7) << 4
         : span == 64 ? address ^ (address >> 7 & 3) << 4
         : span == 32 ? address ^ (address >> 7 & 1) << 4
                      : address;
}
unsigned span_of(swizzle as) { return as == SWIZZLE_NONE ? 16 : 16u << as; }

/* ---- copies of boxes ---- */

constexpr unsigned BOX_ROWS = 12, BOX_HEADS = 2;

/* One box, and its bytes as they lie in shared memory. */
__global__ void copy(const __grid_constant__ tensor_map map, int c0, int c1, int c2, unsigned bytes,
                     unsigned char *to) {
  ATTN_DYNAMIC_SHARED(shared);
  mbarrier *const landed = reinterpret_cast<mbarrier *>(shared + 4096);
  if (threadIdx.x == 0) {
    make_mbarrier(landed, 1);
    fence_async_proxy();
    arrive_expecting(landed, bytes);
    copy_box(shared + 1024, &map, c0, c1, c2, 1, landed);
  }
  __syncthreads();
  wait_at_mbarrier(landed, 0);
  for (unsigned n = 2 * threadIdx.x; n < bytes; n += 2 * blockDim.x)
    *reinterpret_cast<uint16_t *>(to + n) = *reinterpret_cast<uint16_t *>(shared + 1024 + n);
}

/* Axes of 70, 30, 3 and 2; rows of heads lie beside one another, as in [B, T, H, D]. */
bool box_differs(swizzle as, int c0, int c1, int c2) {
  constexpr unsigned D = 70, PITCH = 72, T = 30, H = 3;
  __attribute__((aligned(16))) static uint16_t tensor[2][T][H][PITCH];
  for (unsigned n = 0; n < sizeof tensor / 2; n++)
    (&tensor[0][0][0][0])[n] = (uint16_t)(1 + random_bits(n) % 65535);
  const unsigned width = as == SWIZZLE_NONE ? 24 : span_of(as) / 2, bytes = 2 * width * BOX_ROWS * BOX_HEADS;
  const uint64_t sizes[4] = {D, T, H, 2}, strides[3] = {2 * PITCH * H, 2 * PITCH, 2 * PITCH * H * T};
  const uint32_t box[4] = {width, BOX_ROWS, BOX_HEADS, 1};
  tensor_map map;
  if (!make_tensor_map(&map, ATTN_FLOAT16, tensor, sizes, strides, box, as)) {
    snprintf(difference, sizeof difference, "a tensor map that is sound is refused");
    return true;
  }
  unsigned char copied[4096];
  attn_launch(copy, dim3(1), dim3(64), 8192, nullptr, map, c0, c1, c2, bytes, (unsigned char *)copied);
  for (unsigned h = 0; h < BOX_HEADS; h++)
    for (unsigned i = 0; i < BOX_ROWS; i++)
      for (unsigned d = 0; d < width; d++) {
        const int at_h = c2 + (int)h, at_i = c1 + (int)i, at_d = c0 + (int)d;
        const bool is_there =
            at_h >= 0 && at_h < (int)H && at_i >= 0 && at_i < (int)T && at_d >= 0 && at_d < (int)D;
        const unsigned place = plainly_swizzled(2 * ((h * BOX_ROWS + i) * width + d), as ? span_of(as) : 0);
        uint16_t is;
        memcpy(&is, copied + place, 2);
        if (differs("cp.async.bulk.tensor", i, is, is_there ? tensor[1][at_i][at_h][at_d] : 0)) return true;
      }
  return false;
}

bool boxes_differ() {
  const swizzle all[] = {SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128};
  for (swizzle as : all)
    if (box_differs(as, 0, 0, 0) || box_differs(as, 8, 25, 2) || box_differs(as, 64, -3, 1) ||
        box_differs(as, -8, 17, -1) || box_differs(as, 128, 0, 0))
      return true;
  return false;
}

/* What CUDA's function refuses. */
bool refusals_differ() {
  __attribute__((aligned(16))) static uint16_t tensor[4096];
  const uint64_t sizes[4] = {64, 8, 2, 1}, none[4] = {64, 0, 2, 1}, strides[3] = {128, 1024, 2048},
                 odd[3] = {130, 1024, 2048};
  const uint32_t box[4] = {64, 8, 1, 1}, wide[4] = {128, 8, 1, 1}, high[4] = {64, 257, 1, 1};
  tensor_map map;
  return differs("a sound map", 0,
                 make_tensor_map(&map, ATTN_FLOAT16, tensor, sizes, strides, box, SWIZZLE_128), 1) ||
         differs("no row", 0, make_tensor_map(&map, ATTN_FLOAT16, tensor, none, strides, box, SWIZZLE_128),
                 0) ||
         differs("a stride of 130", 0,
                 make_tensor_map(&map, ATTN_FLOAT16, tensor, sizes, odd, box, SWIZZLE_128), 0) ||
         differs("an odd address", 0,
                 make_tensor_map(&map, ATTN_FLOAT16, tensor + 1, sizes, strides, box, SWIZZLE_128), 0) ||
         differs("a box wider than its swizzle", 0,
                 make_tensor_map(&map, ATTN_FLOAT16, tensor, sizes, strides, wide, SWIZZLE_128), 0) ||
         differs("a box of 257 rows", 0,
                 make_tensor_map(&map, ATTN_FLOAT16, tensor, sizes, strides, high, SWIZZLE_128), 0);
}

/* ---- products ---- */

constexpr unsigned GROUP = 128, ROWS = 64, K = 16, MOST_COLUMNS = 128;

struct matrices {
  uint16_t a[2][ROWS][K], b[2][K][MOST_COLUMNS]; /* of two products that follow one another */
  float result[ROWS][MOST_COLUMNS], early[GROUP];
};

/* Where an element lies whose k, or whose columns, adjoin: the canonical layouts without swizzle, and those
 * of boxes with it. The second product's k lie behind the first one's in each row, where a row has room for
 * both. */
__host__ __device__ unsigned place_of_k_major(swizzle as, unsigned product, unsigned line, unsigned k) {
  const unsigned span = as == SWIZZLE_NONE ? 16 : 16u << as;
  if (as == SWIZZLE_NONE) return product * 8192 + line / 8 * 256 + k / 8 * 128 + line % 8 * 16 + k % 8 * 2;
  return (span > 32 ? product * 32 : product * 8192) + line * span + k * 2;
}
__host__ __device__ unsigned place_of_n_major(swizzle as, unsigned product, unsigned columns, unsigned k,
                                              unsigned n) {
  const unsigned span = as == SWIZZLE_NONE ? 16 : 16u << as, across = span / 2;
  if (as == SWIZZLE_NONE)
    return product * 8192 + k / 8 * (columns / 8 * 128) + n / 8 * 128 + k % 8 * 16 + n % 8 * 2;
  return n / across * (2 * K * span) + (product * K + k) * span + n % across * 2;
}

__device__ unsigned swizzled_place(swizzle as, unsigned place) {
  return place ^ (place >> 7 & ((1u << as) - 1)) << 4;
}

template <attn_type type, int columns, bool b_is_n_major, bool a_in_registers>
__global__ void multiply(matrices *m, swizzle as) {
  ATTN_DYNAMIC_SHARED(shared);
  unsigned char *const a = shared, *const b = shared + 16384;
  const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, member = lane % 4;
  for (unsigned p = 0; p < 2; p++) {
    for (unsigned n = threadIdx.x; n < ROWS * K; n += GROUP)
      *reinterpret_cast<uint16_t *>(a + swizzled_place(as, place_of_k_major(as, p, n / K, n % K))) =
          m->a[p][n / K][n % K];
    for (unsigned n = threadIdx.x; n < K * columns; n += GROUP) {
      const unsigned k = n / columns, column = n % columns;
      const unsigned place =
          b_is_n_major ? place_of_n_major(as, p, columns, k, column) : place_of_k_major(as, p, column, k);
      *reinterpret_cast<uint16_t *>(b + swizzled_place(as, place)) = m->b[p][k][column];
    }
  }
  fence_async_proxy();
  __syncthreads();

  const unsigned span = as == SWIZZLE_NONE ? 16 : 16u << as;
  const unsigned k_stride = as == SWIZZLE_NONE ? 256 : 8 * span;
  float sum[columns / 8][4];
  uint32_t left[2][4];
  for (int n = 0; n < columns / 8; n++)
    for (int c = 0; c < 4; c++) sum[n][c] = 7;
  for (unsigned p = 0; p < 2; p++)
    for (unsigned n = 0; n < 4; n++) {
      const uint16_t *const pair = &m->a[p][row + 8 * (n % 2)][2 * member + 8 * (n / 2)];
      left[p][n] = (uint32_t)pair[1] << 16 | pair[0];
    }
  fence_products();
  for (unsigned p = 0; p < 2; p++) {
    const uint64_t b_matrix = b_is_n_major
                                  ? describe_matrix(b + place_of_n_major(as, p, columns, 0, 0),
                                                    as == SWIZZLE_NONE ? columns / 8 * 128 : 2 * K * span,
                                                    as == SWIZZLE_NONE ? 128 : 8 * span, as)
                                  : describe_matrix(b + place_of_k_major(as, p, 0, 0), 128, k_stride, as);
    if (a_in_registers)
      multiply_group<type, b_is_n_major>(sum, left[p], b_matrix, p > 0);
    else
      multiply_group<type, b_is_n_major>(
          sum, describe_matrix(a + place_of_k_major(as, p, 0, 0), 128, k_stride, as), b_matrix, p > 0);
  }
  commit_products();
  m->early[threadIdx.x] = sum[0][0];
  wait_for_products<0>(sum);
  for (unsigned n = 0; n < columns / 8; n++)
    for (unsigned c = 0; c < 4; c++) m->result[row + 8 * (c / 2)][8 * n + 2 * member + c % 2] = sum[n][c];
}

template <attn_type type, int columns, bool b_is_n_major, bool a_in_registers>
bool products_differ(swizzle as) {
  matrices m;
  for (unsigned n = 0; n < 2 * ROWS * K; n++) (&m.a[0][0][0])[n] = narrow<type>(random_eighth(n));
  for (unsigned n = 0; n < 2 * K * MOST_COLUMNS; n++)
    (&m.b[0][0][0])[n] = narrow<type>(random_eighth(5000 + n));
  attn_launch(multiply<type, columns, b_is_n_major, a_in_registers>, dim3(1), dim3(GROUP), 32768, nullptr, &m,
              as);
  for (unsigned thread = 0; thread < GROUP; thread++)
    if (!isnan(m.early[thread]))
      return differs("wgmma before it is waited for", thread, (double)m.early[thread], NAN);
  for (unsigned i = 0; i < ROWS; i++)
    for (unsigned j = 0; j < columns; j++) {
      double expected = 0;
      for (unsigned p = 0; p < 2; p++)
        for (unsigned k = 0; k < K; k++)
          expected += (double)attn_load(m.a[p][i], type, k) * (double)attn_load(m.b[p][k], type, j);
      if (differs(b_is_n_major ? "wgmma with columns that adjoin" : "wgmma", i, (double)m.result[i][j],
                  expected))
        return true;
    }
  return false;
}

bool all_products_differ() {
  const swizzle all[] = {SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128};
  for (swizzle as : all)
    if (products_differ<ATTN_BFLOAT16, 64, false, false>(as) ||
        products_differ<ATTN_FLOAT16, 128, false, false>(as) ||
        products_differ<ATTN_FLOAT16, 64, true, false>(as) ||
        products_differ<ATTN_BFLOAT16, 128, true, false>(as) ||
        products_differ<ATTN_BFLOAT16, 64, true, true>(as) ||
        products_differ<ATTN_FLOAT16, 128, false, true>(as))
      return true;
  return false;
}

/* ---- barriers in shared memory ---- */

/* One warp fills two stages in turn, and two others read each: 5 rounds, of which each barrier sees both
 * parities. */
__global__ void hand_over(unsigned *to) {
  constexpr unsigned ROUNDS = 5;
  ATTN_DYNAMIC_SHARED(shared);
  mbarrier *const full = reinterpret_cast<mbarrier *>(shared), *const empty = full + 2;
  unsigned *const stages = reinterpret_cast<unsigned *>(shared + 1024);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < 2) {
    make_mbarrier(full + threadIdx.x, 32);
    make_mbarrier(empty + threadIdx.x, 64);
  }
  __syncthreads();
  for (unsigned n = 0; n < ROUNDS; n++) {
    unsigned *const stage = stages + n % 2 * 32;
    if (warp == 0) {
      wait_at_mbarrier(empty + n % 2, (n / 2 & 1) ^ 1);
      stage[lane] = 100 * n + lane;
      arrive_at_mbarrier(full + n % 2);
    } else {
      wait_at_mbarrier(full + n % 2, n / 2 & 1);
      to[(2 * n + warp - 1) * 32 + lane] = stage[31 - lane];
      arrive_at_mbarrier(empty + n % 2);
    }
  }
}

bool mbarriers_differ() {
  unsigned to[320] = {0};
  attn_launch(hand_over, dim3(1), dim3(96), 2048, nullptr, (unsigned *)to);
  for (unsigned n = 0; n < 320; n++)
    if (differs("mbarrier", n % 32, to[n], 100 * (n / 64) + 31 - n % 32)) return true;
  return false;
}

const char *check_all(void) {
  return boxes_differ() || refusals_differ() || all_products_differ() || mbarriers_differ() ? difference
                                                                                            : nullptr;
}

} // namespace

extern "C" {
extern const char *(*const check_instructions)(void)__attribute__((visibility("default")));
const char *(*const check_instructions)(void) = check_all;
}
