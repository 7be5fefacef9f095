/* What sm_90a has beyond cuda.h: barriers in shared memory that count bytes, copies of boxes of a tensor
 * (TMA), and products of four warps at once (wgmma), by the PTX manual's names of sections. A file that
 * includes this is called NAME_hopper.cu: it is compiled for sm_90a alone, and its variants refuse other
 * GPUs.
 *
 * Four warps that follow one another from a multiple of four on are a group. */
#ifndef ATTN_CUDA_HOPPER_H
#define ATTN_CUDA_HOPPER_H

#include "cuda.h"

#ifdef __CUDACC__
#include <cuda.h>
#else
#include "emulation/hopper.h"
#define __grid_constant__
#endif

/* ---- barriers that count bytes ("mbarrier") ----
 *
 * Phases follow one another. One is complete when so many threads have arrived as the barrier was made for,
 * and all bytes have come that they said to expect. */

typedef uint64_t mbarrier;

/* By one thread; the others see it after a barrier, copies after fence_async_proxy. */
__device__ __forceinline__ void make_mbarrier(mbarrier *at, unsigned arrivals) {
#ifdef __CUDACC__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(arrivals) : "memory");
#else
  emulation::start_mbarrier(at, arrivals);
#endif
}

__device__ __forceinline__ void arrive_at_mbarrier(mbarrier *at) {
#ifdef __CUDACC__
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(shared_address(at))
               : "memory");
#else
  emulation::arrive_at_mbarrier(at, 0);
#endif
}

/* Arrives; the phase is to wait for so many bytes more. */
__device__ __forceinline__ void arrive_expecting(mbarrier *at, unsigned bytes) {
#ifdef __CUDACC__
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(
                   shared_address(at)),
               "r"(bytes)
               : "memory");
#else
  emulation::arrive_at_mbarrier(at, bytes);
#endif
}

/* Until the phase of this parity is complete: 0 of the first, 1 of the second, and at once of the one
 * before the first. */
__device__ __forceinline__ void wait_at_mbarrier(mbarrier *at, unsigned parity) {
#ifdef __CUDACC__
  unsigned complete = 0;
  while (!complete)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
        : "=r"(complete)
        : "r"(shared_address(at)), "r"(parity)
        : "memory");
#else
  emulation::wait_at_mbarrier(at, parity);
#endif
}

/* What the thread has written to shared memory is there for copies and products. */
__device__ __forceinline__ void fence_async_proxy() {
#ifdef __CUDACC__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  emulation::fence_async_proxy();
#endif
}

/* ---- copies of boxes ("cp.async.bulk.tensor") ---- */

/* Of a box in shared memory, whose rows have as many bytes: 16 of them at address a lie at a ^ (a / 128 %
 * n) * 16, n being 2, 4 or 8. */
enum swizzle { SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 };

#ifdef __CUDACC__
typedef CUtensorMap tensor_map;
#else
typedef emulation::tensor_map tensor_map;
#endif

/* By the host: a tensor of 16-bit elements of four axes, the last one first, strides from the second on in
 * bytes. false: the GPU cannot copy from it. */
static inline bool make_tensor_map(tensor_map *map, attn_type type, const void *first,
                                   const uint64_t (&sizes)[4], const uint64_t (&strides)[3],
                                   const uint32_t (&box)[4], swizzle as) {
#ifdef __CUDACC__
  typedef decltype(&cuTensorMapEncodeTiled) encode_function;
  void *encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  const uint32_t steps[4] = {1, 1, 1, 1};
  /* As CUDA 12.0 has it: so nothing is linked to the driver. */
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return false;
  return reinterpret_cast<encode_function>(encode)(
             map, type == ATTN_BFLOAT16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
             4, const_cast<void *>(first), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             (CUtensorMapSwizzle)as, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
#else
  return emulation::encode_tiled(map, type, 4, first, sizes, strides, box, as);
#endif
}

/* By one thread: the box at these coordinates, to a multiple of 128 bytes. What the tensor does not have is
 * 0. All bytes of the box come to the barrier. */
__device__ __forceinline__ void copy_box(void *to, const tensor_map *map, int c0, int c1, int c2, int c3,
                                         mbarrier *at) {
#ifdef __CUDACC__
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
               "%3, %4, %5}], [%6];" ::"r"(shared_address(to)),
               "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(shared_address(at))
               : "memory");
#else
  const int coordinates[4] = {c0, c1, c2, c3};
  emulation::copy_box(to, map, coordinates, at);
#endif
}

/* ---- products of a group ("Asynchronous Warpgroup Level Matrix Instructions") ---- */

/* The descriptor of a matrix in shared memory. `stride`: bytes from 8 rows (columns of b) to the next 8, or
 * where these adjoin, from 8 of k to the next 8. `leading` is used where columns adjoin: from as many as
 * the swizzle spans to the next. */
__device__ __forceinline__ uint64_t describe_matrix(const void *start, unsigned leading, unsigned stride,
                                                    swizzle as) {
#ifndef __CUDACC__
  using emulation::shared_address;
#endif
  return (uint64_t)((4 - as) % 4) << 62 | (uint64_t)(stride >> 4) << 32 | (uint64_t)(leading >> 4) << 16 |
         (shared_address(start) & 0x3ffff) >> 4;
}

/* Before a product whose registers were touched since they last were a product's. */
__device__ __forceinline__ void fence_products() {
#ifdef __CUDACC__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  emulation::fence_products();
#endif
}

/* The products since the last commit are a group. */
__device__ __forceinline__ void commit_products() {
#ifdef __CUDACC__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  emulation::commit_products();
#endif
}

/* No use of these registers is moved over this by the compiler, which does not know who writes them. */
template <int eights> __device__ __forceinline__ void hold(float (&sum)[eights][4]) {
#ifdef __CUDACC__
  ATTN_UNROLL
  for (int n = 0; n < eights; n++) ATTN_UNROLL
  for (int c = 0; c < 4; c++) asm volatile("" : "+f"(sum[n][c])::"memory");
#else
  (void)sum;
#endif
}

/* Until at most so many of the groups are under way. Before, neither their sums may be touched nor what
 * they read. */
template <int groups_left, int eights>
__device__ __forceinline__ void wait_for_products(float (&sum)[eights][4]) {
#ifdef __CUDACC__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
#else
  emulation::wait_for_products(groups_left);
#endif
  hold(sum);
}

#ifdef __CUDACC__
#define ATTN_FOUR(n) "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
#define ATTN_32_SUMS                                                                                         \
  ATTN_FOUR(0), ATTN_FOUR(1), ATTN_FOUR(2), ATTN_FOUR(3), ATTN_FOUR(4), ATTN_FOUR(5), ATTN_FOUR(6),          \
      ATTN_FOUR(7)
#define ATTN_64_SUMS                                                                                         \
  ATTN_32_SUMS, ATTN_FOUR(8), ATTN_FOUR(9), ATTN_FOUR(10), ATTN_FOUR(11), ATTN_FOUR(12), ATTN_FOUR(13),      \
      ATTN_FOUR(14), ATTN_FOUR(15)
#define ATTN_32_NAMES                                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "     \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ATTN_64_NAMES                                                                                        \
  ATTN_32_NAMES                                                                                              \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "   \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
/* Of so many columns, of elements of that type; the numbers are of the operands behind the sums. */
#define ATTN_WGMMA(columns, element, names, a, b, adds, transposed, sums, ...)                               \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " adds ", 0; wgmma.mma_async.sync.aligned.m64n" columns       \
               "k16.f32." element "." element " {" names "}, " a ", " b ", p, 1, 1, " transposed "; }"       \
               : sums                                                                                        \
               : __VA_ARGS__)
#endif

/* sum (64 rows, of which a warp has 16 as in multiply_add, times `columns`) = or += a b, of 16 k. a is in
 * shared memory, its k adjoin; so do b's, or its columns. */
template <attn_type type, bool b_is_n_major, int eights>
__device__ __forceinline__ void multiply_group(float (&sum)[eights][4], uint64_t a, uint64_t b, bool adds) {
  static_assert(eights == 8 || eights == 16, "64 or 128 columns");
#ifdef __CUDACC__
#define ATTN_OPERANDS "l"(a), "l"(b), "r"((int)adds), "n"((int)b_is_n_major)
  if constexpr (eights == 8 && type == ATTN_BFLOAT16)
    ATTN_WGMMA("64", "bf16", ATTN_32_NAMES, "%32", "%33", "%34", "0, %35", ATTN_32_SUMS, ATTN_OPERANDS);
  else if constexpr (eights == 8)
    ATTN_WGMMA("64", "f16", ATTN_32_NAMES, "%32", "%33", "%34", "0, %35", ATTN_32_SUMS, ATTN_OPERANDS);
  else if constexpr (type == ATTN_BFLOAT16)
    ATTN_WGMMA("128", "bf16", ATTN_64_NAMES, "%64", "%65", "%66", "0, %67", ATTN_64_SUMS, ATTN_OPERANDS);
  else
    ATTN_WGMMA("128", "f16", ATTN_64_NAMES, "%64", "%65", "%66", "0, %67", ATTN_64_SUMS, ATTN_OPERANDS);
#undef ATTN_OPERANDS
#else
  const emulation::product mine = {nullptr, a, b, &sum[0][0], 8 * eights, type, b_is_n_major, adds, nullptr};
  emulation::start_product(&mine);
#endif
}

/* The same with a in registers, each warp's 16 rows as in multiply_add. */
template <attn_type type, bool b_is_n_major, int eights>
__device__ __forceinline__ void multiply_group(float (&sum)[eights][4], const uint32_t (&a)[4], uint64_t b,
                                               bool adds) {
  static_assert(eights == 8 || eights == 16, "64 or 128 columns");
#ifdef __CUDACC__
#define ATTN_OPERANDS                                                                                        \
  "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)adds), "n"((int)b_is_n_major)
  if constexpr (eights == 8 && type == ATTN_BFLOAT16)
    ATTN_WGMMA("64", "bf16", ATTN_32_NAMES, "{%32, %33, %34, %35}", "%36", "%37", "%38", ATTN_32_SUMS,
               ATTN_OPERANDS);
  else if constexpr (eights == 8)
    ATTN_WGMMA("64", "f16", ATTN_32_NAMES, "{%32, %33, %34, %35}", "%36", "%37", "%38", ATTN_32_SUMS,
               ATTN_OPERANDS);
  else if constexpr (type == ATTN_BFLOAT16)
    ATTN_WGMMA("128", "bf16", ATTN_64_NAMES, "{%64, %65, %66, %67}", "%68", "%69", "%70", ATTN_64_SUMS,
               ATTN_OPERANDS);
  else
    ATTN_WGMMA("128", "f16", ATTN_64_NAMES, "{%64, %65, %66, %67}", "%68", "%69", "%70", ATTN_64_SUMS,
               ATTN_OPERANDS);
#undef ATTN_OPERANDS
#else
  const emulation::product mine = {a, 0, b, &sum[0][0], 8 * eights, type, b_is_n_major, adds, nullptr};
  emulation::start_product(&mine);
#endif
}

/* ---- registers ("setmaxnreg") ----
 *
 * By a whole group: from here on its threads have so many, a multiple of 8 from 24 to 256, of what the block
 * was given; those that a group gives back come to one that waits for more. */
template <int registers> __device__ __forceinline__ void give_registers_back() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "");
#ifdef __CUDACC__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers> __device__ __forceinline__ void take_registers() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0, "");
#ifdef __CUDACC__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}

#endif
