/* Rotary embedding: what variants rotate by, in plain C (rope.h) and in the tile kernels of every instruction set and
 * type, against the reference's definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "reference/rope.h"
#include "variants/elements.h"
#include "variants/tile/tile.h"

enum { MOST_WIDTH = 97, ROWS = 5, POSITIONS = 40, APART = 104 };

static float cosines[POSITIONS * APART], sines[POSITIONS * APART];

static float drawn(uint64_t n) { return (float)(int64_t)(random_mixed(n) >> 40) * 0x1p-23f - 1; }

static attn_problem problem_of(int64_t width, int64_t rotated, bool interleaved) {
  attn_problem p = {.features = ATTN_ROPE,
                    .head_dim = width,
                    .rope_features = rotated,
                    .rope_positions = POSITIONS,
                    .rope_interleaved = interleaved,
                    .rope_cos_data = cosines,
                    .rope_sin_data = sines};
  p.rope_cos = (attn_layout){ATTN_FLOAT32, 0, 0, APART};
  p.rope_sin = (attn_layout){ATTN_FLOAT32, 0, 0, APART - 1};
  for (int n = 0; n < POSITIONS * APART; n++)
    cosines[n] = drawn((uint64_t)n), sines[n] = drawn((uint64_t)n + 99999);
  return p;
}

static void expect_near(const attn_problem *p, int64_t position, const float *x, const float *turned,
                        const char *whose) {
  for (int64_t d = 0; d < p->head_dim; d++) {
    const reference_feature right = reference_rotated(p, position, x, d);
    if (!(fabs(turned[d] - right.value) <= 2.01 * 0x1p-24 * right.size))
      fail_msg("%s, %d of %d features%s: %d is %.9g, not %.9g", whose, (int)p->rope_features,
               (int)p->head_dim, p->rope_interleaved ? " interleaved" : "", (int)d, (double)turned[d],
               right.value);
    if (d >= p->rope_features) assert_true(turned[d] == x[d]);
  }
}

static void every_set_rotates_as_the_definition_does(void **state) {
  (void)state;
  for (const char *const *isa = tile_instruction_sets(); *isa; isa++)
    for (attn_type type = ATTN_FLOAT32; type <= ATTN_FLOAT16; type++)
      for (int64_t width = 2; width <= MOST_WIDTH; width += width < 40 ? 1 : 19)
        for (int64_t rotated = 2; rotated <= width; rotated += rotated < 8 ? 2 : 24)
          for (int interleaved = 0; interleaved < 2; interleaved++) {
            const attn_problem p = problem_of(width, rotated, interleaved);
            const tile_kernels *kernels = tile_select(*isa, type);
            float wide[ROWS * MOST_WIDTH], turned[ROWS * APART];
            uint16_t narrow[ROWS * MOST_WIDTH];
            const bool is_float = type == ATTN_FLOAT32;
            for (int n = 0; n < ROWS * MOST_WIDTH; n++) {
              wide[n] = drawn((uint64_t)n + 777);
              if (is_float) continue;
              attn_store(narrow, type, n, wide[n]);
              wide[n] = attn_load(narrow, type, n);
            }
            const tile_rows x = {is_float ? (const void *)wide : narrow, MOST_WIDTH};
            kernels->rotate(&p, ROWS, x, 33, turned, APART);
            for (int64_t r = 0; r < ROWS; r++)
              expect_near(&p, 33 + r, wide + r * MOST_WIDTH, turned + r * APART, *isa);
          }
}

static void plain_code_rotates_there_and_back(void **state) {
  (void)state;
  for (int64_t width = 2; width <= MOST_WIDTH; width++)
    for (int interleaved = 0; interleaved < 2; interleaved++) {
      attn_problem p = problem_of(width, width / 2 * 2, interleaved);
      float given[MOST_WIDTH], turned[MOST_WIDTH];
      for (int n = 0; n < POSITIONS * APART; n++) {
        const double angle = n % 61;
        cosines[n] = (float)cos(angle);
        sines[n] = (float)sin(angle);
      }
      p.rope_sin.position = APART;
      for (int64_t d = 0; d < width; d++) given[d] = turned[d] = drawn((uint64_t)d + 5);
      attn_rotate(&p, 12, false, turned);
      expect_near(&p, 12, given, turned, "rope.h");
      attn_rotate(&p, 12, true, turned);
      for (int64_t d = 0; d < width; d++) assert_true(fabsf(turned[d] - given[d]) < 1e-6f);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_set_rotates_as_the_definition_does),
      cmocka_unit_test(plain_code_rotates_there_and_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
