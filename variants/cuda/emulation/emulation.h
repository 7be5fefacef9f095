/* A device for CUDA C++ on a processor: what a .cu file gets in place of CUDA's own headers where a host
 * compiler reads it. Threads of a block are fibers, which run until they meet others at a barrier, a shuffle
 * or a copy that is waited for; which one runs next is the schedule's. Files of kernels are compiled with
 * -fsanitize=thread, but for what that asks of its runtime the emulation stands in (shadow.cc): so each access
 * to memory is seen, and held to what a device promises:
 * - shared memory that was not written holds NaN;
 * - what another warp or lane touched without a barrier in between is a race, reported with both lines;
 * - global memory ends with the tensor's last byte, and addresses are aligned to the width of the access;
 * - asynchronous copies land as late as the program allows, or as early, and nothing may be touched meanwhile.
 * It does not see races between blocks, nor what a compiler for a device would do. */
#ifndef ATTN_EMULATION_H
#define ATTN_EMULATION_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
/* Where nothing is optimised, as of planted faults, it would only make twice as much to compile. */
#ifdef __OPTIMIZE__
#define __forceinline__ inline __attribute__((always_inline))
#else
#define __forceinline__ inline
#endif
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/* One block runs at a time, so that what is static is the block's. A section of its own shows where it lies;
 * gcc puts those of templates elsewhere, which is said where one is written. */
#define __shared__ static __attribute__((section("attn_shared")))

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct __attribute__((aligned(8))) float2 {
  float x, y;
};
struct __attribute__((aligned(16))) float4 {
  float x, y, z, w;
};
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emulation {

constexpr unsigned WARP = 32, MOST_THREADS = 1024;

/* What the running thread knows of itself. */
struct place {
  dim3 thread, block, threads, blocks;
};
extern const place *here;

/* Runs a kernel over all blocks: body(context) in each thread. What went wrong is kept for take_complaint. */
void launch(void (*body)(void *context), void *context, dim3 grid, dim3 block, size_t shared_bytes);
void *dynamic_shared();

/* In which orders warps run and when copies land, the names of all, ending in NULL: what a table of variants offers as
 * instruction sets. */
const char *const *schedule_names();

/* Ends the launch: in words what the kernel did that it may not. */
[[noreturn]] void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- where threads meet ---- */

/* The lanes of the mask meet; the last of them performs it over what each brought. */
typedef void perform_function(void *const brought[WARP], unsigned mask);
void meet_warp(unsigned mask, void *mine, perform_function *perform, const char *what);
unsigned lane();

/* Barrier id, of this many threads, all of the block for 0; who only arrives does not wait. */
void meet_block(unsigned id, unsigned threads);
void arrive_block(unsigned id, unsigned threads);

/* ---- copies that take their time ---- */

/* cp.async: 16 bytes or fewer into shared memory, of which those from `filled` on become 0. */
void copy_async(void *to, const void *from, unsigned bytes, unsigned filled);
void commit_copies();
void wait_for_copies(unsigned groups_left);

/* ---- matrix units (../cuda.h says what they do) ---- */

/* What a lane brings to ldmatrix: its row; and takes away. */
struct matrices {
  uint16_t row[8];
  uint32_t to[4];
};
perform_function perform_ldmatrix, perform_ldmatrix_transposed;

/* What a lane brings to mma. */
struct fragments {
  const uint32_t *a, *b;
  float *sum;
};
perform_function perform_mma_bfloat16, perform_mma_float16;

} // namespace emulation

#define threadIdx (emulation::here->thread)
#define blockIdx (emulation::here->block)
#define blockDim (emulation::here->threads)
#define gridDim (emulation::here->blocks)

/* ---- CUDA's functions, by the CUDA C++ Programming Guide, sections of the same names ---- */

static inline void __syncthreads() { emulation::meet_block(0, blockDim.x * blockDim.y * blockDim.z); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) {
  emulation::meet_warp(mask, nullptr, nullptr, "__syncwarp");
}
static inline void __threadfence() {}

namespace emulation {
/* Of two words each: what the lane brought, and what it takes away. */
template <class T> struct exchanged {
  T value;
  unsigned source;
  T result;
};

template <class T> void perform_shuffle(void *const brought[WARP], unsigned mask) {
  for (unsigned n = 0; n < WARP; n++)
    if (mask >> n & 1) {
      exchanged<T> *mine = static_cast<exchanged<T> *>(brought[n]);
      /* Of a lane that does not take part the result is undefined. */
      mine->result = mask >> mine->source & 1 ? static_cast<exchanged<T> *>(brought[mine->source])->value
                                              : static_cast<T>(NAN);
    }
}
template <class T> T shuffle(unsigned mask, T value, unsigned source) {
  exchanged<T> mine = {value, source, value};
  meet_warp(mask, &mine, perform_shuffle<T>, "a shuffle");
  return mine.result;
}

static inline void perform_ballot(void *const brought[WARP], unsigned mask) {
  unsigned votes = 0;
  for (unsigned n = 0; n < WARP; n++)
    if (mask >> n & 1) votes |= (static_cast<exchanged<unsigned> *>(brought[n])->value != 0) << n;
  for (unsigned n = 0; n < WARP; n++)
    if (mask >> n & 1) static_cast<exchanged<unsigned> *>(brought[n])->result = votes;
}
} // namespace emulation

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = emulation::lane(), first = lane / width * width;
  return emulation::shuffle(mask, value, first + (unsigned)source % width);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const unsigned lane = emulation::lane(), source = lane ^ (unsigned)lanes;
  return emulation::shuffle(mask, value, source / width <= lane / width ? source : lane);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
  const unsigned lane = emulation::lane();
  return emulation::shuffle(mask, value, lane % width + lanes < (unsigned)width ? lane + lanes : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
  const unsigned lane = emulation::lane();
  return emulation::shuffle(mask, value, lane % width >= lanes ? lane - lanes : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int vote) {
  emulation::exchanged<unsigned> mine = {(unsigned)(vote != 0), 0, 0};
  emulation::meet_warp(mask, &mine, emulation::perform_ballot, "a vote");
  return mine.result;
}
static inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
static inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) == mask; }

/* A fiber is not interrupted, so that these are atomic. */
template <class T> __attribute__((no_sanitize_thread)) T atomicAdd(T *to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
template <class T> __attribute__((no_sanitize_thread)) T atomicMax(T *to, T value) {
  const T before = *to;
  if (value > before) *to = value;
  return before;
}

static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
#define __expf expf
/* To 2 ulp on a device, and 0 where the divisor is beyond 2^126. */
static inline float __fdividef(float a, float b) { return fabsf(b) > 0x1p126f && !isnan(a) ? 0 * a : a / b; }
static inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }

#endif
