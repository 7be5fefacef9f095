/* See written.h. */
#include "written.h"

#include <stdarg.h>
#include <stdio.h>

#include "problem/rows.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

void verdict_fail(verdict *to, const char *format, ...) {
  if (!to->passed) return;
  to->passed = false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(to->problem, sizeof to->problem, format, arguments);
  va_end(arguments);
}

static row_place place_in(tensor_shape s, int64_t n) {
  return (row_place){n / s.length / s.heads, n / s.length % s.heads, n % s.length};
}

void written_check(const inputs *in, tensor_id id, verdict *result) {
  const tensor_shape s = tensor_stored_shape(&in->problem, id);
  const int64_t rows = s.batch * s.heads * s.length;
  if (rows == 0 || s.width == 0) return;
  const guarded *buffer = &in->buffers[id];
  const element_type *type = element_type_of(tensor_layout(&in->problem, id)->type);
  const int64_t bytes = (int64_t)type->bytes, words = (int64_t)buffer->bytes / bytes;
  int64_t poisoned = 0, poisoned_in_rows = 0, poisoned_of_others = 0, first = rows;
#pragma omp parallel for schedule(static) reduction(+ : poisoned) if (words > worth_threads)
  for (int64_t n = 0; n < words; n++) poisoned += element_is_poison(type, buffer->data + n * bytes);
  const int64_t between_rows = words - rows * s.width;
  if (poisoned == 0 && between_rows == 0) return;
#pragma omp parallel for schedule(static) reduction(+ : poisoned_in_rows) \
    reduction(+ : poisoned_of_others) reduction(min : first) if (words > worth_threads)
  for (int64_t n = 0; n < rows; n++) {
    const number_row row = row_at(in, id, place_in(s, n));
    const bool owned = inputs_owns(in, n % s.length);
    for (int64_t d = 0; d < s.width; d++)
      if (element_is_poison(type, row_element(row, d))) {
        poisoned_in_rows += owned;
        poisoned_of_others += !owned;
        first = owned && n < first ? n : first;
      }
  }
  const row_place at = first < rows ? place_in(s, first) : (row_place){0};
  if (poisoned_in_rows > 0)
    verdict_fail(result, "%lld elements of %s are not written, the first in row b %lld, h %lld, i %lld",
                 (long long)poisoned_in_rows, tensor_table[id].name, (long long)at.b, (long long)at.h,
                 (long long)at.i);
  else if (poisoned - poisoned_of_others != between_rows)
    verdict_fail(result, "%s: %lld elements are written that lie between its rows", tensor_table[id].name,
                 (long long)(between_rows + poisoned_of_others - poisoned));
}
