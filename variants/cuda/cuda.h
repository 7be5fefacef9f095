/* What a .cu file of attention kernels includes: for nvcc CUDA's own headers and the instructions of matrix
 * units and copies, which CUDA C++ has no names for, by the PTX manual's; for a host compiler the same on an
 * emulated device (emulation/emulation.h). The file itself is the same for both.
 *
 * In comments of kernels: a warp's lanes are numbered 0 to 31, `group` is lane / 4 and `member` lane % 4,
 * which is how the PTX manual (section "Matrix Fragments for mma.m16n8k16") deals a matrix out. */
#ifndef ATTN_CUDA_H
#define ATTN_CUDA_H

/* Neither patterns nor query lengths: kernels that are at the limit of their registers spill by the questions for these. A
 * kernel that takes them defines it before. */
#ifndef ATTN_FEATURES_MET
#define ATTN_FEATURES_MET 0x1ff
#endif

#ifdef __CUDACC__
#include <cuda_runtime.h>
#include <math.h>
#else
#include "emulation/emulation.h"
#endif

#include "../elements.h"

/* ---- launching ---- */

/* kernel<<<grid, block, shared_bytes, stream>>>(arguments...), with dynamic shared memory of any size that
 * there is. */
template <class... Parameters, class... Arguments>
void attn_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void *stream,
                 Arguments... arguments) {
#ifdef __CUDACC__
  if (shared_bytes > 48 * 1024)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
  kernel<<<grid, block, shared_bytes, (cudaStream_t)stream>>>(arguments...);
#else
  (void)stream;
  auto body = [=]() { kernel(arguments...); };
  emulation::launch([](void *context) { (*static_cast<decltype(body) *>(context))(); }, &body, grid, block,
                    shared_bytes);
#endif
}

/* The block's dynamic shared memory, under that name: unsigned char, aligned to 1024 bytes. */
#ifdef __CUDACC__
#define ATTN_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]
#else
#define ATTN_DYNAMIC_SHARED(name)                                                                            \
  unsigned char *const name = static_cast<unsigned char *>(emulation::dynamic_shared())
#endif

/* Before a loop whose trips are known: an array that it runs over stays in registers. */
#ifdef __CUDACC__
#define ATTN_UNROLL _Pragma("unroll")
#define ATTN_KEEP_LOOP _Pragma("unroll 1") /* before one whose trips together would take too many registers */
#else
#define ATTN_UNROLL
#define ATTN_KEEP_LOOP
#endif

/* ---- numbers ---- */

/* 2^x to 2^-22, 0 below 2^-126. */
__device__ __forceinline__ float exp2_approximate(float x) {
#ifdef __CUDACC__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  const float power = exp2f(x);
  return power < 0x1p-126f ? 0 : power;
#endif
}

/* Two numbers as one register of 16-bit elements, the first one in the lower half; rounded to nearest, ties to
 * even. */
template <attn_type type> __device__ __forceinline__ uint32_t pack_pair(float low, float high) {
#ifdef __CUDACC__
  uint32_t pair;
  if (type == ATTN_BFLOAT16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return type == ATTN_BFLOAT16 ? (uint32_t)attn_to_bfloat16(high) << 16 | attn_to_bfloat16(low)
                               : (uint32_t)attn_to_float16(high) << 16 | attn_to_float16(low);
#endif
}

/* ---- barriers of a part of the block (PTX manual, "bar") ---- */

/* Barrier id, 1 to 15, of so many threads, a multiple of 32. Who only arrives goes on at once. */
__device__ __forceinline__ void wait_at_barrier(unsigned id, unsigned threads) {
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  emulation::meet_block(id, threads);
#endif
}
__device__ __forceinline__ void arrive_at_barrier(unsigned id, unsigned threads) {
#ifdef __CUDACC__
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  emulation::arrive_block(id, threads);
#endif
}

/* ---- matrix units (PTX manual, "Warp Level Matrix Instructions") ---- */

#ifdef __CUDACC__
__device__ __forceinline__ uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}
#endif

/* ldmatrix: four matrices of 8 rows of 8 elements of 16 bits. Lane n brings where row n % 8 of matrix n / 8
 * begins, 16 bytes at an address that is a multiple of 16. Of matrix m it gets to[m]: elements 2 member and 2
 * member + 1 of row `group`; and transposed, element `group` of rows 2 member and 2 member + 1. */
template <bool transposed> __device__ __forceinline__ void load_matrices(uint32_t to[4], const void *row) {
#ifdef __CUDACC__
  if (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
#else
  emulation::matrices mine;
  const uint4 bytes = *static_cast<const uint4 *>(row);
  memcpy(mine.row, &bytes, sizeof mine.row);
  emulation::meet_warp(0xffffffffu, &mine,
                       transposed ? emulation::perform_ldmatrix_transposed : emulation::perform_ldmatrix,
                       "ldmatrix");
  memcpy(to, mine.to, sizeof mine.to);
#endif
}

/* mma.m16n8k16: sum += a b, with a of 16 x 16 and b of 16 x 8 elements of the type, sum of 16 x 8 floats. A
 * lane holds
 *   a[0], a[1]: of rows `group` and `group` + 8, columns 2 member and 2 member + 1; a[2], a[3]: 8 columns on;
 *   b[0]: of column `group`, rows 2 member and 2 member + 1; b[1]: 8 rows on;
 *   sum[0], sum[1]: of row `group`, columns 2 member and 2 member + 1; sum[2], sum[3]: of row `group` + 8. */
template <attn_type type>
__device__ __forceinline__ void multiply_add(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
#ifdef __CUDACC__
  if (type == ATTN_BFLOAT16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  emulation::fragments mine = {a, b, sum};
  emulation::meet_warp(
      0xffffffffu, &mine,
      type == ATTN_BFLOAT16 ? emulation::perform_mma_bfloat16 : emulation::perform_mma_float16, "mma");
#endif
}

/* ---- copies that take their time (PTX manual, "Asynchronous copy") ---- */

/* cp.async: 16 bytes from global into shared memory, both at multiples of 16; those from `filled` (0 to 16) on
 * become 0 and are not read. */
__device__ __forceinline__ void copy_async(void *to, const void *from, unsigned filled = 16) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(filled)
               : "memory");
#else
  emulation::copy_async(to, from, 16, filled);
#endif
}

/* The copies since the last commit are a group. */
__device__ __forceinline__ void commit_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emulation::commit_copies();
#endif
}

/* Until at most so many of the thread's own groups are under way; other threads see them after a barrier. */
template <int groups_left> __device__ __forceinline__ void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(groups_left) : "memory");
#else
  emulation::wait_for_copies(groups_left);
#endif
}

#endif
