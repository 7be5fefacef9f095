/* See widened.h. */
#include "widened.h"

#include <stdlib.h>

#include "types.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* Whole buffers are converted, gaps between the rows included: nobody reads those. */
static float *copy(const attn_problem *problem, const attn_tensors *tensors, tensor_id id) {
  const element_type *type = element_type_of(tensor_layout(problem, id)->type);
  const int64_t count = (int64_t)tensor_elements(problem, id);
  const char *data = tensor_data(problem, tensors, id);
  float *copied = malloc(((size_t)count + 1) * sizeof *copied);
#pragma omp parallel for schedule(static) if (count > worth_threads)
  for (int64_t n = 0; n < (copied ? count : 0); n++)
    copied[n] = (float)type->load(data + n * (int64_t)type->bytes);
  return copied;
}

bool widened_create(widened *widened, const attn_problem *problem, const attn_tensors *tensors,
                    bool outputs) {
  *widened = (struct widened){.tensors = *tensors, .problem = *problem};
  for (tensor_id id = 0; id < TENSORS; id++) {
    if ((tensor_is_written(problem, id) && !outputs) ||
        !element_type_is_narrow(tensor_layout(problem, id)->type))
      continue;
    widened->copies[id] = copy(problem, tensors, id);
    if (!widened->copies[id]) {
      widened_destroy(widened);
      return false;
    }
    tensor_set_data(&widened->problem, &widened->tensors, id, widened->copies[id]);
  }
  return true;
}

void widened_destroy(widened *widened) {
  for (tensor_id id = 0; id < TENSORS; id++) free(widened->copies[id]);
  *widened = (struct widened){0};
}
