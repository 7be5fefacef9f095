/* The element types, one row each. */
#ifndef ATTN_HARNESS_TYPES_H
#define ATTN_HARNESS_TYPES_H

#include <stdbool.h>

#include "variants/attention.h"

typedef struct element_type {
  const char *name;  /* in a problem line: "f32" */
  const char *words; /* "float32" */
  size_t bytes;
  double unit_roundoff, smallest_normal, largest; /* of a floating-point type; else 0 */
  double (*load)(const void *element);
  void (*store)(void *element,
                double number); /* rounds to nearest, ties to even; NULL: of no floating-point type */
} element_type;

/* Whether its elements have 16 bits. */
bool element_type_is_narrow(attn_type type);

/* NULL for a number that is no type, and for ATTN_ABSENT. */
const element_type *element_type_of(attn_type type);

/* A type of floating-point numbers by its name; ATTN_ABSENT: there is none. */
attn_type element_type_named(const char *name);

/* "float32 or uint8": the types whose bits 1 << type are set. */
void element_types_name(uint32_t types, char *text, size_t size);

#endif
