/* Everything that a variant may rely on, checked once, before any variant sees the problem. The limits on sizes and positions keep every address, and every sum that attn_visible_keys
 * forms, far inside int64_t. */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "base/complaint.h"
#include "features.h"
#include "reference/reference.h"
#include "tensors.h"
#include "types.h"

static const int64_t largest_size = INT64_C(1) << 40;
static const int64_t largest_bytes = INT64_MAX / 2; /* of one tensor, gaps included */

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

static bool check_function(const attn_problem *p, complaint to) {
  const reference_function *function = reference_function_of(p->function);
  if (!function)
    return wrong(to, "function is %d: it must be %d (softmax) or %d (linear)", (int)p->function, ATTN_SOFTMAX,
                 ATTN_LINEAR);
  for (int n = 0; n < FEATURES; n++) {
    const feature_row *feature = &feature_table[n];
    const bool used = feature_is_used(feature, p);
    if (used && !(feature->functions >> p->function & 1))
      return wrong(to, "%s attention has no use for %s: it takes a band and key lengths", function->name,
                   feature->what);
    if (feature->bit && used != (bool)(p->features & feature->bit))
      return wrong(to, "features %s %s, which the problem %s: features_of tells the set",
                   used ? "lacks" : "has", feature->what, used ? "uses" : "does not use");
  }
  return true;
}

static bool check_types(const attn_problem *p, complaint to) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(p, id)->type;
    char allowed[64];
    if (type == ATTN_ABSENT ? tensor_is_optional(id)
                            : (unsigned)type < 32 && tensor_table[id].types >> type & 1)
      continue;
    element_types_name(tensor_table[id].types, allowed, sizeof allowed);
    return wrong(to, "the type of %s is %d: it must be %s", tensor_table[id].name, (int)type, allowed);
  }
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
  attn_layout layout;
  tensor_shape shape;
  int64_t element_bytes;
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
  int64_t extent = t->shape.width, bytes, packed = 0;
  bool fits = add_extent(t->layout.batch, t->shape.batch, &extent) &&
              add_extent(t->layout.head, t->shape.heads, &extent) &&
              add_extent(t->layout.position, t->shape.length, &extent) &&
              !__builtin_mul_overflow(extent, t->element_bytes, &bytes) && bytes <= largest_bytes;
  /* Packed as well, whatever the strides: a variant may count elements or size a copy. */
  fits = fits && !__builtin_mul_overflow(t->shape.batch, t->shape.heads, &packed) &&
         !__builtin_mul_overflow(packed, t->shape.length, &packed) &&
         !__builtin_mul_overflow(packed, t->shape.width, &packed) &&
         !__builtin_mul_overflow(packed, t->element_bytes, &packed) && packed <= largest_bytes;
  if (fits) return true;
  return wrong(to, "%s of [%lld, %lld, %lld, %lld] with strides %lld, %lld, %lld exceeds %lld bytes", t->name,
               SHOW(t->shape.batch), SHOW(t->shape.heads), SHOW(t->shape.length), SHOW(t->shape.width),
               SHOW(t->layout.batch), SHOW(t->layout.head), SHOW(t->layout.position), SHOW(largest_bytes));
}

/* Rows of an output must not overlap. Ordered by stride, each axis has to step over all that the axes
 * with smaller strides span: sufficient, and true of every layout in use. check_reach has passed. */
static bool check_overlap(const tensor *t, complaint to) {
  struct axis {
    const char *name;
    int64_t stride, size;
  } axes[3] = {{"batch", t->layout.batch, t->shape.batch},
               {"head", t->layout.head, t->shape.heads},
               {"position", t->layout.position, t->shape.length}};
  if (t->shape.batch == 0 || t->shape.heads == 0 || t->shape.length == 0) return true;
  for (int n = 0; n < 3; n++)
    if (axes[n].size > 1 && axes[n].stride < 0) axes[n].stride = -axes[n].stride;
  for (int n = 1; n < 3; n++)
    for (int m = n; m > 0 && axes[m].stride < axes[m - 1].stride; m--) {
      struct axis swapped = axes[m];
      axes[m] = axes[m - 1];
      axes[m - 1] = swapped;
    }
  int64_t span = t->shape.width;
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
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_layout *layout = tensor_layout(p, id);
    if (!layout->type) continue;
    const tensor t = {tensor_table[id].name, *layout, tensor_shape_of(p, id),
                      (int64_t)element_type_of(layout->type)->bytes};
    if (t.shape.width == 0) continue; /* without elements */
    if (!check_reach(&t, to) || (tensor_table[id].written && !check_overlap(&t, to))) return false;
  }
  /* No tensor, but variants count them. */
  const tensor scores = {
      "the scores", {0}, {p->batch, p->query_heads, p->query_length, p->key_length}, sizeof(float)};
  return scores.shape.width == 0 || check_reach(&scores, to);
}

bool check_problem(const attn_problem *problem, char *reason, size_t reason_size) {
  complaint to = {reason, reason_size};
  return check_sizes(problem, to) && check_numbers(problem, to) && check_function(problem, to) &&
         check_band(problem, to) && check_types(problem, to) && check_tensors(problem, to);
}
