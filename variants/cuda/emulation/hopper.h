/* What sm_90a has beyond that (../hopper.h says what each does), on the emulated device. */
#ifndef ATTN_EMULATION_HOPPER_H
#define ATTN_EMULATION_HOPPER_H

#include "../../attention.h"
#include "emulation.h"

namespace emulation {

/* ---- mbarriers ---- */

void start_mbarrier(uint64_t *at, unsigned arrivals);
void arrive_at_mbarrier(uint64_t *at, unsigned bytes);
void wait_at_mbarrier(uint64_t *at, unsigned parity);
void fence_async_proxy();

/* ---- copies in bulk ---- */

/* As cuTensorMapEncodeTiled is given it; strides are in bytes, that of the first axis is an element's. */
struct tensor_map {
  const unsigned char *first;
  uint64_t sizes[5], strides[5];
  uint32_t box[5];
  unsigned rank, element_bytes, swizzle;
};

/* false where CUDA's function says CUDA_ERROR_INVALID_VALUE. */
bool encode_tiled(tensor_map *map, attn_type type, unsigned rank, const void *first, const uint64_t *sizes,
                  const uint64_t *strides, const uint32_t *box, unsigned swizzle);

void copy_box(void *to, const tensor_map *map, const int *coordinates, uint64_t *mbarrier);

/* Where 16 bytes lie that would lie there without a swizzle; 32, 64 or 128 bytes for 1 to 3. */
constexpr uint32_t swizzled(uint32_t address, unsigned swizzle) {
  return address ^ (address >> 3 & ((1u << swizzle) - 1) << 4);
}

/* In bytes of the dynamic shared memory; and back. */
uint32_t shared_address(const void *pointer);
unsigned char *shared_pointer(uint32_t address);

/* ---- products of four warps ---- */

/* What a lane brings to wgmma. */
struct product {
  const uint32_t *a; /* of registers; NULL: a_matrix */
  uint64_t a_matrix, b_matrix;
  float *sum;
  unsigned columns;
  attn_type type;
  bool b_is_n_major, adds;
  const void *code;
};
void start_product(const product *mine);
void fence_products();
void commit_products();
void wait_for_products(unsigned groups_left);

} // namespace emulation

#endif
