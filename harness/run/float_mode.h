/* The floating-point mode: the rounding, whether denormal numbers are flushed to zero, which exceptions trap. It is the
 * process's, and every thread has its own copy, which a kernel may set and must put back: whoever runs next on that
 * thread computes in it. */
#ifndef ATTN_HARNESS_FLOAT_MODE_H
#define ATTN_HARNESS_FLOAT_MODE_H

#include <fenv.h>

typedef struct float_mode {
  fenv_t environment;
  int rounding;
} float_mode;

/* That of the calling thread. */
float_mode float_mode_now(void);

/* Puts the calling thread back into this mode. NULL, or what was different, in words: "the rounding mode changed". */
const char *float_mode_put_back(const float_mode *mode);

/* The same for the threads that OpenMP keeps for the calling one, which must be in this mode. threads: how many it was
 * given. */
const char *float_mode_put_back_in_team(const float_mode *mode, int threads);

#endif
