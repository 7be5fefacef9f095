/* The second half of a sweep: all points that were prepared are timed in passes. */
#ifndef ATTN_HARNESS_PASSES_H
#define ATTN_HARNESS_PASSES_H

#include "sweep_state.h"

/* Repeats all measurements in passes, until each has what it wants or an interruption. False when memory
 * for the bookkeeping is short. */
bool passes_run(bench *bench);

#endif
