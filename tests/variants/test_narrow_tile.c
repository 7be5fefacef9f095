/* The tile kernels for elements of 16 bits, of every instruction set, against plain loops in double precision; and
 * products of pairs, emulated or a processor's, against what its architecture says, bit by bit. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulated_avx512.h"
#include "near.h"
#include "variants/elements.h"
#include "variants/tile/tile.h"

enum { LARGEST = 1 << 15, PAD = 3 };

static uint16_t elements[LARGEST], more[LARGEST];
static float copy[LARGEST], columns[LARGEST], found[LARGEST], weights[LARGEST];

static uint32_t drawn(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }

/* From -1 to 1, in the type. */
static void fill(uint16_t *x, attn_type type, int64_t count, uint32_t seed) {
  for (int64_t n = 0; n < count; n++) attn_store(x, type, n, (float)(int32_t)drawn(&seed) * 0x1p-31f);
}

static void with_each(void (*check)(const tile_kernels *)) {
  static const attn_type types[] = {ATTN_BFLOAT16, ATTN_FLOAT16};
  for (const char *const *name = tile_instruction_sets(); *name; name++)
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
      if (!tile_refusal(*name, types[t])) {
        const tile_kernels *kernels = tile_select(*name, types[t]);
        assert_string_equal(kernels->name, *name);
        assert_int_equal(kernels->type, types[t]);
        check(kernels);
      }
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    if (emulated_avx512(types[t])) check(emulated_avx512(types[t]));
}

static double element(const tile_kernels *kernels, const uint16_t *x, int64_t n) {
  return attn_load(x, kernels->type, n);
}

/* What finds the largest scores on the way leaves the same scores, and of those the softmax that takes it makes the same. */
static void check_largest(const tile_kernels *kernels, tile_size size, tile_rows key) {
  static float same[LARGEST], state[3][TILE_MAX_ROWS], other[3][TILE_MAX_ROWS];
  const size_t bytes = (size_t)(size.rows * size.keys) * sizeof *found;
  const tile_matrix queries = {columns, size.rows};
  kernels->scores(size, queries, key, 1, NULL, (tile_target){found, size.rows});
  kernels->scores_and_largest(size, columns, key, NULL, same, other[2]);
  assert_memory_equal(found, same, bytes);
  for (int64_t r = 0; r < size.rows; r++) {
    float largest = -INFINITY;
    for (int64_t j = 0; j < size.keys; j++) largest = fmaxf(largest, found[j * size.rows + r]);
    assert_true(other[2][r] == largest);
    state[0][r] = other[0][r] = r % 3 ? -INFINITY : 0.1f;
    state[1][r] = other[1][r] = 0.5f;
  }
  kernels->softmax(size.rows, size.keys, found, 0.37f, (tile_state){state[0], state[1], state[2]});
  kernels->softmax_of_largest(size.rows, size.keys, same, 0.37f, (tile_state){other[0], other[1], other[2]});
  assert_memory_equal(found, same, bytes);
  for (int n = 0; n < 3; n++) assert_memory_equal(state[n], other[n], (size_t)size.rows * sizeof **state);
}

/* Queries are the rows of `more`, keys those of `elements`; what stands behind an odd number of features is NaN. */
static void check_scores(const tile_kernels *kernels) {
  static const int64_t depths[] = {1, 2, 31, 33, 64, 65, 260};
  const float factors[] = {0.7f, -0.3f};
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (size_t n = 0; n < 2 * sizeof depths / sizeof *depths; n++)
      for (int64_t keys = 0; keys <= kernels->keys; keys += keys < 18 ? 1 + keys / 4 : 23) {
        const int64_t depth = depths[n / 2], stride = depth + PAD, count = rows - 1;
        const void *row[TILE_MAX_ROWS];
        if (depth * rows > LARGEST || rows * stride > LARGEST || keys * stride > LARGEST) continue;
        fill(elements, kernels->type, keys * stride, 1), fill(more, kernels->type, rows * stride, 2);
        for (int64_t j = 0; j < TILE_MOST_KEYS && j * stride + stride <= LARGEST; j++)
          attn_store(elements, kernels->type, j * stride + depth, NAN),
              attn_store(more, kernels->type, j * stride + depth, NAN);
        for (int64_t r = 0; r < count; r++) row[r] = more + r * stride;
        const float left = kernels->pack(rows, count, depth, row, factors[n % 2], columns);
        tile_rows key = {elements, stride};
        if (kernels->copy_keys) {
          kernels->copy_keys(keys, depth, key, copy, stride);
          key = (tile_rows){copy, stride};
        }
        kernels->scores((tile_size){rows, keys, depth}, (tile_matrix){columns, rows}, key, left, NULL,
                        (tile_target){found, rows});
        for (int64_t j = 0; j < keys; j++)
          for (int64_t r = 0; r < count; r++) {
            double expected = 0;
            for (int64_t d = 0; d < depth; d++)
              expected += element(kernels, elements, j * stride + d) * element(kernels, more, r * stride + d);
            assert_near(kernels, "scores", (double)found[j * rows + r], (double)factors[n % 2] * expected,
                        1e-7 * (double)(depth + 2));
          }
        if (kernels->scores_and_largest) check_largest(kernels, (tile_size){rows, keys, depth}, key);
      }
}

static void scores_are_the_products_of_keys_and_queries(void **state) {
  (void)state;
  with_each(check_scores);
}

static double stored_weight(const tile_kernels *kernels, int64_t rows, int64_t j, int64_t r) {
  if (kernels->step == 1) return (double)weights[j * rows + r];
  uint16_t halves[2];
  memcpy(halves, weights + j / 2 * rows + r, sizeof halves);
  return (double)attn_from_bfloat16(halves[j % 2]);
}

/* The softmax sums weights before it rounds them, and what accumulate makes of them is the rounded ones' sum. */
static void check_weights_and_values(const tile_kernels *kernels) {
  static float max[TILE_MAX_ROWS], sum[TILE_MAX_ROWS], rescale[TILE_MAX_ROWS], old[LARGEST], scores[LARGEST];
  const float factor = kernels->step == 1 ? 1 : 0.37f;
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (int64_t keys = 1; keys <= kernels->keys; keys += keys < 12 ? 1 : 13)
      for (int64_t width = 1; width < 40; width += 6) {
        const int64_t stride = width + PAD, spread = kernels->transposes_values ? TILE_MOST_KEYS : width + 5;
        uint32_t seed = (uint32_t)(rows + keys * width);
        fill(elements, kernels->type, keys * stride, seed);
        for (int64_t n = 0; n < rows * keys; n++)
          scores[n] = weights[n] = (float)(drawn(&seed) >> 8) * 0x1p-20f;
        for (int64_t n = 0; n < rows * width; n++) old[n] = found[n] = (float)(drawn(&seed) >> 8) * 0x1p-24f;
        for (int64_t r = 0; r < rows; r++) max[r] = 3, sum[r] = 0.5f;
        const float returned = kernels->softmax(rows, keys, weights, factor, (tile_state){max, sum, rescale});
        double all = 0;
        kernels->copy_values(keys, width, (tile_rows){elements, stride}, copy, spread);
        kernels->accumulate((tile_size){rows, keys, width}, (tile_matrix){weights, rows},
                            (tile_rows){copy, spread * kernels->step}, rescale, NULL,
                            (tile_target){found, rows});
        for (int64_t r = 0; r < rows; r++) {
          double largest = 3, total = 0;
          for (int64_t j = 0; j < keys; j++)
            largest = fmax(largest, (double)factor * (double)scores[j * rows + r]);
          for (int64_t j = 0; j < keys; j++) {
            const double weight = exp2((double)factor * (double)scores[j * rows + r] - largest);
            const double rounding = kernels->step == 1 ? 2e-6 : 0x1p-8;
            assert_near(kernels, "weight", stored_weight(kernels, rows, j, r), weight,
                        rounding * weight + 1e-37);
            total += weight;
          }
          all += total;
          assert_near(kernels, "max", (double)max[r], largest, 1e-6 * largest);
          assert_near(kernels, "sum", (double)sum[r], 0.5 * exp2(3 - largest) + total, 4e-6 * (0.5 + total));
          for (int64_t e = 0; e < width; e++) {
            double expected = (double)old[e * rows + r] * (double)rescale[r];
            for (int64_t j = 0; j < keys; j++)
              expected += stored_weight(kernels, rows, j, r) * element(kernels, elements, j * stride + e);
            assert_near(kernels, "output", (double)found[e * rows + r], expected, 1e-6 * (double)(keys + 2));
          }
        }
        assert_near(kernels, "all weights", (double)returned, all, 4e-6 * all);
      }
}

static void weights_are_summed_and_then_rounded(void **state) {
  (void)state;
  with_each(check_weights_and_values);
}

static void check_bias(const tile_kernels *kernels) {
  enum { FIRST = 3 };
  const int64_t rows = kernels->max_rows, count = rows - 1, stride = FIRST + TILE_KEYS + PAD;
  const void *row[TILE_MAX_ROWS];
  fill(elements, kernels->type, rows * stride, 3);
  for (int64_t r = 0; r < count; r++) row[r] = elements + r * stride;
  for (int64_t keys = 1; keys <= TILE_KEYS; keys += keys < 18 ? 1 : 23) {
    for (int64_t n = 0; n < (keys + 1) * rows; n++) columns[n] = found[n] = (float)n;
    kernels->add_bias(rows, count, FIRST, FIRST + keys, row, 0.75f, found);
    for (int64_t j = 0; j <= keys; j++)
      for (int64_t r = 0; r < rows; r++) {
        const double bias = j < keys && r < count ? element(kernels, elements, r * stride + FIRST + j) : 0;
        assert_near(kernels, "bias", (double)found[j * rows + r],
                    (j < keys ? 0.75 : 1) * (double)columns[j * rows + r] + M_LOG2E * bias, 1e-3);
      }
  }
}

static void bias_is_added_as_columns(void **state) {
  (void)state;
  with_each(check_bias);
}

static void check_few_rows(const tile_kernels *kernels) {
  static const int64_t widths[] = {1, 15, 16, 17, 40, 130};
  static float query[TILE_FEW_ROWS * 256], ordered[TILE_FEW_ROWS * 256],
      rescale[TILE_FEW_ROWS] = {1, 0.5f, 2, 0};
  fill(elements, kernels->type, LARGEST, 5);
  for (int64_t rows = 1; rows <= TILE_FEW_ROWS; rows++)
    for (size_t n = 0; n < sizeof widths / sizeof *widths; n++) {
      const int64_t width = widths[n], stride = width + PAD, keys = 19, pitch = 256;
      const tile_size size = {rows, keys, width};
      const tile_rows x = {elements, stride};
      uint32_t seed = (uint32_t)n;
      memset(query, 0, sizeof query);
      for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d < width; d++) query[r * pitch + d] = (float)(drawn(&seed) >> 8) * 0x1p-24f;
      for (int64_t m = 0; m < rows * TILE_FEW_KEYS; m++) weights[m] = (float)(drawn(&seed) >> 8) * 0x1p-24f;
      memcpy(ordered, query, sizeof query);
      for (int64_t r = 0; r < rows; r++) kernels->few_order(width, ordered + r * pitch);
      kernels->few_scores(size, (tile_matrix){ordered, pitch}, x, x, (tile_target){found, TILE_FEW_KEYS});
      memset(columns, 0, sizeof columns);
      kernels->few_accumulate(size, (tile_matrix){weights, TILE_FEW_KEYS}, x, rescale, x,
                              (tile_target){columns, pitch});
      for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < keys; j++) {
          double expected = 0;
          for (int64_t d = 0; d < width; d++)
            expected += (double)query[r * pitch + d] * element(kernels, elements, j * stride + d);
          assert_near(kernels, "few scores", (double)found[r * TILE_FEW_KEYS + j], expected, 2e-5);
        }
        for (int64_t e = 0; e < width; e++) {
          double expected = 0;
          for (int64_t j = 0; j < keys; j++)
            expected += (double)weights[r * TILE_FEW_KEYS + j] * element(kernels, elements, j * stride + e);
          assert_near(kernels, "few outputs", (double)columns[r * pitch + e], expected, 2e-5);
        }
      }
    }
}

static void few_rows_read_elements_as_they_are(void **state) {
  (void)state;
  with_each(check_few_rows);
}

/* Rows of queries, of keys and of values, with NaN in all that does not belong to them, where a product must not look. */
static void fill_rows(uint16_t *x, attn_type type, int64_t rows, int64_t width, int64_t stride,
                      uint32_t seed) {
  for (int64_t n = 0; n < LARGEST; n++) attn_store(x, type, n, NAN);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t d = 0; d < width; d++)
      attn_store(x, type, r * stride + d, (float)(int32_t)drawn(&seed) * 0x1p-31f);
}

/* By tiles, and that rows beside a row change no bit of it, nor it what is beside it. */
static void check_tiled(const tile_kernels *kernels, tile_size size) {
  enum { PITCH = 144, MOST = TILE_TILED_ROWS };
  static uint16_t query[LARGEST], value[LARGEST];
  static float scores[2][(MOST + 1) * TILE_FEW_KEYS], output[2][(MOST + 1) * PITCH];
  const int64_t stride = size.features + PAD, lanes = kernels->lanes;
  const tile_rows key_rows = {elements, stride}, value_rows = {value, stride};
  const void *row[MOST];
  float rescale[MOST];
  uint32_t seed = (uint32_t)(size.keys * 131 + size.features);
  fill_rows(query, kernels->type, MOST, size.features, stride, 6);
  fill_rows(elements, kernels->type, size.keys, size.features, stride, 7);
  fill_rows(value, kernels->type, size.keys, size.features, stride, 8);
  for (int r = 0; r < MOST; r++) row[r] = query + r * stride, rescale[r] = r % 3 ? 0.5f : (float)r;
  for (int one = 0; one < 2; one++) {
    const int64_t rows = one ? 1 : size.rows;
    const tile_size here = {rows, size.keys, size.features};
    memset(columns, 0, sizeof columns);
    const float factor = kernels->pack(lanes, rows, size.features, row, 0.37f, columns);
    for (int n = 0; n < (MOST + 1) * TILE_FEW_KEYS; n++) scores[one][n] = -7;
    for (int n = 0; n < (MOST + 1) * PITCH; n++) output[one][n] = (float)(n % 11) * 0.25f;
    kernels->tiled_scores(here, (tile_matrix){columns, lanes}, key_rows, factor, key_rows,
                          (tile_target){scores[one], TILE_FEW_KEYS});
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < TILE_FEW_KEYS; j++) {
        double expected = 0;
        for (int64_t d = 0; d < size.features && j < size.keys; d++)
          expected += element(kernels, query, r * stride + d) * element(kernels, elements, j * stride + d);
        if (j < size.keys)
          assert_near(kernels, "tiled scores", (double)scores[one][r * TILE_FEW_KEYS + j],
                      (double)0.37f * expected, 2e-5);
        weights[r * TILE_FEW_KEYS + j] =
            j < size.keys ? attn_from_bfloat16(attn_to_bfloat16((float)(drawn(&seed) >> 8) * 0x1p-24f))
            : j < (size.keys + lanes - 1) / lanes * lanes ? 0
                                                          : NAN;
      }
    if (one) memcpy(weights, copy, TILE_FEW_KEYS * sizeof *copy);
    memcpy(copy, weights, TILE_FEW_KEYS * sizeof *copy);
    assert_true(scores[one][rows * TILE_FEW_KEYS] == -7);
    kernels->tiled_accumulate(here, (tile_matrix){weights, TILE_FEW_KEYS}, value_rows, rescale, value_rows,
                              (tile_target){output[one], PITCH});
    for (int64_t r = 0; r <= rows; r++)
      for (int64_t e = 0; e < PITCH; e++) {
        double expected = (double)((r * PITCH + e) % 11) * 0.25;
        if (r < rows && e < size.features) expected *= (double)rescale[r];
        for (int64_t j = 0; j < size.keys && r < rows && e < size.features; j++)
          expected += (double)weights[r * TILE_FEW_KEYS + j] * element(kernels, value, j * stride + e);
        const bool padding =
            r < rows && e >= size.features && e < (size.features + lanes - 1) / lanes * lanes;
        if (!padding)
          assert_near(kernels, "tiled outputs", (double)output[one][r * PITCH + e], expected, 1e-4);
      }
  }
  assert_memory_equal(scores[0], scores[1], (size_t)size.keys * sizeof **scores);
  assert_memory_equal(output[0], output[1], (size_t)size.features * sizeof **output);
}

static void check_tiled_rows(const tile_kernels *kernels) {
  static const int64_t widths[] = {1, 15, 16, 17, 31, 32, 33, 48, 64, 96, 120, 127, 128, 129, 143},
                       keys[] = {1, 2, 15, 17, 31, 32, 33, 64, 95, 255, 256};
  if (!kernels->tiled_scores) return;
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      if (keys[k] * (widths[w] + PAD) <= LARGEST)
        check_tiled(kernels, (tile_size){1 + (int64_t)(5 * w + k) % TILE_TILED_ROWS, keys[k], widths[w]});
}

static void few_rows_by_tiles_read_what_is_theirs(void **state) {
  (void)state;
  with_each(check_tiled_rows);
}

/* As elements.h converts it; one NaN is as good as another. */
static void assert_stored(const tile_kernels *kernels, float number, uint16_t stored) {
  const bool is_bfloat16 = kernels->type == ATTN_BFLOAT16;
  const uint16_t expected = is_bfloat16 ? attn_to_bfloat16(number) : attn_to_float16(number);
  const float back = is_bfloat16 ? attn_from_bfloat16(stored) : attn_from_float16(stored);
  if (stored != expected && !(isnan(number) && isnan(back)))
    fail_msg("%s: %a is stored as %#x, not %#x", kernels->name, (double)number, stored, expected);
}

/* Every pattern of 16 bits, read and written: as elements.h says, to the last bit. */
static void check_conversions(const tile_kernels *kernels) {
  enum { ROW = 64 + 7 }; /* whole vectors and a rest */
  for (int64_t first = 0; first < 1 << 16; first += ROW) {
    uint16_t row[ROW], back[ROW];
    float floats[ROW], nudged[ROW];
    const float one = 1;
    for (int n = 0; n < ROW; n++) row[n] = (uint16_t)(first + n);
    kernels->read(ROW, row, floats);
    for (int n = 0; n < ROW; n++) {
      const float expected = attn_load(row, kernels->type, n);
      assert_true(floats[n] == expected || (isnan(floats[n]) && isnan(expected)));
      /* As it is, and near the middle between two. */
      const uint32_t bits = attn_bits_of_float(floats[n]);
      nudged[n] = kernels->type == ATTN_BFLOAT16 ? attn_float_of_bits(bits + 0x7fff + (uint32_t)(n % 3))
                                                 : floats[n] * (1 + 0x1p-11f * (float)(n % 3));
    }
    for (int pass = 0; pass < 2; pass++) {
      const float *from = pass ? nudged : floats;
      void *to = back;
      kernels->scale_rows(1, ROW, (tile_matrix){from, ROW}, &one, &to);
      for (int n = 0; n < ROW; n++) assert_stored(kernels, from[n], back[n]);
    }
  }
}

static void elements_are_converted_as_everywhere(void **state) {
  (void)state;
  with_each(check_conversions);
}

/* ---- Products of pairs, to the last bit ---- */

static float flushed(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static float element_flushed(uint16_t half) { return flushed(attn_from_bfloat16(half)); }

/* sum + a b of elements as vdpbf16ps and its emulation do it: the upper half's product first, each addition rounded to
 * nearest. */
static float nearest_after_each(float sum, const uint16_t a[2], const uint16_t b[2]) {
  for (int half = 1; half >= 0; half--)
    sum = flushed(fmaf(element_flushed(a[half]), element_flushed(b[half]), flushed(sum)));
  return sum;
}

/* a + b, neither denormal, rounded to odd: towards zero, the last bit set where anything was lost. Their sum in double
 * precision and what that leaves of it are exact (Knuth's two-sum). */
static float sum_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
  float result = (float)sum;
  if (!isfinite(sum) || ((double)result == sum && lost == 0)) return flushed(result);
  const double beyond = (double)result != sum ? (double)result - sum : -lost; /* the result's, of the sum */
  if (isinf(result) ? fabs(sum) < 0x1p128 : (beyond > 0) == (sum > 0)) result = nextafterf(result, 0);
  if (isinf(result)) return result;
  return flushed(attn_float_of_bits(attn_bits_of_float(result) | 1));
}

/* Arm Architecture Reference Manual, BFDotAdd: both products, their sum, then the addend's; each rounds to odd. */
static float odd_after_each(float sum, const uint16_t a[2], const uint16_t b[2]) {
  float product[2];
  for (int half = 0; half < 2; half++)
    product[half] = sum_to_odd((double)element_flushed(a[half]) * (double)element_flushed(b[half]), -0.0);
  return sum_to_odd((double)flushed(sum), (double)sum_to_odd((double)product[0], (double)product[1]));
}

/* Sets that multiply pairs, and what the architecture says that their instruction does. */
typedef float add_pair(float sum, const uint16_t a[2], const uint16_t b[2]);
static const struct {
  const char *isa;
  add_pair *adds;
} pair_sets[] = {
    {"emulated_bf16", nearest_after_each},
    {"avx512_bf16", nearest_after_each},
    {"neon_bf16", odd_after_each},
};

/* One number of a kind of its own among normal ones, here and there in a tile that is stored. */
static void check_unpack(const tile_kernels *kernels) {
  enum { WIDTH = 64 + 3, GUARD = 0x5a5a };
  static const float odd[] = {0x1p-130f, -0x1.8p-128f, INFINITY, NAN, 0, -FLT_MAX, 0x1.8p-127f};
  const int64_t rows = kernels->lanes, count = rows - 1;
  float factor[TILE_MAX_ROWS];
  void *to[TILE_MAX_ROWS];
  for (int64_t r = 0; r < count; r++) to[r] = elements + r * WIDTH, factor[r] = 1 + 0.37f * (float)r;
  for (int64_t at = 0; at < count * WIDTH; at += 5) {
    for (int64_t n = 0; n < WIDTH * rows; n++) columns[n] = 1 + 0.01f * (float)n;
    columns[at % WIDTH * rows + at / WIDTH] = odd[at % (int64_t)(sizeof odd / sizeof *odd)];
    elements[count * WIDTH] = GUARD;
    kernels->unpack(rows, count, WIDTH, columns, factor, to);
    for (int64_t n = 0; n < count * WIDTH; n++)
      assert_stored(kernels, columns[n % WIDTH * rows + n / WIDTH] * factor[n / WIDTH], elements[n]);
    assert_int_equal(elements[count * WIDTH], GUARD);
  }
}

static void outputs_are_stored_as_elements_are_converted(void **state) {
  (void)state;
  with_each(check_unpack);
}

/* From 2^-140 to 2^20, or with products and sums about the smallest normal number, or about as large as the largest; now
 * and then infinite. */
static void fill_widely(uint32_t seed) {
  uint32_t state = seed;
  for (int n = 0; n < LARGEST / 4; n++) {
    const uint32_t bits = drawn(&state);
    const int spread[] = {(int)(bits >> 8) % 160 - 140, (int)(bits >> 8) % 8 - 66, 63 - (int)(bits >> 8) % 8};
    elements[n] = attn_to_bfloat16(ldexpf(1 + (float)(bits & 127) / 128, spread[seed % 3]) *
                                   (bits >> 31 ? -1.0f : 1.0f));
    if (seed % 5 == 0 && bits >> 20 == 77) elements[n] = 0x7f80;
  }
}

enum { WIDE_DEPTH = 64, WIDE_KEYS = 40 };
static const uint16_t *const wide_query = elements + LARGEST / 8;

/* Scores [WIDE_KEYS, max_rows] of such elements. */
static void score_widely(const tile_kernels *kernels, uint32_t seed, float *scores) {
  const int64_t rows = kernels->max_rows;
  const void *row[TILE_MAX_ROWS];
  fill_widely(seed);
  for (int64_t r = 0; r < rows; r++) row[r] = wide_query + r * WIDE_DEPTH;
  const float factor = kernels->pack(rows, rows, WIDE_DEPTH, row, 1, columns);
  kernels->scores((tile_size){rows, WIDE_KEYS, WIDE_DEPTH}, (tile_matrix){columns, rows},
                  (tile_rows){elements, WIDE_DEPTH}, factor, NULL, (tile_target){scores, rows});
}

/* Scores and outputs of few rows by tiles, of such elements: [TILE_TILED_ROWS, TILE_FEW_KEYS] and [.., WIDE_DEPTH]. */
static void attend_widely(const tile_kernels *kernels, uint32_t seed, float *scores, float *output) {
  static float weight[TILE_TILED_ROWS * TILE_FEW_KEYS];
  const tile_size size = {TILE_TILED_ROWS, WIDE_KEYS, WIDE_DEPTH};
  const tile_rows rows = {elements, WIDE_DEPTH};
  const void *row[TILE_TILED_ROWS];
  float rescale[TILE_TILED_ROWS];
  fill_widely(seed);
  for (int64_t r = 0; r < TILE_TILED_ROWS; r++) row[r] = wide_query + r * WIDE_DEPTH, rescale[r] = 0.75f;
  const float factor = kernels->pack(kernels->lanes, TILE_TILED_ROWS, WIDE_DEPTH, row, 1, columns);
  kernels->tiled_scores(size, (tile_matrix){columns, kernels->lanes}, rows, factor, rows,
                        (tile_target){scores, TILE_FEW_KEYS});
  for (int n = 0; n < TILE_TILED_ROWS * TILE_FEW_KEYS; n++)
    weight[n] = n % TILE_FEW_KEYS < WIDE_KEYS ? (float)(drawn(&seed) >> 8) * 0x1p-24f : 0;
  for (int n = 0; n < TILE_TILED_ROWS * WIDE_DEPTH; n++) output[n] = (float)n;
  kernels->tiled_accumulate(size, (tile_matrix){weight, TILE_FEW_KEYS}, rows, rescale, rows,
                            (tile_target){output, WIDE_DEPTH});
}

static bool same_bits(float a, float b) {
  return attn_bits_of_float(a) == attn_bits_of_float(b) || (isnan(a) && isnan(b));
}

static void pairs_have_the_bits_that_the_architecture_says(void **state) {
  (void)state;
  for (size_t s = 0; s < sizeof pair_sets / sizeof *pair_sets; s++) {
    const tile_kernels *kernels = tile_select(pair_sets[s].isa, ATTN_BFLOAT16);
    const int64_t rows = kernels->max_rows;
    if (strcmp(kernels->name, pair_sets[s].isa) != 0) continue;
    for (uint32_t seed = 1; seed < 200; seed++) {
      score_widely(kernels, seed, found);
      for (int64_t n = 0; n < WIDE_KEYS * rows; n++) {
        const uint16_t *key = elements + n / rows * WIDE_DEPTH, *query = wide_query + n % rows * WIDE_DEPTH;
        float sum = 0;
        for (int64_t d = 0; d < WIDE_DEPTH; d += 2) sum = pair_sets[s].adds(sum, key + d, query + d);
        if (!same_bits(found[n], sum))
          fail_msg("%s, seed %u, score %d: %a instead of %a", kernels->name, seed, (int)n, (double)found[n],
                   (double)sum);
      }
    }
  }
}

static void emulated_tiles_have_the_bits_of_the_processor(void **state) {
  (void)state;
  const tile_kernels *emulated = tile_select("emulated_amx", ATTN_BFLOAT16),
                     *real = tile_select("avx512_amx", ATTN_BFLOAT16);
  if (strcmp(real->name, "avx512_amx") != 0) skip();
  assert_int_equal(emulated->max_rows, real->max_rows);
  for (uint32_t seed = 1; seed < 200; seed++) {
    score_widely(emulated, seed, found);
    score_widely(real, seed, weights);
    for (int64_t n = 0; n < WIDE_KEYS * real->max_rows; n++)
      if (!same_bits(found[n], weights[n]))
        fail_msg("seed %u, score %d: %a, the processor's %a", seed, (int)n, (double)found[n],
                 (double)weights[n]);
    enum { SCORES = TILE_TILED_ROWS * TILE_FEW_KEYS, ALL = SCORES + TILE_TILED_ROWS * WIDE_DEPTH };
    attend_widely(emulated, seed, found, found + SCORES);
    attend_widely(real, seed, weights, weights + SCORES);
    for (int n = 0; n < ALL; n++)
      if ((n >= SCORES || n % TILE_FEW_KEYS < WIDE_KEYS) && !same_bits(found[n], weights[n]))
        fail_msg("few rows, seed %u, %d: %a, the processor's %a", seed, n, (double)found[n],
                 (double)weights[n]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scores_are_the_products_of_keys_and_queries),
      cmocka_unit_test(weights_are_summed_and_then_rounded),
      cmocka_unit_test(bias_is_added_as_columns),
      cmocka_unit_test(few_rows_read_elements_as_they_are),
      cmocka_unit_test(few_rows_by_tiles_read_what_is_theirs),
      cmocka_unit_test(elements_are_converted_as_everywhere),
      cmocka_unit_test(outputs_are_stored_as_elements_are_converted),
      cmocka_unit_test(pairs_have_the_bits_that_the_architecture_says),
      cmocka_unit_test(emulated_tiles_have_the_bits_of_the_processor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
