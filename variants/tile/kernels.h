/* The tile kernels, written once over the vector operations of an instruction set. The file that includes
 * this defines: vec, LANES, MAX_VECTORS, GROUP(vectors), FEW_VECTORS; load, load_part, store, broadcast, zero,
 * fused_multiply_add, add, subtract, multiply, divide, maximum, minimum, absolute, copy_sign, select_less,
 * product_error, zero_where_minus_infinity, transpose, sums_of, flush_denormals, restore_denormals, split_power,
 * times_power, exp2_polynomial, EXP_VECTORS; and after it, the table.
 *
 * Everything rests on one register tile: `group` broadcast elements times `vectors` vectors of rows, all
 * sums in registers. GROUP(vectors) is the largest group whose sums, row vectors and one broadcast fit
 * the register file. Counts inside are constants after inlining; check the assembly for stack traffic
 * after any change (gcc 12 spills easily). */
#include <math.h>
#include <string.h>

#include "tile.h"

#define INLINE static inline __attribute__((always_inline))

enum { MAX_GROUP = 8 };

/* Group n of a call fetches a line of the rows ahead in each of its steps: spread so, the fetches hide behind
 * the multiply-adds, where all at once they would fill the buffers that misses wait in. Rows without a gap between
 * them are fetched in the order of memory, which the processor's own prefetching then picks up: linear takes 0.90
 * of the time. Of others group n fetches line n, a row each step. */
typedef struct line_ahead {
  const float *first;
  int64_t stride;
} line_ahead;

INLINE line_ahead line_of(const tile_ahead *ahead, int64_t n, int64_t steps) {
  enum { LINE = 16 };
  const bool packed = ahead && ahead->stride[0] == ahead->width[0] && ahead->stride[1] == ahead->width[1];
  int64_t at = packed ? n * steps : n;
  for (int s = 0; ahead && s < 2; s++) {
    const int64_t row_lines = (ahead->width[s] + LINE - 1) / LINE;
    const int64_t lines = packed ? row_lines * TILE_KEYS : row_lines;
    if (at < lines) return (line_ahead){ahead->row[s] + at * LINE, packed ? LINE : ahead->stride[s]};
    at -= lines;
  }
  return (line_ahead){NULL, 0};
}

/* sum[g][v] += sum over d < depth of scalars[g * group_stride + d * depth_stride] * columns[d * pitch, v] */
INLINE void product(const int vectors, const int group, const bool fetch, int64_t depth,
                    const float *restrict columns, int64_t pitch, const float *restrict scalars,
                    int64_t group_stride, int64_t depth_stride, line_ahead ahead,
                    vec sum[MAX_GROUP][MAX_VECTORS]) {
#pragma GCC unroll 2
  for (int64_t d = 0; d < depth; d++) {
    if (fetch) __builtin_prefetch(ahead.first + d * ahead.stride, 0, 2);
    vec column[MAX_VECTORS];
    for (int v = 0; v < vectors; v++) column[v] = load(columns + d * pitch + v * LANES);
    for (int g = 0; g < group; g++) {
      vec scalar = broadcast(scalars + g * group_stride + d * depth_stride);
      for (int v = 0; v < vectors; v++) sum[g][v] = fused_multiply_add(scalar, column[v], sum[g][v]);
    }
  }
}

/* A loop of its own where there is nothing to fetch: a fetch costs up to 6% (measured, AVX2). */
INLINE void product_ahead(const int vectors, const int group, int64_t depth, const float *restrict columns,
                          int64_t pitch, const float *restrict scalars, int64_t group_stride,
                          int64_t depth_stride, line_ahead ahead, vec sum[MAX_GROUP][MAX_VECTORS]) {
  if (ahead.first)
    product(vectors, group, true, depth, columns, pitch, scalars, group_stride, depth_stride, ahead, sum);
  else
    product(vectors, group, false, depth, columns, pitch, scalars, group_stride, depth_stride, ahead, sum);
}

/* x[i] = 2^(x[i] + low[i]), low (or NULL) being small. All step by step together: one alone is a chain of a
 * dozen operations, and one after the other too few fit the scheduler to hide their latency. EXP_VECTORS at once
 * take 0.89 of the time of a softmax. */
INLINE void exp2_each(const int n, vec x[], const vec *low) {
  vec f[EXP_VECTORS], p[EXP_VECTORS];
  for (int i = 0; i < n; i++) f[i] = split_power(&x[i]);
  for (int i = 0; low && i < n; i++) f[i] = add(f[i], low[i]);
  for (int i = 0; i < n; i++) p[i] = broadcast(&exp2_polynomial[0]);
#pragma GCC unroll 8
  for (int k = 1; k < (int)(sizeof exp2_polynomial / sizeof *exp2_polynomial); k++)
    for (int i = 0; i < n; i++) p[i] = fused_multiply_add(p[i], f[i], broadcast(&exp2_polynomial[k]));
  for (int i = 0; i < n; i++) x[i] = times_power(p[i], x[i]);
}

INLINE vec exp2_vec(vec x) {
  exp2_each(1, &x, NULL);
  return x;
}

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

INLINE groups_done scores_groups(const int vectors, const int group, int64_t keys, int64_t depth,
                                 bool first_slice, const float *restrict queries, int64_t queries_pitch,
                                 const float *restrict key, int64_t key_stride, const tile_ahead *ahead,
                                 float *restrict scores, int64_t pitch, groups_done done) {
  for (; done.elements + group <= keys; done.elements += group) {
    float *out = scores + done.elements * pitch;
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) sum[g][v] = first_slice ? zero() : load(out + g * pitch + v * LANES);
    product_ahead(vectors, group, depth, queries, queries_pitch, key + done.elements * key_stride, key_stride,
                  1, line_of(ahead, done.groups++, depth), sum);
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) store(out + g * pitch + v * LANES, sum[g][v]);
  }
  return done;
}

INLINE void scores_rows(const int vectors, int64_t keys, int64_t depth, const float *restrict queries,
                        int64_t queries_pitch, const float *restrict key, int64_t key_stride,
                        const tile_ahead *ahead, float *restrict scores, int64_t pitch) {
  const int64_t whole = depth_slice(vectors * LANES, depth);
  groups_done done = {0, 0};
  for (int64_t d = 0; d == 0 || d < depth; d += whole, done.elements = 0) {
    const int64_t slice = depth - d < whole ? depth - d : whole;
    const float *columns = queries + d * queries_pitch, *from = key + d;
    done = scores_groups(vectors, GROUP(vectors), keys, slice, d == 0, columns, queries_pitch, from,
                         key_stride, ahead, scores, pitch, done);
    if (GROUP(vectors) > 4)
      done = scores_groups(vectors, 4, keys, slice, d == 0, columns, queries_pitch, from, key_stride, ahead,
                           scores, pitch, done);
    done = scores_groups(vectors, 2, keys, slice, d == 0, columns, queries_pitch, from, key_stride, ahead,
                         scores, pitch, done);
    done = scores_groups(vectors, 1, keys, slice, d == 0, columns, queries_pitch, from, key_stride, ahead,
                         scores, pitch, done);
  }
}

INLINE groups_done accumulate_groups(const int vectors, const int group, int64_t keys, int64_t width,
                                     const float *restrict weights, int64_t pitch,
                                     const float *restrict value, int64_t value_stride,
                                     const float *restrict rescale, const tile_ahead *ahead,
                                     float *restrict output, int64_t output_pitch, groups_done done) {
  for (; done.elements + group <= width; done.elements += group) {
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) sum[g][v] = zero();
    product_ahead(vectors, group, keys, weights, pitch, value + done.elements, 1, value_stride,
                  line_of(ahead, done.groups++, keys), sum);
    /* Old output times rescale joins at the end: no pass of its own, and the chain of additions is one
     * tile long plus one a tile. */
    for (int v = 0; v < vectors; v++) {
      vec factor = load(rescale + v * LANES);
      for (int g = 0; g < group; g++) {
        float *out = output + (done.elements + g) * output_pitch + v * LANES;
        store(out, fused_multiply_add(load(out), factor, sum[g][v]));
      }
    }
  }
  return done;
}

INLINE void accumulate_rows(const int vectors, int64_t keys, int64_t width, const float *restrict weights,
                            int64_t pitch, const float *restrict value, int64_t value_stride,
                            const float *restrict rescale, const tile_ahead *ahead, float *restrict output,
                            int64_t output_pitch) {
  groups_done done = {0, 0};
  done = accumulate_groups(vectors, GROUP(vectors), keys, width, weights, pitch, value, value_stride, rescale,
                           ahead, output, output_pitch, done);
  if (GROUP(vectors) > 4)
    done = accumulate_groups(vectors, 4, keys, width, weights, pitch, value, value_stride, rescale, ahead,
                             output, output_pitch, done);
  done = accumulate_groups(vectors, 2, keys, width, weights, pitch, value, value_stride, rescale, ahead,
                           output, output_pitch, done);
  accumulate_groups(vectors, 1, keys, width, weights, pitch, value, value_stride, rescale, ahead, output,
                    output_pitch, done);
}

/* Scores of some keys become weights, which are added to `total`. */
INLINE void weigh(const int vectors, const int keys, float *scores, const vec shift[MAX_VECTORS],
                  vec total[MAX_VECTORS]) {
  vec weight[EXP_VECTORS];
  for (int i = 0; i < keys * vectors; i++) weight[i] = subtract(load(scores + i * LANES), shift[i % vectors]);
  exp2_each(keys * vectors, weight, NULL);
  for (int i = 0; i < keys * vectors; i++) {
    store(scores + i * LANES, weight[i]);
    total[i % vectors] = add(total[i % vectors], weight[i]);
  }
}

INLINE void softmax_rows(const int vectors, int64_t keys, float *restrict scores, float *restrict max,
                         float *restrict sum, float *restrict rescale) {
  const int64_t rows = vectors * LANES;
  const unsigned mode = flush_denormals();
  vec largest[2][MAX_VECTORS]; /* two chains each, to hide the latency of the maximum */
  for (int v = 0; v < vectors; v++) largest[0][v] = largest[1][v] = load(max + v * LANES);
  int64_t j = 0;
  for (; j + 2 <= keys; j += 2)
    for (int v = 0; v < vectors; v++) {
      largest[0][v] = maximum(load(scores + j * rows + v * LANES), largest[0][v]);
      largest[1][v] = maximum(load(scores + (j + 1) * rows + v * LANES), largest[1][v]);
    }
  if (j < keys)
    for (int v = 0; v < vectors; v++)
      largest[0][v] = maximum(load(scores + j * rows + v * LANES), largest[0][v]);

  vec shift[MAX_VECTORS], total[MAX_VECTORS];
  for (int v = 0; v < vectors; v++) {
    vec new_max = maximum(largest[0][v], largest[1][v]);
    vec old_max = load(max + v * LANES);
    /* -inf minus -inf must not be NaN while nothing is visible. */
    shift[v] = zero_where_minus_infinity(new_max);
    store(max + v * LANES, new_max);
    store(rescale + v * LANES, exp2_vec(subtract(old_max, shift[v])));
    total[v] = zero();
  }
  const int together = EXP_VECTORS / vectors;
  for (j = 0; j + together <= keys; j += together) weigh(vectors, together, scores + j * rows, shift, total);
  for (; j < keys; j++) weigh(vectors, 1, scores + j * rows, shift, total);
  for (int v = 0; v < vectors; v++) {
    float *row_sum = sum + v * LANES;
    store(row_sum, fused_multiply_add(load(row_sum), load(rescale + v * LANES), total[v]));
  }
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

/* 0 times a number is 0, unless that is infinite or none. */
static bool all_finite(int64_t rows, int64_t width, const float *x, int64_t stride) {
  const int64_t whole = width / LANES * LANES;
  vec sum[4] = {zero(), zero(), zero(), zero()}; /* chains, to hide the latency of the addition */
  for (int64_t r = 0; r < rows; r++) {
    const float *row = x + r * stride;
    int64_t n = 0;
    for (; n + 4 * LANES <= whole; n += 4 * LANES)
      for (int c = 0; c < 4; c++) sum[c] = fused_multiply_add(load(row + n + c * LANES), zero(), sum[c]);
    for (; n < whole; n += LANES) sum[0] = fused_multiply_add(load(row + n), zero(), sum[0]);
    if (n < width) sum[1] = fused_multiply_add(load_part(row + n, (int)(width - n)), zero(), sum[1]);
  }
  float lane[LANES], all = 0;
  store(lane, add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (int l = 0; l < LANES; l++) all += lane[l];
  return all == 0;
}

static void exp2_all(int64_t count, float *x) {
  const unsigned mode = flush_denormals();
  for (int64_t n = 0; n < count; n += LANES) store(x + n, exp2_vec(load(x + n)));
  restore_denormals(mode);
}

static void softmax_row(int64_t count, float *restrict x, float *restrict max, float *restrict sum) {
  enum { CHAINS = 4, TOGETHER = EXP_VECTORS / CHAINS };
  const unsigned mode = flush_denormals();
  vec largest[CHAINS], total[CHAINS], shift[CHAINS];
  for (int c = 0; c < CHAINS; c++) {
    largest[c] = broadcast(max);
    total[c] = zero();
  }
  for (int64_t n = 0; n < count; n += LANES) {
    const int c = (int)(n / LANES % CHAINS);
    largest[c] = maximum(load(x + n), largest[c]);
  }
  float lane[LANES];
  store(lane, maximum(maximum(largest[0], largest[1]), maximum(largest[2], largest[3])));
  for (int l = 0; l < LANES; l++) *max = lane[l] > *max ? lane[l] : *max;

  for (int c = 0; c < CHAINS; c++) shift[c] = broadcast(&(float){*max == -INFINITY ? 0 : *max});
  int64_t n = 0;
  for (; n + TOGETHER * CHAINS * LANES <= count; n += TOGETHER * CHAINS * LANES)
    weigh(CHAINS, TOGETHER, x + n, shift, total);
  for (; n < count; n += LANES) weigh(1, 1, x + n, shift, total);
  store(lane, add(add(total[0], total[1]), add(total[2], total[3])));
  *sum = 0;
  for (int l = 0; l < LANES; l++) *sum += lane[l];
  restore_denormals(mode);
}

/* The functions of the table: the number of vectors becomes a constant. */

/* Where columns lie one after the other their pitch is a constant as well: 1% faster. */
INLINE void scores_of(const int vectors, int64_t keys, int64_t depth, const float *queries,
                      int64_t queries_pitch, const float *key, int64_t key_stride, const tile_ahead *ahead,
                      float *out, int64_t pitch) {
  const int64_t rows = vectors * LANES;
  if (queries_pitch == rows && pitch == rows)
    scores_rows(vectors, keys, depth, queries, rows, key, key_stride, ahead, out, rows);
  else
    scores_rows(vectors, keys, depth, queries, queries_pitch, key, key_stride, ahead, out, pitch);
}

static void scores(int64_t rows, int64_t keys, int64_t depth, const float *queries, int64_t queries_pitch,
                   const float *key, int64_t key_stride, const tile_ahead *ahead, float *out, int64_t pitch) {
  switch (rows / LANES) {
    case 1: scores_of(1, keys, depth, queries, queries_pitch, key, key_stride, ahead, out, pitch); break;
    case 2: scores_of(2, keys, depth, queries, queries_pitch, key, key_stride, ahead, out, pitch); break;
#if MAX_VECTORS > 2
    case 3: scores_of(3, keys, depth, queries, queries_pitch, key, key_stride, ahead, out, pitch); break;
#endif
#if MAX_VECTORS > 3
    case 4: scores_of(4, keys, depth, queries, queries_pitch, key, key_stride, ahead, out, pitch); break;
#endif
  }
}

static void accumulate(int64_t rows, int64_t keys, int64_t width, const float *weights, int64_t pitch,
                       const float *value, int64_t value_stride, const float *rescale,
                       const tile_ahead *ahead, float *out, int64_t out_pitch) {
  switch (rows / LANES) {
    case 1:
      accumulate_rows(1, keys, width, weights, pitch, value, value_stride, rescale, ahead, out, out_pitch);
      break;
    case 2:
      accumulate_rows(2, keys, width, weights, pitch, value, value_stride, rescale, ahead, out, out_pitch);
      break;
#if MAX_VECTORS > 2
    case 3:
      accumulate_rows(3, keys, width, weights, pitch, value, value_stride, rescale, ahead, out, out_pitch);
      break;
#endif
#if MAX_VECTORS > 3
    case 4:
      accumulate_rows(4, keys, width, weights, pitch, value, value_stride, rescale, ahead, out, out_pitch);
      break;
#endif
  }
}

static void softmax(int64_t rows, int64_t keys, float *score, float *max, float *sum, float *rescale) {
  switch (rows / LANES) {
    case 1: softmax_rows(1, keys, score, max, sum, rescale); break;
    case 2: softmax_rows(2, keys, score, max, sum, rescale); break;
#if MAX_VECTORS > 2
    case 3: softmax_rows(3, keys, score, max, sum, rescale); break;
#endif
#if MAX_VECTORS > 3
    case 4: softmax_rows(4, keys, score, max, sum, rescale); break;
#endif
  }
}

static void hide(int64_t rows, int64_t keys, const float *first, const float *end, float hidden,
                 float *score) {
  switch (rows / LANES) {
    case 1: hide_rows(1, keys, first, end, hidden, score); break;
    case 2: hide_rows(2, keys, first, end, hidden, score); break;
#if MAX_VECTORS > 2
    case 3: hide_rows(3, keys, first, end, hidden, score); break;
#endif
#if MAX_VECTORS > 3
    case 4: hide_rows(4, keys, first, end, hidden, score); break;
#endif
  }
}

/* tanh: an odd polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel (coefficients: Cephes, tanhf.c). */
static void softcap(int64_t count, float cap, float *x) {
  const vec one = broadcast(&(float){1.0f}), two = broadcast(&(float){2.0f});
  const vec two_log2e = broadcast(&(float){2.885390082f}), caps = broadcast(&cap);
  const vec near = broadcast(&(float){0.625f}), far = broadcast(&(float){10.0f});
  for (int64_t n = 0; n < count; n += LANES) {
    vec a = load(x + n), size = absolute(a), square = multiply(a, a);
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

/* e^x for x <= 0 as 2^(x log2 e), with the error of that product added to the fraction. Where x > 0 that is
 * e^0 = 1, to which x is added. */
INLINE void elu1_each(const int n, const float *x, float *y) {
  const vec log2e = broadcast(&(float){0x1.715476p+0f}), log2e_rest = broadcast(&(float){0x1.4ae0cp-26f});
  vec negative[EXP_VECTORS], power[EXP_VECTORS], low[EXP_VECTORS];
  for (int i = 0; i < n; i++)
    negative[i] = maximum(broadcast(&(float){-104.0f}), minimum(zero(), load(x + i * LANES)));
  for (int i = 0; i < n; i++) power[i] = multiply(negative[i], log2e);
  for (int i = 0; i < n; i++) low[i] = product_error(negative[i], log2e, power[i]);
  for (int i = 0; i < n; i++) low[i] = fused_multiply_add(negative[i], log2e_rest, low[i]);
  exp2_each(n, power, low);
  for (int i = 0; i < n; i++) store(y + i * LANES, add(maximum(zero(), load(x + i * LANES)), power[i]));
}

static void elu1(int64_t rows, int64_t count, const float *x, int64_t stride, float *y, int64_t pitch) {
  const unsigned mode = flush_denormals();
  if (stride == count && pitch == count) count = pitch = rows * count, rows = 1;
  for (int64_t r = 0; r < rows; r++) {
    const float *from = x + r * stride;
    float *to = y + r * pitch;
    int64_t n = 0;
    for (; n + EXP_VECTORS * LANES <= count; n += EXP_VECTORS * LANES)
      elu1_each(EXP_VECTORS, from + n, to + n);
    for (; n + LANES <= count; n += LANES) elu1_each(1, from + n, to + n);
    if (n < count) {
      float rest[LANES];
      store(rest, load_part(from + n, (int)(count - n)));
      elu1_each(1, rest, rest);
      memcpy(to + n, rest, (size_t)(count - n) * sizeof *rest);
    }
    if (count < pitch) memset(to + count, 0, (size_t)(pitch - count) * sizeof *to);
  }
  restore_denormals(mode);
}

/* Squares of LANES rows by LANES features are transposed in registers; what features remain goes singly. */
static void pack(int64_t rows, int64_t count, int64_t depth, const float *const *row, float factor,
                 float *restrict columns) {
  const vec factors = broadcast(&factor);
  const int64_t whole = depth / LANES * LANES;
  for (int64_t r = 0; r < rows; r += LANES) {
    for (int64_t d = 0; d < whole; d += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++)
        square[x] = r + x < count ? multiply(factors, load(row[r + x] + d)) : zero();
      transpose(square);
      for (int x = 0; x < LANES; x++) store(columns + (d + x) * rows + r, square[x]);
    }
    for (int64_t d = whole; d < depth; d++)
      for (int64_t x = r; x < r + LANES; x++) columns[d * rows + x] = x < count ? row[x][d] * factor : 0;
  }
}

static void unpack(int64_t rows, int64_t count, int64_t width, const float *restrict columns,
                   const float *factor, float *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r += LANES) {
    for (int64_t e = 0; e < whole; e += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++) square[x] = load(columns + (e + x) * rows + r);
      transpose(square);
      for (int x = 0; x < LANES && r + x < count; x++)
        store(row[r + x] + e, multiply(broadcast(&factor[r + x]), square[x]));
    }
    for (int64_t e = whole; e < width; e++)
      for (int64_t x = r; x < r + LANES && x < count; x++) row[x][e] = columns[e * rows + x] * factor[x];
  }
}

static void scale_rows(int64_t count, int64_t width, const float *restrict x, int64_t pitch,
                       const float *factor, float *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r++) {
    const vec factors = broadcast(factor + r);
    for (int64_t e = 0; e < whole; e += LANES) store(row[r] + e, multiply(factors, load(x + r * pitch + e)));
    for (int64_t e = whole; e < width; e++) row[r][e] = factor[r] * x[r * pitch + e];
  }
}

/* LANES sums side by side, added up together. */
static void dot_rows(int64_t rows, int64_t width, const float *restrict x, int64_t pitch,
                     const float *restrict y, float *restrict dots) {
  for (int64_t r = 0; r < rows; r += LANES) {
    vec sum[LANES];
    for (int l = 0; l < LANES; l++) sum[l] = zero();
    for (int64_t n = 0; n < width; n += LANES) {
      const vec factor = load(y + n);
      for (int l = 0; l < LANES; l++)
        sum[l] = fused_multiply_add(load(x + (r + l) * pitch + n), factor, sum[l]);
    }
    store(dots + r, sums_of(sum));
  }
}

#include "few_rows.h"

#define TILE_TABLE(isa)                                                                                      \
  {                                                                                                          \
    isa, LANES, MAX_VECTORS *LANES, scores, accumulate, softmax, hide, all_finite, softmax_row, softcap,     \
        exp2_all, elu1, pack, unpack, scale_rows, dot_rows, few_scores, few_accumulate                       \
  }
