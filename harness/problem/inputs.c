/* The inputs of a workload. Every element is a function of the seed, the tensor and the element's place,
 * never of its neighbours: the bits do not depend on threads or on the layout. Only + - * / and conversions
 * make them, which IEEE 754 rounds alike everywhere; products that are added to something are exact, so
 * that contraction into a fused multiply-add changes nothing. */
#include "inputs.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "check.h"
#include "types.h"
#include "reference/reference.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* Streams of random numbers; the first three also say what is drawn. */
enum { QUERY = 1, KEY, VALUE, MASK, BIAS, PLACE, SINK };

static uint64_t stream_of(const workload *w, uint64_t tensor) { return random_mixed(w->seed * 64 + tensor); }

/* Uniform in [-1, 1), a multiple of 2^-23. */
static float uniform(uint64_t bits) { return (float)((int32_t)(bits >> 40) - (1 << 23)) * 0x1p-23f; }

/* Sum of twelve uniforms of 16 bits, centred: variance 1 (Irwin-Hall). Exact in float32. */
static float normal(uint64_t stream, uint64_t place) {
  int32_t sum = 0;
  for (uint64_t n = 0; n < 3; n++) {
    uint64_t bits = random_bits(stream, 3 * place + n);
    for (int part = 0; part < 4; part++) sum += (int32_t)(bits >> (16 * part) & 0xffff);
  }
  return (float)(sum - 6 * 0xffff) * 0x1p-16f;
}

/* Density falls as 1/x^2, up to 64. */
static float heavy(uint64_t bits) {
  return uniform(bits) / ((float)(bits & 0xffff) * (63 / 64.0f) * 0x1p-16f + 1 / 64.0f);
}

/* Where an element stands: x counts positions, places and counts that the fills need. */
typedef struct element {
  const workload *w;
  uint64_t stream;
  int64_t b, h, x, d;           /* entry, head, position, feature */
  int64_t heads, length, width; /* of the tensor */
  double score_unit;            /* q.k that makes a score of 1 */
  double largest_weight;        /* of a key, before the division by their sum */
} element;

static uint64_t place(const element *e, int64_t x) {
  return (((uint64_t)e->b * (uint64_t)e->heads + (uint64_t)e->h) * (uint64_t)e->length + (uint64_t)x) *
             (uint64_t)e->width +
         (uint64_t)e->d;
}

static float plain(const element *e) { return uniform(random_bits(e->stream, place(e, e->x))); }

/* A position in [0, count) that depends on the seed, the entry and the head. */
static int64_t chosen_position(const element *e, uint64_t purpose, int64_t count) {
  uint64_t bits = random_bits(stream_of(e->w, PLACE) + purpose, (uint64_t)(e->b * e->heads + e->h));
  return (int64_t)(bits % (uint64_t)count);
}

/* First feature of queries 4, of one key 8 units, of all others 0: that key's score leads by about 32. */
static float dominant(const element *e, int tensor) {
  if (e->d > 0 || tensor == VALUE) return plain(e);
  if (tensor == QUERY) return 4;
  return e->x == chosen_position(e, 0, e->length) ? (float)(8 * e->score_unit) : 0;
}

/* Features of a query all alike and positive, of a key all alike: the score rises (or falls) by the same
 * step from key to key, by 32 over all keys. */
static float monotone(const element *e, int tensor, bool rising) {
  if (tensor == VALUE) return plain(e);
  if (tensor == QUERY) return 1 + 0.5f * uniform(random_bits(e->stream, place(e, e->x) - (uint64_t)e->d));
  const double step = (double)(rising ? e->x + 1 : e->length - e->x) / (double)e->length;
  return (float)(32 * step * e->score_unit / (double)e->width);
}

/* Neighbouring keys are alike and their values opposite, but for a thousandth. */
static float cancelling(const element *e, int tensor) {
  if (tensor == QUERY) return plain(e);
  float shared = uniform(random_bits(e->stream, place(e, e->x / 2 * 2)));
  if (tensor == KEY) return shared;
  return (e->x % 2 ? -shared : shared) + plain(e) * 0x1p-10f;
}

static float denormal(const element *e, int tensor) {
  return tensor == VALUE || e->d % 2 ? (float)((double)plain(e) * 0x1p-127) : plain(e);
}

/* Kernels may sum weight times value before they divide. Sums beyond a quarter of FLT_MAX have no bound, so nothing would be checked. */
static float huge(const element *e, int tensor) {
  if (tensor != VALUE) return plain(e);
  return (float)((double)plain(e) * (double)FLT_MAX / (4.0 * (double)e->length * e->largest_weight));
}

static float with_zero_rows(const element *e) {
  const uint64_t bits = random_bits(e->stream + PLACE, place(e, e->x) - (uint64_t)e->d);
  if (bits % 3 != 0) return plain(e);
  return bits >> 40 & 1 ? -0.0f : 0.0f;
}

/* Keys beyond an entry's length hold nothing but the first of three oddities. Elsewhere there is one among
 * the keys' last quarter, two among the values and one among the queries, each in one feature. Bands and
 * masks hide them from some rows, and those must not feel them. */
static float odd(const element *e, int tensor, const float oddities[3]) {
  if (tensor != QUERY && e->w->has_lengths && e->x >= e->w->lengths[e->b]) return oddities[0];
  const float oddity = oddities[(e->b * e->heads + e->h) % 3];
  const bool chosen_feature = e->d == chosen_position(e, 1, e->width);
  if (!chosen_feature || e->length < 4) return plain(e);
  if (tensor == QUERY) return e->x == chosen_position(e, 2, e->length) ? oddities[0] : plain(e);
  if (tensor == KEY) return e->x == e->length - 1 - chosen_position(e, 3, e->length / 4) ? oddity : plain(e);
  if (e->x == chosen_position(e, 4, e->length)) return oddities[0];
  return e->x == chosen_position(e, 5, e->length) ? -oddity : plain(e);
}

static const float not_finite[3] = {NAN, INFINITY, -INFINITY};
static const float largest[3] = {FLT_MAX, -FLT_MAX, FLT_MAX};

static float element_of(const element *e, int tensor) {
  switch (e->w->fill) {
    case FILL_NORMAL: return normal(e->stream, place(e, e->x));
    case FILL_HEAVY: return heavy(random_bits(e->stream, place(e, e->x)));
    case FILL_DOMINANT: return dominant(e, tensor);
    case FILL_EQUAL: return tensor == KEY ? uniform(random_bits(e->stream, place(e, 0))) : plain(e);
    case FILL_SATURATED: /* q.k of uniform vectors has a standard deviation of sqrt(D) / 3 */
      if (tensor == VALUE) return plain(e);
      return plain(e) * (tensor == QUERY ? 100 : (float)(80 * e->score_unit / sqrt((double)e->width)));
    case FILL_RISING: return monotone(e, tensor, true);
    case FILL_FALLING: return monotone(e, tensor, false);
    case FILL_CANCELLATION: return cancelling(e, tensor);
    case FILL_DENORMAL: return denormal(e, tensor);
    case FILL_HUGE: return huge(e, tensor);
    case FILL_ZEROS: return with_zero_rows(e);
    case FILL_LARGEST: return odd(e, tensor, largest);
    case FILL_NONFINITE: return odd(e, tensor, not_finite);
    default: return plain(e);
  }
}

/* The scale of the scores turned round; linear attention has none. Kept where float32 can hold it. */
static double score_unit(const attn_problem *p) {
  if (!reference_function_of(p->function)->has_scores || p->scale == 0) return 1;
  double unit = 1 / p->scale;
  return fabs(unit) > 0x1p40 || fabs(unit) < 0x1p-40 ? 1 : unit;
}

/* A tensor that is drawn. */
typedef struct drawn {
  const inputs *in;
  tensor_shape shape; /* as it lies in memory */
  attn_layout layout;
  uint64_t stream;
  void *data;
} drawn;

static int64_t rows_of(const drawn *to) {
  const tensor_shape s = to->shape;
  return s.batch > 0 && s.heads > 0 && s.length > 0 && s.width > 0 ? s.batch * s.heads * s.length : 0;
}

/* Where a row begins, in elements. */
static int64_t place_of_row(const drawn *to, int64_t row) {
  const int64_t length = to->shape.length, heads = to->shape.heads;
  return row / length / heads * to->layout.batch + row / length % heads * to->layout.head +
         row % length * to->layout.position;
}

static void fill_features(const drawn *to, int tensor) {
  const workload *w = &to->in->workload;
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    element e = {.w = w,
                 .stream = to->stream,
                 .b = row / s.length / s.heads,
                 .h = row / s.length % s.heads,
                 .x = row % s.length,
                 .heads = s.heads,
                 .length = s.length,
                 .width = s.width,
                 .score_unit = score_unit(&to->in->problem),
                 .largest_weight = reference_function_of(w->function)->largest_weight(&to->in->problem)};
    float *out = (float *)to->data + place_of_row(to, row);
    for (e.d = 0; e.d < s.width; e.d++) out[e.d] = element_of(&e, tensor);
  }
}

static void fill_query(const drawn *to) { fill_features(to, QUERY); }
static void fill_key(const drawn *to) { fill_features(to, KEY); }
static void fill_value(const drawn *to) { fill_features(to, VALUE); }

/* About 70 % of the keys may be seen; where the mask varies over queries, one row in 16 sees none. */
static void fill_mask(const drawn *to) {
  const uint64_t rows_stream = stream_of(&to->in->workload, PLACE);
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    uint8_t *out = (uint8_t *)to->data + place_of_row(to, row);
    const bool none = s.length > 1 && random_bits(rows_stream, (uint64_t)row) % 16 == 0;
    for (int64_t j = 0; j < s.width; j++)
      out[j] = !none && random_bits(to->stream, (uint64_t)(row * s.width + j)) % 10 < 7;
  }
}

/* Uniform in [-2, 2); one in 32 is -inf, which hides its key, or -FLT_MAX, which many write for that. Where
 * inputs are not finite, one row in eight has a NaN or +inf too. */
static float bias_of(const workload *w, uint64_t bits, bool is_odd) {
  if (is_odd) return bits >> 8 & 1 ? NAN : INFINITY;
  if (bits % 32 == 0) return w->fill == FILL_LARGEST ? -FLT_MAX : -INFINITY;
  return 2 * uniform(bits);
}

static void fill_bias(const drawn *to) {
  const workload *w = &to->in->workload;
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    float *out = (float *)to->data + place_of_row(to, row);
    const uint64_t row_bits = random_bits(to->stream + PLACE, (uint64_t)row);
    const bool has_odd = w->fill == FILL_NONFINITE && row_bits % 8 == 0;
    for (int64_t j = 0; j < s.width; j++)
      out[j] = bias_of(w, random_bits(to->stream, (uint64_t)(row * s.width + j)),
                       has_odd && j == (int64_t)((row_bits >> 8) % (uint64_t)s.width));
  }
}

/* Of the size of scores. One in eight is -inf, which is no sink; where inputs are not finite, one in four is none of
 * a number. */
static float sink_of(const workload *w, uint64_t bits) {
  if (bits % 8 == 0) return -INFINITY;
  if (w->fill == FILL_NONFINITE && bits % 8 < 3) return bits % 8 == 1 ? NAN : INFINITY;
  return (w->fill == FILL_SATURATED ? 8192.0f : 4.0f) * uniform(bits);
}

static void fill_sink(const drawn *to) {
  for (int64_t h = 0; h < to->shape.heads; h++)
    ((float *)to->data)[h * to->layout.head] =
        sink_of(&to->in->workload, random_bits(to->stream, (uint64_t)h));
}

/* How the inputs are drawn, each from a stream of its own. */
static const struct {
  uint64_t stream;
  void (*fill)(const drawn *to);
} fills[TENSORS] = {
    [TENSOR_QUERY] = {QUERY, fill_query}, [TENSOR_KEY] = {KEY, fill_key},
    [TENSOR_VALUE] = {VALUE, fill_value}, [TENSOR_MASK] = {MASK, fill_mask},
    [TENSOR_BIAS] = {BIAS, fill_bias},    [TENSOR_SINK] = {SINK, fill_sink},
};

/* What lies between the rows. A kernel that lets it into a result shows a NaN. */
static void fill_gaps(inputs *in, tensor_id id) {
  const workload_layout layout = in->workload.layout;
  if (layout == LAYOUT_SHIFTED || layout == LAYOUT_PADDED) guarded_poison(&in->buffers[id]);
}

/* A buffer for a tensor, or NULL. In timing every tensor begins at a cache line; shifted and padded ones one
 * element behind it. In verification every tensor ends where its guard page begins; shifted ones one element
 * before it, so that widths of whole vectors do not make them aligned. */
static void *tensor_create(inputs *in, tensor_id id, bool aligned, char *why, size_t why_size) {
  const bool shifted = in->workload.layout == LAYOUT_SHIFTED, padded = in->workload.layout == LAYOUT_PADDED;
  const size_t element_bytes = element_type_of(tensor_layout(&in->problem, id)->type)->bytes;
  const size_t lead = aligned && (shifted || padded) ? element_bytes : 0;
  const size_t tail = !aligned && shifted ? element_bytes : 0;
  const size_t bytes = tensor_bytes(&in->problem, id) + lead + tail;
  guarded *buffer = &in->buffers[id];
  if (!guarded_create(buffer, bytes, aligned ? 64 : element_bytes, why, why_size)) return NULL;
  fill_gaps(in, id);
  return buffer->data + lead;
}

static void draw(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const drawn to = {in, tensor_stored_shape(&in->problem, id), *tensor_layout(&in->problem, id),
                      stream_of(&in->workload, fills[id].stream),
                      (void *)(uintptr_t)tensor_data(&in->tensors, id)};
    if (fills[id].fill && to.data) fills[id].fill(&to);
  }
}

bool inputs_create(inputs *in, const workload *w, bool aligned, char *why, size_t why_size) {
  *in = (inputs){.workload = *w};
  if (w->batch > WORKLOAD_MAX_LISTED_BATCH && (w->has_offsets || w->has_lengths)) {
    snprintf(why, why_size, "offsets and lengths can be listed for a batch of at most %d",
             WORKLOAD_MAX_LISTED_BATCH);
    return false;
  }
  in->problem = workload_problem(&in->workload);
  if (!check_problem(&in->problem, why, why_size)) return false;
  const double bytes = workload_tensor_bytes(w), available = (double)memory_available_bytes();
  if (bytes > available) {
    snprintf(why, why_size, "the tensors take %.1f MiB, and %.1f MiB of memory are available", bytes / 0x1p20,
             available / 0x1p20);
    return false;
  }
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_layout(&in->problem, id)->type) continue;
    void *data = tensor_create(in, id, aligned, why, why_size);
    if (!data) {
      inputs_destroy(in);
      return false;
    }
    tensor_set_data(&in->tensors, id, data);
  }
  draw(in);
  return true;
}

void inputs_destroy(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded_destroy(&in->buffers[id]);
    free(in->kept[id]);
    in->kept[id] = NULL;
  }
  in->tensors = (attn_tensors){0};
}

bool inputs_keep(inputs *in, char *why, size_t why_size) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const guarded *buffer = &in->buffers[id];
    if (!buffer->mapping || tensor_table[id].written) continue;
    if (!in->kept[id]) in->kept[id] = malloc(buffer->bytes + 1);
    if (!in->kept[id]) {
      snprintf(why, why_size, "no memory for a copy of %s", tensor_table[id].words);
      return false;
    }
    memcpy(in->kept[id], buffer->data, buffer->bytes);
  }
  return true;
}

void inputs_restore(inputs *in) {
  bool is_kept = false;
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded *buffer = &in->buffers[id];
    if (!buffer->mapping) continue;
    guarded_mend(buffer);
    if (tensor_table[id].written) continue;
    if (in->kept[id])
      memcpy(buffer->data, in->kept[id], buffer->bytes);
    else
      fill_gaps(in, id);
    is_kept = is_kept || in->kept[id];
  }
  if (!is_kept) draw(in);
}

bool inputs_move_to_front(inputs *in, char *why, size_t why_size) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    guarded moved, *buffer = &in->buffers[id];
    if (!buffer->mapping) continue;
    if (!guarded_create_front(&moved, buffer->bytes, why, why_size)) return false;
    memcpy(moved.data, buffer->data, moved.bytes);
    guarded_destroy(buffer);
    *buffer = moved;
    tensor_set_data(&in->tensors, id, moved.data);
  }
  return true;
}

void inputs_poison_outputs(inputs *in) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_table[id].written) guarded_poison(&in->buffers[id]);
}

static uint64_t checksum(const guarded *buffer) {
  const int64_t words = (int64_t)(buffer->bytes / 8);
  uint64_t sum = buffer->bytes;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (words > worth_threads)
  for (int64_t n = 0; n < words; n++) {
    uint64_t word;
    memcpy(&word, buffer->data + 8 * n, 8);
    sum += random_bits(word, (uint64_t)n);
  }
  for (size_t n = (size_t)words * 8; n < buffer->bytes; n++) sum += random_bits(buffer->data[n], n);
  return sum;
}

static uint64_t checksum_of(const inputs *in, bool written) {
  uint64_t sum = 0;
  for (tensor_id id = 0; id < TENSORS; id++)
    if (tensor_table[id].written == written) sum = random_mixed(sum + checksum(&in->buffers[id]));
  return sum;
}

uint64_t inputs_checksum(const inputs *in) { return checksum_of(in, false); }

bool inputs_are_whole(const inputs *in, uint64_t expected) {
  for (tensor_id id = 0; id < TENSORS; id++)
    if (!guarded_intact(&in->buffers[id])) return false;
  return inputs_checksum(in) == expected;
}

uint64_t inputs_outputs_checksum(const inputs *in) { return checksum_of(in, true); }
