/* Rows of a problem's tensors where they lie in memory, and their elements as numbers, whichever type they have. */
#ifndef ATTN_HARNESS_ROWS_H
#define ATTN_HARNESS_ROWS_H

#include <assert.h>
#include <string.h>

#include "inputs.h"
#include "types.h"

/* Where a row stands on the axes of its tensor; i: a query or a key. */
typedef struct row_place {
  int64_t b, h, i;
} row_place;

/* The n-th of all B H Tq query rows. */
static inline row_place row_place_of(const attn_problem *p, int64_t n) {
  return (row_place){n / p->query_length / p->query_heads, n / p->query_length % p->query_heads,
                     n % p->query_length};
}

/* The n-th of all B Hkv Tk keys. */
static inline row_place key_place_of(const attn_problem *p, int64_t n) {
  return (row_place){n / p->key_length / p->kv_heads, n / p->key_length % p->kv_heads, n % p->key_length};
}

/* One row. Kernels may not change inputs, who has made them may. */
typedef struct number_row {
  const element_type *type;
  unsigned char *first;
} number_row;

static inline number_row row_at(const inputs *in, tensor_id id, row_place at) {
  const attn_layout *s = tensor_layout(&in->problem, id);
  const element_type *type = element_type_of(s->type);
  assert(type && "the problem has the tensor");
  unsigned char *data = (unsigned char *)(uintptr_t)tensor_data(&in->problem, &in->tensors, id);
  return (number_row){type,
                      data + (at.b * s->batch + at.h * s->head + at.i * s->position) * (int64_t)type->bytes};
}

static inline unsigned char *row_element(number_row of, int64_t n) {
  return of.first + n * (int64_t)of.type->bytes;
}

static inline double row_number(number_row of, int64_t n) { return of.type->load(row_element(of, n)); }

/* Rounded to its type. */
static inline void row_set(number_row of, int64_t n, double number) {
  of.type->store(row_element(of, n), number);
}

/* Whether an element was never written since it was poisoned: either half of the poison of 32 bits is that of 16. */
static inline bool element_is_poison(const element_type *type, const unsigned char *element) {
  uint32_t word;
  uint16_t half;
  if (type->bytes == sizeof word) {
    memcpy(&word, element, sizeof word);
    return word == GUARDED_POISON;
  }
  memcpy(&half, element, sizeof half);
  return half == GUARDED_POISON_HALF;
}

#endif
