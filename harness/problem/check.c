/* Everything that a variant may rely on, checked once, before any variant sees the problem. The limits on sizes and
 * positions keep every address, and every sum that attn_visible_keys forms, far inside int64_t. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/complaint.h"
#include "features.h"
#include "linear_text.h"
#include "reference/general.h"
#include "reference/reference.h"
#include "tensors.h"
#include "types.h"

static const int64_t largest_size = INT64_C(1) << 40;
enum { MOST_RELATIVE = 1 << 30, MOST_BUCKETS = 1024, MOST_T5_DISTANCE = 1 << 20, MOST_ROPE = 1 << 30 };
enum { MOST_RANDOM = 1024 }; /* blocks of a term, which are drawn again for each tile */
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
  if (!linear_phi_name(p->feature_map))
    return wrong(to, "feature_map is %d: it must be %d (elu + 1), %d (relu) or %d (identity)",
                 (int)p->feature_map, ATTN_ELU1, ATTN_RELU, ATTN_IDENTITY);
  return true;
}

static bool check_function(const attn_problem *p, complaint to) {
  const reference_function *function = reference_function_of(p->function);
  if (!function)
    return wrong(to,
                 "function is %d: it must be %d (softmax), %d (linear), %d (softmax, backward), %d (linear, "
                 "backward) or %d (layer)",
                 (int)p->function, ATTN_SOFTMAX, ATTN_LINEAR, ATTN_SOFTMAX_BACKWARD, ATTN_LINEAR_BACKWARD,
                 ATTN_LAYER);
  for (int n = 0; n < FEATURES; n++) {
    const feature_row *feature = &feature_table[n];
    const bool used = feature_is_used(feature, p);
    if (used && !(feature->functions >> p->function & 1))
      return wrong(to, "%s has no use for %s%s", reference_function_words(function), feature->what,
                   function->has_scores ? "" : ": it takes a band and key lengths");
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
    if (type == ATTN_ABSENT ? tensor_is_optional(p, id)
                            : (unsigned)type < 32 && tensor_table[id].types >> type & 1)
      continue;
    element_types_name(tensor_table[id].types, allowed, sizeof allowed);
    return wrong(to, "the type of %s is %d: it must be %s", tensor_table[id].name, (int)type, allowed);
  }
  return true;
}

/* What the backward pass has beside the forward pass, and what it has not yet. */
static bool check_pass(const attn_problem *p, complaint to) {
  const bool backward = tensors_are_backward(p);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(p, id)->type;
    const bool is_there = type != ATTN_ABSENT;
    const tensor_id input = tensor_of_gradient(id);
    const bool wanted = backward && (input == TENSORS || tensor_layout(p, input)->type);
    if (tensor_is_gradient(id) && is_there != wanted)
      return wrong(to, "%s is %s: a problem of the backward pass has it%s%s, no other has",
                   tensor_table[id].name, is_there ? "given" : "not given",
                   input == TENSORS ? "" : " where it has ",
                   input == TENSORS ? "" : tensor_table[input].words);
  }
  if (p->function == ATTN_SOFTMAX_BACKWARD && !p->lse.type)
    return wrong(to, "the lse is not given: the backward pass needs it");
  /* Of nothing a stride may be 0 or not. */
  const attn_layout *bias = &p->bias, *grad = &p->bias_grad;
  const bool has_pairs = p->batch > 0 && p->query_heads > 0 && p->query_length > 0 && p->key_length > 0;
  if (grad->type && has_pairs &&
      ((bias->batch == 0) != (grad->batch == 0) || (bias->head == 0) != (grad->head == 0) ||
       (bias->position == 0) != (grad->position == 0)))
    return wrong(to, "bias_grad has not the axes of the bias: its strides are 0 where those of the bias are");
  return true;
}

/* What a layer has and has not. */
static bool check_layer(const attn_problem *p, complaint to) {
  const bool of_layer = tensors_are_of_layer(p);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const attn_type type = tensor_layout(p, id)->type;
    if (type && ((tensor_is_projection(id) && !of_layer) || (id == TENSOR_VALUE && of_layer)))
      return wrong(to,
                   of_layer ? "%s is given: a layer projects its own" : "%s is given: only a layer has it",
                   tensor_table[id].name);
    if (of_layer && (type == ATTN_BFLOAT16 || type == ATTN_FLOAT16))
      return wrong(to, "%s is of 16 bits: a layer is defined for f32", tensor_table[id].name);
    if (of_layer && id >= TENSOR_B_Q && id <= TENSOR_B_O && !type != !p->layer.b_q.type)
      return wrong(to, "%s is %s, and b_q is %s: projections have all four biases or none",
                   tensor_table[id].name, type ? "given" : "not given", type ? "not given" : "given");
  }
  if (!of_layer)
    return p->layer.model_dim == 0 ||
           wrong(to, "model_dim is %lld: only a layer has one", SHOW(p->layer.model_dim));
  if (!check_size("model_dim", p->layer.model_dim, 1, to)) return false;
  return p->key.type || p->query_length == p->key_length ||
         wrong(to, "key_length %lld is not query_length %lld without a memory, of which keys are then made",
               SHOW(p->key_length), SHOW(p->query_length));
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

static bool check_term(const attn_term *t, int n, complaint to) {
  const bool reaches = t->kind == ATTN_LOCAL;
  const int64_t numbers[] = {t->a, t->b};
  if ((unsigned)t->kind > ATTN_RANDOM)
    return wrong(to, "terms[%d] is of kind %d: there are %d to %d", n, (int)t->kind, ATTN_LOCAL, ATTN_RANDOM);
  for (int m = 0; m < 2; m++)
    if (!(reaches && numbers[m] == ATTN_UNLIMITED) && (numbers[m] < 0 || numbers[m] > ATTN_FARTHEST))
      return wrong(to, "terms[%d] has a size of %lld: it must be 0 to %lld", n, SHOW(numbers[m]),
                   SHOW(ATTN_FARTHEST));
  const bool divides_by_a = t->kind == ATTN_STRIDED || t->kind == ATTN_FIXED;
  if ((divides_by_a && t->a < 1) || ((t->kind == ATTN_DILATED || t->kind == ATTN_RANDOM) && t->b < 1))
    return wrong(to, "terms[%d] has a step, length or block of 0: it must be 1 or more", n);
  int64_t reach;
  if (t->kind == ATTN_DILATED && (__builtin_mul_overflow(t->a, t->b, &reach) || reach > ATTN_FARTHEST))
    return wrong(to, "terms[%d] reaches %lld steps of %lld: they must be within %lld", n, SHOW(t->a),
                 SHOW(t->b), SHOW(ATTN_FARTHEST));
  if (t->kind == ATTN_FIXED && t->b > t->a)
    return wrong(to, "terms[%d] shows %lld columns of every %lld: it must be no more than these", n,
                 SHOW(t->b), SHOW(t->a));
  if (t->kind == ATTN_RANDOM && t->a > MOST_RANDOM)
    return wrong(to, "terms[%d] draws %lld blocks: it must be at most %d", n, SHOW(t->a), MOST_RANDOM);
  return true;
}

static bool check_pattern(const attn_problem *p, complaint to) {
  const int64_t tensors = (p->query_documents.type != ATTN_ABSENT) + (p->blocks.type != ATTN_ABSENT) +
                          (p->topk.type != ATTN_ABSENT);
  if (p->term_count < 0 || p->term_count + tensors > ATTN_MOST_TERMS)
    return wrong(
        to, "the pattern has %lld terms: it must have at most %d, documents, blocks and listed keys counted",
        SHOW(p->term_count + tensors), ATTN_MOST_TERMS);
  for (int n = 0; n < p->term_count; n++)
    if (!check_term(&p->terms[n], n, to)) return false;
  if ((p->query_documents.type == ATTN_ABSENT) != (p->key_documents.type == ATTN_ABSENT))
    return wrong(to, "query_documents and key_documents go together: give both or none");
  if (p->blocks.type &&
      (p->block_q < 1 || p->block_k < 1 || p->block_q > largest_size || p->block_k > largest_size))
    return wrong(to, "the blocks have %lld queries and %lld keys: each must be 1 to %lld", SHOW(p->block_q),
                 SHOW(p->block_k), SHOW(largest_size));
  if (p->topk.type && (p->topk_count < 1 || p->topk_count > INT32_MAX || p->key_length > INT32_MAX))
    return wrong(to, "topk_count is %lld of %lld keys: both must be 1 to %d", SHOW(p->topk_count),
                 SHOW(p->key_length), INT32_MAX);
  for (int64_t b = 0; p->query_lengths && b < p->batch; b++)
    if (p->query_lengths[b] < 0 || p->query_lengths[b] > p->query_length)
      return wrong(to, "query_lengths[%lld] is %lld: it must be 0 to query_length %lld", SHOW(b),
                   SHOW(p->query_lengths[b]), SHOW(p->query_length));
  return true;
}

static bool check_t5(const attn_problem *p, complaint to) {
  const int64_t exact = p->t5_buckets / (p->t5_both ? 4 : 2);
  if (!p->t5.type)
    return (p->t5_buckets == 0 && p->t5_distance == 0 && !p->t5_both) ||
           wrong(to, "t5_buckets is %lld, t5_distance %lld without numbers of T5's buckets: give all or none",
                 SHOW(p->t5_buckets), SHOW(p->t5_distance));
  if (p->t5_both && (p->t5_buckets < 4 || p->t5_buckets > MOST_BUCKETS || p->t5_buckets % 2 != 0))
    return wrong(to, "t5_buckets is %lld: of both directions it must be an even number, 4 to %d",
                 SHOW(p->t5_buckets), MOST_BUCKETS);
  if (p->t5_buckets < 2 || p->t5_buckets > MOST_BUCKETS)
    return wrong(to, "t5_buckets is %lld: it must be 2 to %d", SHOW(p->t5_buckets), MOST_BUCKETS);
  if (p->t5_distance <= exact || p->t5_distance > MOST_T5_DISTANCE)
    return wrong(
        to,
        "t5_distance is %lld: it must be above %lld, the buckets of %lld that have one distance each, and at "
        "most %d",
        SHOW(p->t5_distance), SHOW(exact), SHOW(p->t5_buckets), MOST_T5_DISTANCE);
  return true;
}

/* Tables have rows for positions from 0. */
static bool check_rope_of_queries(const attn_problem *p, int64_t offset, complaint to) {
  if (p->query_length == 0 || (offset >= 0 && offset <= p->rope_positions - p->query_length)) return true;
  return wrong(to,
               "query positions %lld to %lld go beyond a rotary embedding of %lld positions: each i + offset "
               "must be 0 to %lld",
               SHOW(offset), SHOW(offset + p->query_length - 1), SHOW(p->rope_positions),
               SHOW(p->rope_positions - 1));
}

static bool check_rope(const attn_problem *p, complaint to) {
  if ((p->rope_cos.type == ATTN_ABSENT) != (p->rope_sin.type == ATTN_ABSENT))
    return wrong(to, "rope_cos and rope_sin go together: give both or none");
  if (!p->rope_cos.type)
    return (p->rope_features == 0 && p->rope_positions == 0 && !p->rope_interleaved) ||
           wrong(to, "rope_features is %lld, rope_positions %lld without cosines and sines: give all or none",
                 SHOW(p->rope_features), SHOW(p->rope_positions));
  if (p->rope_features < 2 || p->rope_features > p->head_dim || p->rope_features % 2 != 0)
    return wrong(to, "rope_features is %lld: it must be an even number, 2 to head_dim %lld",
                 SHOW(p->rope_features), SHOW(p->head_dim));
  if (p->rope_positions < 1 || p->rope_positions > MOST_ROPE)
    return wrong(to, "rope_positions is %lld: it must be 1 to %d", SHOW(p->rope_positions), MOST_ROPE);
  if (p->key_length > p->rope_positions)
    return wrong(to, "keys stand at positions up to %lld: a rotary embedding of %lld has no such row",
                 SHOW(p->key_length - 1), SHOW(p->rope_positions));
  for (int64_t b = 0; b < p->batch; b++) {
    if (!check_rope_of_queries(p, p->offsets ? p->offsets[b] : p->offset, to)) return false;
    if (!p->offsets) break;
  }
  return true;
}

static bool check_position(const attn_problem *p, complaint to) {
  if (p->relative.type && (p->relative_distance < 1 || p->relative_distance > MOST_RELATIVE))
    return wrong(to, "relative_distance is %lld: a relative table tells distances apart up to one of 1 to %d",
                 SHOW(p->relative_distance), MOST_RELATIVE);
  if (!p->relative.type && p->relative_distance != 0)
    return wrong(to, "relative_distance is %lld without a relative table: give both or none",
                 SHOW(p->relative_distance));
  return check_t5(p, to) && check_rope(p, to);
}

static bool check_general(const attn_problem *p, complaint to) {
  return !p->general.type || p->head_dim <= REFERENCE_MOST_GENERAL ||
         wrong(to, "head_dim is %lld: general scores are of at most %d features", SHOW(p->head_dim),
               REFERENCE_MOST_GENERAL);
}

static bool check_additive(const attn_problem *p, complaint to) {
  return !p->additive.type || !p->general.type ||
         wrong(to, "scores are general or additive, and not both: give one of the two");
}

/* Sums of features go with states where there is a normaliser. */
static bool check_states(const attn_problem *p, complaint to) {
  const attn_linear_states *s = &p->states;
  if ((s->state.type || s->final_state.type) && p->left != ATTN_UNLIMITED)
    return wrong(to, "left is %lld: a state holds all keys before, so the band must not be limited there",
                 SHOW(p->left));
  const struct {
    const attn_layout *of, *sum;
    const char *name;
  } pairs[] = {{&s->state, &s->state_sum, "state"}, {&s->final_state, &s->final_state_sum, "final_state"}};
  for (int n = 0; n < 2; n++)
    if (!pairs[n].sum->type != !(pairs[n].of->type && !p->unnormalised))
      return wrong(to, "%s_sum is %s: it goes with %s where sums are normalised, and only there",
                   pairs[n].name, pairs[n].sum->type ? "given" : "not given", pairs[n].name);
  return true;
}

static bool check_dropout(const attn_problem *p, complaint to) {
  if (!p->keep.type && p->dropout_p != 0)
    return wrong(to, "dropout_p is %g without a keep mask: give both or none", p->dropout_p);
  return (p->dropout_p >= 0 && p->dropout_p < 1) ||
         wrong(to, "dropout_p is %g: it must be 0 up to, but not, 1", p->dropout_p);
}

/* A list of keys: each is one, or -1, and none comes twice. seen: [Tk] zeros, and is left so. */
static bool check_list(const attn_problem *p, const int32_t *keys, const int64_t at[3], bool *seen,
                       complaint to) {
  bool sound = true;
  int64_t n = 0;
  for (; n < p->topk_count && sound; n++) {
    if (keys[n] == -1) continue;
    if (keys[n] < 0 || keys[n] >= p->key_length)
      sound = wrong(to, "topk[%lld, %lld, %lld, %lld] is %d: it must be a key, 0 to %lld, or -1 for none",
                    SHOW(at[0]), SHOW(at[1]), SHOW(at[2]), SHOW(n), (int)keys[n], SHOW(p->key_length - 1));
    else if (seen[keys[n]])
      sound = wrong(to, "topk[%lld, %lld, %lld, %lld] lists key %d twice: a key is listed once", SHOW(at[0]),
                    SHOW(at[1]), SHOW(at[2]), SHOW(n), (int)keys[n]);
    else
      seen[keys[n]] = true;
  }
  while (n-- > 0)
    if (keys[n] >= 0 && keys[n] < p->key_length) seen[keys[n]] = false;
  return sound;
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
    const bool as_stored = id == TENSOR_BIAS_GRAD; /* a sum over the axes that it lacks */
    const tensor t = {tensor_table[id].name, *layout,
                      as_stored ? tensor_stored_shape(p, id) : tensor_shape_of(p, id),
                      (int64_t)element_type_of(layout->type)->bytes};
    if (t.shape.width == 0) continue; /* without elements */
    if (!check_reach(&t, to) || (tensor_is_written(p, id) && !check_overlap(&t, to))) return false;
  }
  /* No tensor, but variants count them. */
  const tensor scores = {
      "the scores", {0}, {p->batch, p->query_heads, p->query_length, p->key_length}, sizeof(float)};
  return scores.shape.width == 0 || check_reach(&scores, to);
}

bool check_pattern_tensors(const attn_problem *p, char *reason, size_t reason_size) {
  const tensor_shape shape = tensor_stored_shape(p, TENSOR_TOPK);
  complaint to = {reason, reason_size};
  bool sound = true;
  if (!p->topk.type) return true;
  bool *seen = calloc((size_t)p->key_length + 1, sizeof *seen);
  if (!seen) return wrong(to, "no memory to check the listed keys");
  for (int64_t n = 0; n < shape.batch * shape.heads * shape.length && sound; n++) {
    const int64_t at[] = {n / shape.length / shape.heads, n / shape.length % shape.heads, n % shape.length};
    const int64_t place = at[0] * p->topk.batch + at[1] * p->topk.head + at[2] * p->topk.position;
    sound = check_list(p, p->topk_data + place, at, seen, to);
  }
  free(seen);
  return sound;
}

bool check_problem(const attn_problem *problem, char *reason, size_t reason_size) {
  complaint to = {reason, reason_size};
  return check_sizes(problem, to) && check_numbers(problem, to) && check_function(problem, to) &&
         check_band(problem, to) && check_types(problem, to) && check_pass(problem, to) &&
         check_layer(problem, to) && check_pattern(problem, to) && check_position(problem, to) &&
         check_dropout(problem, to) && check_general(problem, to) && check_additive(problem, to) &&
         check_states(problem, to) && check_tensors(problem, to);
}
