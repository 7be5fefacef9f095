/* Variants on their way through many problems: each problem is prepared and solved once and then given to
 * every variant under every instruction set, and a variant_verdicts for each variant keeps what came of it. */
#ifndef ATTN_HARNESS_VERIFICATION_H
#define ATTN_HARNESS_VERIFICATION_H

#include "hint.h"
#include "coverage.h"
#include "properties.h"
#include "tightness.h"
#include "verify.h"

enum { VERDICT_REASONS = 12, VERDICT_FAILURES = 5, VERDICT_REASON_BYTES = 128 };

typedef struct failure {
  char problem[512], isa[ISA_NAME_BYTES], workload[WORKLOAD_NAME_BYTES];
  int threads;
  hint hint;
} failure;

/* The case that came nearest to a bound. */
typedef struct worst_case {
  double share;
  char isa[ISA_NAME_BYTES], workload[WORKLOAD_NAME_BYTES];
} worst_case;

typedef struct variant_verdicts {
  char name[VARIANT_NAME_BYTES];
  const attn_variant *variant;         /* these three: in this child; NULL when it cannot be loaded again */
  const char *origin;                  /* plugin, or NULL */
  const char *const *instruction_sets; /* NULL-terminated; {NULL} alone: only what it chooses */
  int64_t cases, failed, rows, rows_total;
  int64_t skipped[VERDICT_REASONS];
  char reasons[VERDICT_REASONS][VERDICT_REASON_BYTES];
  worst_case bound, probabilistic;
  tightness tightness;
  coverage coverage;
  int64_t properties_checked;         /* each on one problem under one instruction set */
  failure failures[VERDICT_FAILURES]; /* the first ones */
  bool ended;                         /* the process, and is left out since */
  size_t group;                       /* of the variants of one plugin */
} variant_verdicts;

/* Where a verification is, for the next child when a variant ends this one. */
typedef struct verification_progress {
  size_t group;   /* of variants that have their turn */
  int64_t begun;  /* problems */
  size_t variant; /* that the last of them is given to */
  int64_t held[2],
      held_last;    /* problems that properties are held on, of float32 and of 16 bits; which was the last */
  int64_t problems; /* that were begun, by all children together */
  int64_t properties_problems, properties_too_large; /* problems, of the plugin with the most */
  double properties_seconds, started;                /* by wall_seconds */
} verification_progress;

typedef struct verification {
  variant_verdicts *of;
  size_t count;
  const verify_options *options;
  bool stops; /* at the first failure: what is left of its problem is not run */

  verification_progress *progress;
  int64_t asked; /* problems, of which an earlier child may have run some */
  bool together; /* all variants take part, else those of one plugin at a time */
  size_t only;   /* one more than the number of the one variant that takes part at the moment; 0: each */
} verification;

/* What a problem is run for beside its reference: with which numbers of threads a case is repeated, to see that
 * it gives the same bits, or all properties, under every instruction set or under one, in turn. */
enum { REPEAT_WITH_1 = 1, REPEAT_WITH_3 = 2, HOLD_PROPERTIES = 4, HOLD_PROPERTIES_IN_TURN = 8 };

/* Of the variants that the options ask for, or what an earlier child has left of it; false when memory is short. */
bool verification_create(verification *verification, const variant_list *list, const verify_options *options);
void verification_destroy(verification *verification);

/* The variants of the next plugin have their turn with all problems, in a child of their own; false when there is none,
 * or nothing that is to come matters. */
bool verification_next_plugin(verification *verification);

/* Whether variant n takes part at the moment. */
bool verification_has_turn(const verification *verification, size_t n);

/* Gives a problem to all of them that have their turn, unless an earlier child did, under each of a variant's instruction
 * sets, or (turn not -1) under one, in turn. False, with the reason in words, when it cannot be prepared. */
bool verification_run(verification *verification, const workload *workload, int threads, int turn,
                      unsigned wanted, char *why, size_t why_size);

/* The same with inputs whose rows are solved already, under a name of their own; the bits must be those of other
 * numbers of threads. */
bool verification_run_case(verification *verification, inputs *inputs, const expected *known,
                           const char *name, int threads, char *why, size_t why_size);

int64_t verification_cases(const verification *verification);
int64_t verification_failed(const verification *verification);
/* Whether nothing that is still to run matters: one failure was to be enough, or Ctrl-C came (verify_all and fuzz_all
 * catch it). */
bool verification_is_decided(const verification *verification);

/* False, with a line on stderr that says why, when no variant ran on anything, or one of them did not where
 * each was to: what ran on nothing has passed nothing. */
bool verification_ran(const verification *verification, bool each);

/* A table with a line for each variant, and with every failure and the command that repeats it. */
void verification_print(const verification *verification, FILE *out);

/* What each variant was posed. asked: how many problems it was to be, by its function. */
void verification_print_coverage(const verification *verification, const int64_t asked[REFERENCE_FUNCTIONS],
                                 FILE *out);

/* A table of how near the cases of each variant came to the bounds. */
void verification_print_tightness(const verification *verification, FILE *out);

/* The command that repeats a failure alone, without an end of line. */
void failure_print_command(const failure *failure, const char *variant, const verify_options *options,
                           FILE *out);

#endif
