/* Additive scores of the tile kernels of every instruction set, against a plain loop in double precision. */
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

/* One key and one query have a feature whose power is none, of opposite signs; one key is no number. */
enum { LARGE_KEY = 2, LARGE_QUERY = 1, NAN_KEY = 5, MOST_DEPTH = 40, KEY_PITCH = 128, KEY_POWERS = 64 };

static void place_odd_features(int64_t keys) {
  a[LARGE_QUERY] = 40;
  if (keys > LARGE_KEY) b[(int64_t)LARGE_KEY * KEY_PITCH] = -39.5f;
  if (keys > NAN_KEY) b[(int64_t)NAN_KEY * KEY_PITCH] = NAN;
}

static void expect_additive(const tile_kernels *kernels, int64_t rows, int64_t keys, int64_t depth,
                            const float *weights, const char *what) {
  for (int64_t j = 0; j < keys; j++)
    for (int64_t r = 0; r < rows; r++) {
      double expected = 0;
      for (int64_t d = 0; d < depth; d++)
        expected += (double)weights[d] * tanh((double)a[d * rows + r] + (double)b[j * KEY_PITCH + d]);
      if (j == NAN_KEY)
        assert_true(isnan(c[j * rows + r]));
      else
        assert_near(kernels, what, (double)c[j * rows + r], expected, 3e-6 * (double)depth);
    }
}

/* Columns of the rows, then of their powers, then of weights: as full_tile.c has them. */
static void check_additive_of(const tile_kernels *kernels, int64_t rows, int64_t keys, int64_t depth) {
  static float powers[MOST_DEPTH * TILE_MAX_ROWS], weights[MOST_DEPTH * TILE_MAX_ROWS], w[MOST_DEPTH],
      sum[TILE_MAX_ROWS], factor[TILE_MAX_ROWS];
  const int64_t all = (depth + 3) / 4 * 4;
  fill(a, 1), fill(b, 2), fill(c, 3);
  for (int64_t n = 0; n < depth * rows; n++) a[n] *= 3;
  place_odd_features(keys);
  memset(powers, 0, sizeof powers), memset(weights, 0, sizeof weights);
  for (int64_t d = 0; d < depth; d++) w[d] = c[d];
  for (int64_t r = 0; r < rows; r++) {
    double total = 0;
    for (int64_t d = 0; d < depth; d++) total += (double)w[d], weights[d * rows + r] = -w[d];
    factor[r] = 2, sum[r] = (float)(total / 2);
  }
  kernels->additive_powers(1, depth * rows, a, powers, 0);
  kernels->additive_powers(keys, depth, b, b + KEY_POWERS, KEY_PITCH);
  for (int64_t j = 0; j < keys; j++)
    for (int64_t d = depth; d < all; d++) b[j * KEY_PITCH + KEY_POWERS + d] = 1;
  const tile_additive of = {a, powers, weights, sum, factor, depth, KEY_PITCH, KEY_POWERS};
  kernels->additive_scores((tile_size){rows, keys, all}, &of, b, (tile_target){c, rows});
  expect_additive(kernels, rows, keys, depth, w, "additive scores");
}

static void check_additive(const tile_kernels *kernels) {
  static const int64_t depths[] = {1, 4, 7, 37};
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (size_t n = 0; n < sizeof depths / sizeof *depths; n++)
      for (int64_t keys = 0; keys < 20; keys++) check_additive_of(kernels, rows, keys, depths[n]);
}

static void additive_scores_are_weighted_tanhs_of_sums(void **state) {
  (void)state;
  with_each(check_additive);
}

static void check_few_additive(const tile_kernels *kernels) {
  enum { PITCH = 48 };
  static const int64_t depths[] = {1, 7, 16, 37};
  for (size_t n = 0; n < sizeof depths / sizeof *depths; n++)
    for (int64_t keys = 1; keys < 40; keys++) {
      static float query[TILE_FEW_ROWS * PITCH], weight[TILE_FEW_ROWS * PITCH];
      const int64_t depth = depths[n];
      fill(a, 1), fill(b, 2), fill(c, 3);
      memset(query, 0, sizeof query), memset(weight, 0, sizeof weight);
      for (int64_t r = 0; r < TILE_FEW_ROWS; r++)
        for (int64_t d = 0; d < depth; d++)
          query[r * PITCH + d] = 9 * a[r * PITCH + d], weight[r * PITCH + d] = c[r * PITCH + d];
      kernels->few_additive((tile_size){TILE_FEW_ROWS, keys, depth}, (tile_matrix){query, PITCH},
                            (tile_matrix){weight, PITCH}, (tile_rows){b, PITCH},
                            (tile_target){c, TILE_FEW_KEYS});
      for (int64_t r = 0; r < TILE_FEW_ROWS; r++)
        for (int64_t j = 0; j < keys; j++) {
          double expected = 0;
          for (int64_t d = 0; d < depth; d++)
            expected +=
                (double)weight[r * PITCH + d] * tanh((double)query[r * PITCH + d] + (double)b[j * PITCH + d]);
          assert_near(kernels, "few additive scores", (double)c[r * TILE_FEW_KEYS + j], expected,
                      3e-6 * (double)depth);
        }
    }
}

static void few_additive_scores_are_the_same(void **state) {
  (void)state;
  with_each(check_few_additive);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(additive_scores_are_weighted_tanhs_of_sums),
      cmocka_unit_test(few_additive_scores_are_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
