/* The tile kernels, written once over the vector operations of an instruction set. The file that includes
 * this defines: vec, LANES, MAX_VECTORS, GROUP(vectors), FEW_VECTORS; load, load_part, store, broadcast, zero,
 * fused_multiply_add, add, subtract, multiply, divide, maximum, minimum, absolute, copy_sign, select_less,
 * product_error, zero_where_minus_infinity, transpose, sums_of, flush_denormals, restore_denormals, split_power,
 * times_power, exp2_polynomial, EXP_VECTORS; then, of the elements of tensors, what float32.h defines; and after it,
 * the table. Only queries, keys, values and outputs are elements; all that is computed with is float.
 *
 * Everything rests on one register tile: `group` broadcast elements times `vectors` vectors of rows, all
 * sums in registers. GROUP(vectors) is the largest group whose sums, row vectors and one broadcast fit
 * the register file. Counts inside are constants after inlining; check the assembly for stack traffic
 * after any change (gcc 12 spills easily). */
#include <float.h>
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
  const element *first;
  int64_t stride;
} line_ahead;

INLINE line_ahead line_of(const tile_ahead *ahead, int64_t n, int64_t steps) {
  enum { LINE = 64 / sizeof(element) };
  const bool packed =
      ahead && ahead->of[0].stride == ahead->width[0] && ahead->of[1].stride == ahead->width[1];
  int64_t at = packed ? n * steps : n;
  for (int s = 0; ahead && s < 2; s++) {
    const int64_t row_lines = (ahead->width[s] + LINE - 1) / LINE;
    const int64_t lines = packed ? row_lines * TILE_KEYS : row_lines;
    if (at < lines)
      return (line_ahead){(const element *)ahead->of[s].x + at * LINE, packed ? LINE : ahead->of[s].stride};
    at -= lines;
  }
  return (line_ahead){NULL, 0};
}

/* The scalars of a product: number (g, d) at x[g * group_stride + d * depth_stride]. */
typedef struct scalars {
  const element *x;
  int64_t group_stride, depth_stride;
} scalars;

/* sum[g][v] += sum over d < depth of scalar (g, d) * columns[d * pitch, v] */
INLINE void product(const int vectors, const int group, const bool fetch, int64_t depth, tile_matrix columns,
                    scalars of, line_ahead ahead, vec sum[MAX_GROUP][MAX_VECTORS]) {
#pragma GCC unroll 2
  for (int64_t d = 0; d < depth; d++) {
    if (fetch) __builtin_prefetch(ahead.first + d * ahead.stride, 0, 2);
    vec column[MAX_VECTORS];
    for (int v = 0; v < vectors; v++) column[v] = load(columns.x + d * columns.stride + v * LANES);
    for (int g = 0; g < group; g++) {
      vec scalar = broadcast_element(of.x + g * of.group_stride + d * of.depth_stride);
      for (int v = 0; v < vectors; v++) sum[g][v] = fused_multiply_add(scalar, column[v], sum[g][v]);
    }
  }
}

/* A loop of its own where there is nothing to fetch: a fetch costs up to 6% (measured, AVX2). */
INLINE void product_ahead(const int vectors, const int group, int64_t depth, tile_matrix columns, scalars of,
                          line_ahead ahead, vec sum[MAX_GROUP][MAX_VECTORS]) {
  if (ahead.first)
    product(vectors, group, true, depth, columns, of, ahead, sum);
  else
    product(vectors, group, false, depth, columns, of, ahead, sum);
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

INLINE groups_done scores_groups(const int vectors, const int group, tile_size size, bool first_slice,
                                 tile_matrix queries, tile_rows key, const tile_ahead *ahead,
                                 tile_target scores, groups_done done) {
  for (; done.elements + group <= size.keys; done.elements += group) {
    float *out = scores.x + done.elements * scores.stride;
    const scalars keys = {(const element *)key.x + done.elements * key.stride, key.stride, 1};
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++)
        sum[g][v] = first_slice ? zero() : load(out + g * scores.stride + v * LANES);
    product_ahead(vectors, group, size.features, queries, keys, line_of(ahead, done.groups++, size.features),
                  sum);
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) store(out + g * scores.stride + v * LANES, sum[g][v]);
  }
  return done;
}

INLINE void scores_rows(const int vectors, tile_size size, tile_matrix queries, tile_rows key,
                        const tile_ahead *ahead, tile_target scores) {
  const int64_t depth = size.features, whole = depth_slice(vectors * LANES, depth);
  groups_done done = {0, 0};
  for (int64_t d = 0; d == 0 || d < depth; d += whole, done.elements = 0) {
    const tile_matrix columns = {queries.x + d * queries.stride, queries.stride};
    const tile_rows from = {(const element *)key.x + d, key.stride};
    size.features = depth - d < whole ? depth - d : whole;
    done = scores_groups(vectors, GROUP(vectors), size, d == 0, columns, from, ahead, scores, done);
    if (GROUP(vectors) > 4)
      done = scores_groups(vectors, 4, size, d == 0, columns, from, ahead, scores, done);
    done = scores_groups(vectors, 2, size, d == 0, columns, from, ahead, scores, done);
    done = scores_groups(vectors, 1, size, d == 0, columns, from, ahead, scores, done);
  }
}

INLINE groups_done accumulate_groups(const int vectors, const int group, tile_size size, tile_matrix weights,
                                     tile_rows value, const float *restrict rescale, const tile_ahead *ahead,
                                     tile_target output, groups_done done) {
  for (; done.elements + group <= size.features; done.elements += group) {
    const scalars values = {(const element *)value.x + done.elements, 1, value.stride};
    vec sum[MAX_GROUP][MAX_VECTORS];
    for (int g = 0; g < group; g++)
      for (int v = 0; v < vectors; v++) sum[g][v] = zero();
    product_ahead(vectors, group, size.keys, weights, values, line_of(ahead, done.groups++, size.keys), sum);
    /* Old output times rescale joins at the end: no pass of its own, and the chain of additions is one
     * tile long plus one a tile. */
    for (int v = 0; v < vectors; v++) {
      vec factor = load(rescale + v * LANES);
      for (int g = 0; g < group; g++) {
        float *out = output.x + (done.elements + g) * output.stride + v * LANES;
        store(out, fused_multiply_add(load(out), factor, sum[g][v]));
      }
    }
  }
  return done;
}

INLINE void accumulate_rows(const int vectors, tile_size size, tile_matrix weights, tile_rows value,
                            const float *restrict rescale, const tile_ahead *ahead, tile_target output) {
  groups_done done = {0, 0};
  done = accumulate_groups(vectors, GROUP(vectors), size, weights, value, rescale, ahead, output, done);
  if (GROUP(vectors) > 4)
    done = accumulate_groups(vectors, 4, size, weights, value, rescale, ahead, output, done);
  done = accumulate_groups(vectors, 2, size, weights, value, rescale, ahead, output, done);
  accumulate_groups(vectors, 1, size, weights, value, rescale, ahead, output, done);
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

INLINE void softmax_rows(const int vectors, int64_t keys, float *restrict scores, tile_state state) {
  const int64_t rows = vectors * LANES;
  float *restrict max = state.max, *restrict sum = state.sum, *restrict rescale = state.rescale;
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
static bool all_finite(int64_t rows, int64_t width, tile_rows x) {
  const int64_t whole = width / LANES * LANES;
  vec sum[4] = {zero(), zero(), zero(), zero()}; /* chains, to hide the latency of the addition */
  for (int64_t r = 0; r < rows; r++) {
    const element *row = (const element *)x.x + r * x.stride;
    int64_t n = 0;
    for (; n + 4 * LANES <= whole; n += 4 * LANES)
      for (int c = 0; c < 4; c++)
        sum[c] = fused_multiply_add(load_elements(row + n + c * LANES), zero(), sum[c]);
    for (; n < whole; n += LANES) sum[0] = fused_multiply_add(load_elements(row + n), zero(), sum[0]);
    if (n < width) sum[1] = fused_multiply_add(load_elements_part(row + n, (int)(width - n)), zero(), sum[1]);
  }
  float lane[LANES], all = 0;
  store(lane, add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (int l = 0; l < LANES; l++) all += lane[l];
  return all == 0;
}

static void copy_finite(int64_t rows, int64_t width, tile_rows x, void *copy) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t n = 0; n < width; n++) {
      const element from = ((const element *)x.x)[r * x.stride + n];
      ((element *)copy)[r * width + n] = fabsf(from_element(from)) <= FLT_MAX ? from : to_element(0);
    }
}

static void read_floats(int64_t count, const void *x, float *floats) {
  for (int64_t n = 0; n < count; n++) floats[n] = from_element(((const element *)x)[n]);
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
INLINE void scores_of(const int vectors, tile_size size, tile_matrix queries, tile_rows key,
                      const tile_ahead *ahead, tile_target out) {
  const int64_t rows = vectors * LANES;
  if (queries.stride == rows && out.stride == rows)
    scores_rows(vectors, size, (tile_matrix){queries.x, rows}, key, ahead, (tile_target){out.x, rows});
  else
    scores_rows(vectors, size, queries, key, ahead, out);
}

static void scores(tile_size size, tile_matrix queries, tile_rows key, const tile_ahead *ahead,
                   tile_target out) {
  switch (size.rows / LANES) {
    case 1: scores_of(1, size, queries, key, ahead, out); break;
    case 2: scores_of(2, size, queries, key, ahead, out); break;
#if MAX_VECTORS > 2
    case 3: scores_of(3, size, queries, key, ahead, out); break;
#endif
#if MAX_VECTORS > 3
    case 4: scores_of(4, size, queries, key, ahead, out); break;
#endif
  }
}

static void accumulate(tile_size size, tile_matrix weights, tile_rows value, const float *rescale,
                       const tile_ahead *ahead, tile_target out) {
  switch (size.rows / LANES) {
    case 1: accumulate_rows(1, size, weights, value, rescale, ahead, out); break;
    case 2: accumulate_rows(2, size, weights, value, rescale, ahead, out); break;
#if MAX_VECTORS > 2
    case 3: accumulate_rows(3, size, weights, value, rescale, ahead, out); break;
#endif
#if MAX_VECTORS > 3
    case 4: accumulate_rows(4, size, weights, value, rescale, ahead, out); break;
#endif
  }
}

static void softmax(int64_t rows, int64_t keys, float *score, tile_state state) {
  switch (rows / LANES) {
    case 1: softmax_rows(1, keys, score, state); break;
    case 2: softmax_rows(2, keys, score, state); break;
#if MAX_VECTORS > 2
    case 3: softmax_rows(3, keys, score, state); break;
#endif
#if MAX_VECTORS > 3
    case 4: softmax_rows(4, keys, score, state); break;
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
INLINE void elu1_each(const int n, const element *x, float *y) {
  const vec log2e = broadcast(&(float){0x1.715476p+0f}), log2e_rest = broadcast(&(float){0x1.4ae0cp-26f});
  vec negative[EXP_VECTORS], power[EXP_VECTORS], low[EXP_VECTORS];
  for (int i = 0; i < n; i++)
    negative[i] = maximum(broadcast(&(float){-104.0f}), minimum(zero(), load_elements(x + i * LANES)));
  for (int i = 0; i < n; i++) power[i] = multiply(negative[i], log2e);
  for (int i = 0; i < n; i++) low[i] = product_error(negative[i], log2e, power[i]);
  for (int i = 0; i < n; i++) low[i] = fused_multiply_add(negative[i], log2e_rest, low[i]);
  exp2_each(n, power, low);
  for (int i = 0; i < n; i++)
    store(y + i * LANES, add(maximum(zero(), load_elements(x + i * LANES)), power[i]));
}

static void elu1(int64_t rows, int64_t count, tile_rows x, tile_target y) {
  const unsigned mode = flush_denormals();
  if (x.stride == count && y.stride == count) count = y.stride = rows * count, rows = 1;
  for (int64_t r = 0; r < rows; r++) {
    const element *from = (const element *)x.x + r * x.stride;
    float *to = y.x + r * y.stride;
    int64_t n = 0;
    for (; n + EXP_VECTORS * LANES <= count; n += EXP_VECTORS * LANES)
      elu1_each(EXP_VECTORS, from + n, to + n);
    for (; n + LANES <= count; n += LANES) elu1_each(1, from + n, to + n);
    if (n < count) {
      element rest[LANES] = {to_element(0)};
      float phi[LANES];
      memcpy(rest, from + n, (size_t)(count - n) * sizeof *rest);
      elu1_each(1, rest, phi);
      memcpy(to + n, phi, (size_t)(count - n) * sizeof *phi);
    }
    if (count < y.stride) memset(to + count, 0, (size_t)(y.stride - count) * sizeof *to);
  }
  restore_denormals(mode);
}

/* Squares of LANES rows by LANES features are transposed in registers; what features remain goes singly. */
static void pack(int64_t rows, int64_t count, int64_t depth, const void *const *row, float factor,
                 float *restrict columns) {
  const vec factors = broadcast(&factor);
  const int64_t whole = depth / LANES * LANES;
  for (int64_t r = 0; r < rows; r += LANES) {
    for (int64_t d = 0; d < whole; d += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++)
        square[x] =
            r + x < count ? multiply(factors, load_elements((const element *)row[r + x] + d)) : zero();
      transpose(square);
      for (int x = 0; x < LANES; x++) store(columns + (d + x) * rows + r, square[x]);
    }
    for (int64_t d = whole; d < depth; d++)
      for (int64_t x = r; x < r + LANES; x++)
        columns[d * rows + x] = x < count ? from_element(((const element *)row[x])[d]) * factor : 0;
  }
}

static void unpack(int64_t rows, int64_t count, int64_t width, const float *restrict columns,
                   const float *factor, void *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r += LANES) {
    for (int64_t e = 0; e < whole; e += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++) square[x] = load(columns + (e + x) * rows + r);
      transpose(square);
      for (int x = 0; x < LANES && r + x < count; x++)
        store_elements((element *)row[r + x] + e, multiply(broadcast(&factor[r + x]), square[x]));
    }
    for (int64_t e = whole; e < width; e++)
      for (int64_t x = r; x < r + LANES && x < count; x++)
        ((element *)row[x])[e] = to_element(columns[e * rows + x] * factor[x]);
  }
}

static void scale_rows(int64_t count, int64_t width, tile_matrix x, const float *factor, void *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r++) {
    const vec factors = broadcast(factor + r);
    const float *from = x.x + r * x.stride;
    element *to = row[r];
    for (int64_t e = 0; e < whole; e += LANES) store_elements(to + e, multiply(factors, load(from + e)));
    for (int64_t e = whole; e < width; e++) to[e] = to_element(factor[r] * from[e]);
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

/* LANES sums side by side, added up together. */
static void dot_rows(int64_t rows, int64_t width, tile_matrix x, const float *restrict y,
                     float *restrict dots) {
  for (int64_t r = 0; r < rows; r += LANES) {
    vec sum[LANES];
    for (int l = 0; l < LANES; l++) sum[l] = zero();
    for (int64_t n = 0; n < width; n += LANES) {
      const vec factor = load(y + n);
      for (int l = 0; l < LANES; l++)
        sum[l] = fused_multiply_add(load(x.x + (r + l) * x.stride + n), factor, sum[l]);
    }
    store(dots + r, sums_of(sum));
  }
}

#include "few_rows.h"

#define TILE_TABLE(isa)                                                                                      \
  {                                                                                                          \
    isa, sizeof(element), LANES, MAX_VECTORS *LANES, scores, accumulate, softmax, hide, all_finite,          \
        copy_finite, read_floats, softmax_row, softcap, exp2_all, elu1, pack, unpack, scale_rows, join,      \
        dot_rows, few_scores, few_accumulate                                                                 \
  }
