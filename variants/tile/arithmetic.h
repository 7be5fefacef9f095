/* What the tile kernels do with floats, written once over the vector operations of an instruction set. The file that
 * includes this defines: vec, LANES, MAX_VECTORS, GROUP(vectors), FEW_VECTORS; load, load_part, store, broadcast,
 * zero, fused_multiply_add, add, subtract, multiply, divide, maximum, minimum, absolute, copy_sign, bits_of,
 * select_less, shown_bits (of 32 bytes one bit each: whether it is not 0), select_bit (a where bit n of a lane of x is
 * set, else b), add_quotient, zero_where_minus_infinity, transpose, sums_of, flush_denormals, restore_denormals, split_power, times_power, exp2_polynomial; EXP_VECTORS;
 * split_exponential, or OWN_ELU1, elu1_constants, elu1_of_vectors and elu1_vec.
 * Behind it come element_rows.h, once for each type of elements, and products.h, once for each kind of operands; then the
 * tables.
 *
 * Counts inside are constants after inlining; check the assembly for stack traffic after any change (gcc 12 spills
 * easily). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base2.h"
#include "tile.h"

/* A third to a quarter of the time to compile where functions stay such, in which nobody asks for speed. */
#if defined __OPTIMIZE__ && !defined EMULATES
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#define UNUSED __attribute__((unused)) /* where operands are pairs */

/* Names of what is included several times end in the macro KIND. */
#define JOINED(name, kind) name##_##kind
#define EXPANDED(name, kind) JOINED(name, kind)
#define NAME(name) EXPANDED(name, KIND)

enum { MAX_GROUP = 8 };

/* Group n of a call fetches a line of the rows ahead in each of its steps: spread so, the fetches hide behind
 * the multiply-adds, where all at once they would fill the buffers that misses wait in. Rows without a gap between
 * them are fetched in the order of memory, which the processor's own prefetching then picks up: linear takes 0.90
 * of the time. Of others group n fetches line n, a row each step. */
typedef struct line_ahead {
  const char *first;
  int64_t stride; /* bytes */
} line_ahead;

enum { NOWHERE, INTO_L1, INTO_L2, LINE = 64 };

/* Of the group that comes n-th, of so many steps: lines one after the other where rows are packed, else one of each of as
 * many rows. Pairs of a single feature have no step, but what is left of one. */
INLINE line_ahead line_of(const tile_ahead *ahead, int64_t n, int64_t steps) {
  const line_ahead none = {NULL, 0};
  if (!ahead || ahead->rows == 0 || steps == 0) return none;
  int64_t bytes = LINE; /* that a step goes on by */
#ifdef FETCHES_ARE_DROPPED
  if (ahead->pace > 0) bytes = ahead->pace;
#endif
  const bool packed = ahead->of[0].stride == ahead->of[0].width && ahead->of[1].stride == ahead->of[1].width;
  int64_t at = packed ? n * steps * bytes : n;
  for (int s = 0; s < 2; s++) {
    const char *x = ahead->of[s].x;
    const int64_t stride = ahead->of[s].stride, row_lines = (ahead->of[s].width + LINE - 1) / LINE;
    const int64_t all = packed ? ahead->rows * stride : row_lines * ((ahead->rows + steps - 1) / steps);
    if (at < all && packed) return (line_ahead){x + at, bytes};
    if (at < all) return (line_ahead){x + at % row_lines * LINE + at / row_lines * steps * stride, stride};
    at -= all;
  }
  return none;
}

/* A call in which `vectors`, those of so many rows, is a constant. */
#define WITH_VECTORS(n, call)                                                                                \
  case n: {                                                                                                  \
    const int vectors = n;                                                                                   \
    call;                                                                                                    \
    break;                                                                                                   \
  }
#if MAX_VECTORS > 3
#define EACH_VECTORS(call)                                                                                   \
  WITH_VECTORS(1, call) WITH_VECTORS(2, call) WITH_VECTORS(3, call) WITH_VECTORS(4, call)
#elif MAX_VECTORS > 2
#define EACH_VECTORS(call) WITH_VECTORS(1, call) WITH_VECTORS(2, call) WITH_VECTORS(3, call)
#else
#define EACH_VECTORS(call) WITH_VECTORS(1, call) WITH_VECTORS(2, call)
#endif
#define BY_VECTORS(rows, call)                                                                               \
  switch ((rows) / LANES) { EACH_VECTORS(call) }

/* Depth is cut evenly so that the slice of queries that every group of keys reads again, 24 KiB, stays in a 32 KiB
 * L1. */
INLINE int64_t depth_slice(int64_t rows, int64_t depth) {
  const int64_t most = 6144 / rows, slices = (depth + most - 1) / most;
  return slices > 1 ? (depth + slices - 1) / slices : depth;
}

/* A product of a tile goes group by group, the rest in smaller and smaller ones. */
typedef struct groups_done {
  int64_t elements, groups;
} groups_done;

/* Exponents, and the fractions that their powers are found from. */
typedef struct powers {
  vec x[EXP_VECTORS], fraction[EXP_VECTORS];
} powers;

INLINE void begin_powers(const int n, powers *of) {
  for (int i = 0; i < n; i++) of->fraction[i] = split_power(&of->x[i]);
}

INLINE void end_powers_by(const float *coefficients, const int count, const int n, const powers *of,
                          vec p[]) {
  for (int i = 0; i < n; i++) p[i] = broadcast(&coefficients[0]);
#pragma GCC unroll 8
  for (int k = 1; k < count; k++)
    for (int i = 0; i < n; i++) p[i] = fused_multiply_add(p[i], of->fraction[i], broadcast(&coefficients[k]));
  for (int i = 0; i < n; i++) p[i] = times_power(p[i], of->x[i]);
}

INLINE void end_powers(const int n, const powers *of, vec p[]) {
  end_powers_by(exp2_polynomial, sizeof exp2_polynomial / sizeof *exp2_polynomial, n, of, p);
}

#ifndef OWN_ELU1
/* elu(x) + 1: e^x of what is not above 0, and where x > 0 e^0 = 1, to which x is added. */
INLINE vec split_elu1(vec *x) {
  *x = maximum(broadcast(&(float){-88.0f}), minimum(zero(), *x));
  return split_exponential(x);
}

/* Powers e^x of what is in `of`. The polynomial is a minimax fit of 2^f, |f| <= 1/2, with float32 coefficients, the first
 * being 1: 1.33 ulp at worst. */
INLINE void end_exponentials(const int n, const powers *of, vec p[]) {
  static const float near[] = {0x1.5bba18p-10f, 0x1.3cea88p-7f, 0x1.c6b75p-5f,
                               0x1.ebf9cp-3f,   0x1.62e42ap-1f, 1.0f};
  end_powers_by(near, sizeof near / sizeof *near, n, of, p);
}
#endif

/* x[i] = 2^x[i]. All step by step together: one alone is a chain of a
 * dozen operations, and one after the other too few fit the scheduler to hide their latency. EXP_VECTORS at once
 * take 0.89 of the time of a softmax. */
INLINE void exp2_each(const int n, vec x[]) {
  powers of;
  for (int i = 0; i < n; i++) of.x[i] = x[i];
  begin_powers(n, &of);
  end_powers(n, &of, x);
}

INLINE vec exp2_vec(vec x) {
  vec one[1] = {x};
  exp2_each(1, one);
  return one[0];
}

/* What is left of some keys' scores becomes their weights, which are added to `total`. */
INLINE void weigh(const int vectors, const int keys, vec total[MAX_VECTORS], vec weight[EXP_VECTORS]) {
  exp2_each(keys * vectors, weight);
  for (int i = 0; i < keys * vectors; i++) total[i % vectors] = add(total[i % vectors], weight[i]);
}

INLINE void weigh_in_place(const int vectors, const int keys, float *scores, const vec shift[MAX_VECTORS],
                           vec total[MAX_VECTORS]) {
  vec weight[EXP_VECTORS];
  for (int i = 0; i < keys * vectors; i++) weight[i] = subtract(load(scores + i * LANES), shift[i % vectors]);
  weigh(vectors, keys, total, weight);
  for (int i = 0; i < keys * vectors; i++) store(scores + i * LANES, weight[i]);
}

static void exp2_all(int64_t count, float *x) {
  const unsigned mode = flush_denormals();
  for (int64_t n = 0; n < count; n += LANES) store(x + n, exp2_vec(load(x + n)));
  restore_denormals(mode);
}

/* A few rows' worth of vectors at once: see exp2_each. */
INLINE void weigh_and_grade(const int vectors, const int together, const float *shift, const float *delta,
                            float *restrict weights, float *restrict grads) {
  vec weight[EXP_VECTORS];
  for (int i = 0; i < together * vectors; i++)
    weight[i] = subtract(load(weights + i * LANES), broadcast(shift + i / vectors));
  exp2_each(together * vectors, weight);
  for (int i = 0; i < together * vectors; i++) {
    store(weights + i * LANES, weight[i]);
    const vec gap = subtract(load(grads + i * LANES), broadcast(delta + i / vectors));
    store(grads + i * LANES, multiply(weight[i], gap));
  }
}

INLINE void grade_rows(const int vectors, int64_t count, const float *shift, const float *delta,
                       float *restrict weights, float *restrict grads) {
  const int together = EXP_VECTORS / vectors;
  const int64_t rows = (int64_t)vectors * LANES;
  int64_t n = 0;
  for (; n + together <= count; n += together)
    weigh_and_grade(vectors, together, shift + n, delta + n, weights + n * rows, grads + n * rows);
  for (; n < count; n++)
    weigh_and_grade(vectors, 1, shift + n, delta + n, weights + n * rows, grads + n * rows);
}

static void grade(int64_t rows, int64_t count, const float *shift, const float *delta, float *weights,
                  float *grads) {
  const unsigned mode = flush_denormals();
  BY_VECTORS(rows, grade_rows(vectors, count, shift, delta, weights, grads));
  restore_denormals(mode);
}

/* The largest of the lanes or their sum, half with half: one after the other each would wait for the one before. */
INLINE float join_lanes(const bool largest, vec a) {
  float lane[LANES];
  store(lane, a);
#pragma GCC unroll 4
  for (int n = LANES / 2; n > 0; n /= 2)
#pragma GCC unroll 8
    for (int l = 0; l < n; l++)
      if (largest)
        lane[l] = lane[l + n] > lane[l] ? lane[l + n] : lane[l];
      else
        lane[l] += lane[l + n];
  return lane[0];
}

INLINE float largest_lane(vec a) { return join_lanes(true, a); }
INLINE float sum_of_lanes(vec a) { return join_lanes(false, a); }

/* One of each place. It is inlined, or gcc takes the call of a function that fetches and does no more for one without effects. */
INLINE void fetch_lines(tile_lines *of) {
  for (int p = 0; p < TILE_FEW_PLACES; p++) __builtin_prefetch(of->row + p * of->apart + of->at, 0, 2);
  of->at += LINE;
  if (of->at >= of->width) of->at = 0, of->row += of->stride;
}

static void softmax_row(int64_t count, float *restrict x, float *restrict max, float *restrict sum,
                        tile_lines *ahead) {
  enum { CHAINS = 4, TOGETHER = EXP_VECTORS / CHAINS };
  const unsigned mode = flush_denormals();
  vec largest[CHAINS], total[CHAINS], shift[CHAINS];
  for (int c = 0; c < CHAINS; c++) {
    largest[c] = broadcast(max);
    total[c] = zero();
  }
  int64_t n = 0;
  for (; n + CHAINS * LANES <= count; n += CHAINS * LANES)
    for (int c = 0; c < CHAINS; c++) largest[c] = maximum(load(x + n + c * LANES), largest[c]);
  for (; n < count; n += LANES) largest[0] = maximum(load(x + n), largest[0]);
  *max = largest_lane(maximum(maximum(largest[0], largest[1]), maximum(largest[2], largest[3])));

  for (int c = 0; c < CHAINS; c++) shift[c] = broadcast(&(float){*max == -INFINITY ? 0 : *max});
  for (n = 0; n + TOGETHER * CHAINS * LANES <= count; n += TOGETHER * CHAINS * LANES) {
    weigh_in_place(CHAINS, TOGETHER, x + n, shift, total);
    if (ahead) fetch_lines(ahead);
  }
  for (; n < count; n += LANES) weigh_in_place(1, 1, x + n, shift, total);
  *sum = sum_of_lanes(add(add(total[0], total[1]), add(total[2], total[3])));
  restore_denormals(mode);
}

INLINE void hide_rows(const int vectors, int64_t keys, const float *restrict first, const float *restrict end,
                      float hidden, float *restrict scores) {
  const vec fill = broadcast(&hidden);
  vec from[MAX_VECTORS], to[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) from[v] = load(first + v * LANES), to[v] = load(end + v * LANES);
  for (int64_t j = 0; j < keys; j++) {
    const vec key = broadcast(&(float){(float)j});
    for (int v = 0; v < vectors; v++) {
      float *score = scores + (j * vectors + v) * LANES;
      store(score, select_less(key, from[v], fill, select_less(key, to[v], load(score), fill)));
    }
  }
}

static void hide(int64_t rows, int64_t keys, const float *first, const float *end, float hidden,
                 float *score) {
  BY_VECTORS(rows, hide_rows(vectors, keys, first, end, hidden, score));
}

enum { MASK_KEYS = 32 }; /* whose bits a lane has */

INLINE void hide_keys(const int keys, vec shown, vec fill, int64_t rows, float *restrict scores) {
#pragma GCC unroll 32
  for (int n = 0; n < keys; n++)
    store(scores + n * rows, select_bit(shown, n, load(scores + n * rows), fill));
}

INLINE uint32_t shown_of_row(const uint8_t *seen, int64_t keys) {
  uint8_t some[MASK_KEYS] = {0};
  if (keys >= MASK_KEYS) return shown_bits(seen);
  memcpy(some, seen, (size_t)keys);
  return shown_bits(some);
}

/* A row's bits lie in its lane, so that nothing is turned. */
static void hide_masked(int64_t rows, int64_t count, int64_t first, int64_t end, const uint8_t *const *seen,
                        float hidden, float *restrict scores) {
  const vec fill = broadcast(&hidden);
  for (int64_t j = first; j < end; j += MASK_KEYS) {
    for (int64_t r = 0; r < rows; r += LANES) {
      float *score = scores + (j - first) * rows + r;
      uint32_t bits[LANES];
      vec shown;
      for (int x = 0; x < LANES; x++)
        bits[x] = r + x < count ? shown_of_row(seen[r + x] + j, end - j) : UINT32_MAX;
      memcpy(&shown, bits, sizeof shown);
      if (end - j >= MASK_KEYS)
        hide_keys(MASK_KEYS, shown, fill, rows, score);
      else
        hide_keys((int)(end - j), shown, fill, rows, score);
    }
  }
}

typedef uint8_t byte_vec __attribute__((vector_size(sizeof(vec))));

static bool has_bytes(const byte_vec *x) {
  uint64_t words[sizeof *x / sizeof(uint64_t)], any = 0;
  memcpy(words, x, sizeof words);
  for (size_t n = 0; n < sizeof words / sizeof *words; n++) any |= words[n];
  return any != 0;
}

/* In most tiles of which some is hidden the first row shows and hides some. */
static attn_visibility look(int64_t rows, int64_t first, int64_t end, const uint8_t *const *seen) {
  enum { BETWEEN = 8 };
  const int64_t width = sizeof(byte_vec);
  bool shows = false, hides = false;
  for (int64_t r = 0; r < rows && !(shows && hides);) {
    byte_vec shown = {0}, hidden = {0};
    for (int64_t last = r == 0 ? 1 : r + BETWEEN < rows ? r + BETWEEN : rows; r < last; r++) {
      int64_t j = first;
      for (; j + width <= end; j += width) {
        byte_vec x;
        memcpy(&x, seen[r] + j, sizeof x);
        shown |= x;
        hidden |= (byte_vec)(x == 0);
      }
      for (; j < end; j++) shows = shows || seen[r][j], hides = hides || !seen[r][j];
    }
    shows = shows || has_bytes(&shown);
    hides = hides || has_bytes(&hidden);
  }
  return !shows ? ATTN_EMPTY : hides ? ATTN_PARTIAL : ATTN_FULL;
}

static void add_run(int64_t rows, int64_t keys, const float *run, int64_t step, float scale,
                    float *restrict scores) {
  const vec scales = broadcast(&scale);
  for (int64_t n = 0; n < keys; n++)
    for (int64_t r = 0; r < rows; r += LANES) {
      float *score = scores + n * rows + r;
      store(score, fused_multiply_add(scales, load(score), load(run + (keys - 1 - n) * step + r)));
    }
}

/* tanh: an odd polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel (coefficients: Cephes, tanhf.c). */
static void softcap(int64_t count, float scale, float cap, float *x) {
  const vec one = broadcast(&(float){1.0f}), two = broadcast(&(float){2.0f});
  const vec two_log2e = broadcast(&(float){2.885390082f}), caps = broadcast(&cap), scales = broadcast(&scale);
  const vec near = broadcast(&(float){0.625f}), far = broadcast(&(float){10.0f});
  for (int64_t n = 0; n < count; n += LANES) {
    vec a = multiply(scales, load(x + n)), size = absolute(a), square = multiply(a, a);
    vec p = broadcast(&(float){-5.70498872745e-3f});
    p = fused_multiply_add(p, square, broadcast(&(float){2.06390887954e-2f}));
    p = fused_multiply_add(p, square, broadcast(&(float){-5.37397155531e-2f}));
    p = fused_multiply_add(p, square, broadcast(&(float){1.33314422036e-1f}));
    p = fused_multiply_add(p, square, broadcast(&(float){-3.33332819422e-1f}));
    p = fused_multiply_add(multiply(p, square), a, a);
    /* Beyond 10, tanh is 1 in float32; a NaN fails the comparison and stays. */
    vec power = exp2_vec(multiply(select_less(far, size, far, size), two_log2e));
    vec q = subtract(one, divide(two, add(power, one)));
    store(x + n, multiply(caps, select_less(size, near, p, copy_sign(q, a))));
  }
}

static void join(int64_t rows, int64_t count, const float *restrict ours, const float *restrict theirs,
                 const float *restrict y, float *restrict x) {
  for (int64_t n = 0; n < count; n++)
    for (int64_t r = 0; r < rows; r += LANES) {
      const vec other = multiply(load(y + n * rows + r), load(theirs + r));
      store(x + n * rows + r, fused_multiply_add(load(x + n * rows + r), load(ours + r), other));
    }
}

/* Two chains of additions for each vector. */
INLINE void add_rows_of(const int vectors, int64_t rows, tile_matrix x, float *restrict sum) {
  vec even[MAX_VECTORS], odd[MAX_VECTORS];
  int64_t r = 0;
  for (int v = 0; v < vectors; v++) even[v] = odd[v] = zero();
  for (; r + 2 <= rows; r += 2)
    for (int v = 0; v < vectors; v++) {
      even[v] = add(load(x.x + r * x.stride + v * LANES), even[v]);
      odd[v] = add(load(x.x + (r + 1) * x.stride + v * LANES), odd[v]);
    }
  for (int v = 0; r < rows && v < vectors; v++) even[v] = add(load(x.x + r * x.stride + v * LANES), even[v]);
  for (int v = 0; v < vectors; v++) store(sum + v * LANES, add(load(sum + v * LANES), add(even[v], odd[v])));
}

static void add_rows(int64_t rows, int64_t width, tile_matrix x, float *sum) {
  BY_VECTORS(width, add_rows_of(vectors, rows, x, sum));
}

/* Of LANES rows those from `first` on: sums side by side, added up together. */
INLINE vec dots_from(const int first, int64_t width, const float *x, int64_t stride,
                     const float *restrict y) {
  vec sum[LANES];
  for (int l = 0; l < LANES; l++) sum[l] = zero();
  for (int64_t n = 0; n < width; n += LANES) {
    const vec factor = load(y + n);
    for (int l = first; l < LANES; l++) sum[l] = fused_multiply_add(load(x + l * stride + n), factor, sum[l]);
  }
  return sums_of(sum);
}

/* Of keys from j on that none of the rows before `first` sees, those that the last of the rows from there on of a quarter does.
 * seen: how many each row does. Returns where they end. */
INLINE int64_t dots_of_quarter(const int first, int64_t j, int64_t end, tile_size size, tile_matrix x,
                               tile_matrix y, vec seen, tile_target dots) {
  for (; j < end && j < size.keys; j++) {
    const vec all = dots_from(first, size.features, x.x, x.stride, y.x + j * y.stride);
    store(dots.x + j * dots.stride, select_less(broadcast(&(float){(float)j}), seen, all, zero()));
  }
  return j;
}

static void dot_rows(tile_size size, tile_matrix x, tile_matrix y, const int64_t *seen, tile_target dots) {
  enum { QUARTER = LANES / 4 };
  for (int64_t r = 0; r < size.rows; r += LANES) {
    const tile_matrix rows = {x.x + r * x.stride, x.stride};
    const tile_target to = {dots.x + r, dots.stride};
    float numbers[LANES];
    int64_t ends[4], j = 0;
    for (int l = 0; l < LANES; l++) numbers[l] = seen ? (float)seen[r + l] : INFINITY;
    for (int q = 0; q < 4; q++) ends[q] = seen ? seen[r + q * QUARTER + QUARTER - 1] : size.keys;
    const vec each = load(numbers);
    j = dots_of_quarter(0, j, ends[0], size, rows, y, each, to);
    j = dots_of_quarter(QUARTER, j, ends[1], size, rows, y, each, to);
    j = dots_of_quarter(2 * QUARTER, j, ends[2], size, rows, y, each, to);
    j = dots_of_quarter(3 * QUARTER, j, ends[3], size, rows, y, each, to);
    for (; j < size.keys; j++) store(to.x + j * to.stride, zero());
  }
}

/* Rows side by side, as above. */
static void dot_pairs(int64_t rows, int64_t width, tile_matrix x, tile_matrix y, float *restrict dots) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < rows; r += LANES) {
    vec sum[LANES];
    for (int l = 0; l < LANES; l++) {
      const int64_t row = r + l < rows ? r + l : r;
      const float *a = x.x + row * x.stride, *b = y.x + row * y.stride;
      sum[l] = zero();
      for (int64_t n = 0; n < whole; n += LANES)
        sum[l] = fused_multiply_add(load(a + n), load(b + n), sum[l]);
      if (whole < width)
        sum[l] = fused_multiply_add(load_part(a + whole, (int)(width - whole)),
                                    load_part(b + whole, (int)(width - whole)), sum[l]);
    }
    store(dots + r, sums_of(sum));
  }
}

/* The derivative of a feature map, by what it maps to. */
INLINE vec slope_of(attn_feature_map map, vec phi) {
  const vec one = broadcast(&(float){1.0f});
  if (map == ATTN_ELU1) return minimum(one, phi);
  return map == ATTN_RELU ? select_less(zero(), phi, one, zero()) : one;
}

INLINE void scale_slopes_of(const attn_feature_map map, int64_t count, int64_t width, tile_matrix x,
                            const float *minus, const float *y, const float *factor, tile_matrix phi,
                            float *const *row) {
  for (int64_t r = 0; r < count; r++) {
    const vec less = subtract(zero(), broadcast(minus + r)), factors = broadcast(factor + r);
    for (int64_t d = 0; d < width; d += LANES) {
      const vec left = fused_multiply_add(less, load(y + d), load(x.x + r * x.stride + d));
      const vec slope = slope_of(map, load(phi.x + r * phi.stride + d));
      const vec scaled = multiply(multiply(left, factors), slope);
      float part[LANES];
      if (d + LANES <= width) {
        store(row[r] + d, scaled);
        continue;
      }
      store(part, scaled);
      memcpy(row[r] + d, part, (size_t)(width - d) * sizeof *part);
    }
  }
}

static void scale_slopes(int64_t count, int64_t width, attn_feature_map map, tile_matrix x,
                         const float *minus, const float *y, const float *factor, tile_matrix phi,
                         float *const *row) {
  switch (map) {
    case ATTN_RELU: scale_slopes_of(ATTN_RELU, count, width, x, minus, y, factor, phi, row); break;
    case ATTN_IDENTITY: scale_slopes_of(ATTN_IDENTITY, count, width, x, minus, y, factor, phi, row); break;
    default: scale_slopes_of(ATTN_ELU1, count, width, x, minus, y, factor, phi, row);
  }
}

/* ---- of few_rows.h, whatever the elements ---- */

enum { PLACES = TILE_FEW_PLACES };

/* Unless a set says otherwise: keys of each place between one part of the values' features and the next; from how many rows on each
 * line of keys ahead is asked for twice (never); what keeps a query in its register (nothing); and how many rows of floats are few. */
#ifndef FEW_STEPS
#define FEW_STEPS(rows, bytes) 2
#define FEW_TWICE (TILE_FEW_ROWS + 1)
#define LOADED_ONCE(x) ((void)(x))
#define FEW_OF_FLOATS (2 * TILE_FEW_ROWS)
#endif

/* The n-th key that is read of a place, of `apart` keys each: places begin a key later each, but for those too short. */
INLINE int64_t key_of_place(int64_t place, int64_t n, int64_t apart) {
  const int64_t later = apart < PLACES ? n : n + place;
  return place * apart + (later < apart ? later : later - apart);
}

/* The keys of an accumulation in the order in which they are read: of step n those at n, n + apart, ... */
typedef struct few_steps {
  int64_t first, end, apart, keys;
} few_steps;

INLINE int64_t rows_at_once(int64_t left) { return left >= 4 ? 4 : left >= 2 ? 2 : 1; }
