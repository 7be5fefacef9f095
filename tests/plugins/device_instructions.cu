/* The instructions of an emulated device beside plain loops over random numbers. check_instructions gives
 * NULL, or in words the first that differs. */
#include "device_plain.h"

namespace {

/* ---- mma, with both operands through ldmatrix ---- */

struct matrices {
  uint16_t a[16][16]; /* rows of a */
  uint16_t b[16][16]; /* of which the first 8 columns are used: rows are k */
  float sum[16][8], result[16][8];
};

template <attn_type type> __global__ void multiply(matrices *m) {
  ATTN_DYNAMIC_SHARED(memory);
  uint16_t(*const a)[16] = reinterpret_cast<uint16_t(*)[16]>(memory), (*const b)[16] = a + 16;
  const unsigned lane = threadIdx.x, group = lane / 4, member = lane % 4;
  for (unsigned n = lane; n < 256; n += 32) {
    a[n / 16][n % 16] = m->a[n / 16][n % 16];
    b[n / 16][n % 16] = m->b[n / 16][n % 16];
  }
  __syncwarp();
  uint32_t left[4], right[4];
  load_matrices<false>(left, &a[lane % 16][lane / 16 * 8]);
  load_matrices<true>(right, &b[lane % 16][lane / 16 * 8]);
  float sum[4];
  for (unsigned n = 0; n < 4; n++) sum[n] = m->sum[group + n / 2 * 8][2 * member + n % 2];
  multiply_add<type>(sum, left, right);
  for (unsigned n = 0; n < 4; n++) m->result[group + n / 2 * 8][2 * member + n % 2] = sum[n];
}

template <attn_type type> bool mma_differs() {
  matrices m;
  for (unsigned n = 0; n < 256; n++) {
    m.a[n / 16][n % 16] = narrow<type>(random_eighth(n));
    m.b[n / 16][n % 16] = narrow<type>(random_eighth(1000 + n));
    if (n < 128) m.sum[n / 8][n % 8] = random_eighth(2000 + n);
  }
  attn_launch(multiply<type>, dim3(1), dim3(32), 1024, nullptr, &m);
  for (unsigned i = 0; i < 16; i++)
    for (unsigned j = 0; j < 8; j++) {
      double expected = (double)m.sum[i][j];
      for (unsigned k = 0; k < 16; k++)
        expected += (double)attn_load(m.a[i], type, k) * (double)attn_load(m.b[k], type, j);
      if (differs("mma", i * 8 + j, (double)m.result[i][j], expected)) return true;
    }
  return false;
}

/* Sums are cut off: 1 + 2^-24 + 2^-24 stays 1 where each product is added alone, and is 1 + 2^-23 exactly here. */
__global__ void add_little(float *result) {
  const uint32_t one = 0x3f80, tiny = 0x3380; /* bfloat16: 1, 2^-24 */
  const unsigned member = threadIdx.x % 4;
  const uint32_t a[4] = {member == 0 ? one | one << 16 : 0, 0, 0, 0},
                 b[2] = {member == 0 ? tiny | tiny << 16 : 0, 0};
  float twice[4] = {1, 1, 1, 1}, below[4] = {-1, -1, -1, -1};
  const uint32_t half[2] = {member == 0 ? tiny : 0, 0};
  multiply_add<ATTN_BFLOAT16>(twice, a, b);
  multiply_add<ATTN_BFLOAT16>(below, a, half);
  result[threadIdx.x] = twice[0];
  result[32 + threadIdx.x] = below[0];
}

bool truncation_differs() {
  float result[64];
  attn_launch(add_little, dim3(1), dim3(32), 0, nullptr, static_cast<float *>(result));
  return differs("mma of two small products", 0, (double)result[0], 1 + 0x1p-23) ||
         differs("mma that cuts off", 0, (double)result[32], -1 + 0x1p-24);
}

/* ---- ldmatrix ---- */

template <bool transposed> __global__ void load(const uint16_t *rows, uint32_t *to) {
  ATTN_DYNAMIC_SHARED(shared);
  uint16_t(*const memory)[8] = reinterpret_cast<uint16_t(*)[8]>(shared);
  for (unsigned n = 0; n < 8; n++) memory[threadIdx.x][n] = rows[8 * threadIdx.x + n];
  __syncwarp();
  load_matrices<transposed>(to + 4 * threadIdx.x, memory[threadIdx.x]);
}

template <bool transposed> bool ldmatrix_differs() {
  uint16_t rows[256];
  uint32_t to[128];
  for (unsigned n = 0; n < 256; n++) rows[n] = (uint16_t)random_bits(n);
  attn_launch(load<transposed>, dim3(1), dim3(32), 512, nullptr, (const uint16_t *)rows, (uint32_t *)to);
  for (unsigned lane = 0; lane < 32; lane++)
    for (unsigned m = 0; m < 4; m++)
      for (unsigned half = 0; half < 2; half++) {
        const unsigned along = 2 * (lane % 4) + half, across = lane / 4;
        const uint16_t expected = rows[64 * m + (transposed ? 8 * along + across : 8 * across + along)];
        if (differs(transposed ? "ldmatrix.trans" : "ldmatrix", lane, to[4 * lane + m] >> 16 * half & 0xffff,
                    expected))
          return true;
      }
  return false;
}

/* ---- shuffles and votes ---- */

__global__ void shuffle(unsigned *to) {
  const unsigned lane = threadIdx.x, mine = 100 + lane;
  to[lane] = __shfl_sync(0xffffffffu, mine, 5);
  to[32 + lane] = __shfl_xor_sync(0xffffffffu, mine, 3);
  to[64 + lane] = __shfl_down_sync(0xffffffffu, mine, 4);
  to[96 + lane] = __shfl_up_sync(0xffffffffu, mine, 2, 8);
  to[128 + lane] = __shfl_sync(0xffffffffu, mine, 9, 8);
  to[160 + lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  to[192 + lane] = lane < 16 ? __shfl_xor_sync(0x0000ffffu, mine, 1) : __shfl_xor_sync(0xffff0000u, mine, 2);
}

bool shuffles_differ() {
  unsigned to[224], every_third = 0;
  for (unsigned lane = 0; lane < 32; lane += 3) every_third |= 1u << lane;
  attn_launch(shuffle, dim3(1), dim3(32), 0, nullptr, (unsigned *)to);
  for (unsigned lane = 0; lane < 32; lane++)
    if (differs("shfl", lane, to[lane], 105) || differs("shfl.xor", lane, to[32 + lane], 100 + (lane ^ 3)) ||
        differs("shfl.down", lane, to[64 + lane], 100 + (lane + 4 < 32 ? lane + 4 : lane)) ||
        differs("shfl.up of 8", lane, to[96 + lane], 100 + (lane % 8 >= 2 ? lane - 2 : lane)) ||
        differs("shfl of 8", lane, to[128 + lane], 100 + lane / 8 * 8 + 1) ||
        differs("ballot", lane, to[160 + lane], every_third) ||
        differs("shfl of half a warp", lane, to[192 + lane], 100 + (lane < 16 ? lane ^ 1 : lane ^ 2)))
      return true;
  return false;
}

/* ---- copies ---- */

__global__ void copy(const unsigned char *from, unsigned char *to) {
  __shared__ __align__(16) unsigned char memory[32 * 16];
  copy_async(memory + 16 * threadIdx.x, from + 16 * threadIdx.x, threadIdx.x % 17);
  commit_copies();
  wait_for_copies<0>();
  for (unsigned n = 0; n < 16; n++) to[16 * threadIdx.x + n] = memory[16 * threadIdx.x + n];
}

bool copies_differ() {
  __attribute__((aligned(16))) unsigned char from[512], to[512];
  for (unsigned n = 0; n < 512; n++) from[n] = (unsigned char)(1 + random_bits(n) % 255);
  attn_launch(copy, dim3(1), dim3(32), 0, nullptr, (const unsigned char *)from, (unsigned char *)to);
  for (unsigned n = 0; n < 512; n++)
    if (differs("cp.async", n / 16, to[n], n % 16 < n / 16 % 17 ? from[n] : 0)) return true;
  return false;
}

/* ---- barriers of a part of the block, and atomics ---- */

/* The first warp hands over through shared memory and goes on; the second one waits for it; the third has no part. */
__global__ void hand_over(unsigned *to) {
  __shared__ unsigned memory[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp == 0) {
    memory[lane] = 7 * lane;
    arrive_at_barrier(1, 64);
  } else if (warp == 1) {
    wait_at_barrier(1, 64);
    to[lane] = memory[31 - lane];
  }
  atomicAdd(to + 32, 1u);
  atomicMax(to + 33, threadIdx.x);
}

bool barriers_differ() {
  unsigned to[34] = {0};
  attn_launch(hand_over, dim3(2), dim3(96), 0, nullptr, (unsigned *)to);
  for (unsigned lane = 0; lane < 32; lane++)
    if (differs("bar.arrive and bar.sync", lane, to[lane], 7 * (31 - lane))) return true;
  return differs("atomicAdd", 0, to[32], 192) || differs("atomicMax", 0, to[33], 95);
}

const char *check_all(void) {
  const bool differ = mma_differs<ATTN_BFLOAT16>() || mma_differs<ATTN_FLOAT16>() || truncation_differs() ||
                      ldmatrix_differs<false>() || ldmatrix_differs<true>() || shuffles_differ() ||
                      copies_differ() || barriers_differ();
  return differ ? difference : nullptr;
}

} // namespace

extern "C" {
extern const char *(*const check_instructions)(void)__attribute__((visibility("default")));
const char *(*const check_instructions)(void) = check_all;
}
