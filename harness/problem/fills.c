/* But for angles only + - * / and conversions make the elements, which IEEE 754 rounds alike everywhere; products
 * that are added to something are exact, so that contraction into a fused multiply-add changes nothing. */
#include "fills.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "pattern_fills.h"
#include "reference/reference.h"
#include "shown.h"
#include "types.h"

/* Elements below which waking threads costs more than they save. */
static const int64_t worth_threads = 1 << 16;

/* Streams of random numbers; the first three also say what is drawn. */
enum {
  QUERY = 1,
  KEY,
  VALUE,
  MASK,
  BIAS,
  PLACE,
  SINK,
  ALIBI,
  GRADIENT,
  RELATIVE,
  T5,
  DECAY,
  ROPE,
  KEEP,
  GENERAL,
  ADDITIVE,
  STATE,
  PROJECTION = 40
};

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
  const element_type *type;
  uint64_t stream;
  int64_t b, h, x, d;           /* entry, head, position, feature */
  int64_t heads, length, width; /* of the tensor */
  double score_unit;            /* q.k that makes a score of 1 */
  bool scores_round;            /* powers of two do not stay such on their way to a score */
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

static float around_one(const element *e, int tensor) {
  return tensor == VALUE ? 1 + (float)(0.1 * (double)normal(e->stream, place(e, e->x))) : plain(e);
}

static float denormal(const element *e, int tensor) {
  return tensor == VALUE || e->d % 2 ? (float)((double)plain(e) * 0.5 * e->type->smallest_normal) : plain(e);
}

/* Kernels may sum weight times value before they divide. Sums beyond a quarter of FLT_MAX have no bound, so nothing
 * would be checked. */
static float huge(const element *e, int tensor) {
  if (tensor != VALUE) return plain(e);
  const double most = (double)FLT_MAX / (4.0 * (double)e->length * e->largest_weight);
  return (float)((double)plain(e) * fmin(most, e->type->largest));
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
static float largest(const element *e, int tensor) {
  const float most = (float)e->type->largest, oddities[3] = {most, -most, most};
  return odd(e, tensor, oddities);
}

/* Few queries differ, so that few rows of a head do where all see the same keys: each row has one of these patterns. */
enum { PATTERNS = 8 };

static int64_t pattern_of(const element *e) {
  return (int64_t)(random_bits(stream_of(e->w, PLACE) + 6, place(e, e->x) - (uint64_t)e->d) % PATTERNS);
}

/* The one feature that a query with this pattern looks at: the last, the first, or any. */
static int64_t feature_of(const element *e, int64_t pattern) {
  if (pattern < 2) return pattern == 0 ? e->width - 1 : 0;
  return (int64_t)(random_bits(stream_of(e->w, PLACE) + 7, (uint64_t)pattern) % (uint64_t)e->width);
}

/* One feature of a query is a power of two of either sign, and all features of the keys are a few: so are the scores, up
 * to a quarter of the largest that float32 can hold, and keys share the largest of a row. Where there is more than
 * powers of two in a score it rounds, and is kept to where this leaves something to be seen. */
static float power(const element *e, int tensor) {
  const uint64_t bits = random_bits(e->stream, place(e, e->x));
  if (tensor == VALUE) return plain(e);
  const float sign = bits >> 32 & 1 ? -1 : 1;
  if (!reference_function_of(e->w->function)->has_scores) return sign * ldexpf(1, (int)(bits % 13) - 6);
  if (tensor == KEY) return (float)ldexp(e->score_unit, (int)(bits % 4));
  if (e->d != feature_of(e, pattern_of(e))) return 0;
  const int room = e->scores_round ? 11 : e->score_unit == 1 ? 121 : 101, top = ilogb(e->type->largest);
  const int most = room < top ? room : top;
  const int below = bits % 4 ? (int)(bits >> 8 & 0xffff) % 24 : (int)(bits >> 8 & 0xffff) % (most + 8);
  return sign * ldexpf(1, most - (e->scores_round ? below % (most + 8) : below));
}

/* Values of a long row: each key is +-1 in one feature, so that any one that is dropped or doubled shows, and all of a
 * feature add up to little, so that the output's rounding hides none: from the third on they are pairs of opposite sign.
 * As many keys as there are features have one each, in an order that differs from one such group to the next. */
static float balanced(const element *e) {
  const uint64_t width = (uint64_t)e->width, group = (uint64_t)(e->x / e->width), at = (uint64_t)e->x % width;
  const uint64_t turn = random_bits(e->stream + PLACE, place(e, e->x - (int64_t)at) - (uint64_t)e->d);
  if ((at + turn) % width != (uint64_t)e->d) return 0;
  if (group < 2) return random_bits(e->stream, place(e, e->x)) % 4 ? 1 : -1;
  const int64_t pair = (int64_t)(group / 2 * 2 * width);
  return (random_bits(e->stream, place(e, pair)) ^ group) % 2 ? 1 : -1;
}

/* Of linear attention features of 0 and 1 make weights that are whole numbers. Of softmax the query looks at one
 * feature of the keys, a small whole number, and with a scale of ln 2 the weights are powers of two: most keys share the
 * largest, since one that weighs little among many would not be missed, and in a long row some 64 have half of it and
 * none has less. A feature of the values is +-1 in about four of the keys, which lie apart, the last among them, or in
 * more where these would not be all keys. */
static float exact(const element *e, int tensor) {
  const uint64_t bits = random_bits(e->stream, place(e, e->x));
  const bool has_scores = reference_function_of(e->w->function)->has_scores;
  if (tensor == VALUE) {
    if (e->length > 4 * e->width) return balanced(e);
    const uint64_t apart = ((uint64_t)e->length + 3) / 4, last = (uint64_t)e->length - 1;
    const uint64_t of_feature = place(e, 0) / ((uint64_t)e->length * (uint64_t)e->width) * (uint64_t)e->width;
    const uint64_t first = e->d == 0 ? last : random_bits(e->stream + PLACE, of_feature);
    if ((uint64_t)e->x % apart != first % apart) return 0;
    return bits % 4 ? 1 : -1;
  }
  if (tensor == QUERY && has_scores) return e->d == feature_of(e, pattern_of(e)) ? 1 : 0;
  if (tensor == QUERY)
    return random_bits(e->stream, (uint64_t)(pattern_of(e) * e->width + e->d)) % 4 == 0 ? 1 : 0;
  if (!has_scores) return bits % 4 == 0 ? 1 : 0;
  const uint64_t seldom = (uint64_t)(e->length > 1024 ? e->length / 64 : 16);
  if (bits % seldom) return 0;
  return -(float)(1 + (bits >> 32) % (e->length < 512 ? 3 : 1));
}

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
    case FILL_AROUND_ONE: return around_one(e, tensor);
    case FILL_DENORMAL: return denormal(e, tensor);
    case FILL_HUGE: return huge(e, tensor);
    case FILL_ZEROS: return with_zero_rows(e);
    case FILL_EXACT: return exact(e, tensor);
    case FILL_POWERS: return power(e, tensor);
    case FILL_LARGEST: return largest(e, tensor);
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

/* A scale may be folded into the queries, or half of it into each side: of these, powers of four stay powers of two. */
static bool scores_round(const attn_problem *p) {
  int exponent;
  const bool is_power = frexp(fabs(p->scale), &exponent) == 0.5 && exponent % 2 != 0 && abs(exponent) <= 20;
  return !is_power || p->softcap > 0 || p->bias.type || p->general.type || p->additive.type ||
         attn_has_position_bias(p) || p->rope_cos.type;
}

/* A tensor that is drawn. */
typedef struct drawn {
  const workload *w;
  const attn_problem *problem;
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

/* Rounds to the tensor's type. */
static void put(const drawn *to, int64_t place, float number) {
  if (to->layout.type == ATTN_FLOAT32) {
    ((float *)to->data)[place] = number;
    return;
  }
  const element_type *type = element_type_of(to->layout.type);
  type->store((char *)to->data + place * (int64_t)type->bytes, number);
}

static void fill_features(const drawn *to, int tensor) {
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
  /* What is the same for all elements. */
  const element of_all = {.w = to->w,
                          .type = element_type_of(to->layout.type),
                          .stream = to->stream,
                          .heads = s.heads,
                          .length = s.length,
                          .width = s.width,
                          .score_unit = score_unit(to->problem),
                          .scores_round = scores_round(to->problem),
                          .largest_weight =
                              reference_function_of(to->w->function)->largest_weight(to->problem)};
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    element e = of_all;
    e.b = row / s.length / s.heads;
    e.h = row / s.length % s.heads;
    e.x = row % s.length;
    const int64_t first = place_of_row(to, row);
    for (e.d = 0; e.d < s.width; e.d++) put(to, first + e.d, element_of(&e, tensor));
  }
}

static void fill_query(const drawn *to) { fill_features(to, QUERY); }
static void fill_key(const drawn *to) { fill_features(to, KEY); }
static void fill_value(const drawn *to) { fill_features(to, VALUE); }

/* As values are, but of ordinary size where these are huge or no numbers: products of two that are huge have no bound. */
static void fill_output_grad(const drawn *to) {
  workload usual = *to->w;
  if (usual.fill == FILL_HUGE || usual.fill == FILL_LARGEST || usual.fill == FILL_NONFINITE)
    usual.fill = FILL_UNIFORM;
  drawn drawn = *to;
  drawn.w = &usual;
  fill_features(&drawn, VALUE);
}

/* Keys [first, end) of a row of a mask that may be seen: where it varies over queries, one in 16 sees none; one in 4 sees none before
 * some key, and of the others one in 4 none behind it, as padding has it. */
static attn_range range_of_mask(int64_t width, bool none, uint64_t bits) {
  const int64_t at = (int64_t)((bits >> 32) % (uint64_t)width);
  if (none) return (attn_range){0, 0};
  if (bits >> 8 & 3) return (attn_range){0, (bits >> 10 & 3) == 0 ? at + 1 : width};
  return (attn_range){at, width};
}

/* Rows, as many as a tile of queries has. */
enum { MASK_BLOCK = 64 };

/* About 70 % of these may. */
static void fill_mask(const drawn *to) {
  const uint64_t rows_stream = stream_of(to->w, PLACE);
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    uint8_t *out = (uint8_t *)to->data + place_of_row(to, row);
    const uint64_t of_row = random_bits(rows_stream, (uint64_t)row);
    /* Of each two blocks of rows one has the same range in all, so that whole tiles are hidden, and every other such shows all of it. */
    const bool alike = row / MASK_BLOCK % 2 != 0, whole = row / MASK_BLOCK % 4 == 3;
    const uint64_t of_range = alike ? random_bits(rows_stream, (uint64_t)(row / MASK_BLOCK)) : of_row;
    const attn_range keys = range_of_mask(s.width, s.length > 1 && of_row % 16 == 0, of_range);
    for (int64_t j = 0; j < s.width; j++) {
      const uint64_t bits = random_bits(to->stream, (uint64_t)(row * s.width + j));
      const bool hidden = j < keys.first || j >= keys.end || (!whole && bits % 10 >= 7);
      out[j] = hidden ? 0 : fill_shown(bits >> 60);
    }
  }
}

/* Uniform in [-2, 2); one in 32 is -inf, which hides its key, or -FLT_MAX, which many write for that. Where
 * inputs are not finite, one row in eight has a NaN or +inf too; where all is exact, there is nothing but 0 and -inf. */
static float bias_of(const drawn *to, uint64_t bits, bool is_odd, bool is_lowest) {
  const workload *w = to->w;
  const float lowest = -(float)element_type_of(to->layout.type)->largest;
  if (is_odd) return bits >> 8 & 1 ? NAN : INFINITY;
  if (bits % 32 == 0) return w->fill == FILL_LARGEST ? lowest : -INFINITY;
  if (w->fill == FILL_EXACT) return 0;
  return is_lowest ? lowest : 2 * uniform(bits);
}

/* Whether one row in 16 is that of a query which is padding: all is hidden from it by the lowest number. A sum over queries has no
 * bound beside such a row. */
static bool has_lowest_rows(const drawn *to) {
  return to->w->function != ATTN_SOFTMAX_BACKWARD && to->w->fill != FILL_EXACT && to->shape.length > 1;
}

static void fill_bias(const drawn *to) {
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    const uint64_t row_bits = random_bits(to->stream + PLACE, (uint64_t)row);
    const bool has_odd = to->w->fill == FILL_NONFINITE && row_bits % 8 == 0;
    const bool is_lowest = has_lowest_rows(to) && (row_bits >> 32) % 16 == 0;
    for (int64_t j = 0; j < s.width; j++)
      put(to, place_of_row(to, row) + j,
          bias_of(to, random_bits(to->stream, (uint64_t)(row * s.width + j)),
                  has_odd && j == (int64_t)((row_bits >> 8) % (uint64_t)s.width), is_lowest));
  }
}

/* Of the size of scores, 0 where all is exact. One in eight is -inf, which is no sink; where inputs are not finite, one in
 * four is none of a number. */
static float sink_of(const workload *w, uint64_t bits) {
  if (bits % 8 == 0) return -INFINITY;
  if (w->fill == FILL_NONFINITE && bits % 8 < 3) return bits % 8 == 1 ? NAN : INFINITY;
  if (w->fill == FILL_EXACT) return 0;
  return (w->fill == FILL_SATURATED ? 8192.0f : 4.0f) * uniform(bits);
}

static void fill_sink(const drawn *to) {
  for (int64_t h = 0; h < to->shape.heads; h++)
    ((float *)to->data)[h * to->layout.head] = sink_of(to->w, random_bits(to->stream, (uint64_t)h));
}

/* Up to 4 over so many keys that the weights vanish soon, down to less than 2^-8; of either sign, and one in eight 0, as all
 * are where sums have to be exact. Where inputs are not finite, one in four is no number or infinite. */
static float slope_of(const workload *w, uint64_t bits) {
  if (bits % 8 == 0 || w->fill == FILL_EXACT) return 0;
  if (w->fill == FILL_NONFINITE && bits % 8 < 3) return bits % 8 == 1 ? NAN : INFINITY;
  return 4 * uniform(bits) / (float)(1 << (bits >> 8) % 9);
}

static void fill_alibi(const drawn *to) {
  for (int64_t h = 0; h < to->shape.heads; h++)
    ((float *)to->data)[h * to->layout.head] = slope_of(to->w, random_bits(to->stream, (uint64_t)h));
}

/* Apart enough that the number of the next distance shows; 0 where sums have to be exact. Where inputs are not finite, 3 of 32
 * are none of a number, for most pairs may have that of an end. */
static float position_bias_of(const workload *w, uint64_t bits) {
  if (w->fill == FILL_EXACT) return 0;
  if (w->fill == FILL_NONFINITE && bits % 32 < 3) return not_finite[bits % 32];
  return 4 * uniform(bits);
}

static void fill_position_table(const drawn *to) {
  for (int64_t h = 0; h < to->shape.heads; h++)
    for (int64_t n = 0; n < to->shape.width; n++)
      ((float *)to->data)[h * to->layout.head + n] =
          position_bias_of(to->w, random_bits(to->stream, (uint64_t)(h * to->shape.width + n)));
}

/* Logarithms of gates: a head forgets within a few keys, or a few thousand. Zeros are gates of 0, which forget all at
 * once, and where scores saturate gates do. */
static float decay_of(const workload *w, uint64_t head, uint64_t bits) {
  const float up_to_1 = (1 + uniform(bits)) / 2;
  if (w->fill == FILL_ZEROS && bits % 16 == 0) return -INFINITY;
  if (w->fill == FILL_SATURATED && bits % 16 == 0) return -100 * up_to_1;
  return -up_to_1 / (float)(1 << head % 12);
}

static void fill_decay(const drawn *to) {
  for (int64_t row = 0; row < rows_of(to); row++) {
    const uint64_t head = random_bits(to->stream + PLACE, (uint64_t)row);
    for (int64_t j = 0; j < to->shape.width; j++)
      ((float *)to->data)[place_of_row(to, row) + j] =
          decay_of(to->w, head, random_bits(to->stream, (uint64_t)(row * to->shape.width + j)));
  }
}

/* By the C library's functions, alone among the fills: these are right to a few last places of a double, of which a
 * float32 has the same bits everywhere but by a rare chance. */
void fill_angle(int64_t position, int64_t pair, int64_t features, float *cosine, float *sine) {
  const double angle = (double)position * pow(10000, -2.0 * (double)pair / (double)features);
  *cosine = (float)cos(angle);
  *sine = (float)sin(angle);
}

static void fill_angles(const drawn *to, bool of_sines) {
  const int64_t positions = rows_of(to), pairs = to->shape.width;
#pragma omp parallel for schedule(static) if (positions * pairs > worth_threads / 16)
  for (int64_t p = 0; p < positions; p++)
    for (int64_t n = 0; n < pairs; n++) {
      float cosine, sine;
      fill_angle(p, n, 2 * pairs, &cosine, &sine);
      ((float *)to->data)[place_of_row(to, p) + n] = of_sines ? sine : cosine;
    }
}

static void fill_cosines(const drawn *to) { fill_angles(to, false); }
static void fill_sines(const drawn *to) { fill_angles(to, true); }

/* The share p is dropped; where the mask varies over queries, all of one row in 16. Nothing where p is 0. */
static void fill_keep(const drawn *to) {
  const uint64_t rows_stream = to->stream + PLACE;
  const tensor_shape s = to->shape;
  const int64_t rows = rows_of(to);
  const double p = to->problem->dropout_p;
#pragma omp parallel for schedule(static) if (rows * s.width > worth_threads)
  for (int64_t row = 0; row < rows; row++) {
    uint8_t *out = (uint8_t *)to->data + place_of_row(to, row);
    const bool none = p > 0 && s.length > 1 && random_bits(rows_stream, (uint64_t)row) % 16 == 0;
    for (int64_t j = 0; j < s.width; j++) {
      const uint64_t bits = random_bits(to->stream, (uint64_t)(row * s.width + j));
      out[j] = !none && (double)(bits >> 11) * 0x1p-53 >= p ? fill_shown(bits) : 0;
    }
  }
}

/* Uniform, with a variance by which features that come out are as large as those that come in; biases are a tenth of such. */
static void fill_projection(const drawn *to) {
  const int64_t rows = to->shape.length, width = to->shape.width;
  const bool is_bias = rows == 1 && to->layout.position == 0;
  const float factor = is_bias ? 0.1f : (float)sqrt(3 / (double)width);
#pragma omp parallel for schedule(static) if (rows * width > worth_threads)
  for (int64_t r = 0; r < rows; r++)
    for (int64_t m = 0; m < width; m++)
      ((float *)to->data)[r * to->layout.position + m] =
          factor * uniform(random_bits(to->stream, (uint64_t)(r * width + m)));
}

/* So small that scores have the size that they have without. Finite whatever the fill. */
static void fill_general(const drawn *to) {
  const float size = exp2f(-rintf(log2f((float)to->shape.width) / 2));
  for (int64_t row = 0; row < rows_of(to); row++)
    for (int64_t e = 0; e < to->shape.width; e++)
      ((float *)to->data)[place_of_row(to, row) + e] =
          size * uniform(random_bits(to->stream, (uint64_t)(row * to->shape.width + e)));
}

/* So large that scores spread as those of products do, though no tanh exceeds 1. Finite whatever the fill. */
static void fill_additive(const drawn *to) {
  for (int64_t row = 0; row < rows_of(to); row++)
    for (int64_t d = 0; d < to->shape.width; d++)
      ((float *)to->data)[place_of_row(to, row) + d] =
          4 * uniform(random_bits(to->stream, (uint64_t)(row * to->shape.width + d)));
}

/* As some 16 keys would leave it: sums of features that no key makes negative, but of the identity, and values of at
 * most 1, all of which fade where keys do. Zeros are those of no key. */
static float state_sum_of(const drawn *to, int64_t head, int64_t d) {
  if (to->w->fill == FILL_ZEROS) return 0;
  const float number = uniform(random_bits(to->stream + PLACE, (uint64_t)(head * to->problem->head_dim + d)));
  return to->problem->feature_map == ATTN_IDENTITY ? 4 * number : 8 * (1.5f + number);
}

static void fill_state_sum(const drawn *to) {
  for (int64_t row = 0; row < rows_of(to); row++)
    for (int64_t d = 0; d < to->shape.width; d++)
      ((float *)to->data)[place_of_row(to, row) + d] = state_sum_of(to, row, d);
}

/* Some numbers of it are none where inputs are not finite. */
static void fill_state(const drawn *to) {
  for (int64_t row = 0; row < rows_of(to); row++) {
    const float sum = state_sum_of(to, row / to->shape.length, row % to->shape.length);
    for (int64_t e = 0; e < to->shape.width; e++) {
      const uint64_t bits = random_bits(to->stream, (uint64_t)(row * to->shape.width + e));
      float *number = (float *)to->data + place_of_row(to, row) + e;
      *number = sum * uniform(bits);
      if (to->w->fill == FILL_NONFINITE && bits % 512 < 3) *number = not_finite[bits % 512];
    }
  }
}

/* How the inputs are drawn, each from a stream of its own. */
static const struct {
  uint64_t stream;
  void (*fill)(const drawn *to);
} fills[TENSORS] = {
    [TENSOR_QUERY] = {QUERY, fill_query},
    [TENSOR_KEY] = {KEY, fill_key},
    [TENSOR_VALUE] = {VALUE, fill_value},
    [TENSOR_MASK] = {MASK, fill_mask},
    [TENSOR_BIAS] = {BIAS, fill_bias},
    [TENSOR_SINK] = {SINK, fill_sink},
    [TENSOR_ALIBI] = {ALIBI, fill_alibi},
    [TENSOR_OUTPUT_GRAD] = {GRADIENT, fill_output_grad},
    [TENSOR_RELATIVE] = {RELATIVE, fill_position_table},
    [TENSOR_T5] = {T5, fill_position_table},
    [TENSOR_DECAY] = {DECAY, fill_decay},
    [TENSOR_ROPE_COS] = {ROPE, fill_cosines},
    [TENSOR_ROPE_SIN] = {ROPE, fill_sines},
    [TENSOR_KEEP] = {KEEP, fill_keep},
    [TENSOR_W_Q] = {PROJECTION, fill_projection},
    [TENSOR_W_K] = {PROJECTION + 1, fill_projection},
    [TENSOR_W_V] = {PROJECTION + 2, fill_projection},
    [TENSOR_W_O] = {PROJECTION + 3, fill_projection},
    [TENSOR_B_Q] = {PROJECTION + 4, fill_projection},
    [TENSOR_B_K] = {PROJECTION + 5, fill_projection},
    [TENSOR_B_V] = {PROJECTION + 6, fill_projection},
    [TENSOR_B_O] = {PROJECTION + 7, fill_projection},
    [TENSOR_GENERAL] = {GENERAL, fill_general},
    [TENSOR_ADDITIVE] = {ADDITIVE, fill_additive},
    [TENSOR_STATE] = {STATE, fill_state},
    [TENSOR_STATE_SUM] = {STATE, fill_state_sum},
};

void fill_tensor(const workload *w, const attn_problem *problem, tensor_id id, void *data) {
  if (tensor_table[id].says_who_sees) {
    pattern_fill(w, problem, id, data);
    return;
  }
  const drawn to = {w,
                    problem,
                    tensor_stored_shape(problem, id),
                    *tensor_layout(problem, id),
                    stream_of(w, fills[id].stream),
                    data};
  fills[id].fill(&to);
}
