/* See types.h. */
#include "types.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double load_float32(const void *element) {
  float number;
  memcpy(&number, element, sizeof number);
  return number;
}

static void store_float32(void *element, double number) {
  const float rounded = (float)number;
  memcpy(element, &rounded, sizeof rounded);
}

/* 2^n, a normal number. ldexp takes several times as long, and all elements of 16 bits pass here. */
static double power_of_two(int n) {
  const uint64_t bits = (uint64_t)(n + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}

/* Of a normal number, 2^(n - 1) <= |number| < 2^n; of any smaller one, no more. */
static int exponent_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1022;
}

/* Numbers of so many bits, of which `fraction` are the fraction's, straight from IEEE 754, section 3.4. Variants have code
 * of their own for this (variants/elements.h): a slip in one shows against the other. */
static double load_bits(uint16_t bits, int fraction, int bias) {
  const int exponent = (bits & 0x7fff) >> fraction, most = 0x7fff >> fraction;
  const double sign = bits & 0x8000 ? -1 : 1, part = bits & ((1 << fraction) - 1);
  if (exponent == most) return part > 0 ? (double)NAN : sign * (double)INFINITY;
  if (exponent == 0) return sign * part * power_of_two(1 - bias - fraction);
  return sign * (part + (1 << fraction)) * power_of_two(exponent - bias - fraction);
}

/* A number is a whole multiple of the spacing where it lies; rint rounds ties to even, as the mode is when inputs are
 * drawn. */
static uint16_t store_bits(double number, int fraction, int bias) {
  const uint16_t sign = signbit(number) ? 0x8000 : 0;
  const uint16_t infinite = (uint16_t)(0x7fff >> fraction << fraction);
  if (isnan(number)) return (uint16_t)(sign | infinite | 1 << (fraction - 1));
  if (isinf(number)) return sign | infinite;
  const int exponent = exponent_of(number) < 2 - bias ? 2 - bias : exponent_of(number);
  const double steps = rint(fabs(number) * power_of_two(fraction + 1 - exponent));
  const double place = (double)((exponent - 2 + bias) << fraction) + steps; /* counted from 0 by spacings */
  return sign | (place < infinite ? (uint16_t)place : infinite);
}

static uint16_t half_at(const void *element) {
  uint16_t half;
  memcpy(&half, element, sizeof half);
  return half;
}

static double load_bfloat16(const void *element) { return load_bits(half_at(element), 7, 127); }
static double load_float16(const void *element) { return load_bits(half_at(element), 10, 15); }

static void store_bfloat16(void *element, double number) {
  const uint16_t half = store_bits(number, 7, 127);
  memcpy(element, &half, sizeof half);
}

static void store_float16(void *element, double number) {
  const uint16_t half = store_bits(number, 10, 15);
  memcpy(element, &half, sizeof half);
}

static double load_int32(const void *element) {
  int32_t number;
  memcpy(&number, element, sizeof number);
  return number;
}

static double load_uint8(const void *element) { return *(const uint8_t *)element; }

static const element_type table[] = {
    [ATTN_FLOAT32] = {"f32", "float32", 4, 0x1p-24, 0x1p-126, FLT_MAX, load_float32, store_float32},
    [ATTN_BFLOAT16] = {"bf16", "bfloat16", 2, 0x1p-8, 0x1p-126, 0x1.fep127, load_bfloat16, store_bfloat16},
    [ATTN_FLOAT16] = {"f16", "float16", 2, 0x1p-11, 0x1p-14, 65504, load_float16, store_float16},
    [ATTN_UINT8] = {"u8", "uint8", 1, 0, 0, 0, load_uint8, NULL},
    [ATTN_INT32] = {"i32", "int32", 4, 0, 0, 0, load_int32, NULL},
};

enum { TYPES = sizeof table / sizeof *table };

const element_type *element_type_of(attn_type type) {
  return (unsigned)type < TYPES && table[type].name ? &table[type] : NULL;
}

bool element_type_is_narrow(attn_type type) { return type == ATTN_BFLOAT16 || type == ATTN_FLOAT16; }

attn_type element_type_named(const char *name) {
  for (int n = 0; n < TYPES; n++)
    if (table[n].store && strcmp(table[n].name, name) == 0) return (attn_type)n;
  return ATTN_ABSENT;
}

void element_types_name(uint32_t types, char *text, size_t size) {
  size_t used = 0;
  if (size > 0) *text = '\0';
  for (int n = 0; n < TYPES && used < size; n++)
    if (types >> n & 1 && table[n].words)
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " or " : "", table[n].words);
}
