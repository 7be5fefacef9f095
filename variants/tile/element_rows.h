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
  return sum_of_lanes(add(add(sum[0], sum[1]), add(sum[2], sum[3]))) == 0;
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

INLINE void NAME(elu1_each)(const int n, const element *x, float *y) {
#ifdef OWN_ELU1
  for (int i = 0; i < n; i++) {
    const vec a = LOAD(x + i * LANES);
    store(y + i * LANES, elu1_vec(a, a, &elu1_of_vectors));
  }
#else
  powers of;
  for (int i = 0; i < n; i++) {
    of.x[i] = LOAD(x + i * LANES);
    of.fraction[i] = split_elu1(&of.x[i]);
  }
  vec power[EXP_VECTORS];
  end_exponentials(n, &of, power);
  for (int i = 0; i < n; i++) store(y + i * LANES, add(maximum(zero(), LOAD(x + i * LANES)), power[i]));
#endif
}

/* Rows of whole pairs of vectors, in a loop of their own. Two at once leave the constants in registers; of more the compiler puts
 * some away, and a Zen 3 stores vectors by the pipes that multiply and add. */
INLINE void NAME(elu1_pairs)(int64_t rows, int64_t count, tile_rows x, tile_target y) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t n = 0; n < count; n += 2 * LANES)
      NAME(elu1_each)(2, (const element *)x.x + r * x.stride + n, y.x + r * y.stride + n);
}

INLINE void NAME(elu1_row)(int64_t count, const element *x, float *y) {
  int64_t n = 0;
  for (; n + 2 * LANES <= count; n += 2 * LANES) NAME(elu1_each)(2, x + n, y + n);
  for (; n + LANES <= count; n += LANES) NAME(elu1_each)(1, x + n, y + n);
  if (n < count) {
    element rest[LANES] = {TO_ELEMENT(0)};
    float phi[LANES];
    memcpy(rest, x + n, (size_t)(count - n) * sizeof *rest);
    NAME(elu1_each)(1, rest, phi);
    memcpy(y + n, phi, (size_t)(count - n) * sizeof *phi);
  }
  for (n = count; n % LANES != 0; n++) y[n] = 0;
}

static void NAME(elu1)(int64_t rows, int64_t count, tile_rows x, tile_target y) {
  if (x.stride == count && y.stride == count) count *= rows, rows = 1;
  if (count % (2 * LANES) == 0)
    NAME(elu1_pairs)(rows, count, x, y);
  else
    for (int64_t r = 0; r < rows; r++)
      NAME(elu1_row)(count, (const element *)x.x + r * x.stride, y.x + r * y.stride);
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

/* LANES elements of each of LANES rows, as columns; of rows from `count` on zeros. */
INLINE void NAME(load_turned)(int64_t count, const void *const *row, int64_t at, vec square[LANES]) {
  for (int x = 0; x < LANES; x++) square[x] = x < count ? LOAD((const element *)row[x] + at) : zero();
  transpose(square);
}

/* Squares of LANES rows by LANES features are transposed in registers; what features remain goes singly. */
UNUSED static float NAME(pack)(int64_t rows, int64_t count, int64_t depth, const void *const *row,
                               float factor, float *restrict columns) {
  const vec factors = broadcast(&factor);
  const int64_t whole = depth / LANES * LANES;
  for (int64_t r = 0; r < rows; r += LANES) {
    for (int64_t d = 0; d < whole; d += LANES) {
      vec square[LANES];
      NAME(load_turned)(count - r, row + r, d, square);
      for (int x = 0; x < LANES; x++) store(columns + (d + x) * rows + r, multiply(factors, square[x]));
    }
    for (int64_t d = whole; d < depth; d++)
      for (int64_t x = r; x < r + LANES; x++)
        columns[d * rows + x] = x < count ? FROM_ELEMENT(((const element *)row[x])[d]) * factor : 0;
  }
  return 1;
}

/* Two elements lie in a lane where the type has TURNED_LOW, TURNED_HIGH: half as many squares are turned. */
#ifdef TURNED_LOW
INLINE void NAME(load_bias)(int64_t count, const void *const *row, int64_t at, vec x[2 * LANES]) {
  vec square[LANES];
  for (int n = 0; n < LANES; n++)
    square[n] = n < count ? load((const void *)((const element *)row[n] + at)) : zero();
  transpose(square);
  for (int n = 0; n < LANES; n++) x[2 * n] = TURNED_LOW(square[n]), x[2 * n + 1] = TURNED_HIGH(square[n]);
}
#endif

/* As base2_bias has it. */
INLINE void NAME(add_square)(int64_t rows, const int keys, const vec bias[], float scale, float *scores) {
  const vec factors = broadcast(&log2e), scales = broadcast(&scale), lowest = broadcast(&base2_lowest_bias);
  for (int x = 0; x < keys; x++) {
    const vec scaled = maximum(minimum(lowest, bias[x]), multiply(factors, bias[x]));
    store(scores + x * rows, fused_multiply_add(scales, load(scores + x * rows), scaled));
  }
}

static void NAME(add_bias)(int64_t rows, int64_t count, int64_t first, int64_t end, const void *const *bias,
                           float scale, float *restrict scores) {
  for (int64_t r = 0; r < rows; r += LANES) {
    int64_t j = first;
    float *score = scores + r;
#ifdef TURNED_LOW
    for (; j + 2 * LANES <= end; j += 2 * LANES, score += 2 * LANES * rows) {
      vec x[2 * LANES];
      NAME(load_bias)(count - r, bias + r, j, x);
      NAME(add_square)(rows, 2 * LANES, x, scale, score);
    }
#endif
    for (; j + LANES <= end; j += LANES, score += LANES * rows) {
      vec square[LANES];
      NAME(load_turned)(count - r, bias + r, j, square);
      NAME(add_square)(rows, LANES, square, scale, score);
    }
    for (; j < end; j++, score += rows)
      for (int64_t x = 0; x < LANES; x++) {
        const float b = r + x < count ? FROM_ELEMENT(((const element *)bias[r + x])[j]) : 0;
        score[x] = scale * score[x] + base2_bias(b);
      }
  }
}

static void NAME(unpack)(int64_t rows, int64_t count, int64_t width, const float *restrict columns,
                         const float *factor, void *const *row) {
  const int64_t whole = width / LANES * LANES;
  for (int64_t r = 0; r < count; r += LANES) {
    int64_t e = 0;
#ifdef STORE_IN_PAIRS
    const int here = (int)(count - r < LANES ? count - r : LANES);
    while (e + 2 * LANES <= width &&
           STORE_IN_PAIRS(rows, here, columns + e * rows + r, factor + r, row + r, e))
      e += 2 * LANES;
#endif
    for (; e < whole; e += LANES) {
      vec square[LANES];
      for (int x = 0; x < LANES; x++) square[x] = load(columns + (e + x) * rows + r);
      transpose(square);
      for (int x = 0; x < LANES && r + x < count; x++)
        STORE((element *)row[r + x] + e, multiply(broadcast(&factor[r + x]), square[x]));
    }
    for (; e < width; e++)
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
#undef STORE_IN_PAIRS
#undef TURNED_LOW
#undef TURNED_HIGH
