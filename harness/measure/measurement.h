/* One point while it is measured: verified first, then run in repetitions. */
#ifndef ATTN_HARNESS_MEASUREMENT_H
#define ATTN_HARNESS_MEASUREMENT_H

#include "bench_options.h"
#include "results.h"
#include "run/runner.h"
#include "verify/expected.h"
#include "verify/projection.h"

typedef struct measurement {
  run_setup setup;
  const bench_options *options;
  inputs *inputs; /* shared with the other measurements on the same workload */
  const expected *expected;
  const projection *projection; /* of the inputs; NULL: it could not be made */
  const attn_tensors *copies;   /* of the inputs, which iterations take in turn */
  size_t copy_count;            /* 0: all take the inputs themselves */
  result *result;
  double run_seconds;       /* of one iteration, as far as is known */
  double spent;             /* seconds in repetitions */
  double checked;           /* seconds in holding what they wrote to the reference */
  size_t most;              /* repetitions that there is room for */
  uint64_t inputs_checksum; /* of the inputs as they were verified, and are given to it in all batches */
  uint64_t batches;         /* made so far: each changes its inputs in another way */
} measurement;

/* Runs the variant once in a fresh workspace, of which the touched bytes are counted, and holds the outputs to the
 * reference: the expected rows, and those of all that deviate most. The result is RESULT_FAILED, with the reason,
 * when they are wrong. False, with the reason in words, when memory cannot be had. */
bool measurement_verify(measurement *measurement, char *why, size_t why_size);

/* Room for the times of all repetitions; false, with the reason in words, when memory is short. */
bool measurement_make_room(measurement *measurement, char *why, size_t why_size);

/* Warms up until the time of an iteration settles, and finds how many a repetition takes. False when
 * interrupted. */
bool measurement_calibrate(measurement *measurement, void *workspace);

/* One repetition more; false, and nothing is recorded, when interrupted. What the last run wrote, on inputs that no
 * run before had, is held to the reference: the result is RESULT_FAILED when it is wrong. Where that would take
 * more than a twentieth of the time, only now and then. */
bool measurement_repeat(measurement *measurement, void *workspace);

/* False when all repetitions are made: as many as were asked for, or as the precision takes, or as the
 * budget allows. */
bool measurement_wants_more(const measurement *measurement);

/* Seconds that the repetitions to come will probably take. */
double measurement_seconds_left(const measurement *measurement);

/* Fills what follows from the repetitions. */
void measurement_finish(measurement *measurement);

#endif
