/* The runner: the one place that calls a variant. It makes the call, gives it a workspace, poisons and guards what
 * it gives, and says what the variant did that it may not do. */
#ifndef ATTN_HARNESS_RUNNER_H
#define ATTN_HARNESS_RUNNER_H

#include "problem/inputs.h"
#include "device.h"
#include "run.h"

/* NULL when the variant solves this sound problem, else the reason in words: another function, features or
 * element types than it supports, or what the variant itself says. */
const char *runner_refusal(const attn_variant *variant, const attn_problem *problem);

/* The same where it is held to an instruction set: it may have nothing of its own for it. */
const char *runner_refusal_with(const attn_variant *variant, const attn_problem *problem, const char *isa);

size_t runner_workspace_bytes(const run_setup *setup, const attn_problem *problem);

/* False, with the reason in words, for more than a problem can be worth: more than the machine has memory, and more
 * than RUN_SCORE_BYTES for each score. What is less may still be more than there is just now. */
enum { RUN_SCORE_BYTES = 64 };
bool runner_workspace_is_sensible(size_t bytes, const attn_problem *problem, char *why, size_t why_size);

/* ---- one run, watched ---- */

/* Poisons outputs and workspace, runs the variant once, and looks whether inputs, the surroundings of all buffers, the
 * problem, the floating-point mode of all threads and their number are as they were, which they are made again. What the
 * outputs hold is for others to judge. False, with the reason in words, when memory cannot be had. */
bool runner_run(const run_setup *setup, inputs *inputs, const run_watch *watch, run_outcome *outcome,
                char *why, size_t why_size);

/* ---- many runs, timed ---- */

/* What of an input changes from run to run: some elements of a row. Of the signs of 8 features half change each time, which
 * changes every score of the query by a fifth or so of what is usual, and its output at 8192 keys by 30 error bounds. Making the
 * changes is timed too: with 128 of them it took more than a twentieth of the time of the shortest kernels. */
enum { RUN_MOST_CHANGED = 8 };
typedef struct run_change {
  tensor_id tensor;
  attn_type type;
  int64_t at, count; /* elements */
  unsigned char unchanged[RUN_MOST_CHANGED * sizeof(float)];
} run_change;

/* Runs of one variant in a row. Before each, the signs of a query and of a key that it sees change, and a value of that
 * key, and an element of the output is poisoned: so that who remembers an answer, or leaves early, is wrong after the
 * last. */
typedef struct run_batch {
  inputs *inputs;
  const attn_tensors *copies; /* of the inputs' tensors, which runs take in turn; NULL: all take these */
  size_t copy_count;
  void *workspace; /* of runner_workspace_bytes, or more */
  int64_t iterations;
  uint64_t seed;      /* of the changes */
  bool cold;          /* on a device: nothing lies in its caches when a run begins */
  bool (*ends)(void); /* asked between runs: true ends the batch; NULL: nothing does */

  /* Filled by runner_time. */
  int64_t changed_row; /* (b * H + h) * Tq + i of that query; -1: none sees a key, nothing changes */
  run_change changes[3];
  char violation[RUN_VIOLATION_BYTES]; /* what the variant did that it may not, in words; "": nothing */
} run_batch;

typedef struct run_elapsed {
  double wall, cpu; /* seconds */
} run_elapsed;

/* False when it was ended early. Afterwards the inputs are those of the last run, until runner_restore, and the
 * outputs what it wrote. */
bool runner_time(const run_setup *setup, run_batch *batch, run_elapsed *elapsed);

/* Undoes the changes. False when the inputs are then not as they were, which they are made again, or a buffer was
 * written beyond its ends: the violation says which. checksum: inputs_checksum before the batch; 0: not looked at. */
bool runner_restore(run_batch *batch, uint64_t checksum);

/* ---- for measurements of their own ---- */

/* The call of a run with this workspace. It points to the setup, the problem and the tensors. */
attn_call runner_call(const run_setup *setup, const attn_problem *problem, const attn_tensors *tensors,
                      void *workspace);

/* Runs it and does nothing else; where it computes on a device, its call was begun (device_begin). */
static inline void runner_invoke(const attn_call *call) {
  if (call->variant->place == ATTN_HOST)
    call->variant->run(call);
  else
    device_run(call);
}

#endif
