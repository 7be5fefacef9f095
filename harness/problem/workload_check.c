/* Whether a workload makes sense. */
#include <stdio.h>

#include "check.h"
#include "tensors.h"
#include "workload.h"

/* True when the number of elements of every tensor, and of the whole T x T scores, stays far within
 * int64_t, so that strides and sizes can be computed at all. */
static bool sizes_are_computable(const workload *w) {
  const int64_t most = INT64_MAX / 64;
  int64_t width = w->head_dim > w->value_dim ? w->head_dim : w->value_dim;
  int64_t rows, keys, unused;
  return !__builtin_mul_overflow(w->batch, w->query_heads, &rows) &&
         !__builtin_mul_overflow(rows, w->query_length, &rows) &&
         !__builtin_mul_overflow(w->batch, w->kv_heads, &keys) &&
         !__builtin_mul_overflow(keys, w->key_length, &keys) &&
         !__builtin_mul_overflow(rows, width, &unused) && unused <= most &&
         !__builtin_mul_overflow(keys, width, &unused) && unused <= most &&
         !__builtin_mul_overflow(rows, w->key_length, &unused) && unused <= most;
}

bool workload_check(const workload *workload, char *why, size_t why_size) {
  if (!sizes_are_computable(workload)) {
    snprintf(
        why, why_size,
        "B x H x T x D and B x H x Tq x Tk must stay below 2^57 elements: B %lld, H %lld, Tq %lld, Tk %lld, "
        "D %lld, Dv %lld are too many",
        (long long)workload->batch, (long long)workload->query_heads, (long long)workload->query_length,
        (long long)workload->key_length, (long long)workload->head_dim, (long long)workload->value_dim);
    return false;
  }
  if (function_is_backward(workload->function) && workload->fill == FILL_LARGEST) {
    snprintf(why, why_size,
             "the backward pass has no fill:largest: what it is given of the forward pass overflows");
    return false;
  }
  if (workload->function == ATTN_LAYER &&
      (workload->fill == FILL_LARGEST || workload->fill == FILL_NONFINITE)) {
    snprintf(why, why_size, "a layer has no fill:%s: what is no number or overflows reaches all heads",
             workload_fill_name(workload->fill));
    return false;
  }
  if (workload->function != ATTN_LAYER && (workload->model_dim != 0 || workload->memory)) {
    snprintf(why, why_size, "%s is of a layer: layer/...", workload->memory ? "a memory" : "M");
    return false;
  }
  attn_problem problem = workload_problem(workload);
  return check_problem(&problem, why, why_size);
}

bool workload_parse_sound(const char *text, workload *result, char *why, size_t why_size) {
  char reason[512];
  if (workload_parse(text, result, reason, sizeof reason) && workload_check(result, reason, sizeof reason))
    return true;
  snprintf(why, why_size, "--problem %s: %s", text, reason);
  return false;
}
