/* As device_mistakes.cu, of what sm_90a has beyond that: bulk copies, mbarriers, products of four warps. */
#include "device_mistake.h"
#include "variants/cuda/hopper.h"

namespace {

constexpr unsigned THREADS = 128, BOX_BYTES = 512;

/* Shared memory of a block: two stages, for a box each, and two barriers, made for one arrival. */
struct block {
  unsigned char *stages[2];
  mbarrier *full;

  __device__ explicit block(unsigned char *shared)
      : stages{shared, shared + 1024}, full(reinterpret_cast<mbarrier *>(shared + 8192)) {}

  __device__ void prepare() const {
    if (threadIdx.x == 0) {
      make_mbarrier(full, 1);
      make_mbarrier(full + 1, 1);
      fence_async_proxy();
    }
    __syncthreads();
  }
};

/* What a thread takes away, of which the output has room for 64. */
__device__ void leave(float *to, float x) {
  if (threadIdx.x < 64) to[threadIdx.x] = x;
}

#define KERNEL(name) __global__ void name(const __grid_constant__ tensor_map map, float *to)
#define BEGIN                                                                                                \
  ATTN_DYNAMIC_SHARED(shared);                                                                               \
  const block in(shared)
#define ELEMENT(stage) (float)reinterpret_cast<const uint16_t *>(in.stages[stage])[threadIdx.x]
#define COPY(stage, barrier) copy_box(in.stages[stage], &map, 0, 0, 0, 0, barrier)
/* As it is right: one thread says how many bytes come, and asks for the first box. */
#define FETCH(bytes)                                                                                         \
  if (threadIdx.x == 0) arrive_expecting(in.full, bytes), COPY(0, in.full)

KERNEL(right) {
  BEGIN;
  in.prepare();
  FETCH(BOX_BYTES);
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0));
}

/* The box is read before its barrier was waited for: it may have landed, or not. */
KERNEL(bulk_read_too_early) {
  BEGIN;
  in.prepare();
  FETCH(BOX_BYTES);
  __syncthreads();
  leave(to, ELEMENT(0) * 2);
  wait_at_mbarrier(in.full, 0);
}

/* The phase before the first has always completed; the first is far from it. */
KERNEL(wrong_parity) {
  BEGIN;
  in.prepare();
  FETCH(2 * BOX_BYTES);
  __syncthreads();
  wait_at_mbarrier(in.full, 1);
  leave(to, ELEMENT(0) * 3);
}

KERNEL(a_phase_too_many) {
  BEGIN;
  in.prepare();
  FETCH(BOX_BYTES);
  wait_at_mbarrier(in.full, 0);
  wait_at_mbarrier(in.full, 1);
  leave(to, ELEMENT(0));
}

/* Two boxes come, and the barrier goes with the first. */
KERNEL(expects_one_of_two) {
  BEGIN;
  in.prepare();
  if (threadIdx.x == 0) {
    arrive_expecting(in.full, BOX_BYTES);
    COPY(0, in.full);
    COPY(1, in.full);
  }
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0) + ELEMENT(1));
}

KERNEL(expects_too_many_bytes) {
  BEGIN;
  in.prepare();
  FETCH(2 * BOX_BYTES);
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0));
}

/* Waited for at the barrier of another box. */
KERNEL(waits_at_another_barrier) {
  BEGIN;
  in.prepare();
  if (threadIdx.x == 0) {
    arrive_expecting(in.full, BOX_BYTES);
    COPY(0, in.full);
    arrive_expecting(in.full + 1, BOX_BYTES);
    COPY(1, in.full + 1);
  }
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0) - ELEMENT(1));
  wait_at_mbarrier(in.full + 1, 0);
}

KERNEL(arrives_twice) {
  BEGIN;
  in.prepare();
  if (threadIdx.x == 0) {
    for (int n = 0; n < 2; n++) arrive_expecting(in.full, BOX_BYTES);
    COPY(0, in.full);
  }
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0));
}

KERNEL(no_mbarrier) {
  BEGIN;
  in.prepare();
  arrive_at_mbarrier(in.full + 2);
  leave(to, (float)map.rank);
}

/* Other warps do not know yet that there is one. */
KERNEL(mbarrier_not_shown) {
  BEGIN;
  if (threadIdx.x == 0) make_mbarrier(in.full, 4);
  if (threadIdx.x % 32 == 0) arrive_at_mbarrier(in.full);
  leave(to, (float)map.rank);
}

KERNEL(mbarrier_not_fenced) {
  BEGIN;
  if (threadIdx.x == 0) {
    make_mbarrier(in.full, 1);
    arrive_expecting(in.full, BOX_BYTES);
    COPY(0, in.full);
  }
  __syncthreads();
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0));
}

/* The second box comes to where others still read the first: they see it coming, or were there before. */
KERNEL(stage_refilled_too_early) {
  BEGIN;
  in.prepare();
  for (unsigned box = 0; box < 2; box++) {
    if (threadIdx.x == 0) {
      arrive_expecting(in.full + box, BOX_BYTES);
      COPY(0, in.full + box);
    }
    wait_at_mbarrier(in.full + box, 0);
    leave(to, ELEMENT(0));
  }
}

KERNEL(bulk_never_waited_for) {
  BEGIN;
  in.prepare();
  FETCH(BOX_BYTES);
  leave(to, 1);
}

KERNEL(misaligned_box) {
  BEGIN;
  in.prepare();
  if (threadIdx.x == 0) {
    arrive_expecting(in.full, BOX_BYTES);
    copy_box(in.stages[0] + 64, &map, 0, 0, 0, 0, in.full);
  }
  wait_at_mbarrier(in.full, 0);
  leave(to, ELEMENT(0));
}

KERNEL(box_beyond_shared) {
  BEGIN;
  in.prepare();
  if (threadIdx.x == 0) {
    arrive_expecting(in.full, BOX_BYTES);
    copy_box(shared + 16384 - 256, &map, 0, 0, 0, 0, in.full);
  }
  wait_at_mbarrier(in.full, 0);
  leave(to, 1);
}

/* ---- products ---- */

/* Of what lies in the first stages, whatever it is. */
__device__ __forceinline__ void multiply_stage(const block &in, float (&sum)[8][4]) {
  const uint64_t matrix = describe_matrix(in.stages[0], 0, 0, SWIZZLE_128);
  multiply_group<ATTN_FLOAT16, false>(sum, matrix, matrix, false);
}

__device__ __forceinline__ void copy_and_wait(const block &in, const tensor_map &map) {
  in.prepare();
  FETCH(BOX_BYTES);
  wait_at_mbarrier(in.full, 0);
}

KERNEL(right_product) {
  BEGIN;
  float sum[8][4];
  copy_and_wait(in, map);
  fence_products();
  multiply_stage(in, sum);
  commit_products();
  wait_for_products<0>(sum);
  leave(to, sum[0][0]);
}

KERNEL(product_too_early) {
  BEGIN;
  float sum[8][4];
  in.prepare();
  FETCH(BOX_BYTES);
  __syncthreads();
  fence_products();
  multiply_stage(in, sum);
  commit_products();
  wait_for_products<0>(sum);
  wait_at_mbarrier(in.full, 0);
  leave(to, sum[0][0]);
}

/* Barriers of the block do not wait for products. */
KERNEL(refilled_while_multiplied) {
  BEGIN;
  float sum[8][4];
  copy_and_wait(in, map);
  fence_products();
  multiply_stage(in, sum);
  commit_products();
  __syncthreads();
  FETCH(BOX_BYTES);
  __syncthreads();
  wait_for_products<0>(sum);
  wait_at_mbarrier(in.full, 1);
  leave(to, sum[0][0]);
}

KERNEL(product_without_fence) {
  BEGIN;
  float sum[8][4];
  copy_and_wait(in, map);
  multiply_stage(in, sum);
  commit_products();
  wait_for_products<0>(sum);
  leave(to, sum[0][0]);
}

/* A wait is for what was committed. */
KERNEL(product_not_committed) {
  BEGIN;
  float sum[8][4];
  copy_and_wait(in, map);
  fence_products();
  multiply_stage(in, sum);
  wait_for_products<0>(sum);
  leave(to, sum[0][0]);
}

KERNEL(product_of_ordinary_stores) {
  BEGIN;
  float sum[8][4];
  reinterpret_cast<uint16_t *>(in.stages[0])[threadIdx.x] = (uint16_t)map.rank;
  __syncthreads();
  fence_products();
  multiply_stage(in, sum);
  commit_products();
  wait_for_products<0>(sum);
  leave(to, sum[0][0]);
}

KERNEL(product_of_three_warps) {
  BEGIN;
  float sum[8][4] = {};
  copy_and_wait(in, map);
  if (threadIdx.x < 96) {
    fence_products();
    multiply_stage(in, sum);
    commit_products();
    wait_for_products<0>(sum);
  }
  leave(to, sum[0][0]);
}

/* ---- the table ---- */

/* The keys of the problem as boxes of 4 rows of 128 bytes. */
template <void (*kernel)(tensor_map, float *)> void run(const attn_call *call) {
  const uint64_t sizes[4] = {64, 4, 1, 1}, strides[3] = {128, BOX_BYTES, BOX_BYTES};
  const uint32_t box[4] = {64, 4, 1, 1};
  tensor_map map;
  if (make_tensor_map(&map, ATTN_FLOAT16, call->tensors.key, sizes, strides, box, SWIZZLE_128))
    attn_launch(kernel, dim3(1), dim3(THREADS), 16384, call->stream, map,
                static_cast<float *>(call->tensors.output));
}

#define OF(name) MISTAKE(name, run<name>)
OF(right)
OF(bulk_read_too_early)
OF(wrong_parity)
OF(a_phase_too_many)
OF(expects_one_of_two)
OF(expects_too_many_bytes)
OF(waits_at_another_barrier)
OF(arrives_twice)
OF(no_mbarrier)
OF(mbarrier_not_shown)
OF(mbarrier_not_fenced)
OF(stage_refilled_too_early)
OF(bulk_never_waited_for)
OF(misaligned_box)
OF(box_beyond_shared)
OF(right_product)
OF(product_too_early)
OF(refilled_while_multiplied)
OF(product_without_fence)
OF(product_not_committed)
OF(product_of_ordinary_stores)
OF(product_of_three_warps)

const attn_variant *const variants[] = {
    &right_variant,
    &bulk_read_too_early_variant,
    &wrong_parity_variant,
    &a_phase_too_many_variant,
    &expects_one_of_two_variant,
    &expects_too_many_bytes_variant,
    &waits_at_another_barrier_variant,
    &arrives_twice_variant,
    &no_mbarrier_variant,
    &mbarrier_not_shown_variant,
    &mbarrier_not_fenced_variant,
    &stage_refilled_too_early_variant,
    &bulk_never_waited_for_variant,
    &misaligned_box_variant,
    &box_beyond_shared_variant,
    &right_product_variant,
    &product_too_early_variant,
    &refilled_while_multiplied_variant,
    &product_without_fence_variant,
    &product_not_committed_variant,
    &product_of_ordinary_stores_variant,
    &product_of_three_warps_variant,
};

} // namespace

extern "C" const attn_table attn_plugin;
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, sizeof variants / sizeof *variants, variants,
                                nullptr};
