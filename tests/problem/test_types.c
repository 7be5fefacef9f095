/* Elements of 16 bits: what the harness makes of them, and what variants do, are one thing written twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "problem/types.h"
#include "variants/elements.h"

static const attn_type narrow[] = {ATTN_BFLOAT16, ATTN_FLOAT16};
enum { NARROW = 2, HALVES = 1 << 16 };

static void every_pattern_is_loaded_alike_and_comes_back(void **state) {
  (void)state;
  for (int t = 0; t < NARROW; t++) {
    const element_type *type = element_type_of(narrow[t]);
    for (int n = 0; n < HALVES; n++) {
      const uint16_t bits = (uint16_t)n, room[2] = {bits};
      const double number = type->load(&bits);
      const float of_variants = attn_load(room, narrow[t], 0);
      uint16_t back, back_of_variants[2];
      if (isnan(number)) {
        assert_true(isnan(of_variants));
      } else {
        assert_true((double)of_variants == number && !signbit(of_variants) == !signbit(number));
      }
      type->store(&back, number);
      attn_store(back_of_variants, narrow[t], 0, of_variants);
      if (isnan(number))
        assert_true(isnan(type->load(&back)) && isnan(attn_load(back_of_variants, narrow[t], 0)));
      else
        assert_true(back == bits && back_of_variants[0] == bits);
    }
  }
}

/* Any float32, and those next to what lies between two neighbours. */
static void numbers_are_rounded_alike_to_the_nearest(void **state) {
  (void)state;
  enum { DRAWS = 400000 };
  for (int t = 0; t < NARROW; t++) {
    const element_type *type = element_type_of(narrow[t]);
    for (int n = 0; n < DRAWS; n++) {
      const uint64_t random = random_bits(7, (uint64_t)n);
      const uint16_t below = (uint16_t)(random & 0xffff);
      float number = attn_float_of_bits((uint32_t)random);
      if (random >> 63) {
        const uint16_t above = (uint16_t)(below + 1);
        number = (float)(0.5 * (type->load(&below) + type->load(&above)));
        if (random >> 62 & 1) number = nextafterf(number, random >> 61 & 1 ? INFINITY : -INFINITY);
      }
      uint16_t stored, of_variants[2];
      if (isnan(number)) continue;
      type->store(&stored, number);
      attn_store(of_variants, narrow[t], 0, number);
      if (stored != of_variants[0])
        fail_msg("%s: %a is 0x%04x and 0x%04x", type->name, (double)number, stored, of_variants[0]);
      const double rounded = type->load(&stored);
      if (isinf(rounded)) continue;
      const double unit =
          fmax(fabs((double)number) * type->unit_roundoff, type->smallest_normal * type->unit_roundoff);
      assert_true(fabs(rounded - (double)number) <= unit);
    }
  }
}

static void what_is_known_is_so(void **state) {
  (void)state;
  static const struct {
    attn_type type;
    double number;
    uint16_t bits;
  } cases[] = {{ATTN_BFLOAT16, 1, 0x3f80},          {ATTN_BFLOAT16, 1 + 0x1p-8, 0x3f80},
               {ATTN_BFLOAT16, 1 + 0x3p-8, 0x3f82}, {ATTN_BFLOAT16, 0x1.fep127, 0x7f7f},
               {ATTN_BFLOAT16, 0x1.ffp127, 0x7f80}, {ATTN_BFLOAT16, 0x1p-133, 0x0001},
               {ATTN_FLOAT16, 1, 0x3c00},           {ATTN_FLOAT16, -2, 0xc000},
               {ATTN_FLOAT16, 65504, 0x7bff},       {ATTN_FLOAT16, 65519.996, 0x7bff},
               {ATTN_FLOAT16, 65520, 0x7c00},       {ATTN_FLOAT16, 0x1p-24, 0x0001},
               {ATTN_FLOAT16, 0x1p-25, 0x0000},     {ATTN_FLOAT16, 0x1.8p-24, 0x0002},
               {ATTN_FLOAT16, 0x1.ff8p-15, 0x03ff}, {ATTN_FLOAT16, -INFINITY, 0xfc00}};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    uint16_t stored, of_variants[2];
    element_type_of(cases[n].type)->store(&stored, cases[n].number);
    attn_store(of_variants, cases[n].type, 0, (float)cases[n].number);
    if (stored != cases[n].bits || of_variants[0] != cases[n].bits)
      fail_msg("%a is 0x%04x and 0x%04x, not 0x%04x", cases[n].number, stored, of_variants[0], cases[n].bits);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pattern_is_loaded_alike_and_comes_back),
      cmocka_unit_test(numbers_are_rounded_alike_to_the_nearest),
      cmocka_unit_test(what_is_known_is_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
