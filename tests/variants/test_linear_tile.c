/* What linear attention has of the tile kernels, feature maps and their slopes and products of rows, for every
 * instruction set against a plain loop in double precision. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "float_kernels.h"
#include "near.h"

static void check_elu1(const tile_kernels *kernels) {
  const int count = numbers();
  kernels->elu1(1, count, (tile_rows){b, 0}, (tile_target){a, count});
  for (int n = 0; n < count; n++) {
    const double expected = b[n] > 0 ? (double)b[n] + 1 : exp((double)b[n]);
    /* The exponential, and x times what a float lacks of log2(e), 1.3e-8: within the bound's 4u + 2u |x|. */
    const double relative = b[n] > 0 ? 6e-8 : 2.4e-7 + 1.5e-8 * fabs((double)b[n]);
    /* What vanishes, or is denormal, may be 0. */
    assert_near(kernels, "elu1", (double)a[n], expected, expected < 1.3e-38 ? 1.3e-38 : relative * expected);
  }
  const float ends[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0, -0.0f, 1e-40f, -1e-40f};
  const float found[] = {NAN, INFINITY, 0, FLT_MAX, 0, 1, 1, 1, 1};
  for (size_t n = 0; n < sizeof ends / sizeof *ends; n++) {
    for (int64_t d = 0; d < kernels->max_rows; d++) b[d] = ends[n];
    kernels->elu1(1, kernels->max_rows, (tile_rows){b, 0}, (tile_target){a, kernels->max_rows});
    for (int64_t d = 0; d < kernels->max_rows; d++)
      if (isnan(found[n]) ? !isnan(a[d]) : a[d] != found[n])
        fail_msg("%s: elu(%g) + 1 is %g", kernels->name, (double)ends[n], (double)a[d]);
  }
}

static void elu1_is_x_plus_1_above_zero_and_e_to_the_x_below(void **state) {
  (void)state;
  with_each(check_elu1);
}

static void check_at_least(const tile_kernels *kernels) {
  const float least[] = {0, -INFINITY};
  const int64_t stride = 41, pitch = 48;
  for (int n = 0; n < 2; n++)
    for (int64_t rows = 1, count = 37; rows < 4; rows += 2) {
      fill(a, (uint32_t)(rows * stride));
      a[3] = NAN, a[35] = NAN, a[4] = INFINITY, a[36] = -INFINITY;
      kernels->at_least(rows, count, least[n], (tile_rows){a, stride}, (tile_target){c, pitch});
      for (int64_t r = 0; r < rows; r++)
        for (int64_t d = 0; d % kernels->lanes != 0 || d < count; d++) {
          const float x = d < count ? a[r * stride + d] : 0, found = c[r * pitch + d];
          if (isnan(x) ? !isnan(found) : found != (x > least[n] || d >= count ? x : least[n]))
            fail_msg("%s: max(%g, %g) is %g", kernels->name, (double)x, (double)least[n], (double)found);
        }
    }
}

static void at_least_is_the_larger_and_keeps_a_nan(void **state) {
  (void)state;
  with_each(check_at_least);
}

static void check_elu1_rows(const tile_kernels *kernels) {
  const int64_t rows = 5, stride = 70, pitch = 64;
  for (int64_t count = 1; count <= pitch; count++) {
    fill(a, 11), fill(c, 12);
    kernels->elu1(rows, count, (tile_rows){a, stride}, (tile_target){c, pitch});
    kernels->elu1(1, LARGEST, (tile_rows){a, 0}, (tile_target){b, 0});
    for (int64_t r = 0; r < rows; r++)
      for (int64_t n = 0; n % kernels->lanes != 0 || n < count; n++)
        assert_true(c[r * pitch + n] == (n < count ? b[r * stride + n] : 0));
  }
}

static void elu1_fills_rows_up_with_zeros(void **state) {
  (void)state;
  with_each(check_elu1_rows);
}

static void check_add_rows(const tile_kernels *kernels) {
  for (int64_t width = kernels->lanes; width <= kernels->max_rows; width += kernels->lanes)
    for (int64_t rows = 0; rows <= TILE_KEYS; rows += 1 + rows / 2) {
      const int64_t pitch = width + 3;
      fill(a, 14), fill(c, 15);
      memcpy(b, c, sizeof b);
      kernels->add_rows(rows, width, (tile_matrix){a, pitch}, c);
      for (int64_t n = 0; n <= width; n++) {
        double sum = (double)b[n];
        for (int64_t r = 0; r < rows && n < width; r++) sum += (double)a[r * pitch + n];
        assert_near(kernels, "sum of rows", (double)c[n], sum, 1e-7 * (double)(rows + 2));
      }
    }
}

static void rows_are_added_to_the_sum(void **state) {
  (void)state;
  with_each(check_add_rows);
}

/* Of D up to several slices, with no pairs, and with as many as rows see. */
static void check_sum_of_products(const tile_kernels *kernels, int64_t width, int64_t count, int64_t depth,
                                  int64_t pairs) {
  enum { ROWS = 16, PITCH = 80 };
  static float columns[LARGEST], values[LARGEST], weights[LARGEST], factor[ROWS];
  int64_t seen[ROWS];
  fill(a, 23), fill(columns, 24), fill(values, 25), fill(weights, 26), fill(c, 27);
  for (int64_t r = 0; r < count; r++) {
    factor[r] = 0.5f + (float)r / 8;
    seen[r] = pairs * (r + 1) / count;
    for (int64_t j = seen[r]; j < pairs; j++) weights[j * ROWS + r] = 0;
  }
  const tile_sum of = {.depth = depth,
                       .x = {a, depth + 3},
                       .columns = columns,
                       .seen = pairs > 0 ? seen : NULL,
                       .weights = {weights, ROWS},
                       .values = {values, width + 5},
                       .factor = factor};
  const float behind = c[width];
  kernels->sum_products(width, count, &of, NULL, (tile_target){c, PITCH});
  assert_true(c[width] == behind);
  for (int64_t r = 0; r < count; r++)
    for (int64_t e = 0; e < width; e++) {
      double expected = 0;
      for (int64_t d = 0; d < depth; d++)
        expected += (double)a[r * (depth + 3) + d] * (double)columns[d * width + e];
      for (int64_t j = 0; j < seen[r]; j++)
        expected += (double)weights[j * ROWS + r] * (double)values[j * (width + 5) + e];
      assert_near(kernels, "sum of products", (double)c[r * PITCH + e], expected * (double)factor[r],
                  4e-7 * (double)(depth + pairs + 2));
    }
}

static void check_sums_of_products(const tile_kernels *kernels) {
  static const int64_t depths[] = {1, 17, 96, 200}, pairs[] = {0, 1, 16, 64};
  for (int64_t width = kernels->lanes; width <= kernels->max_rows; width += kernels->lanes)
    for (int64_t count = 1; count <= 16; count++)
      for (size_t n = 0; n < 4; n++)
        check_sum_of_products(kernels, width, count, depths[n], pairs[(n + (size_t)count) % 4]);
}

static void sums_of_products_are_those_of_state_and_pairs(void **state) {
  (void)state;
  with_each(check_sums_of_products);
}

enum { MAPPED = 9, MAPPED_WIDTH = 48, MAPPED_FROM = 50, MAPPED_TO = 64, MAPPED_ROOM = MAPPED * MAPPED_TO };

/* What a product has mapped of 9 rows of 48, and kernels->elu1 of what it left. Returns how many vectors it mapped. */
static int64_t finish_mapping(const tile_kernels *kernels, tile_mapping left, const float *features) {
  const int64_t done = (MAPPED - left.rows) * MAPPED_WIDTH + left.at;
  assert_true(left.rows >= 0 && left.at % kernels->lanes == 0 && left.at < MAPPED_WIDTH);
  for (int64_t n = 0; n < MAPPED_ROOM; n++) /* neither more nor less */
    assert_true((n / MAPPED_TO * MAPPED_WIDTH + n % MAPPED_TO < done && n % MAPPED_TO < MAPPED_WIDTH) ==
                (features[n] != -1));
  kernels->elu1(left.rows, left.width, (tile_rows){left.x.x, left.x.stride}, left.y);
  return done / kernels->lanes;
}

/* Products of so many terms: their bits are those of products that map nothing. */
static void check_mapping(const tile_kernels *kernels, int64_t terms) {
  enum { SUMS = 13 };
  static float rows[LARGEST], features[MAPPED_ROOM], expected[MAPPED_ROOM], sums[2][LARGEST];
  const int64_t width = kernels->max_rows;
  float ones[SUMS];
  for (int r = 0; r < SUMS; r++) ones[r] = 1;
  fill(rows, 41), fill(a, 42), fill(b, 43);
  rows[7] = NAN, rows[8] = -NAN, rows[9] = INFINITY, rows[10] = -INFINITY, rows[11] = -87.3f,
  rows[12] = -0.0f;
  kernels->elu1(MAPPED, MAPPED_WIDTH, (tile_rows){rows, MAPPED_FROM}, (tile_target){expected, MAPPED_TO});
  for (int product = 0; product < 2; product++) {
    int64_t vectors = 0;
    for (int mapped = 0; mapped < 2; mapped++) {
      tile_mapping mapping = {MAPPED, MAPPED_WIDTH, 0, {rows, MAPPED_FROM}, {features, MAPPED_TO}};
      const tile_ahead ahead = {.mapping = mapped ? &mapping : NULL};
      const tile_sum of = {.depth = terms, .x = {a, terms}, .columns = b, .factor = ones};
      fill(sums[mapped], 44);
      for (int64_t n = 0; n < MAPPED_ROOM; n++) features[n] = -1;
      if (product == 0)
        kernels->sum_products(width, SUMS, &of, &ahead, (tile_target){sums[mapped], width});
      else
        kernels->accumulate((tile_size){width, terms, SUMS}, (tile_matrix){b, width}, (tile_rows){a, SUMS},
                            NULL, &ahead, (tile_target){sums[mapped], width});
      if (mapped) vectors = finish_mapping(kernels, mapping, features);
    }
    assert_memory_equal(sums[0], sums[1], (size_t)(SUMS * width) * sizeof(float));
    if ((vectors > 0) != (kernels->maps_beside && terms > 1))
      fail_msg("%s: %lld vectors are mapped beside a product of %lld", kernels->name, (long long)vectors,
               (long long)terms);
    for (int64_t r = 0; r < MAPPED; r++)
      assert_memory_equal(features + r * MAPPED_TO, expected + r * MAPPED_TO, MAPPED_WIDTH * sizeof(float));
  }
}

static void check_mappings(const tile_kernels *kernels) {
  static const int64_t terms[] = {1, 2, 5, 16, 33};
  for (size_t n = 0; n < sizeof terms / sizeof *terms; n++) check_mapping(kernels, terms[n]);
}

static void features_that_products_map_have_the_bits_of_elu1(void **state) {
  (void)state;
  with_each(check_mappings);
}

/* Rows that see one key more than the row before, two at a time, or nothing at first; NULL: all keys. */
static const int64_t *stairs(int kind, int64_t rows, int64_t keys) {
  static int64_t seen[TILE_MAX_ROWS];
  for (int64_t r = 0; r < rows; r++) {
    const int64_t more = kind == 1 ? r + 1 : kind == 2 ? r / 2 : r < 21 ? 0 : r;
    seen[r] = more < keys ? more : keys;
  }
  return kind == 0 ? NULL : seen;
}

static void check_dots(const tile_kernels *kernels, tile_size size, int kind) {
  enum { BEYOND = TILE_MAX_ROWS + 3 };
  const int64_t pitch = size.features + 3;
  const int64_t *seen = stairs(kind, size.rows, size.keys);
  fill(a, 16), fill(b, 17), fill(c, 18);
  const float behind = c[size.rows];
  kernels->dot_rows(size, (tile_matrix){a, pitch}, (tile_matrix){b, pitch + 1}, seen,
                    (tile_target){c, BEYOND});
  assert_true(size.keys == 0 || c[size.rows] == behind);
  for (int64_t j = 0; j < size.keys; j++)
    for (int64_t r = 0; r < size.rows; r++) {
      double dot = 0, terms = 0;
      for (int64_t n = 0; n < size.features && (!seen || j < seen[r]); n++) {
        const double term = (double)a[r * pitch + n] * (double)b[j * (pitch + 1) + n];
        dot += term;
        terms += fabs(term);
      }
      assert_near(kernels, "dot", (double)c[j * BEYOND + r], dot, 1e-6 * terms);
    }
}

static void check_dot_rows(const tile_kernels *kernels) {
  static const int64_t keys[] = {1, 0, 16, 23};
  for (int64_t rows = kernels->lanes; rows <= TILE_MAX_ROWS; rows += kernels->lanes)
    for (int64_t width = 0; width <= 128; width += kernels->lanes)
      for (int kind = 0; kind < 4; kind++)
        check_dots(kernels, (tile_size){rows, keys[(kind + rows / kernels->lanes) % 4], width}, kind);
}

static void dot_rows_are_those_with_the_keys_that_they_see(void **state) {
  (void)state;
  with_each(check_dot_rows);
}

static void check_dot_pairs(const tile_kernels *kernels) {
  for (int64_t rows = 1; rows <= TILE_MAX_ROWS; rows += 5)
    for (int64_t width = 0; width <= 70; width += 7) {
      const int64_t pitch = width + 3;
      fill(a, 18), fill(b, 19);
      kernels->dot_pairs(rows, width, (tile_matrix){a, pitch}, (tile_matrix){b, pitch + 2}, c);
      for (int64_t r = 0; r < rows; r++) {
        double dot = 0, terms = 0;
        for (int64_t n = 0; n < width; n++) {
          const double term = (double)a[r * pitch + n] * (double)b[r * (pitch + 2) + n];
          dot += term;
          terms += fabs(term);
        }
        assert_near(kernels, "dot of a pair", (double)c[r], dot, 1e-6 * terms);
      }
    }
}

static void dot_pairs_are_those_of_rows(void **state) {
  (void)state;
  with_each(check_dot_pairs);
}

static double slope_at(attn_feature_map map, double phi) {
  return map == ATTN_IDENTITY ? 1 : map == ATTN_RELU ? phi > 0 : fmin(phi, 1);
}

static void check_slopes(const tile_kernels *kernels) {
  enum { ROWS = 5, PITCH = 80, OUT = 83 };
  static float minus[ROWS], factor[ROWS], y[PITCH];
  float *row[ROWS];
  for (int64_t r = 0; r < ROWS; r++)
    minus[r] = (float)r - 1, factor[r] = 0.5f * (float)r + 1, row[r] = c + r * OUT;
  for (int64_t n = 0; n < PITCH; n++) y[n] = (float)(n % 7) - 3;
  for (int map = ATTN_ELU1; map <= ATTN_IDENTITY; map++)
    for (int64_t width = 1; width <= 64; width += 9) {
      fill(a, 20), fill(b, 21), fill(c, 22);
      const float behind = c[width];
      kernels->scale_slopes(ROWS, width, (attn_feature_map)map, (tile_matrix){a, PITCH}, minus, y, factor,
                            (tile_matrix){b, PITCH}, row);
      for (int64_t r = 0; r < ROWS; r++)
        for (int64_t d = 0; d < width; d++) {
          const double x = (double)a[r * PITCH + d] - (double)minus[r] * (double)y[d];
          const double expected =
              x * (double)factor[r] * slope_at((attn_feature_map)map, (double)b[r * PITCH + d]);
          assert_near(kernels, "slope", (double)row[r][d], expected, 1e-5);
        }
      assert_true(c[width] == behind);
    }
}

static void slopes_are_the_derivatives_of_feature_maps(void **state) {
  (void)state;
  with_each(check_slopes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elu1_is_x_plus_1_above_zero_and_e_to_the_x_below),
      cmocka_unit_test(elu1_fills_rows_up_with_zeros),
      cmocka_unit_test(features_that_products_map_have_the_bits_of_elu1),
      cmocka_unit_test(at_least_is_the_larger_and_keeps_a_nan),
      cmocka_unit_test(rows_are_added_to_the_sum),
      cmocka_unit_test(sums_of_products_are_those_of_state_and_pairs),
      cmocka_unit_test(dot_rows_are_those_with_the_keys_that_they_see),
      cmocka_unit_test(dot_pairs_are_those_of_rows),
      cmocka_unit_test(slopes_are_the_derivatives_of_feature_maps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
