/* What every run is held to, whatever it is made for: what belongs to the process or to others is as it was, or a
 * violation, and made so again. */
#ifndef ATTN_HARNESS_HELD_H
#define ATTN_HARNESS_HELD_H

#include <sys/stat.h>

#include "float_mode.h"
#include "problem/inputs.h"
#include "run.h"

enum { HELD_OUTPUTS = 2 };

typedef struct held {
  const run_setup *setup;
  struct stat outputs[HELD_OUTPUTS]; /* what the standard output and error are; st_ino 0: they are closed */
  float_mode mode;
  int openmp[3]; /* OpenMP's settings */
  const attn_problem *problem;
  attn_problem shown; /* a copy for the variant: who writes to it writes to nobody else's */
  int64_t *
      lists; /* [3 B] its offsets, key lengths and query lengths; NULL: there are none, or no memory for them */
} held;

/* Before anything of the variant is called. */
held held_before(void);

/* Before the run and after it. */
void held_begin(held *held, const run_setup *setup, const inputs *inputs);
void held_end(held *held, run_outcome *outcome);

/* Whether inputs and what surrounds the buffers are whole, which they are made again. checksum: of the inputs; workspace:
 * NULL where it is not guarded. */
void held_check_buffers(inputs *inputs, const guarded *workspace, uint64_t checksum, run_outcome *outcome);

void held_say_left(int threads, run_outcome *outcome);

#endif
