/* Inputs that lie in no cache when a kernel gets them, as in real use, where other layers ran in between. */
#ifndef ATTN_HARNESS_COLD_H
#define ATTN_HARNESS_COLD_H

#include "problem/inputs.h"

typedef struct cold {
  unsigned char *memory;
  size_t bytes;
  attn_tensors *copies;
} cold;

/* Memory of twice the size of the last cache; 0: unknown. False when it cannot be had. */
bool cold_create(cold *cold, size_t cache_bytes);
void cold_destroy(cold *cold);

/* The share of a problem's bytes that no copy has, of tensors that it holds itself: they stay in the caches. */
double cold_left_hot(const attn_problem *problem);

/* Copies inputs and output side by side as often as the memory holds them: who takes the copies in turn finds
 * none of them in the cache. Their number, in cold->copies; 0 when the inputs are larger than the memory
 * and so in no cache anyway. */
size_t cold_fill(cold *cold, const inputs *inputs);

#endif
