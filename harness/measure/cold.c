/* See cold.h. */
#include "cold.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4096, MOST_COPIES = 8192 };

bool cold_create(cold *cold, size_t cache_bytes) {
  const size_t guessed = (size_t)32 << 20;
  const size_t bytes = 2 * (cache_bytes ? cache_bytes : guessed);
  cold->bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  cold->memory = aligned_alloc(ALIGNMENT, cold->bytes);
  cold->copies = calloc(MOST_COPIES, sizeof *cold->copies);
  if (cold->memory && cold->copies) return true;
  cold_destroy(cold);
  return false;
}

void cold_destroy(cold *cold) {
  free(cold->memory);
  free(cold->copies);
  *cold = (struct cold){0};
}

/* Pages of their own for each tensor, so that copies are aligned alike. */
static size_t room_for(const guarded *buffer) {
  return (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Where the tensor begins in a copy of its buffer; *to moves on behind the copy. */
static void *copy(unsigned char **to, const guarded *buffer, const void *tensor) {
  if (!tensor) return NULL;
  unsigned char *at = *to;
  memcpy(at, buffer->data, buffer->bytes);
  *to += room_for(buffer);
  return at + ((const unsigned char *)tensor - buffer->data);
}

/* What lies in the problem is there once. */
static bool is_copied(tensor_id id) { return !tensor_table[id].in_problem; }

double cold_left_hot(const attn_problem *problem) {
  double hot = 0, all = 0;
  for (tensor_id id = 0; id < TENSORS; id++) {
    const double bytes = (double)tensor_bytes(problem, id);
    all += bytes;
    hot += is_copied(id) ? 0 : bytes;
  }
  return all > 0 ? hot / all : 0;
}

size_t cold_fill(cold *cold, const inputs *inputs) {
  size_t one = 0;
  for (tensor_id id = 0; id < TENSORS; id++) one += is_copied(id) ? room_for(&inputs->buffers[id]) : 0;
  size_t count = one ? cold->bytes / one : 0;
  if (count > MOST_COPIES) count = MOST_COPIES;
  unsigned char *to = cold->memory;
  for (size_t n = 0; n < count; n++)
    for (tensor_id id = 0; id < TENSORS; id++)
      if (is_copied(id))
        tensor_set_data(NULL, &cold->copies[n], id,
                        copy(&to, &inputs->buffers[id], tensor_data(NULL, &inputs->tensors, id)));
  return count;
}
