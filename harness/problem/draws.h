/* Random numbers drawn one after the other from a stream. */
#ifndef ATTN_HARNESS_DRAWS_H
#define ATTN_HARNESS_DRAWS_H

#include <stdbool.h>

#include "base/random.h"

typedef struct draws {
  uint64_t stream, count;
} draws;

static inline uint64_t draw(draws *from) { return random_bits(from->stream, from->count++); }

static inline int64_t draw_between(draws *from, int64_t low, int64_t high) {
  return low + (int64_t)(draw(from) % (uint64_t)(high - low + 1));
}

static inline bool draw_one_in(draws *from, int64_t n) { return draw_between(from, 1, n) == 1; }

#endif
