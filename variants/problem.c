/* attn_check_problem: everything that a variant may rely on, checked once, before any variant sees the
 * problem. The limits on sizes and positions keep every address, and every sum that attn_visible_keys
 * forms, far inside int64_t. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "attention.h"

static const int64_t largest_size = INT64_C(1) << 40;
static const int64_t largest_bytes = INT64_MAX / 2; /* of one tensor, gaps included */

typedef struct complaint {
  char *text;
  size_t size;
} complaint;

__attribute__((format(printf, 2, 3))) static bool wrong(complaint to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (to.size > 0) vsnprintf(to.text, to.size, format, arguments);
  va_end(arguments);
  return false;
}

#define SHOW(number) ((long long)(number))

static bool check_size(const char *name, int64_t size, int64_t least, complaint to) {
  if (size >= least && size <= largest_size) return true;
  return wrong(to, "%s is %lld: it must be %lld to %lld", name, SHOW(size), SHOW(least), SHOW(largest_size));
}

static bool check_sizes(const attn_problem *p, complaint to) {
  if (!check_size("batch", p->batch, 0, to) || !check_size("query_heads", p->query_heads, 0, to) ||
      !check_size("kv_heads", p->kv_heads, p->query_heads > 0 ? 1 : 0, to) ||
      !check_size("query_length", p->query_length, 0, to) ||
      !check_size("key_length", p->key_length, 0, to) || !check_size("head_dim", p->head_dim, 1, to) ||
      !check_size("value_dim", p->value_dim, 0, to))
    return false;
  if (p->kv_heads > 0 && p->query_heads % p->kv_heads != 0)
    return wrong(to,
                 "query_heads %lld is not a multiple of kv_heads %lld: each key/value head serves the "
                 "same number of query heads",
                 SHOW(p->query_heads), SHOW(p->kv_heads));
  return true;
}

static bool check_numbers(const attn_problem *p, complaint to) {
  if (!isfinite(p->scale))
    return wrong(to, "scale is %g: it must be a finite number, 1/sqrt(head_dim) by custom", p->scale);
  if (!isfinite(p->softcap) || p->softcap < 0)
    return wrong(to, "softcap is %g: it must be 0 (none) or a positive finite number", p->softcap);
  if (!isfinite(p->epsilon) || p->epsilon < 0)
    return wrong(to, "epsilon is %g: it must be 0 or a positive finite number", p->epsilon);
  return true;
}

static bool check_kinds(const attn_problem *p, complaint to) {
  if (p->function != ATTN_SOFTMAX && p->function != ATTN_LINEAR)
    return wrong(to, "function is %d: it must be %d (softmax) or %d (linear)", (int)p->function, ATTN_SOFTMAX,
                 ATTN_LINEAR);
  if (p->dtype != ATTN_FLOAT32 && p->dtype != ATTN_BFLOAT16 && p->dtype != ATTN_FLOAT16)
    return wrong(to, "dtype is %d: it must be %d (float32), %d (bfloat16) or %d (float16)", (int)p->dtype,
                 ATTN_FLOAT32, ATTN_BFLOAT16, ATTN_FLOAT16);
  if (p->function != ATTN_LINEAR) return true;
  const char *extra = p->has_mask        ? "a mask"
                      : p->has_bias      ? "a bias"
                      : p->softcap != 0  ? "a softcap"
                      : p->wants_lse     ? "a log-sum-exp"
                      : p->wants_weights ? "weights"
                                         : NULL;
  if (extra) return wrong(to, "linear attention has no use for %s: it takes a band and key lengths", extra);
  return true;
}

static bool check_offset(const char *name, int64_t offset, complaint to) {
  if (offset >= -ATTN_FARTHEST && offset <= ATTN_FARTHEST) return true;
  return wrong(to, "%s is %lld: it must be within +-%lld", name, SHOW(offset), SHOW(ATTN_FARTHEST));
}

static bool check_band(const attn_problem *p, complaint to) {
  const struct {
    const char *name;
    int64_t width;
  } sides[] = {{"left", p->left}, {"right", p->right}};
  for (int n = 0; n < 2; n++)
    if (sides[n].width != ATTN_UNLIMITED && (sides[n].width < 0 || sides[n].width > ATTN_FARTHEST))
      return wrong(to, "%s is %lld: it must be 0 to %lld, or ATTN_UNLIMITED", sides[n].name,
                   SHOW(sides[n].width), SHOW(ATTN_FARTHEST));
  if (!p->offsets && !check_offset("offset", p->offset, to)) return false;
  char name[48];
  for (int64_t b = 0; b < p->batch; b++) {
    snprintf(name, sizeof name, "offsets[%lld]", SHOW(b));
    if (p->offsets && !check_offset(name, p->offsets[b], to)) return false;
    if (p->key_lengths && (p->key_lengths[b] < 0 || p->key_lengths[b] > p->key_length))
      return wrong(to, "key_lengths[%lld] is %lld: it must be 0 to key_length %lld", SHOW(b),
                   SHOW(p->key_lengths[b]), SHOW(p->key_length));
    if (!p->offsets && !p->key_lengths) break;
  }
  return true;
}

/* A tensor of [batch, heads, length, width], width neighbours one element apart. */
typedef struct tensor {
  const char *name;
  attn_strides strides;
  int64_t batch, heads, length, width, element_bytes;
  bool written;
} tensor;

/* Adds stride * (size - 1), by magnitude, to the elements that a tensor spans; false on overflow. */
static bool add_extent(int64_t stride, int64_t size, int64_t *extent) {
  int64_t reach;
  if (size <= 1) return true;
  if (stride == INT64_MIN) return false;
  return !__builtin_mul_overflow(stride < 0 ? -stride : stride, size - 1, &reach) &&
         !__builtin_add_overflow(*extent, reach, extent);
}

static bool check_reach(const tensor *t, complaint to) {
  int64_t extent = t->width, bytes, packed = 0;
  bool fits = add_extent(t->strides.batch, t->batch, &extent) &&
              add_extent(t->strides.head, t->heads, &extent) &&
              add_extent(t->strides.position, t->length, &extent) &&
              !__builtin_mul_overflow(extent, t->element_bytes, &bytes) && bytes <= largest_bytes;
  /* Packed as well, whatever the strides: a variant may count elements or size a copy. */
  fits = fits && !__builtin_mul_overflow(t->batch, t->heads, &packed) &&
         !__builtin_mul_overflow(packed, t->length, &packed) &&
         !__builtin_mul_overflow(packed, t->width, &packed) &&
         !__builtin_mul_overflow(packed, t->element_bytes, &packed) && packed <= largest_bytes;
  if (fits) return true;
  return wrong(to, "%s of [%lld, %lld, %lld, %lld] with strides %lld, %lld, %lld exceeds %lld bytes", t->name,
               SHOW(t->batch), SHOW(t->heads), SHOW(t->length), SHOW(t->width), SHOW(t->strides.batch),
               SHOW(t->strides.head), SHOW(t->strides.position), SHOW(largest_bytes));
}

/* Rows of an output must not overlap. Ordered by stride, each axis has to step over all that the axes
 * with smaller strides span: sufficient, and true of every layout in use. check_reach has passed. */
static bool check_overlap(const tensor *t, complaint to) {
  struct axis {
    const char *name;
    int64_t stride, size;
  } axes[3] = {{"batch", t->strides.batch, t->batch},
               {"head", t->strides.head, t->heads},
               {"position", t->strides.position, t->length}};
  if (t->batch == 0 || t->heads == 0 || t->length == 0) return true;
  for (int n = 0; n < 3; n++)
    if (axes[n].size > 1 && axes[n].stride < 0) axes[n].stride = -axes[n].stride;
  for (int n = 1; n < 3; n++)
    for (int m = n; m > 0 && axes[m].stride < axes[m - 1].stride; m--) {
      struct axis swapped = axes[m];
      axes[m] = axes[m - 1];
      axes[m - 1] = swapped;
    }
  int64_t span = t->width;
  for (int n = 0; n < 3; n++) {
    if (axes[n].size == 1) continue;
    if (axes[n].stride < span || axes[n].stride == 0)
      return wrong(to, "%s rows overlap: the %s stride of %lld is less than the %lld elements within it",
                   t->name, axes[n].name, SHOW(axes[n].stride), SHOW(span));
    span += axes[n].stride * (axes[n].size - 1);
  }
  return true;
}

static bool check_tensors(const attn_problem *p, complaint to) {
  const int64_t B = p->batch, H = p->query_heads, Hkv = p->kv_heads;
  const int64_t Tq = p->query_length, Tk = p->key_length;
  const int64_t element = p->dtype == ATTN_FLOAT32 ? 4 : 2;
  const tensor tensors[] = {
      {"query", p->query, B, H, Tq, p->head_dim, element, false},
      {"key", p->key, B, Hkv, Tk, p->head_dim, element, false},
      {"value", p->value, B, Hkv, Tk, p->value_dim, element, false},
      {"output", p->output, B, H, Tq, p->value_dim, element, true},
      {"mask", p->mask, B, H, Tq, p->has_mask ? Tk : 0, 1, false},
      {"bias", p->bias, B, H, Tq, p->has_bias ? Tk : 0, element, false},
      {"weights", p->weights, B, H, Tq, p->wants_weights ? Tk : 0, element, true},
      {"lse", p->lse, B, H, Tq, p->wants_lse ? 1 : 0, 4, true},
      {"the scores", {0, 0, 0}, B, H, Tq, Tk, 4, false}, /* no tensor, but variants count them */
  };
  for (size_t n = 0; n < sizeof tensors / sizeof tensors[0]; n++) {
    if (tensors[n].width == 0) continue; /* absent, or without elements */
    if (!check_reach(&tensors[n], to) || (tensors[n].written && !check_overlap(&tensors[n], to)))
      return false;
  }
  return true;
}

bool attn_check_problem(const attn_problem *problem, char *reason, size_t reason_size) {
  complaint to = {reason, reason_size};
  return check_sizes(problem, to) && check_numbers(problem, to) && check_kinds(problem, to) &&
         check_band(problem, to) && check_tensors(problem, to);
}
