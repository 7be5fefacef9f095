/* Bytes of masks. */
#ifndef ATTN_SHOWN_H
#define ATTN_SHOWN_H

#include <stdint.h>

/* What stands in a mask for what is not hidden: any byte but 0 may. Half of them are 1; of the others each has one of the higher
 * bits, or all, so that who takes a byte for a number, for signed or for one of its bits is seen. bits: four that are random. */
static inline uint8_t fill_shown(uint64_t bits) {
  const unsigned n = bits % 16;
  return (uint8_t)(n < 8 ? 1 : n < 15 ? 2u << (n - 8) : UINT8_MAX);
}

#endif
