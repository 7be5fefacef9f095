/* One run of a variant: how it is made, and what came of it. */
#ifndef ATTN_HARNESS_RUN_H
#define ATTN_HARNESS_RUN_H

#include "heap_calls.h"
#include "problem/workload.h"

/* How a variant is run. */
typedef struct run_setup {
  const attn_variant *variant;
  const char *origin; /* the plugin that it came from, NULL: our own */
  const char *isa;    /* the instruction set to hold it to; NULL: the fastest */
  int threads;
  const char *problem;  /* in words, for the report of a crash; NULL: none is given */
  const char *property; /* that it is held to, in words, or NULL */
} run_setup;

/* What the workspace holds before a run: a poison, in pages of its own or in those of the run before (so that who keeps
 * a pointer to it is not seen, but a run takes half as long); pages that are not there yet; or else bytes of that value. */
enum { RUN_POISONED = -1, RUN_POISONED_AGAIN = -2, RUN_FRESH = -3 };

typedef struct run_watch {
  int workspace;           /* one of these, or a byte */
  bool workspace_in_front; /* it begins where a guard page ends, instead of ending where one begins */
  /* Look for calls for memory, for threads beyond those that it is given, and for what it does to the process; the
   * variant may be run twice for it. */
  bool side_effects;
  bool first;               /* it is the variant's first run: libraries behind it may set themselves up */
  uint64_t inputs_checksum; /* inputs_checksum of the inputs */
} run_watch;

enum { RUN_VIOLATION_BYTES = 192 };

typedef struct run_outcome {
  char violation[RUN_VIOLATION_BYTES]; /* what the variant did that it may not, in words; "": nothing */
  bool ran;           /* false: it was not called, since no workspace can be what it asks for */
  bool device_failed; /* it ended there before it was done, so that its outputs mean nothing */
  double seconds;
  size_t workspace_touched_bytes; /* of a fresh workspace */
  heap_calls heap;                /* where side effects are looked for */
} run_outcome;

/* The first violation is kept: it is the clearest. %s in it is replaced. */
void run_violate(run_outcome *outcome, const char *violation, const char *of);

/* Seconds that not even plain loops take for it. */
double run_slowest_seconds(const attn_variant *variant, const workload *workload);

/* Tells the supervisor what runs from here to supervisor_leave. */
void run_enter(const run_setup *setup, const workload *workload);

#endif
