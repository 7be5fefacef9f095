/* Workloads as problems: strides of the layouts, and how much work and memory a workload stands for. */
#include "workload.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "features.h"
#include "pattern_fills.h"
#include "reference/reference.h"
#include "tensors.h"
#include "types.h"

/* Products saturate instead of overflowing: attn_check_problem then sees strides that are too large. */
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static attn_layout strides_of(workload_layout layout, tensor_id id, int64_t heads, int64_t length,
                              int64_t width) {
  attn_layout strides = {0};
  switch (layout) {
    case LAYOUT_BTHD:
      strides.head = width;
      strides.position = times(heads, width);
      strides.batch = times(length, strides.position);
      break;
    case LAYOUT_PADDED: /* odd everywhere, so that hardly a row begins at a multiple of 16 bytes */
      strides.position = plus(width, 3 + 2 * (int64_t)id) | 1;
      strides.head = plus(times(length, strides.position), 5 + 2 * (int64_t)id) | 1;
      strides.batch = plus(times(heads, strides.head), 7 + 2 * (int64_t)id) | 1;
      break;
    default:
      strides.position = width;
      strides.head = times(length, width);
      strides.batch = times(heads, strides.head);
  }
  return strides;
}

/* Rows of features follow the workload's layout, the others unless it is [B, T, H, D]. A mixed layout gives each tensor
 * one of its own. */
static workload_layout order_of(const workload *w, tensor_id id) {
  static const workload_layout orders[] = {LAYOUT_BHTD, LAYOUT_BTHD, LAYOUT_PADDED};
  const char last = tensor_table[id].axes[3];
  if (w->layout == LAYOUT_MIXED) return orders[random_bits(random_mixed(w->seed), id) % 3];
  return w->layout == LAYOUT_BTHD && last != 'D' && last != 'V' ? LAYOUT_BHTD : w->layout;
}

/* Of the tensors that may be of a narrow type all are; what else has one type only. */
static attn_type type_of(const workload *w, tensor_id id) {
  const uint32_t types = tensor_table[id].types;
  const attn_type wanted = id == TENSOR_OUTPUT && w->output_type ? w->output_type : w->type;
  attn_type type = ATTN_FLOAT32;
  if (wanted && types >> wanted & 1) return wanted;
  while (!(types >> type & 1)) type++;
  return type;
}

/* Axes that a tensor does not vary over have stride 0. */
static attn_layout layout_of(const workload *w, const attn_problem *p, tensor_id id, workload_axes axes) {
  const tensor_shape shape = tensor_shape_of(p, id);
  attn_layout layout = strides_of(order_of(w, id), id, axes.head ? shape.heads : 1,
                                  axes.query ? shape.length : 1, shape.width);
  if (w->function == ATTN_LAYER && order_of(w, id) == LAYOUT_BTHD && axes.batch &&
      !axes.head) { /* [T, B, M] */
    layout.batch = shape.width;
    layout.position = times(shape.batch, shape.width);
  }
  if (!axes.batch) layout.batch = 0;
  if (!axes.head) layout.head = 0;
  if (!axes.query) layout.position = 0;
  layout.type = type_of(w, id);
  return layout;
}

static double usual_scale(const workload *w) {
  switch (w->fill) {
    case FILL_EXACT: return 0.69314718055994531; /* ln 2 */
    case FILL_POWERS: return 1;
    default: return 1 / sqrt((double)w->head_dim);
  }
}

/* Rounded up. */
static int64_t square_root(int64_t number) {
  int64_t root = (int64_t)ceil(sqrt((double)number));
  while (root > 1 && (root - 1) * (root - 1) >= number) root--;
  return root > 0 ? root : 1;
}

static attn_term term_of(const workload *w, int n) {
  attn_term term = w->terms[n];
  if (term.a == WORKLOAD_SQRT) term.a = square_root(w->key_length);
  if (term.b == WORKLOAD_SQRT) term.b = square_root(w->key_length);
  return term;
}

void workload_pose_to(workload *w, attn_function function) {
  w->function = function;
  if (function != ATTN_LAYER) w->model_dim = 0, w->memory = w->biases = false;
  if (function == ATTN_LAYER && w->model_dim == 0) w->model_dim = w->query_heads * w->head_dim;
}

void workload_terms(const workload *w, attn_problem *problem) {
  problem->term_count = w->term_count;
  for (int n = 0; n < ATTN_MOST_TERMS && n < w->term_count; n++) problem->terms[n] = term_of(w, n);
}

/* As many rows of cosines and sines as are read. */
static int64_t rope_positions(const workload *w) {
  int64_t farthest = w->has_offsets && w->batch > 0 ? w->offsets[0] : w->offset;
  for (int64_t b = 1; w->has_offsets && b < w->batch && b < WORKLOAD_MAX_LISTED_BATCH; b++)
    if (w->offsets[b] > farthest) farthest = w->offsets[b];
  const int64_t queries = plus(w->query_length, farthest);
  return queries > w->key_length ? queries : w->key_length > 0 ? w->key_length : 1;
}

attn_problem workload_problem(const workload *w) {
  attn_problem p = {
      .function = w->function,
      .batch = w->batch,
      .query_heads = w->query_heads,
      .kv_heads = w->kv_heads,
      .query_length = w->query_length,
      .key_length = w->key_length,
      .head_dim = w->head_dim,
      .value_dim = w->value_dim,
      .scale = isnan(w->scale) ? usual_scale(w) : w->scale,
      .softcap = w->softcap,
      .epsilon = w->epsilon,
      .left = w->left,
      .right = w->right,
      .offset = w->offset,
      .offsets = w->has_offsets ? w->offsets : NULL,
      .key_lengths = w->has_lengths ? w->lengths : NULL,
      .query_lengths = w->has_query_lengths ? w->query_lengths : NULL,
      .block_q = w->blocks.present ? w->block_q : 0,
      .block_k = w->blocks.present ? w->block_k : 0,
      .topk_count = w->topk,
      .relative_distance = w->relative,
      .t5_buckets = w->t5_buckets,
      .t5_distance = w->t5_distance,
      .t5_both = w->t5_buckets > 0 && !w->t5_one,
      .feature_map = w->feature_map,
      .unnormalised = w->unnormalised,
      .rope_interleaved = w->rope == ROPE_INTERLEAVED,
      .dropout_p = w->dropout_p,
      .layer.model_dim = w->function == ATTN_LAYER ? w->model_dim : 0,
  };
  if (w->rope != ROPE_NONE) {
    p.rope_features = w->rope_features > 0 ? w->rope_features : w->head_dim / 2 * 2;
    p.rope_positions = rope_positions(w);
  }
  workload_terms(w, &p);
  for (tensor_id id = 0; id < TENSORS; id++) {
    workload_axes axes;
    if (features_have_tensor(w, id, &axes)) *tensor_layout_of(&p, id) = layout_of(w, &p, id, axes);
  }
  p.features = features_of(&p);
  return p;
}

/* The keys that a row sees, a few at a time; what the pattern leaves out is passed over. */
static int64_t keys_seen(const attn_problem *p, int64_t b, int64_t h, int64_t i) {
  enum { AT_ONCE = 512 };
  const attn_range range = attn_visible_keys(p, b, i);
  uint8_t visible[AT_ONCE];
  int64_t count = 0;
  if (!attn_has_pattern(p) || range.first == range.end) return range.end - range.first;
  for (int64_t j = range.first; j < range.end; j += AT_ONCE) {
    j = attn_next_visible(p, b, h, i, i + 1, j);
    const int64_t end = j + AT_ONCE < range.end ? j + AT_ONCE : range.end;
    /* cppcheck-suppress knownConditionTrueFalse */
    if (j < end) count += attn_visible_row(p, NULL, b, h, i, j, end, visible);
  }
  return count;
}

/* By one thread: a process that has had a team of OpenMP's cannot fork others that have one, as those do that measure memory. */
static double count_pairs(const workload *w) {
  attn_problem problem = workload_problem(w);
  pattern_tensors tensors;
  if (!pattern_tensors_create(&tensors, w, &problem)) {
    pattern_tensors_destroy(&tensors);
    return (double)NAN; /* nobody has room for this problem */
  }
  problem.mask.type = ATTN_ABSENT;
  /* Entries differ only where they are listed or drawn, heads only where they are drawn. */
  const bool differ = w->has_offsets || w->has_lengths || w->has_query_lengths || w->document_length > 0 ||
                      w->topk > 0 || w->blocks.batch;
  const int64_t entries = differ ? w->batch : w->batch > 0 ? 1 : 0;
  const bool drawn = w->topk > 0 || w->blocks.head;
  const int64_t heads = drawn ? w->query_heads : w->query_heads > 0 ? 1 : 0;
  double pairs = 0;
  for (int64_t b = 0; b < entries; b++)
    for (int64_t h = 0; h < heads; h++)
      for (int64_t i = 0; i < w->query_length; i++) pairs += (double)keys_seen(&problem, b, h, i);
  pattern_tensors_destroy(&tensors);
  return pairs * (drawn ? 1 : (double)w->query_heads) * (differ ? 1 : (double)w->batch);
}

/* A long pattern takes a quarter of a second to count, and each of its runs asks again. */
double workload_visible_pairs(const workload *w) {
  static _Thread_local char last_name[WORKLOAD_NAME_BYTES];
  static _Thread_local uint64_t last_seed;
  static _Thread_local double last_pairs;
  const attn_problem problem = workload_problem(w);
  if (!attn_has_pattern(&problem)) return count_pairs(w);
  char name[WORKLOAD_NAME_BYTES];
  workload_name(w, name);
  if (w->seed != last_seed || strcmp(name, last_name) != 0) {
    last_pairs = count_pairs(w);
    last_seed = w->seed;
    memcpy(last_name, name, sizeof name);
  }
  return last_pairs;
}

double workload_flops(const workload *w) {
  const attn_problem problem = workload_problem(w);
  return reference_function_of(w->function)->operations(&problem, workload_visible_pairs(w));
}

/* Keys of all entries from the first that any query sees to the last. */
static double seen_keys(const attn_problem *p) {
  double keys = 0;
  for (int64_t b = 0; b < p->batch && p->query_length > 0; b++) {
    int64_t first = p->key_length, end = 0;
    for (int64_t i = 0; i < p->query_length; i++) {
      const attn_range seen = attn_visible_keys(p, b, i);
      if (seen.first == seen.end) continue;
      first = seen.first < first ? seen.first : first;
      end = seen.end > end ? seen.end : end;
    }
    if (first < end) keys += (double)(end - first);
  }
  return keys;
}

/* Of a key and its value, as many heads as there are. */
static double key_bytes(const attn_problem *p) {
  if (tensors_are_of_layer(p)) return p->key.type ? (double)p->layer.model_dim * sizeof(float) : 0;
  return (double)p->kv_heads * ((double)p->head_dim * (double)element_type_of(p->key.type)->bytes +
                                (double)p->value_dim * (double)element_type_of(p->value.type)->bytes);
}

double workload_seen_bytes(const workload *w) {
  const attn_problem problem = workload_problem(w);
  return seen_keys(&problem) * key_bytes(&problem);
}

double workload_moved_bytes(const workload *w) {
  const attn_problem problem = workload_problem(w);
  const double all = (double)w->batch * (double)w->key_length;
  return workload_tensor_bytes(w) - (all - seen_keys(&problem)) * key_bytes(&problem);
}

double workload_tensor_bytes(const workload *w) {
  const attn_problem problem = workload_problem(w);
  double bytes = 0;
  for (tensor_id id = 0; id < TENSORS; id++) bytes += (double)tensor_bytes(&problem, id);
  return bytes;
}
