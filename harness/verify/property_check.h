/* One property of one variant on one problem: the runs and comparisons that properties.c is written in. Bits are those of
 * a tensor's own elements; what lies within a bound is compared as numbers, whichever type holds them. */
#ifndef ATTN_HARNESS_PROPERTY_CHECK_H
#define ATTN_HARNESS_PROPERTY_CHECK_H

#include <math.h>

#include "property_inputs.h"
#include "run/runner.h"

typedef struct property_check {
  properties *all;
  run_setup setup;
  const char *property;                  /* in words, in front of a failure */
  bool workspace_in_front, side_effects; /* as run_watch */
  uint64_t bits;                         /* of the outputs for the original problem */
  int64_t compared;                      /* what the property has said something of */
  bool failed;
  bool violated;         /* by what a run did, and not by what it gave */
  char problem[256];     /* then, in words */
  const altered *ran[2]; /* what it was run on last, the last one first; NULL: the original */
  bool had_memory;
  char *why;
  size_t why_size;
} property_check;

/* Notes the first failure; false. */
__attribute__((format(printf, 2, 3))) bool check_fails(property_check *check, const char *format, ...);

/* Where all ranks of a team have ended the property: they agree on what came of it. The rank whose complaint it is;
 * -1: there is no team. */
int check_end_in_team(property_check *check);

/* False where memory is short or the variant did what it may not. Workspaces as in run_watch. */
bool check_run_original(property_check *check, int threads, int workspace);
bool check_run_altered(property_check *check, const altered *on);

/* NULL where there are no such inputs, or the variant does not take their problem. */
const altered *check_altered(const property_check *check, altered_kind kind);

/* The r-th sampled row, and an element of a tensor's row. */
row_place check_row(const property_check *check, int64_t r);
double check_number(const inputs *in, tensor_id id, row_place at, int64_t n);

/* Of a number of elements; a NaN is any that was written. */
bool check_same_bits(number_row a, number_row b, int64_t width);

/* All rows, or those of a list of B H Tq, must have the same bits. */
void check_same_rows(property_check *check, const inputs *a, const inputs *b, const bool *rows,
                     const char *when);

/* And each row of altered inputs those of the row of the original that it was made of. */
void check_same_as_original(property_check *check, const altered *on, row_place first, const char *when);

/* What an element of sampled row r must be, give or take. A bound that is infinite allows anything; an expectation that is
 * not finite says nothing. */
bool check_near(property_check *check, int64_t r, const char *what, int64_t e, double computed,
                double expected, double bound, const char *when);

/* Sampled row r of two runs, of which each may be off by its own bound. shift: by which the log-sum-exp must differ. */
void check_near_row(property_check *check, int64_t r, const inputs *a, row_place in_a,
                    const reference_row *of_a, const inputs *b, row_place in_b, const reference_row *of_b,
                    double shift, const char *when);

/* Nor may be NaN as well. */
static inline bool check_is_finite(const reference_row *row, int64_t e) {
  return isfinite(row->output[e]) && !signbit(row->output_bound[e]);
}

/* -inf too, of a row that sees no key. */
static inline bool check_has_lse(const reference_row *row) {
  return !isnan(row->lse) && !signbit(row->lse_bound);
}

static inline bool check_has_finite_lse(const reference_row *row) {
  return check_has_lse(row) && isfinite(row->lse);
}

#endif
