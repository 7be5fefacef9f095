/* See types.h. */
#include "types.h"

#include <stdio.h>
#include <string.h>

static double load_float32(const void *element) {
  float number;
  memcpy(&number, element, sizeof number);
  return number;
}

static double load_uint8(const void *element) { return *(const uint8_t *)element; }

static const element_type table[] = {
    [ATTN_FLOAT32] = {"f32", "float32", 4, 0x1p-24, 0x1p-126, load_float32},
    [ATTN_BFLOAT16] = {"bf16", "bfloat16", 2, 0x1p-8, 0x1p-126, NULL},
    [ATTN_FLOAT16] = {"f16", "float16", 2, 0x1p-11, 0x1p-14, NULL},
    [ATTN_UINT8] = {"u8", "uint8", 1, 0, 0, load_uint8},
};

enum { TYPES = sizeof table / sizeof *table };

const element_type *element_type_of(attn_type type) {
  return (unsigned)type < TYPES && table[type].name ? &table[type] : NULL;
}

void element_types_name(uint32_t types, char *text, size_t size) {
  size_t used = 0;
  if (size > 0) *text = '\0';
  for (int n = 0; n < TYPES && used < size; n++)
    if (types >> n & 1 && table[n].words)
      used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " or " : "", table[n].words);
}
