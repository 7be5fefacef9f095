/* What the tables of mistakes are written with. */
#ifndef ATTN_HARNESS_HINT_MISTAKE_ROWS_H
#define ATTN_HARNESS_HINT_MISTAKE_ROWS_H

#include <math.h>

#include "hint_mistakes.h"

enum { SOFTMAX = 1 << ATTN_SOFTMAX, LINEAR = 1 << ATTN_LINEAR, BOTH = SOFTMAX | LINEAR };
/* The parameters that a row tries: no matter, these, or the sizes of tiles. */
#define ONCE {0}, 1
#define WITH(...) {__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define TILES WITH(512, 256, 128, 64, 32, 16, 8, 4, 2)
#define MISTAKES(table)                                                                                      \
  { table, sizeof(table) / sizeof *(table) }

static inline int64_t length_of(const asked *a) {
  return a->problem->key_lengths ? a->problem->key_lengths[a->at.b] : a->problem->key_length;
}
static inline int64_t offset_of(const asked *a) {
  return a->problem->offsets ? a->problem->offsets[a->at.b] : a->problem->offset;
}
static inline bool is_limited(const asked *a) {
  return a->problem->left != ATTN_UNLIMITED || a->problem->right != ATTN_UNLIMITED;
}

/* Whether that changes anything. */
static inline bool set(double *number, double to) {
  const bool changes = *number != to;
  *number = to;
  return changes;
}
static inline bool move(int64_t *place, int64_t to) {
  const bool changes = *place != to;
  *place = to;
  return changes;
}

#endif
