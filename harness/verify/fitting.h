/* What a variant takes, learnt by asking it: problems that it takes, and for each of their sizes what else it takes there.
 * A problem that it refuses can so be fitted to it: what of the problem the variant takes stays, and only the rest
 * is changed. */
#ifndef ATTN_HARNESS_FITTING_H
#define ATTN_HARNESS_FITTING_H

#include "problem/draws.h"
#include "problem/workload.h"

/* What of a problem's sizes is chosen together; the query heads follow as a multiple of the key/value heads. */
typedef enum fitting_size {
  SIZE_LENGTHS, /* Tq = Tk */
  SIZE_QUERIES,
  SIZE_KEYS,
  SIZE_DIMS, /* D = Dv */
  SIZE_HEAD_DIM,
  SIZE_VALUE_DIM,
  SIZE_BATCH,
  SIZE_KV_HEADS,
  SIZE_GROUP,
  FITTING_SIZES
} fitting_size;

enum { FITTING_ANCHORS = 24, FITTING_VALUES = 192 };

/* Ascending. */
typedef struct fitting_values {
  int count;
  int of[FITTING_VALUES];
} fitting_values;

/* A problem that the variant takes, with its smallest sizes; bottom_right: its diagonal ends there whatever the sizes. */
typedef struct fitting_anchor {
  workload workload;
  bool bottom_right;
  fitting_values values[FITTING_SIZES]; /* that it takes instead, one at a time */
} fitting_anchor;

typedef struct fitting {
  const attn_variant *variant;
  int count; /* 0: nothing was found that it takes */
  fitting_anchor anchors[FITTING_ANCHORS];
} fitting;

/* NULL when memory is short. */
fitting *fitting_create(const attn_variant *variant);
void fitting_destroy(fitting *fitting);

/* Whether a variant takes a problem that makes sense. */
bool fitting_takes(const attn_variant *variant, const workload *workload);

/* Makes of a wanted problem one that the variant takes and the reference can afford; n: of so many, which vary in what is
 * decided first and in how large they may be. False: there is none. */
bool fitting_fit(const fitting *fitting, int64_t n, workload *workload);

/* The same problem with other sizes. */
void fitting_vary(const fitting *fitting, int64_t n, workload *workload);

/* Sets a size, what is to follow it, and lists that have to suit it. */
void fitting_set_size(workload *workload, fitting_size size, int64_t value, bool bottom_right);

/* Makes lists, and a diagonal that ends bottom right, suit the sizes. */
void fitting_settle(workload *workload, bool bottom_right);

/* What the reference pays for it, in multiply-adds. */
double fitting_cost(const workload *workload);

#endif
