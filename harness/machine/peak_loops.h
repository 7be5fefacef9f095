/* The inner loops that the peaks are measured with, one pair for each instruction set. */
#ifndef ATTN_HARNESS_PEAK_LOOPS_H
#define ATTN_HARNESS_PEAK_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "variants/attention.h"

/* isa: its name, "portable" for what every processor of this architecture has; where products of one type are made of those
 * of another, as by avx512_amx of float16, with that type behind it. */
typedef struct peak_loops {
  const char *isa;
  attn_type type;         /* of what is multiplied */
  double flops_per_round; /* two for each multiply-add of a lane, or of each of a pair in it */

  /* At least one round of multiply-adds in registers. */
  void (*multiply_add)(int64_t rounds);

  /* Each round, of one or more, loads 128 bytes at data, data + pitch, data + 2 pitch and data + 3 pitch,
   * then data advances. Everything is a multiple of 64. */
  void (*read)(const void *data, size_t rounds, size_t pitch, size_t advance);
} peak_loops;

enum { PEAK_MAX_LOOPS = 6, PEAK_ROUND_BYTES = 512, PEAK_STREAM_BYTES = 128 };

/* The same of tanh; none for an instruction set of which there is no such loop. */
typedef struct tanh_loops {
  const char *name; /* "tanh avx512" */
  double tanhs_per_round;
  void (*take)(int64_t rounds);
} tanh_loops;

size_t tanh_loops_available(tanh_loops loops[PEAK_MAX_LOOPS]);

/* Those that this processor can run, slowest first; their number. */
size_t peak_loops_available(peak_loops loops[PEAK_MAX_LOOPS]);

#endif
