/* How much of a thread's stack is used below a point of its execution: the stack below is painted with a
 * pattern, and afterwards the lowest byte that has another value is looked for.
 *
 * Both must be expanded where they stand: the frame of a called function would lie in what is painted. */
#ifndef ATTN_HARNESS_STACK_PAINT_H
#define ATTN_HARNESS_STACK_PAINT_H

#include <alloca.h>
#include <stddef.h>
#include <stdint.h>

/* The frame of the function that paints ends a few words below what alloca gives. */
enum { STACK_PAINT_MARGIN = 64 };

typedef struct stack_paint {
  unsigned char *low; /* the end of the stack, or as far down as is looked; to be set beforehand */
  unsigned char *top; /* a multiple of 16; the paint ends STACK_PAINT_MARGIN bytes below it */
} stack_paint;

static inline __attribute__((always_inline)) void stack_paint_below(stack_paint *paint,
                                                                    unsigned char pattern) {
  const uint64_t word = pattern * UINT64_C(0x0101010101010101);
  unsigned char *top = alloca(32); // cppcheck-suppress allocaCalled ; where the frame ends is what is asked
  paint->top = top + (-(uintptr_t)top & 15);
  volatile uint64_t *at = (uint64_t *)(void *)(paint->top - STACK_PAINT_MARGIN);
  while ((unsigned char *)at > paint->low) *--at = word;
}

/* Bytes from the top down to the lowest that was written, or 0 when none was. */
static inline __attribute__((always_inline)) size_t stack_paint_depth(const stack_paint *paint,
                                                                      unsigned char pattern) {
  const uint64_t word = pattern * UINT64_C(0x0101010101010101);
  const volatile uint64_t *at = (uint64_t *)(void *)paint->low;
  const volatile uint64_t *end = (uint64_t *)(void *)(paint->top - STACK_PAINT_MARGIN);
  while (at < end && *at == word) at++;
  const volatile unsigned char *byte = (const volatile unsigned char *)at;
  while (at < end && *byte == pattern) byte++;
  return at < end ? (size_t)(paint->top - byte) : 0;
}

#endif
