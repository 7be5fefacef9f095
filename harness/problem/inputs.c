/* The inputs of a workload. Every element is a function of the seed, the tensor and the element's place,
 * never of its neighbours: the bits do not depend on threads or on the layout. Only + - * / and conversions
 * make them, which IEEE 754 rounds alike everywhere; products that are added to something are exact, so
 * that contraction into a fused multiply-add changes nothing. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "workload.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

enum { QUERY = 1, KEY, VALUE, MASK, BIAS, PLACE };

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

/* Kernels may sum weight times value before they divide: softmax weights are at most 1 then, those of
 * linear attention at most 4 D. Sums beyond a quarter of FLT_MAX have no bound, so nothing would be checked. */
static float huge(const element *e, int tensor) {
  if (tensor != VALUE) return plain(e);
  double weights = 4.0 * (double)e->length;
  if (e->w->function == ATTN_LINEAR) weights *= 4.0 * (double)e->w->head_dim;
  return (float)((double)plain(e) * (double)FLT_MAX / weights);
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

/* A tensor of a problem: [batch, heads, length, width]. */
typedef struct shape {
  attn_strides strides;
  int64_t batch, heads, length, width;
} shape;

static size_t elements_spanned(shape s) {
  if (s.batch <= 0 || s.heads <= 0 || s.length <= 0 || s.width <= 0) return 0;
  return (size_t)(s.strides.batch * (s.batch - 1) + s.strides.head * (s.heads - 1) +
                  s.strides.position * (s.length - 1) + s.width);
}

/* The scale of the scores turned round; linear attention has none. Kept where float32 can hold it. */
static double score_unit(const attn_problem *p) {
  if (p->function == ATTN_LINEAR || p->scale == 0) return 1;
  double unit = 1 / p->scale;
  return fabs(unit) > 0x1p40 || fabs(unit) < 0x1p-40 ? 1 : unit;
}

static void fill_tensor(const inputs *in, int tensor, shape s, float *data) {
  const workload *w = &in->workload;
  const int64_t rows = elements_spanned(s) > 0 ? s.batch * s.heads * s.length : 0;
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    element e = {.w = w,
                 .stream = stream_of(w, (uint64_t)tensor),
                 .b = row / s.length / s.heads,
                 .h = row / s.length % s.heads,
                 .x = row % s.length,
                 .heads = s.heads,
                 .length = s.length,
                 .width = s.width,
                 .score_unit = score_unit(&in->problem)};
    float *out = data + e.b * s.strides.batch + e.h * s.strides.head + e.x * s.strides.position;
    for (e.d = 0; e.d < s.width; e.d++) out[e.d] = element_of(&e, tensor);
  }
}

/* About 70 % of the keys may be seen; where the mask varies over queries, one row in 16 sees none. */
static void fill_mask(const inputs *in, shape s, uint8_t *data) {
  const uint64_t stream = stream_of(&in->workload, MASK), rows_stream = stream_of(&in->workload, PLACE);
  const int64_t rows = elements_spanned(s) > 0 ? s.batch * s.heads * s.length : 0;
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    uint8_t *out = data + row / s.length / s.heads * s.strides.batch +
                   row / s.length % s.heads * s.strides.head + row % s.length * s.strides.position;
    const bool none = s.length > 1 && random_bits(rows_stream, (uint64_t)row) % 16 == 0;
    for (int64_t j = 0; j < s.width; j++)
      out[j] = !none && random_bits(stream, (uint64_t)(row * s.width + j)) % 10 < 7;
  }
}

/* Uniform in [-2, 2); one in 32 is -inf, which hides its key, or -FLT_MAX, which many write for that. Where
 * inputs are not finite, one row in eight has a NaN or +inf too. */
static float bias_of(const workload *w, uint64_t bits, bool is_odd) {
  if (is_odd) return bits >> 8 & 1 ? NAN : INFINITY;
  if (bits % 32 == 0) return w->fill == FILL_LARGEST ? -FLT_MAX : -INFINITY;
  return 2 * uniform(bits);
}

static void fill_bias(const inputs *in, shape s, float *data) {
  const uint64_t stream = stream_of(&in->workload, BIAS);
  const int64_t rows = elements_spanned(s) > 0 ? s.batch * s.heads * s.length : 0;
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    float *out = data + row / s.length / s.heads * s.strides.batch +
                 row / s.length % s.heads * s.strides.head + row % s.length * s.strides.position;
    const uint64_t row_bits = random_bits(stream + PLACE, (uint64_t)row);
    const bool has_odd = in->workload.fill == FILL_NONFINITE && row_bits % 8 == 0;
    for (int64_t j = 0; j < s.width; j++)
      out[j] = bias_of(&in->workload, random_bits(stream, (uint64_t)(row * s.width + j)),
                       has_odd && j == (int64_t)((row_bits >> 8) % (uint64_t)s.width));
  }
}

static shape shape_of_mask(const inputs *in, workload_axes axes, attn_strides strides) {
  const attn_problem *p = &in->problem;
  return (shape){strides, axes.batch ? p->batch : p->batch > 0, axes.head ? p->query_heads : 1,
                 axes.query ? p->query_length : 1, p->key_length};
}

/* A buffer for a tensor, or NULL. In timing every tensor begins at a cache line; shifted and padded ones one
 * element behind it. In verification every tensor ends where its guard page begins; shifted ones one element
 * before it, so that widths of whole vectors do not make them aligned. */
static void *tensor_create(guarded *buffer, shape s, size_t element_bytes, const inputs *in, bool aligned,
                           char *why, size_t why_size) {
  const bool shifted = in->workload.layout == LAYOUT_SHIFTED, padded = in->workload.layout == LAYOUT_PADDED;
  const size_t lead = aligned && (shifted || padded) ? element_bytes : 0;
  const size_t tail = !aligned && shifted ? element_bytes : 0;
  const size_t bytes = elements_spanned(s) * element_bytes + lead + tail;
  if (!guarded_create(buffer, bytes, aligned ? 64 : element_bytes, why, why_size)) return NULL;
  /* A kernel that lets what lies between the rows into a result shows a NaN. */
  if (shifted || padded) guarded_poison(buffer);
  return buffer->data + lead;
}

static bool create_tensors(inputs *in, bool aligned, char *why, size_t why_size) {
  const attn_problem *p = &in->problem;
  attn_tensors *t = &in->tensors;
  const int64_t B = p->batch, H = p->query_heads, Hkv = p->kv_heads;
  const int64_t Tq = p->query_length, Tk = p->key_length;
  const shape query = {p->query, B, H, Tq, p->head_dim}, key = {p->key, B, Hkv, Tk, p->head_dim};
  const shape value = {p->value, B, Hkv, Tk, p->value_dim}, output = {p->output, B, H, Tq, p->value_dim};
  const shape lse = {p->lse, B, H, Tq, 1}, weights = {p->weights, B, H, Tq, Tk};
  const shape mask = shape_of_mask(in, in->workload.mask, p->mask);
  const shape bias = shape_of_mask(in, in->workload.bias, p->bias);
  float *q, *k, *v, *added = NULL;
  uint8_t *seen = NULL;
  if (!(q = tensor_create(&in->query, query, 4, in, aligned, why, why_size)) ||
      !(k = tensor_create(&in->key, key, 4, in, aligned, why, why_size)) ||
      !(v = tensor_create(&in->value, value, 4, in, aligned, why, why_size)) ||
      !(t->output = tensor_create(&in->output, output, 4, in, aligned, why, why_size)) ||
      (p->has_mask && !(seen = tensor_create(&in->mask, mask, 1, in, aligned, why, why_size))) ||
      (p->has_bias && !(added = tensor_create(&in->bias, bias, 4, in, aligned, why, why_size))) ||
      (p->wants_lse && !(t->lse = tensor_create(&in->lse, lse, 4, in, aligned, why, why_size))) ||
      (p->wants_weights &&
       !(t->weights = tensor_create(&in->weights, weights, 4, in, aligned, why, why_size))))
    return false;
  fill_tensor(in, QUERY, query, q);
  fill_tensor(in, KEY, key, k);
  fill_tensor(in, VALUE, value, v);
  if (seen) fill_mask(in, mask, seen);
  if (added) fill_bias(in, bias, added);
  t->query = q;
  t->key = k;
  t->value = v;
  t->mask = seen;
  t->bias = added;
  return true;
}

bool inputs_create(inputs *in, const workload *w, bool aligned, char *why, size_t why_size) {
  *in = (inputs){.workload = *w};
  if (w->batch > WORKLOAD_MAX_LISTED_BATCH && (w->has_offsets || w->has_lengths)) {
    snprintf(why, why_size, "offsets and lengths can be listed for a batch of at most %d",
             WORKLOAD_MAX_LISTED_BATCH);
    return false;
  }
  in->problem = workload_problem(&in->workload);
  if (!attn_check_problem(&in->problem, why, why_size)) return false;
  const double bytes = workload_tensor_bytes(w), available = (double)memory_available_bytes();
  if (bytes > available) {
    snprintf(why, why_size, "the tensors take %.1f MiB, and %.1f MiB of memory are available", bytes / 0x1p20,
             available / 0x1p20);
    return false;
  }
  if (create_tensors(in, aligned, why, why_size)) return true;
  inputs_destroy(in);
  return false;
}

void inputs_destroy(inputs *in) {
  guarded *const buffers[] = {&in->query, &in->key,    &in->value, &in->mask,
                              &in->bias,  &in->output, &in->lse,   &in->weights};
  for (size_t n = 0; n < sizeof buffers / sizeof buffers[0]; n++) guarded_destroy(buffers[n]);
  in->tensors = (attn_tensors){0};
}

bool inputs_move_to_front(inputs *in, char *why, size_t why_size) {
  guarded *const buffers[] = {&in->query, &in->key,    &in->value, &in->mask,
                              &in->bias,  &in->output, &in->lse,   &in->weights};
  for (size_t n = 0; n < sizeof buffers / sizeof buffers[0]; n++) {
    guarded moved;
    if (!buffers[n]->mapping) continue;
    if (!guarded_create_front(&moved, buffers[n]->bytes, why, why_size)) return false;
    memcpy(moved.data, buffers[n]->data, moved.bytes);
    guarded_destroy(buffers[n]);
    *buffers[n] = moved;
  }
  attn_tensors *t = &in->tensors;
  t->query = in->query.data;
  t->key = in->key.data;
  t->value = in->value.data;
  t->output = in->output.data;
  if (t->mask) t->mask = in->mask.data;
  if (t->bias) t->bias = in->bias.data;
  if (t->lse) t->lse = (float *)(void *)in->lse.data;
  if (t->weights) t->weights = in->weights.data;
  return true;
}

void inputs_poison_outputs(inputs *in) {
  guarded_poison(&in->output);
  guarded_poison(&in->lse);
  guarded_poison(&in->weights);
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

uint64_t inputs_checksum(const inputs *in) {
  const guarded *const buffers[] = {&in->query, &in->key, &in->value, &in->mask, &in->bias};
  uint64_t sum = 0;
  for (size_t n = 0; n < sizeof buffers / sizeof buffers[0]; n++)
    sum = random_mixed(sum + checksum(buffers[n]));
  return sum;
}

uint64_t inputs_outputs_checksum(const inputs *in) {
  return random_mixed(random_mixed(checksum(&in->output)) + random_mixed(checksum(&in->lse)) * 3) +
         checksum(&in->weights);
}
