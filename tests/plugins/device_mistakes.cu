/* Kernels each of which makes one mistake that the emulated device has to name; the first makes none. What
 * they compute is of no interest. */
#include "device_mistake.h"

namespace {

constexpr unsigned THREADS = 64;

/* A block reverses a row of shared memory: each thread reads what one of the other warp wrote. */
template <bool waits> __device__ void reverse(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  float *const shared = reinterpret_cast<float *>(memory);
  shared[threadIdx.x] = (float)threadIdx.x;
  if (waits) __syncthreads();
  to[threadIdx.x] = shared[THREADS - 1 - threadIdx.x];
}

__global__ void right(float *to) { reverse<true>(to); }
__global__ void no_barrier(float *to) { reverse<false>(to); }

/* The same between lanes of one warp. */
__global__ void no_warp_barrier(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  float *const shared = reinterpret_cast<float *>(memory);
  shared[threadIdx.x] = 1;
  to[threadIdx.x] = shared[threadIdx.x ^ 1];
}

/* What a slow warp still reads is overwritten for the next step. */
__global__ void written_too_early(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  float *const shared = reinterpret_cast<float *>(memory);
  shared[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = shared[THREADS - 1 - threadIdx.x];
  shared[threadIdx.x] = 2;
}

__global__ void beyond_the_end(float *to) { to[threadIdx.x == 5 ? THREADS : threadIdx.x] = 1; }
__global__ void before_the_start(float *to) { to[threadIdx.x] = to[(int)threadIdx.x - 1]; }

__global__ void beyond_shared(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  reinterpret_cast<float *>(memory)[threadIdx.x + 1] = 1;
  to[threadIdx.x] = 1;
}

__global__ void misaligned(float *to) {
  if (threadIdx.x == 0) *reinterpret_cast<float4 *>(to + 1) = make_float4(1, 1, 1, 1);
}

/* Some threads wait at a barrier that the others never come to. */
__global__ void lonely(float *to) {
  to[threadIdx.x] = 1;
  if (threadIdx.x < 40) __syncthreads();
}

/* Who should wait for what another warp hands over only arrives as well. */
__global__ void nobody_waits(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  float *const shared = reinterpret_cast<float *>(memory);
  if (threadIdx.x < 32) shared[threadIdx.x] = 1;
  arrive_at_barrier(1, THREADS);
  if (threadIdx.x >= 32) to[threadIdx.x] = shared[threadIdx.x - 32];
}

/* Lanes of one warp exchange what they have, and lane 3 is elsewhere. */
__global__ void absent_lane(float *to) {
  to[threadIdx.x] = 1;
  if (threadIdx.x != 3) to[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

__global__ void outside_its_mask(float *to) { to[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 1); }

__global__ void different_instructions(float *to) {
  to[threadIdx.x] =
      threadIdx.x % 2 ? __shfl_xor_sync(0xffffffffu, 1.0f, 1) : (float)__any_sync(0xffffffffu, 1);
}

/* A copy is read before it was waited for: it may have landed, or not. */
template <bool waits> __device__ void copy_and_read(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  copy_async(memory + 16 * threadIdx.x, to + 4 * (threadIdx.x % 16));
  commit_copies();
  if (waits) wait_for_copies<0>();
  to[threadIdx.x] = reinterpret_cast<float *>(memory)[4 * threadIdx.x];
}
__global__ void copied_and_read(float *to) { copy_and_read<false>(to); }

/* Waited for by those who copied, and read by others. */
__global__ void copied_for_others(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  copy_async(memory + 16 * threadIdx.x, to + 4 * (threadIdx.x % 16));
  commit_copies();
  wait_for_copies<0>();
  to[threadIdx.x] = reinterpret_cast<float *>(memory)[4 * (THREADS - 1 - threadIdx.x)];
}

/* The second group is under way still. */
__global__ void waits_for_the_wrong_group(float *to) {
  ATTN_DYNAMIC_SHARED(memory);
  for (int group = 0; group < 2; group++) {
    copy_async(memory + 16 * (threadIdx.x + THREADS * group), to + 4 * (threadIdx.x % 16));
    commit_copies();
  }
  wait_for_copies<1>();
  to[threadIdx.x] = reinterpret_cast<float *>(memory)[4 * (threadIdx.x + THREADS)];
}

/* Without a barrier, in a variable that gcc puts where the emulation cannot watch. */
template <int size> __global__ void shared_in_a_template(float *to) {
  __shared__ float memory[size];
  memory[threadIdx.x] = 1;
  to[threadIdx.x] = memory[size - 1 - threadIdx.x];
}

__global__ void nothing(float *) {}

float *output_of(const attn_call *call) { return static_cast<float *>(call->tensors.output); }

template <void (*kernel)(float *)> void run(const attn_call *call) {
  attn_launch(kernel, dim3(1), dim3(THREADS), 4 * THREADS * sizeof(float) * 2, call->stream, output_of(call));
}
/* Shared memory for one float a thread. */
template <void (*kernel)(float *)> void run_tight(const attn_call *call) {
  attn_launch(kernel, dim3(1), dim3(THREADS), THREADS * sizeof(float), call->stream, output_of(call));
}
void run_too_wide(const attn_call *call) {
  attn_launch(nothing, dim3(1), dim3(1025), 0, call->stream, output_of(call));
}
void run_too_much_shared(const attn_call *call) {
  attn_launch(nothing, dim3(1), dim3(THREADS), 228 * 1024, call->stream, output_of(call));
}

MISTAKE(right, run<right>)
MISTAKE(no_barrier, run<no_barrier>)
MISTAKE(no_warp_barrier, run<no_warp_barrier>)
MISTAKE(written_too_early, run<written_too_early>)
MISTAKE(beyond_the_end, run<beyond_the_end>)
MISTAKE(before_the_start, run<before_the_start>)
MISTAKE(beyond_shared, run_tight<beyond_shared>)
MISTAKE(misaligned, run<misaligned>)
MISTAKE(lonely, run<lonely>)
MISTAKE(nobody_waits, run<nobody_waits>)
MISTAKE(absent_lane, run<absent_lane>)
MISTAKE(outside_its_mask, run<outside_its_mask>)
MISTAKE(different_instructions, run<different_instructions>)
MISTAKE(copied_and_read, run<copied_and_read>)
MISTAKE(copied_for_others, run<copied_for_others>)
MISTAKE(waits_for_the_wrong_group, run<waits_for_the_wrong_group>)
MISTAKE(shared_in_a_template, run<shared_in_a_template<THREADS>>)
MISTAKE(too_wide, run_too_wide)
MISTAKE(too_much_shared, run_too_much_shared)

const attn_variant *const variants[] = {
    &right_variant,
    &no_barrier_variant,
    &no_warp_barrier_variant,
    &written_too_early_variant,
    &beyond_the_end_variant,
    &before_the_start_variant,
    &beyond_shared_variant,
    &misaligned_variant,
    &lonely_variant,
    &nobody_waits_variant,
    &absent_lane_variant,
    &outside_its_mask_variant,
    &different_instructions_variant,
    &copied_and_read_variant,
    &copied_for_others_variant,
    &waits_for_the_wrong_group_variant,
    &shared_in_a_template_variant,
    &too_wide_variant,
    &too_much_shared_variant,
};

} // namespace

extern "C" const attn_table attn_plugin;
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants,
                                nullptr};
