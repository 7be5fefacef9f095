/* The tile kernels of every instruction set that this processor has, each against a plain loop in double
 * precision. */
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

static void the_fastest_instruction_set_is_the_default(void **state) {
  (void)state;
  const char *const *names = tile_instruction_sets();
  size_t count = 0;
  while (names[count]) count++;
  assert_string_equal(names[0], "emulated_amx");
  assert_string_equal(names[1], "emulated_bf16");
  assert_string_equal(names[2], "portable");
  size_t floats = count - 1; /* behind it those that multiply bfloat16 */
  while (tile_refusal(names[floats], ATTN_FLOAT32)) floats--;
  const char *const fastest = names[floats];
  assert_string_equal(tile_select(NULL, ATTN_FLOAT32)->name, fastest);
  assert_string_equal(tile_select("none", ATTN_FLOAT32)->name, fastest);
  assert_string_equal(tile_select(NULL, ATTN_FLOAT16)->name, fastest);
  assert_string_equal(tile_select(NULL, ATTN_BFLOAT16)->name, names[count - 1]);
  assert_string_equal(tile_select_floats(NULL, ATTN_BFLOAT16)->name, fastest);
}

/* Of a normal number. By its bits, for there are billions: an ulp of a float is 2^-23 of the power of two below. */
static double ulps_between(float computed, double expected) {
  uint64_t power;
  double below;
  memcpy(&power, &expected, sizeof power);
  power &= UINT64_C(0x7ff) << 52;
  memcpy(&below, &power, sizeof below);
  return fabs((double)computed - expected) / (below * 0x1p-23);
}

/* Every float from -126 to 127, or every 997th of them; and every 997th in any case of those so small that 2^x rounds to 1, which
 * are three quarters. */
static uint32_t step_from(uint32_t bits) {
  static const float rounds_to_one = 0x1p-26f;
  uint32_t least;
  memcpy(&least, &rounds_to_one, sizeof least);
  return bits >= least && getenv("ATTN_TEST_FULL") ? 1 : 997;
}

enum { AT_ONCE = 1024, MOST_SETS = 8 };

/* The worst that an instruction set makes of any float, and of which. */
typedef struct worst_of {
  double ulps;
  float at;
} worst_of;

/* Of so many floats; the truth is asked for once for all sets, where it takes as long as they do. */
static void exp2_of(const float *x, int count, const tile_kernels *const *sets, worst_of *worst) {
  static double truth[AT_ONCE];
  for (int n = 0; n < count; n++) truth[n] = exp2((double)x[n]);
  for (int set = 0; sets[set]; set++) {
    memcpy(a, x, AT_ONCE * sizeof *a);
    sets[set]->exp2(count + (16 - count % 16) % 16, a);
    for (int n = 0; n < count; n++) {
      const double ulps = ulps_between(a[n], truth[n]);
      if (!(ulps <= worst[set].ulps) && !isnan(worst[set].ulps)) worst[set] = (worst_of){ulps, x[n]};
    }
  }
}

static const tile_kernels *all_sets[MOST_SETS + 1];
static void note_set(const tile_kernels *kernels) {
  int set = 0;
  while (all_sets[set]) set++;
  assert_true(set < MOST_SETS);
  all_sets[set] = kernels;
}

static void exp2_is_within_2_ulp_of_the_truth(void **state) {
  (void)state;
  worst_of worst[MOST_SETS] = {{0, 0}};
  with_each(note_set);
  for (int sign = 0; sign < 2; sign++) {
    const float limit = sign ? 126.0f : 127.0f;
    uint32_t bits = 0, last;
    memcpy(&last, &limit, sizeof last);
    while (bits <= last) {
      const uint32_t step = step_from(bits);
      int count = 0;
      for (; count < AT_ONCE && bits <= last; count++, bits += step) {
        const uint32_t pattern = bits | (uint32_t)sign << 31;
        memcpy(&b[count], &pattern, sizeof pattern);
      }
      exp2_of(b, count, all_sets, worst);
    }
  }
  assert_non_null(all_sets[0]);
  for (int set = 0; all_sets[set]; set++)
    if (!(worst[set].ulps < 2))
      fail_msg("%s exp2(%.9g) is %.3f ulp off", all_sets[set]->name, (double)worst[set].at, worst[set].ulps);
}

static void check_exp2_ends(const tile_kernels *kernels) {
  const float x[16] = {-INFINITY, -FLT_MAX, -1000, -150, -127.5f, NAN, 0, -0.0f, 1, -1};
  memcpy(a, x, sizeof x);
  kernels->exp2(16, a);
  for (int n = 0; n < 5; n++)
    if (a[n] != 0) fail_msg("%s exp2(%g) is %g, not 0", kernels->name, (double)x[n], (double)a[n]);
  assert_true(isnan(a[5]));
  assert_true(a[6] == 1 && a[7] == 1 && a[8] == 2 && a[9] == 0.5f);
}

static void exp2_is_exact_at_its_ends(void **state) {
  (void)state;
  with_each(check_exp2_ends);
}

static void check_scores(const tile_kernels *kernels) {
  static const int64_t depths[] = {1, 2, 63, 64, 65, 130};
  fill(a, 1), fill(b, 2);
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (size_t n = 0; n < sizeof depths / sizeof *depths; n++)
      for (int64_t keys = 0; keys < 20; keys++) {
        const int64_t depth = depths[n], stride = depth + 3;
        fill(c, 3);
        kernels->scores((tile_size){rows, keys, depth}, (tile_matrix){a, rows}, (tile_rows){b, stride}, 1,
                        NULL, (tile_target){c, rows});
        for (int64_t j = 0; j < keys; j++)
          for (int64_t r = 0; r < rows; r++) {
            double expected = 0;
            for (int64_t d = 0; d < depth; d++)
              expected += (double)b[j * stride + d] * (double)a[d * rows + r];
            assert_near(kernels, "scores", (double)c[j * rows + r], expected, 1e-7 * (double)(depth + 2));
          }
      }
}

static void scores_are_the_products_of_keys_and_queries(void **state) {
  (void)state;
  with_each(check_scores);
}

static void check_accumulate(const tile_kernels *kernels) {
  static const int64_t counts[] = {0, 1, 7, 64};
  static float rescale[TILE_MAX_ROWS], old[LARGEST];
  fill(a, 4), fill(b, 5), fill(old, 6);
  for (int r = 0; r < TILE_MAX_ROWS; r++) rescale[r] = (float)r / 64;
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
      for (int64_t width = 1; width < 30; width++) {
        const int64_t keys = counts[n], stride = width + 5, pitch = rows + 16;
        memcpy(c, old, sizeof c);
        kernels->accumulate((tile_size){rows, keys, width}, (tile_matrix){a, pitch}, (tile_rows){b, stride},
                            rescale, NULL, (tile_target){c, pitch});
        for (int64_t e = 0; e < width; e++)
          for (int64_t r = 0; r < rows; r++) {
            double expected = (double)old[e * pitch + r] * (double)rescale[r];
            for (int64_t j = 0; j < keys; j++)
              expected += (double)a[j * pitch + r] * (double)b[j * stride + e];
            assert_near(kernels, "accumulate", (double)c[e * pitch + r], expected, 1e-7 * (double)(keys + 2));
          }
        for (int64_t e = 0; e < width; e++)
          for (int64_t r = rows; r < pitch; r++) assert_true(c[e * pitch + r] == old[e * pitch + r]);
      }
}

static void check_accumulate_of_ones(const tile_kernels *kernels) {
  static float ones[TILE_MAX_ROWS], old[LARGEST], expected[LARGEST];
  const int64_t rows = kernels->max_rows, keys = 33, width = 13;
  fill(a, 4), fill(b, 5), fill(old, 6);
  for (int r = 0; r < TILE_MAX_ROWS; r++) ones[r] = 1;
  for (int given = 0; given < 2; given++) {
    memcpy(c, old, sizeof c);
    kernels->accumulate((tile_size){rows, keys, width}, (tile_matrix){a, rows}, (tile_rows){b, width},
                        given ? ones : NULL, NULL, (tile_target){c, rows});
    if (given) assert_memory_equal(c, expected, sizeof c);
    memcpy(expected, c, sizeof c);
  }
}

static void accumulate_without_rescale_has_the_bits_of_ones(void **state) {
  (void)state;
  with_each(check_accumulate_of_ones);
}

static void accumulate_adds_the_weighted_values_to_the_rescaled_output(void **state) {
  (void)state;
  with_each(check_accumulate);
}

static void check_softmax(const tile_kernels *kernels) {
  static float max[TILE_MAX_ROWS], sum[TILE_MAX_ROWS], rescale[TILE_MAX_ROWS] = {0};
  const int64_t keys = 37;
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes) {
    fill(a, 7);
    for (int n = 0; n < LARGEST; n++) b[n] = a[n] *= 30;
    for (int64_t r = 0; r < rows; r++)
      max[r] = r % 3 == 0 ? -INFINITY : r % 3 == 1 ? -40.0f : 40.0f, sum[r] = 2;
    const float returned = kernels->softmax(rows, keys, a, 1, (tile_state){max, sum, rescale});
    double all = 0;
    for (int64_t r = 0; r < rows; r++) {
      const double old = r % 3 == 0 ? -INFINITY : r % 3 == 1 ? -40 : 40;
      double largest = old, total = 0;
      for (int64_t j = 0; j < keys; j++) largest = fmax(largest, (double)b[j * rows + r]);
      for (int64_t j = 0; j < keys; j++) {
        const double weight = exp2((double)b[j * rows + r] - largest);
        assert_near(kernels, "weight", (double)a[j * rows + r], weight, 1e-5 * weight + 1e-37);
        total += weight;
      }
      assert_near(kernels, "max", (double)max[r], largest, 0);
      assert_near(kernels, "rescale", (double)rescale[r], exp2(old - largest), 1e-5 * exp2(old - largest));
      assert_near(kernels, "sum", (double)sum[r], 2 * exp2(old - largest) + total, 1e-5 * (2 + total));
      all += total;
    }
    assert_near(kernels, "all weights", (double)returned, all, 1e-5 * all);
  }
}

static void softmax_moves_one_step_of_the_online_recurrence(void **state) {
  (void)state;
  with_each(check_softmax);
}

static void check_nothing_visible(const tile_kernels *kernels) {
  float max[TILE_MAX_ROWS], sum[TILE_MAX_ROWS] = {0}, rescale[TILE_MAX_ROWS] = {0};
  for (int n = 0; n < LARGEST; n++) a[n] = -INFINITY;
  for (int r = 0; r < TILE_MAX_ROWS; r++) max[r] = -INFINITY;
  kernels->softmax(kernels->max_rows, 5, a, 1, (tile_state){max, sum, rescale});
  for (int64_t r = 0; r < kernels->max_rows; r++)
    assert_true(sum[r] == 0 && max[r] == -INFINITY && rescale[r] == 0 && a[4 * kernels->max_rows + r] == 0);
}

static void rows_that_have_seen_nothing_keep_weights_of_zero(void **state) {
  (void)state;
  with_each(check_nothing_visible);
}

static void check_softmax_row(const tile_kernels *kernels) {
  for (int64_t count = kernels->lanes; count < 40 * kernels->lanes; count += kernels->lanes) {
    const float before = count % 3 ? -INFINITY : 0.4f;
    float max = before, sum;
    double largest = (double)before, total = 0;
    fill(a, (uint32_t)count);
    memcpy(b, a, sizeof b);
    tile_lines ahead = {.row = (const char *)b, .apart = 64, .stride = 256, .width = 128};
    kernels->softmax_row(count, a, &max, &sum, count % 5 ? NULL : &ahead);
    for (int64_t n = 0; n < count; n++) largest = fmax(largest, (double)b[n]);
    for (int64_t n = 0; n < count; n++) {
      total += exp2((double)b[n] - largest);
      assert_near(kernels, "row weight", (double)a[n], exp2((double)b[n] - largest), 1e-6);
    }
    assert_near(kernels, "row max", (double)max, largest, 0);
    assert_near(kernels, "row sum", (double)sum, total, 1e-6 * total);
  }
}

static void softmax_row_gives_weights_relative_to_the_maximum(void **state) {
  (void)state;
  with_each(check_softmax_row);
}

static void check_hide(const tile_kernels *kernels) {
  const int64_t rows = kernels->max_rows, keys = 9;
  float first[TILE_MAX_ROWS], end[TILE_MAX_ROWS];
  for (int r = 0; r < TILE_MAX_ROWS; r++) first[r] = (float)(r % 4), end[r] = (float)(r % 11);
  fill(a, 8);
  memcpy(b, a, sizeof b);
  kernels->hide(rows, keys, first, end, -7, a);
  for (int64_t j = 0; j < keys; j++)
    for (int64_t r = 0; r < rows; r++)
      assert_true(a[j * rows + r] == ((float)j >= first[r] && (float)j < end[r] ? b[j * rows + r] : -7));
}

static void hide_leaves_only_scores_inside_the_range(void **state) {
  (void)state;
  with_each(check_hide);
}

/* Of a mask any byte but 0 shows its key. */
static void check_hide_masked(const tile_kernels *kernels) {
  enum { MOST = 70, FIRST = 3 };
  static uint8_t seen[TILE_MAX_ROWS][FIRST + MOST];
  const uint8_t *row[TILE_MAX_ROWS];
  const int64_t rows = kernels->max_rows, count = rows - 1;
  for (int r = 0; r < TILE_MAX_ROWS; r++) {
    row[r] = seen[r];
    for (int j = 0; j < FIRST + MOST; j++)
      seen[r][j] = (uint8_t)((r * 7 + j * j) % 5 == 0 ? 0 : j % 2 ? 255 : 1);
  }
  for (int64_t keys = 1; keys <= MOST; keys++) {
    fill(a, 8);
    memcpy(b, a, sizeof b);
    kernels->hide_masked(rows, count, FIRST, FIRST + keys, row, -7, a);
    for (int64_t j = 0; j <= keys; j++)
      for (int64_t r = 0; r < rows; r++)
        assert_true(a[j * rows + r] == (j < keys && r < count && !seen[r][FIRST + j] ? -7 : b[j * rows + r]));
  }
}

/* Some are 0 and some not, or one kind alone, and what lies around says otherwise. */
static void check_look(const tile_kernels *kernels) {
  enum { ROWS = 20, KEYS = 150, FIRST = 3 };
  static uint8_t seen[ROWS][KEYS + 2 * FIRST];
  const uint8_t *row[ROWS];
  for (int r = 0; r < ROWS; r++) row[r] = seen[r];
  for (int64_t keys = 1; keys <= KEYS; keys += keys < 70 ? 1 : 13)
    for (int64_t rows = 1; rows <= ROWS; rows += 3)
      for (int shows = 0; shows < 2; shows++) {
        const attn_visibility same = shows ? ATTN_FULL : ATTN_EMPTY, other = shows ? ATTN_EMPTY : ATTN_FULL;
        memset(seen, shows ? 0 : 1, sizeof seen);
        for (int64_t r = 0; r < rows; r++) memset(seen[r] + FIRST, shows ? 2 : 0, (size_t)keys);
        assert_int_equal(kernels->look(rows, FIRST, FIRST + keys, row), same);
        seen[rows - 1][FIRST + keys - 1] ^= 2;
        assert_int_equal(kernels->look(rows, FIRST, FIRST + keys, row),
                         rows * keys == 1 ? other : ATTN_PARTIAL);
        seen[rows - 1][FIRST + keys - 1] ^= 2;
        seen[0][FIRST] ^= 128;
        assert_true(kernels->look(rows, FIRST, FIRST + keys, row) != ATTN_EMPTY);
      }
}

static void look_tells_tiles_that_a_mask_shows_hides_and_parts(void **state) {
  (void)state;
  with_each(check_look);
}

static void hide_masked_leaves_only_scores_of_keys_that_are_shown(void **state) {
  (void)state;
  with_each(check_hide_masked);
}

static void check_add_run(const tile_kernels *kernels) {
  const int64_t rows = kernels->max_rows, keys = 9, step = 3;
  fill(a, 8), fill(c, 9);
  memcpy(b, a, sizeof b);
  kernels->add_run(rows, keys, c, step, 0.5f, a);
  for (int64_t j = 0; j <= keys; j++)
    for (int64_t r = 0; r < rows; r++)
      assert_true(a[j * rows + r] ==
                  (j < keys ? 0.5f * b[j * rows + r] + c[(keys - 1 - j) * step + r] : b[j * rows + r]));
}

static void add_run_adds_to_each_key_what_lies_a_step_before_the_last_ones(void **state) {
  (void)state;
  with_each(check_add_run);
}

static void check_all_finite(const tile_kernels *kernels) {
  const float bad[] = {NAN, INFINITY, -INFINITY};
  const int64_t rows = 3, stride = 40;
  fill(a, 18);
  a[5] = FLT_MAX, a[6] = -FLT_MAX, a[7] = FLT_TRUE_MIN;
  for (int64_t width = 1; width < stride; width++) {
    assert_true(kernels->all_finite(rows, width, (tile_rows){a, stride}));
    for (int64_t n = 0; n < rows * stride; n++) {
      const float good = a[n];
      a[n] = bad[n % 3];
      assert_int_equal(kernels->all_finite(rows, width, (tile_rows){a, stride}), n % stride >= width);
      a[n] = good;
    }
  }
}

static void all_finite_sees_every_element_of_its_rows_and_no_other(void **state) {
  (void)state;
  with_each(check_all_finite);
}

static void check_copy_finite(const tile_kernels *kernels) {
  const float bad[] = {NAN, INFINITY, -INFINITY};
  const int64_t rows = 4, width = 37, stride = 40;
  fill(a, 19);
  for (int64_t n = 0; n < rows * stride; n += 3) a[n] = bad[n / 3 % 3];
  kernels->copy_finite(rows, width, (tile_rows){a, stride}, b);
  for (int64_t r = 0; r < rows; r++) {
    kernels->read(width, tile_rows_from(kernels, (tile_rows){a, stride}, r).x, c);
    assert_memory_equal(c, a + r * stride, (size_t)width * sizeof *c);
    for (int64_t n = 0; n < width; n++)
      assert_true(b[r * width + n] == (isfinite(a[r * stride + n]) ? a[r * stride + n] : 0));
  }
}

static void copies_keep_what_is_finite(void **state) {
  (void)state;
  with_each(check_copy_finite);
}

/* The inputs of a function of one number: both signs of many sizes. */
static void check_softcap(const tile_kernels *kernels) {
  const int count = numbers();
  kernels->softcap(count, 0.5f, 30, a);
  for (int n = 0; n < count; n++) {
    const double expected = 30 * tanh(0.5 * (double)b[n]);
    assert_near(kernels, "softcap", (double)a[n], expected, 4e-7 * fabs(expected));
  }
}

static void softcap_is_the_cap_times_tanh(void **state) {
  (void)state;
  with_each(check_softcap);
}

static void check_join(const tile_kernels *kernels) {
  const int64_t count = 5;
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes) {
    float ours[TILE_MAX_ROWS], theirs[TILE_MAX_ROWS];
    for (int r = 0; r < TILE_MAX_ROWS; r++) ours[r] = (float)r / 8, theirs[r] = 1 - (float)r / 16;
    fill(a, 20), fill(b, 21);
    memcpy(c, a, sizeof c);
    kernels->join(rows, count, ours, theirs, b, c);
    for (int64_t n = 0; n < count * rows; n++) {
      const double truth = (double)a[n] * (double)ours[n % rows] + (double)b[n] * (double)theirs[n % rows];
      assert_near(kernels, "join", (double)c[n], truth, 2e-6);
    }
    assert_true(c[count * rows] == a[count * rows]);
  }
}

static void join_adds_columns_with_a_factor_for_each_row(void **state) {
  (void)state;
  with_each(check_join);
}

/* Few rows: b holds the keys or values, a the queries or weights. */
static void check_few(const tile_kernels *kernels) {
  static const int64_t widths[] = {1, 5, 16, 33, 64, 130};
  static const float rescale[TILE_FEW_ROWS] = {1, 0.5f, 0, 0.25f};
  enum { PITCH = 144 };
  for (int64_t rows = 1; rows <= TILE_FEW_ROWS; rows++)
    for (size_t n = 0; n < sizeof widths / sizeof *widths; n++)
      for (int64_t keys = 1; keys <= TILE_KEYS; keys += keys < 18 ? 1 : 23) {
        const int64_t width = widths[n], stride = width + 3;
        fill(a, 13), fill(b, 14), fill(c, 15);
        for (int64_t r = 0; r < rows; r++)
          for (int64_t d = width; d < PITCH; d++) a[r * PITCH + d] = 0;
        kernels->few_scores((tile_size){rows, keys, width}, (tile_matrix){a, PITCH}, (tile_rows){b, stride},
                            (tile_rows){b, stride}, (tile_target){c, TILE_KEYS});
        for (int64_t r = 0; r < rows; r++)
          for (int64_t j = 0; j < keys; j++) {
            double expected = 0;
            for (int64_t d = 0; d < width; d++)
              expected += (double)a[r * PITCH + d] * (double)b[j * stride + d];
            assert_near(kernels, "few scores", (double)c[r * TILE_KEYS + j], expected,
                        1e-7 * (double)(width + 2));
          }
        fill(a, 16), fill(c, 17);
        kernels->few_accumulate((tile_size){rows, keys, width}, (tile_matrix){a, TILE_KEYS},
                                (tile_rows){b, stride}, rescale, (tile_rows){b, stride},
                                (tile_target){c, PITCH});
        const int64_t last = rows - 1; /* old output: as fill left it */
        static float old[LARGEST];
        fill(old, 17);
        for (int64_t e = 0; e < width; e++) {
          double expected = (double)old[last * PITCH + e] * (double)rescale[last];
          for (int64_t j = 0; j < keys; j++)
            expected += (double)a[last * TILE_KEYS + j] * (double)b[j * stride + e];
          assert_near(kernels, "few accumulate", (double)c[last * PITCH + e], expected,
                      1e-7 * (double)(keys + 2));
        }
      }
}

static void few_rows_have_the_same_products(void **state) {
  (void)state;
  with_each(check_few);
}

static void check_pack(const tile_kernels *kernels) {
  for (int64_t rows = kernels->lanes; rows <= kernels->max_rows; rows += kernels->lanes)
    for (int64_t depth = 1; depth < 70; depth += 17) {
      const int64_t count = rows - 1;
      const void *from[TILE_MAX_ROWS];
      void *to[TILE_MAX_ROWS];
      float factor[TILE_MAX_ROWS];
      static float columns[LARGEST];
      fill(a, 9), fill(columns, 10), memset(b, 0, sizeof b);
      for (int64_t r = 0; r < count; r++) from[r] = a + r * depth, to[r] = b + r * depth, factor[r] = 0.5f;
      kernels->pack(rows, count, depth, from, 2, columns);
      for (int64_t d = 0; d < depth; d++) assert_true(columns[d * rows + count] == 0);
      kernels->unpack(rows, count, depth, columns, factor, to);
      assert_memory_equal(a, b, (size_t)(count * depth) * sizeof *a);
      kernels->scale_rows(count, depth, (tile_matrix){a, depth}, factor, to);
      for (int64_t x = 0; x < count * depth; x++) assert_true(b[x] == 0.5f * a[x]);
    }
}

static void unpack_undoes_pack(void **state) {
  (void)state;
  with_each(check_pack);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_instruction_set_is_the_default),
      cmocka_unit_test(exp2_is_within_2_ulp_of_the_truth),
      cmocka_unit_test(exp2_is_exact_at_its_ends),
      cmocka_unit_test(scores_are_the_products_of_keys_and_queries),
      cmocka_unit_test(accumulate_adds_the_weighted_values_to_the_rescaled_output),
      cmocka_unit_test(accumulate_without_rescale_has_the_bits_of_ones),
      cmocka_unit_test(softmax_moves_one_step_of_the_online_recurrence),
      cmocka_unit_test(rows_that_have_seen_nothing_keep_weights_of_zero),
      cmocka_unit_test(softmax_row_gives_weights_relative_to_the_maximum),
      cmocka_unit_test(hide_leaves_only_scores_inside_the_range),
      cmocka_unit_test(look_tells_tiles_that_a_mask_shows_hides_and_parts),
      cmocka_unit_test(hide_masked_leaves_only_scores_of_keys_that_are_shown),
      cmocka_unit_test(add_run_adds_to_each_key_what_lies_a_step_before_the_last_ones),
      cmocka_unit_test(all_finite_sees_every_element_of_its_rows_and_no_other),
      cmocka_unit_test(copies_keep_what_is_finite),
      cmocka_unit_test(softcap_is_the_cap_times_tanh),
      cmocka_unit_test(join_adds_columns_with_a_factor_for_each_row),
      cmocka_unit_test(few_rows_have_the_same_products),
      cmocka_unit_test(unpack_undoes_pack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
