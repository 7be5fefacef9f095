/* See projection_sums.h. The softmax takes most of the time: all pairs, D multiply-adds each. Keys are packed so that
 * a vector holds one feature of four; four queries share what is loaded. */
#include "projection_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "reference/additive.h"
#include "reference/feature_map.h"
#include "reference/general.h"
#include "reference/linear_state.h"
#include "reference/rows.h"

/* gcc and clang make of these what the processor has, on x86-64 and aarch64 alike. */
typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lane_bits __attribute__((vector_size(16)));

enum { LANES = 4, PANEL = 8, ROWS = 4, BLOCK = 64 };
enum { SUM, SIZE, ALONG, SUMS = ALONG + PROJECTION_DIRECTIONS };

/* ---- what both functions share ---- */

projected_value projection_of(const projection *projection, const float *row, int64_t value_dim) {
  projected_value value = {{0}, 0};
  for (int64_t e = 0; e < value_dim; e++) {
    value.size += fabs((double)row[e]);
    for (int n = 0; n < PROJECTION_DIRECTIONS; n++)
      value.along[n] += projection->directions[n * value_dim + e] * row[e];
  }
  value.size /= (double)value_dim;
  return value;
}

attn_range projection_range(const attn_problem *problem, int64_t b, int64_t i) {
  const int64_t centre = i + (problem->offsets ? problem->offsets[b] : problem->offset);
  attn_range seen = {0, problem->key_lengths ? problem->key_lengths[b] : problem->key_length};
  if (problem->left != ATTN_UNLIMITED && seen.first < centre - problem->left)
    seen.first = centre - problem->left;
  if (problem->right != ATTN_UNLIMITED && seen.end > centre + problem->right + 1)
    seen.end = centre + problem->right + 1;
  return seen.first < seen.end ? seen : (attn_range){0, 0};
}

static int64_t group_of(const attn_problem *p) { return p->query_heads / p->kv_heads; }

static projected_row *row_at(const projection *projection, const attn_problem *p, int64_t b, int64_t h,
                             int64_t i) {
  return &projection->of[(b * p->query_heads + h) * p->query_length + i];
}

static void finish_row(projected_row *row, const double sums[SUMS], double total) {
  for (int n = 0; n < PROJECTION_DIRECTIONS; n++) row->along[n] = total != 0 ? sums[ALONG + n] / total : 0;
  row->size = total != 0 ? sums[SIZE] / fabs(total) : 0;
  row->scores = isfinite(total) && isfinite(row->size) ? 1 : NAN;
}

/* ---- softmax ---- */

/* One key/value head, in blocks of keys that are filled up with zeros. */
typedef struct packed {
  const projection *projection;
  const inputs *in;
  int64_t b, kv_head, blocks;
  float *keys;   /* [blocks, BLOCK / PANEL, D, PANEL] */
  float *values; /* [blocks, SUMS, BLOCK]; the first are 1 */
  double largest_key;
} packed;

static bool pack(packed *to) {
  const attn_problem *p = &to->in->problem;
  const int64_t D = p->head_dim;
  to->blocks = (p->key_length + BLOCK - 1) / BLOCK;
  const size_t keys = (size_t)to->blocks * BLOCK;
  to->keys = aligned_alloc(64, (keys * (size_t)D * sizeof(float) + 64) / 64 * 64);
  to->values = aligned_alloc(64, (keys * SUMS * sizeof(float) + 64) / 64 * 64);
  if (!to->keys || !to->values) return false;
  double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t j = 0; j < to->blocks * BLOCK; j++) {
    const bool is_key = j < p->key_length;
    const float *key = is_key ? reference_vector(to->in->tensors.key, p->key, to->b, to->kv_head, j) : NULL;
    projected_value value = {{0}, 0};
    if (is_key)
      value = projection_of(to->projection,
                            reference_vector(to->in->tensors.value, p->value, to->b, to->kv_head, j),
                            p->value_dim);
    float *out = to->keys + j / PANEL * PANEL * D + j % PANEL, square = 0;
    for (int64_t d = 0; d < D; d++) {
      out[d * PANEL] = is_key ? (float)reference_rotated(p, j, key, d).value : 0;
      square += out[d * PANEL] * out[d * PANEL];
    }
    float *sums = to->values + j / BLOCK * BLOCK * SUMS + j % BLOCK;
    const size_t pitch = BLOCK;
    sums[SUM * pitch] = 1;
    sums[SIZE * pitch] = (float)value.size;
    for (int n = 0; n < PROJECTION_DIRECTIONS; n++) sums[(size_t)(ALONG + n) * pitch] = (float)value.along[n];
    largest = fmax(largest, (double)square);
  }
  to->largest_key = sqrt(largest);
  return true;
}

/* Four queries of a head, and what has been summed of each. */
typedef struct query_rows {
  const packed *with;
  int64_t h, i, count;
  attn_range seen[ROWS];
  lanes *queries; /* [D, ROWS] each feature in every lane */
  double sums[ROWS][SUMS];
  float largest[ROWS];
  double added[ROWS]; /* the most that positions add to a score */
} query_rows;

static void load_queries(query_rows *rows) {
  const inputs *in = rows->with->in;
  const attn_problem *p = &in->problem;
  for (int64_t r = 0; r < ROWS; r++) {
    const int64_t i = rows->i + (r < rows->count ? r : 0);
    const float *query = reference_vector(in->tensors.query, p->query, rows->with->b, rows->h, i);
    rows->seen[r] = r < rows->count ? projection_range(p, rows->with->b, i) : (attn_range){0, 0};
    rows->largest[r] = -INFINITY;
    rows->added[r] = 0;
    memset(rows->sums[r], 0, sizeof rows->sums[r]);
    const int64_t position = reference_query_position(p, rows->with->b, i);
    reference_general general;
    if (p->general.type) reference_transform(p, rows->with->b, rows->h, i, query, &general);
    for (int64_t d = 0; d < p->head_dim; d++) {
      const float feature =
          (float)(p->general.type ? general.value[d] : reference_rotated(p, position, query, d).value);
      rows->queries[d * ROWS + r] = (lanes){feature, feature, feature, feature};
    }
  }
}

static lanes choose(lane_bits which, lanes yes, lanes no) {
  return (lanes)((which & (lane_bits)yes) | (~which & (lane_bits)no));
}

/* e^x for x <= 0, within some 1e-6 of it: 2^n times a polynomial of Taylor's. NaN stays one. */
static lanes exponential(lanes x) {
  static const float factors[] = {1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f,
                                  2.4022651e-1f, 6.9314718e-1f, 1.0f};
  const float shifter = 0x1.8p23f; /* the bits below the point fall off */
  const lanes log2_e = {1.44269504f, 1.44269504f, 1.44269504f, 1.44269504f};
  lanes power = x * log2_e;
  const lane_bits vanishes = power < -126.0f;
  power = choose(vanishes, (lanes){0}, power);
  const lanes whole = (power + shifter) - shifter, part = power - whole;
  lanes sum = {0};
  for (size_t n = 0; n < sizeof factors / sizeof *factors; n++) sum = sum * part + factors[n];
  const lane_bits exponent = __builtin_convertvector(whole, lane_bits);
  return choose(vanishes, (lanes){0}, sum * (lanes)((exponent + 127) << 23));
}

/* By what is left of the weight of an exponential: (1 - e^-2|x|) / (1 + e^-2|x|), with the sign of x. */
static lanes hyperbolic_tangent(lanes x) {
  const lane_bits negative = (lane_bits)x & INT32_MIN;
  const lanes size = (lanes)((lane_bits)x ^ negative), power = exponential(-2 * size);
  return (lanes)((lane_bits)((1 - power) / (1 + power)) | negative);
}

/* The same of additive scores, for the keys of a panel. */
static void add_panel(const query_rows *rows, const float *weights, const lanes *keys,
                      lanes scores[ROWS][BLOCK / LANES], int64_t at) {
  const int64_t D = rows->with->in->problem.head_dim;
  const lanes *queries = rows->queries;
  for (int r = 0; r < ROWS; r++) scores[r][at] = scores[r][at + 1] = (lanes){0};
  for (int64_t d = 0; d < D; d++, keys += 2, queries += ROWS)
    for (int r = 0; r < ROWS; r++) {
      scores[r][at] += weights[d] * hyperbolic_tangent(queries[r] + keys[0]);
      scores[r][at + 1] += weights[d] * hyperbolic_tangent(queries[r] + keys[1]);
    }
}

/* scores[r][n] = q_r . k_n over the keys of a block. */
static void dot_block(const query_rows *rows, int64_t block, lanes scores[ROWS][BLOCK / LANES]) {
  const int64_t D = rows->with->in->problem.head_dim;
  const float *weights = rows->with->in->problem.additive.type
                             ? reference_additive_weights(&rows->with->in->problem, rows->h)
                             : NULL;
  for (int64_t panel = 0; panel < BLOCK / PANEL; panel++) {
    const lanes *keys =
        (const lanes *)(const void *)(rows->with->keys + (block * (BLOCK / PANEL) + panel) * PANEL * D);
    if (weights) {
      add_panel(rows, weights, keys, scores, 2 * panel);
      continue;
    }
    const lanes *queries = rows->queries;
    lanes sum[ROWS][2] = {{{0}}};
    for (int64_t d = 0; d < D; d++, keys += 2, queries += ROWS) {
      const lanes k0 = keys[0], k1 = keys[1];
#pragma GCC unroll 4
      for (int r = 0; r < ROWS; r++) {
        sum[r][0] += queries[r] * k0;
        sum[r][1] += queries[r] * k1;
      }
    }
    for (int r = 0; r < ROWS; r++) {
      scores[r][2 * panel] = sum[r][0];
      scores[r][2 * panel + 1] = sum[r][1];
    }
  }
}

/* Dots into scores; those of keys that are hidden into -inf. */
static void make_scores(query_rows *rows, int r, int64_t first_key, float *scores) {
  const inputs *in = rows->with->in;
  const attn_problem *p = &in->problem;
  const int64_t b = rows->with->b, h = rows->h, i = rows->i + r;
  const float scale = (float)p->scale;
  const attn_range seen = rows->seen[r];
  for (int n = 0; n < BLOCK; n++) scores[n] *= scale;
  if (p->softcap > 0)
    for (int n = 0; n < BLOCK; n++) scores[n] = (float)(p->softcap * tanh(scores[n] / p->softcap));
  if (first_key >= seen.first && first_key + BLOCK <= seen.end && !p->mask.type && !p->bias.type &&
      !attn_has_pattern(p) && !reference_has_position(p) && !p->query_lengths)
    return;
  const float *bias = p->bias.type ? reference_vector(in->tensors.bias, p->bias, b, h, i) : NULL;
  for (int64_t n = 0, j = first_key; n < BLOCK; n++, j++) {
    const reference_terms position = reference_position(p, b, h, i, j);
    if (j < seen.first || j >= seen.end || !reference_sees(p, &in->tensors, b, h, i, j)) {
      scores[n] = -INFINITY;
      continue;
    }
    if (bias) scores[n] += bias[j];
    scores[n] += (float)position.sum;
    rows->added[r] = fmax(rows->added[r], position.size);
  }
}

static float largest_of(const lanes *x) {
  lanes most = x[0];
  for (int n = 1; n < BLOCK / LANES; n++) most = choose(x[n] > most, x[n], most);
  float largest = most[0];
  for (int n = 1; n < LANES; n++) largest = most[n] > largest ? most[n] : largest;
  return largest;
}

/* What dropout multiplies the weights of a block by; false where there is none. */
static bool find_kept(const query_rows *rows, int r, int64_t first_key, float kept[BLOCK]) {
  const attn_problem *p = &rows->with->in->problem;
  for (int64_t n = 0; n < BLOCK && p->keep.type; n++)
    kept[n] = first_key + n < p->key_length
                  ? (float)reference_kept(p, rows->with->b, rows->h, rows->i + r, first_key + n)
                  : 0;
  return p->keep.type != ATTN_ABSENT;
}

/* The online softmax: what was summed before counts less when the maximum rises. */
static void add_block(query_rows *rows, int r, int64_t block, lanes *scores) {
  const lanes *values = (const lanes *)(const void *)(rows->with->values + block * SUMS * BLOCK);
  const float before = rows->largest[r], highest = largest_of(scores);
  const float largest = highest > before ? highest : before;
  lanes sums[SUMS] = {{0}};
  float kept[BLOCK] __attribute__((aligned(16)));
  if (largest == -INFINITY) return;
  const bool drops = find_kept(rows, r, block * BLOCK, kept);
  for (int n = 0; n < BLOCK / LANES; n++) {
    const lanes weight = exponential(scores[n] - largest);
    sums[SUM] += weight * values[n];
    const lanes met = drops ? weight * ((const lanes *)(const void *)kept)[n] : weight;
    for (int s = SIZE; s < SUMS; s++) sums[s] += met * values[s * (BLOCK / LANES) + n];
  }
  const double rescale = largest > before ? exp((double)before - (double)largest) : 1;
  for (int s = 0; s < SUMS; s++) {
    rows->sums[r][s] *= rescale;
    for (int lane = 0; lane < LANES; lane++) rows->sums[r][s] += (double)sums[s][lane];
  }
  rows->largest[r] = largest;
}

static void finish_softmax(const query_rows *rows, int r) {
  const inputs *in = rows->with->in;
  const attn_problem *p = &in->problem;
  const double sink = reference_sink(p, &in->tensors, rows->with->b, rows->h, rows->i + r);
  const bool sees = rows->largest[r] != -INFINITY;
  const double largest = sees ? fmax((double)rows->largest[r], sink) : sink;
  double sums[SUMS], square = 0, sizes = 0;
  for (int s = 0; s < SUMS; s++)
    sums[s] = sees ? rows->sums[r][s] * exp((double)rows->largest[r] - largest) : 0;
  projected_row *row = row_at(rows->with->projection, p, rows->with->b, rows->h, rows->i + r);
  const double total = sums[SUM] + (sees && sink != -INFINITY ? exp(sink - largest) : 0);
  finish_row(row, sums, total);
  row->normaliser = sees ? largest + log(total) : sink;
  for (int64_t d = 0; d < p->head_dim; d++) {
    const double q = rows->queries[d * ROWS + r][0];
    square += q * q;
    if (p->additive.type) sizes += fabs((double)reference_additive_weights(p, rows->h)[d]);
  }
  const double most = p->additive.type ? sizes : sqrt(square) * rows->with->largest_key;
  row->scores += fabs(p->scale) * most + rows->added[r];
}

static void sum_rows(query_rows *rows) {
  const packed *with = rows->with;
  int64_t first = with->in->problem.key_length, end = 0;
  load_queries(rows);
  for (int r = 0; r < rows->count; r++) {
    if (rows->seen[r].first == rows->seen[r].end) continue;
    if (rows->seen[r].first < first) first = rows->seen[r].first;
    if (rows->seen[r].end > end) end = rows->seen[r].end;
  }
  for (int64_t block = first / BLOCK; block * BLOCK < end; block++) {
    lanes scores[ROWS][BLOCK / LANES];
    dot_block(rows, block, scores);
    for (int r = 0; r < rows->count; r++) {
      if (rows->seen[r].end <= block * BLOCK || rows->seen[r].first >= (block + 1) * BLOCK) continue;
      make_scores(rows, r, block * BLOCK, (float *)(void *)scores[r]);
      add_block(rows, r, block, scores[r]);
    }
  }
  for (int r = 0; r < rows->count; r++) finish_softmax(rows, r);
}

static bool sum_kv_head(const projection *projection, const inputs *in, int64_t b, int64_t kv_head) {
  const attn_problem *p = &in->problem;
  packed with = {.projection = projection, .in = in, .b = b, .kv_head = kv_head};
  const int64_t tiles = (p->query_length + ROWS - 1) / ROWS, group = group_of(p);
  bool good = pack(&with);
#pragma omp parallel reduction(&& : good)
  {
    query_rows rows = {.with = &with};
    rows.queries = aligned_alloc(64, ((size_t)p->head_dim * ROWS * sizeof(lanes) + 64) / 64 * 64);
    good = good && rows.queries;
#pragma omp for schedule(dynamic, 4)
    for (int64_t n = 0; n < group * tiles; n++) {
      if (!good || interrupt_wanted()) continue;
      rows.h = kv_head * group + n / tiles;
      rows.i = n % tiles * ROWS;
      rows.count = p->query_length - rows.i < ROWS ? p->query_length - rows.i : ROWS;
      sum_rows(&rows);
    }
    free(rows.queries);
  }
  free(with.keys);
  free(with.values);
  return good;
}

bool projection_sums_softmax(const projection *projection, const inputs *in) {
  const attn_problem *p = &in->problem;
  for (int64_t n = 0; n < p->batch * p->kv_heads; n++)
    if (!sum_kv_head(projection, in, n / p->kv_heads, n % p->kv_heads)) return false;
  return true;
}

/* ---- linear ---- */

/* Adds keys to the sums of a head, or takes them away: [D, SUMS]. */
static void move_keys(const projection *projection, const inputs *in, int64_t b, int64_t kv_head,
                      int64_t from, int64_t to, double sign, double *state) {
  const attn_problem *p = &in->problem;
  for (int64_t j = from; j < to; j++) {
    const float *key = reference_vector(in->tensors.key, p->key, b, kv_head, j);
    const projected_value value =
        projection_of(projection, reference_vector(in->tensors.value, p->value, b, kv_head, j), p->value_dim);
    for (int64_t d = 0; d < p->head_dim; d++) {
      const double phi = reference_phi(p, key[d]), feature = sign * phi;
      double *sums = state + d * SUMS;
      sums[SUM] += feature;
      sums[SIZE] += sign * fabs(phi) * value.size;
      for (int n = 0; n < PROJECTION_DIRECTIONS; n++) sums[ALONG + n] += feature * value.along[n];
    }
  }
}

/* The same where each fades those before it: under a band that ends with the query's own key, and forgets none. */
static void decay_keys(const projection *projection, const inputs *in, int64_t b, int64_t kv_head,
                       int64_t from, int64_t to, double *state) {
  for (int64_t j = from; j < to; j++) {
    const double gate = exp(reference_decay(&in->problem, b, kv_head, j));
    for (int64_t n = 0; n < in->problem.head_dim * SUMS; n++) state[n] *= gate;
    move_keys(projection, in, b, kv_head, j, j + 1, 1, state);
  }
}

/* What there is before the first key. */
static void begin_state(const projection *projection, const attn_problem *p, int64_t b, int64_t kv_head,
                        double *state) {
  for (int64_t d = 0; p->states.state.type && d < p->head_dim; d++) {
    const projected_value value =
        projection_of(projection, reference_state_row(p, b, kv_head, d), p->value_dim);
    double *sums = state + d * SUMS;
    sums[SUM] = reference_state_sum(p, b, kv_head, d);
    sums[SIZE] = value.size;
    for (int n = 0; n < PROJECTION_DIRECTIONS; n++) sums[ALONG + n] = value.along[n];
  }
}

/* Both ends of what a query sees move forward with it, so each key comes and goes once. */
static void sum_head(const projection *projection, const inputs *in, int64_t b, int64_t h, double *state) {
  const attn_problem *p = &in->problem;
  const int64_t kv_head = h / group_of(p);
  attn_range held = {0, 0};
  begin_state(projection, p, b, kv_head, state);
  for (int64_t i = 0; i < p->query_length && !interrupt_wanted(); i++) {
    const attn_range seen = projection_range(p, b, i);
    const float *query = reference_vector(in->tensors.query, p->query, b, h, i);
    double sums[SUMS] = {0};
    projected_row *row = row_at(projection, p, b, h, i);
    const bool empty = seen.first == seen.end && !p->states.state.type;
    if (!empty) {
      if (held.end < seen.first) held.first = held.end = seen.first;
      move_keys(projection, in, b, kv_head, held.first, seen.first, -1, state);
      if (p->decay.type)
        decay_keys(projection, in, b, kv_head, held.end, seen.end, state);
      else
        move_keys(projection, in, b, kv_head, held.end, seen.end, 1, state);
      held = seen;
      for (int64_t d = 0; d < p->head_dim; d++) {
        const double phi = reference_phi(p, query[d]);
        for (int s = 0; s < SUMS; s++) sums[s] += (s == SIZE ? fabs(phi) : phi) * state[d * SUMS + s];
      }
    }
    row->normaliser = empty ? 0 : p->unnormalised ? 1 : sums[SUM] + p->epsilon;
    finish_row(row, sums, row->normaliser);
    if (p->decay.type && (p->right != 0 || p->left != ATTN_UNLIMITED)) row->scores = NAN;
  }
}

bool projection_sums_linear(const projection *projection, const inputs *in) {
  const attn_problem *p = &in->problem;
  bool good = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : good)
  for (int64_t n = 0; n < p->batch * p->query_heads; n++) {
    double *state = calloc((size_t)p->head_dim * SUMS, sizeof *state);
    good = good && state;
    if (state) sum_head(projection, in, n / p->query_heads, n % p->query_heads, state);
    free(state);
  }
  return good;
}
