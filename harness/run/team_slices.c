/* See team_slices.h. */
#include "team_slices.h"

#include <string.h>

#include "problem/types.h"

/* The axis that positions are counted along. */
static char position_axis(tensor_id id) { return tensor_table[id].axes[2]; }

attn_slice team_slice(const attn_problem *whole, tensor_id id, const team_deal *deal, int rank) {
  const tensor_shape shape = tensor_stored_shape(whole, id);
  const char axis = position_axis(id);
  attn_slicing slicing = ATTN_WHOLE;
  if (axis == 'q' && shape.length == whole->query_length) slicing = deal->queries;
  if (axis == 'k' && shape.length == whole->key_length) slicing = deal->keys;
  if (tensor_layout(whole, id)->position == 0) slicing = ATTN_WHOLE; /* one row for all */
  return attn_slice_of(slicing, shape.length, rank, deal->ranks);
}

/* The strides of a slice: axes in the same order, with the same gaps between them. */
static attn_layout slice_layout(attn_layout whole, tensor_shape shape, int64_t length) {
  attn_layout slice = whole;
  int64_t *const strides[] = {&slice.position, &slice.head, &slice.batch};
  const int64_t before[] = {whole.position, whole.head, whole.batch};
  const int64_t extents[] = {shape.length, shape.heads, shape.batch},
                now[] = {length, shape.heads, shape.batch};
  bool placed[3] = {false, false, false};
  for (int last = -1, n = 0; n < 3; n++) {
    int next = -1;
    for (int axis = 0; axis < 3; axis++)
      if (!placed[axis] && (next < 0 || before[axis] < before[next])) next = axis;
    placed[next] = true;
    if (before[next] == 0) continue;
    if (last >= 0) {
      const int64_t gap = before[next] - extents[last] * before[last];
      *strides[next] = now[last] * *strides[last] + (gap > 0 ? gap : 0);
    }
    last = next;
  }
  return slice;
}

attn_problem team_problem(const attn_problem *whole, const team_deal *deal, int rank) {
  attn_problem problem;
  memcpy(&problem, whole, sizeof problem);
  for (tensor_id id = 0; id < TENSORS; id++) {
    attn_layout *layout = tensor_layout_of(&problem, id);
    if (!layout->type) continue;
    const attn_slice slice = team_slice(whole, id, deal, rank);
    *layout =
        slice_layout(*tensor_layout(whole, id), tensor_stored_shape(whole, id), attn_slice_length(&slice));
  }
  return problem;
}

size_t team_tensor_bytes(const attn_problem *whole, tensor_id id, const team_deal *deal, int rank) {
  const attn_problem own = team_problem(whole, deal, rank);
  const attn_layout *layout = tensor_layout(&own, id);
  const tensor_shape shape = tensor_stored_shape(whole, id);
  const attn_slice slice = team_slice(whole, id, deal, rank);
  const int64_t length = attn_slice_length(&slice);
  if (shape.batch == 0 || shape.heads == 0 || length == 0 || shape.width == 0) return 0;
  return (size_t)((shape.batch - 1) * layout->batch + (shape.heads - 1) * layout->head +
                  (length - 1) * layout->position + shape.width) *
         element_type_of(layout->type)->bytes;
}

static bool takes_part(const attn_problem *problem, tensor_id id, bool written) {
  return tensor_layout(problem, id)->type && tensor_is_written(problem, id) == written;
}

static size_t row_bytes(const attn_problem *whole, tensor_id id) {
  return (size_t)tensor_stored_shape(whole, id).width *
         element_type_of(tensor_layout(whole, id)->type)->bytes;
}

/* Where row i of a head lies. */
static unsigned char *row_at(const attn_problem *problem, const attn_tensors *tensors, tensor_id id,
                             int64_t b, int64_t h, int64_t i) {
  const attn_layout *layout = tensor_layout(problem, id);
  const int64_t at = b * layout->batch + h * layout->head + i * layout->position;
  return (unsigned char *)(uintptr_t)tensor_data(problem, tensors, id) +
         at * (int64_t)element_type_of(layout->type)->bytes;
}

static void copy_head(const team_rows *whole, const team_rows *own, tensor_id id, const attn_slice *slice,
                      int64_t b, int64_t h, bool written) {
  const size_t bytes = row_bytes(whole->problem, id);
  int64_t at = 0;
  for (int run = 0; run < slice->runs; run++)
    for (int64_t n = 0; n < slice->length[run]; n++, at++) {
      unsigned char *there =
                        row_at(whole->problem, whole->tensors, id, b, h, attn_slice_position(slice, run, n)),
                    *here = row_at(own->problem, own->tensors, id, b, h, at);
      memcpy(written ? there : here, written ? here : there, bytes);
    }
}

void team_copy(const team_rows *whole, const team_rows *own, const team_deal *deal, int rank, bool written) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!takes_part(whole->problem, id, written)) continue;
    const tensor_shape shape = tensor_stored_shape(whole->problem, id);
    const attn_slice slice = team_slice(whole->problem, id, deal, rank);
    for (int64_t b = 0; b < shape.batch; b++)
      for (int64_t h = 0; h < shape.heads; h++) copy_head(whole, own, id, &slice, b, h, written);
  }
}
