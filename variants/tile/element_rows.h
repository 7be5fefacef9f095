/* What reads and writes rows of elements, once for each type of them. The file that includes this defines KIND, which
 * names it; element, as it is stored; LOAD(x) and STORE(x, vec) of whole vectors, LOAD_PART(x, n) of the first n < LANES
 * with zeros behind; FROM_ELEMENT and TO_ELEMENT. Only queries, keys, values, bias and outputs are elements; all that is
 * computed with is float. */

/* 0 times a number is 0, unless that is infinite or none. */
static bool NAME(all_finite)(int64_t rows, int64_t width, tile_rows x) {
  const int64_t whole = width / LANES * LANES;
  vec sum[4] = {zero(), zero(), zero(), zero()}; /* chains, to hide the latency of the addition */
  for (int64_t r = 0; r < rows; r++) {
    const element *row = (const element *)x.x + r * x.stride;
    int64_t n = 0;
    for (; n + 4 * LANES <= whole; n += 4 * LANES)
      for (int c = 0; c < 4; c++) sum[c] = fused_multiply_add(LOAD(row + n + c * LANES), zero(), sum[c]);
    for (; n < whole; n += LANES) sum[0] = fused_multiply_add(LOAD(row + n), zero(), sum[0]);
    if (n < width) sum[1] = fused_multiply_add(LOAD_PART(row + n, (int)(width - n)), zero(), sum[1]);
  }
  float lane[LANES], all = 0;
  store(lane, add(add(sum[0], sum[1]), add(sum[2], sum[3])));
  for (int l = 0; l < LANES; l++) all += lane[l];
  return all == 0;
}

static void NAME(copy_finite)(int64_t rows, int64_t width, tile_rows x, void *copy) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t n = 0; n < width; n++) {
      const element from = ((const element *)x.x)[r * x.stride + n];
      ((element *)copy)[r * width + n] = fabsf(FROM_ELEMENT(from)) <= FLT_MAX ? from : TO_ELEMENT(0);
    }
}

static void NAME(read_floats)(int64_t count, const void *x, float *floats) {
  const element *from = x;
  int64_t n = 0;
  for (; n + LANES <= count; n += LANES) store(floats + n, LOAD(from + n));
  for (; n < count; n++) floats[n] = FROM_ELEMENT(from[n]);
}

UNUSED static void NAME(copy_floats)(int64_t rows, int64_t width, tile_rows x, float *copy, int64_t stride) {
  for (int64_t r = 0; r < rows; r++)
    NAME(read_floats)(width, (const element *)x.x + r * x.stride, copy + r * stride);
}

/* Features n and n + pairs of a row. */
INLINE void NAME(rotate_halves)(int64_t pairs, const element *row, const float *restrict cosines,
                                const float *restrict sines, float *restrict to) {
  int64_t n = 0;
  for (; n + LANES <= pairs; n += LANES) {
    const vec a = LOAD(row + n), b = LOAD(row + pairs + n), cosine = load(cosines + n),
              sine = load(sines + n);
    store(to + n, subtract(multiply(a, cosine), multiply(b, sine)));
    store(to + pairs + n, fused_multiply_add(b, cosine, multiply(a, sine)));
  }
  for (; n < pairs; n++) {
    const float a = FROM_ELEMENT(row[n]), b = FROM_ELEMENT(row[pairs + n]);
    to[n] = a * cosines[n] - b * sines[n];
    to[pairs + n] = b * cosines[n] + a * sines[n];
  }
}

/* Features 2n and 2n + 1, which compilers take apart and put together again. */
INLINE void NAME(rotate_interleaved)(int64_t pairs, const element *row, const float *restrict cosines,
                                     const float *restrict sines, float *restrict to) {
  NAME(read_floats)(2 * pairs, row, to);
  for (int64_t n = 0; n < pairs; n++) {
    const float a = to[2 * n], b = to[2 * n + 1];
    to[2 * n] = a * cosines[n] - b * sines[n];
    to[2 * n + 1] = b * cosines[n] + a * sines[n];
  }
}

static void NAME(rotate)(const attn_problem *problem, int64_t rows, tile_rows x, int64_t position, float *to,
                         int64_t stride) {
  const int64_t rotated = problem->rope_features, left = problem->head_dim - rotated;
  for (int64_t r = 0; r < rows; r++, position++, to += stride) {
    const element *row = (const element *)x.x + r * x.stride;
    const float *cosines = problem->rope_cos_data + position * problem->rope_cos.position;
    const float *sines = problem->rope_sin_data + position * problem->rope_sin.position;
    if (problem->rope_interleaved)
      NAME(rotate_interleaved)(rotated / 2, row, cosines, sines, to);
    else
      NAME(rotate_halves)(rotated / 2, row, cosines, sines, to);
    NAME(read_floats)(left, row + rotated, to + rotated);
  }
}

/* x + 1 or e^x, from the power of what is negative. */
INLINE vec NAME(elu1_of)(const element *x, vec power) { return add(maximum(zero(), LOAD(x)), power); }

/* e^x for x <= 0 as 2^(x log2 e), with the error of that product added to the fraction. Where x > 0 that is
 * e^0 = 1, to which x is added. */
INLINE void NAME(elu1_each)(const int n, const element *x, float *y) {
  const vec log2e = broadcast(&(float){0x1.715476p+0f}), log2e_rest = broadcast(&(float){0x1.4ae0cp-26f});
  vec negative[EXP_VECTORS], power[EXP_VECTORS], low[EXP_VECTORS];
  for (int i = 0; i < n; i++)
    negative[i] = maximum(broadcast(&(float){-104.0f}), minimum(zero(), LOAD(x + i * LANES)));
  for (int i = 0; i < n; i++) power[i] = multiply(negative[i], log2e);
  for (int i = 0; i < n; i++) low[i] = product_error(negative[i], log2e, power[i]);
  for (int i = 0; i < n; i++) low[i] = fused_multiply_add(negative[i], log2e_rest, low[i]);
  exp2_each(n, power, low);
  for (int i = 0; i < n; i++) store(y + i * LANES, NAME(elu1_of)(x + i * LANES, power[i]));
}

/* The same in two parts, of two vectors. */
INLINE void NAME(begin_elu1)(const element *x, powers *of) {
  const vec log2e = broadcast(&(float){0x1.715476p+0f}), log2e_rest = broadcast(&(float){0x1.4ae0cp-26f});
  vec negative[2], low[2];
  for (int i = 0; i < 2; i++)
    negative[i] = maximum(broadcast(&(float){-104.0f}), minimum(zero(), LOAD(x + i * LANES)));
  for (int i = 0; i < 2; i++) of->x[i] = multiply(negative[i], log2e);
  for (int i = 0; i < 2; i++) low[i] = product_error(negative[i], log2e, of->x[i]);
  for (int i = 0; i < 2; i++) low[i] = fused_multiply_add(negative[i], log2e_rest, low[i]);
  begin_powers(2, of);
  for (int i = 0; i < 2; i++) of->fraction[i] = add(of->fraction[i], low[i]);
}

INLINE void NAME(end_elu1)(const element *x, const powers *of, float *y) {
  vec power[EXP_VECTORS];
  end_powers(2, of, power);
  for (int i = 0; i < 2; i++) store(y + i * LANES, NAME(elu1_of)(x + i * LANES, power[i]));
}

/* Rows of whole pairs of vectors: each two exponentials begin while the two before are under way, as in weigh_pairs. */
INLINE void NAME(elu1_pairs)(int64_t rows, int64_t count, tile_rows x, tile_target y) {
  const element *from = x.x;
  float *to = y.x;
  powers now, next;
  NAME(begin_elu1)(from, &now);
  for (int64_t r = 0, n = 0; r < rows;) {
    const bool ends = n + 2 * LANES == count, last = ends && r + 1 == rows;
    const int64_t m = last ? n : ends ? 0 : n + 2 * LANES;
    const element *behind = ends && !last ? from + x.stride : from;
    NAME(begin_elu1)(behind + m, &next);
    NAME(end_elu1)(from + n, &now, to + n);
    now = next;
    if (ends) to += y.stride, r++;
    from = behind;
    n = m;
  }
}

static void NAME(elu1)(int64_t rows, int64_t count, tile_rows x, tile_target y) {
  const unsigned mode = flush_denormals();
  if (rows > 0 && count > 0 && count % (2 * LANES) == 0 && EXP_VECTORS > 2) {
    NAME(elu1_pairs)(rows, count, x, y);
    restore_denormals(mode);
    return;
  }
  if (x.stride == count && y.stride == count) count = y.stride = rows * count, rows = 1;
  for (int64_t r = 0; r < rows; r++) {
    const element *from = (const element *)x.x + r * x.stride;
    float *to = y.x + r * y.stride;
    int64_t n = 0;
    for (; n + EXP_VECTORS * LANES <= count; n += EXP_VECTORS * LANES)
      NAME(elu1_each)(EXP_VECTORS, from + n, to + n);
    for (; n + EXP_VECTORS / 2 * LANES <= count; n += EXP_VECTORS / 2 * LANES)
      NAME(elu1_each)(EXP_VECTORS / 2, from + n, to + n);
    for (; n + LANES <= count; n += LANES) NAME(elu1_each)(1, from + n, to + n);
    if (n < count) {
      element rest[LANES] = {TO_ELEMENT(0)};
      float phi[LANES];
      memcpy(rest, from + n, (size_t)(count - n) * sizeof *rest);
      NAME(elu1_each)(1, rest, phi);
      memcpy(to + n, phi, (size_t)(count - n) * sizeof *phi);
    }
    for (n = count; n % LANES != 0; n++) to[n] = 0;
  }
  restore_denormals(mode);
}

static void NAME(at_least)(int64_t rows, int64_t count, float least, tile_rows x, tile_target y) {
  const vec lowest = broadcast(&least);
  for (int64_t r = 0; r < rows; r++) {
    const element *from = (const element *)x.x + r * x.stride;
    float *to = y.x + r * y.stride;
    int64_t n = 0;
    for (; n + LANES <= count; n += LANES) store(to + n, maximum(lowest, LOAD(from + n)));
    for (; n < count; n++) to[n] = FROM_ELEMENT(from[n]) <= least ? least : FROM_ELEMENT(from[n]);
    for (n = count; n % LANES != 0; n++) to[n] = 0;
  }
}

/* Squares of LANES rows by LANES features are transposed in registers; what features remain goes singly. */
UNUSED static float NAME(pack)(int64_t rows, int64_t count, int64_t depth, const void *const *row,
                               float factor, float *restrict columns) {
  const vec factors = broadcast(&factor);
  const int64_t whole = depth / LANES * LANES;
  for (int64_t r = 0; r < rows; r += LANES) {
    for (int64_t d = 0; d < whole; d += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++)
        square[x] = r + x < count ? multiply(factors, LOAD((const element *)row[r + x] + d)) : zero();
      transpose(square);
      for (int x = 0; x < LANES; x++) store(columns + (d + x) * rows + r, square[x]);
    }
    for (int64_t d = whole; d < depth; d++)
      for (int64_t x = r; x < r + LANES; x++)
        columns[d * rows + x] = x < count ? FROM_ELEMENT(((const element *)row[x])[d]) * factor : 0;
  }
  return 1;
}

static void NAME(unpack)(int64_t rows, int64_t count, int64_t width, const float *restrict columns,
                         const float *factor, void *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r += LANES) {
    for (int64_t e = 0; e < whole; e += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++) square[x] = load(columns + (e + x) * rows + r);
      transpose(square);
      for (int x = 0; x < LANES && r + x < count; x++)
        STORE((element *)row[r + x] + e, multiply(broadcast(&factor[r + x]), square[x]));
    }
    for (int64_t e = whole; e < width; e++)
      for (int64_t x = r; x < r + LANES && x < count; x++)
        ((element *)row[x])[e] = TO_ELEMENT(columns[e * rows + x] * factor[x]);
  }
}

static void NAME(scale_rows)(int64_t count, int64_t width, tile_matrix x, const float *factor,
                             void *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r++) {
    const vec factors = broadcast(factor + r);
    const float *from = x.x + r * x.stride;
    element *to = row[r];
    for (int64_t e = 0; e < whole; e += LANES) STORE(to + e, multiply(factors, load(from + e)));
    for (int64_t e = whole; e < width; e++) to[e] = TO_ELEMENT(factor[r] * from[e]);
  }
}

#include "few_rows.h"

#undef KIND
#undef element
#undef LOAD
#undef LOAD_PART
#undef STORE
#undef FROM_ELEMENT
#undef TO_ELEMENT
