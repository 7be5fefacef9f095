/* The inputs that properties.c runs a variant on, beside those of the problem itself: each a copy with one
 * change under which the result is known. */
#ifndef ATTN_HARNESS_PROPERTY_INPUTS_H
#define ATTN_HARNESS_PROPERTY_INPUTS_H

#include "truth.h"

enum { SETS_OF_HIDDEN_KEYS = 3 };

typedef enum altered_kind {
  AT_THE_FRONT, /* buffers begin where their guard page ends */
  ONES,         /* values of one, no epsilon */
  HIDDEN_KEYS,  /* and the next two: keys and values that some rows cannot see are overwritten */
  FULL = HIDDEN_KEYS + SETS_OF_HIDDEN_KEYS, /* no band */
  WIDE,                                     /* a band just as wide as the sequence */
  REPEATED,                                 /* a key/value head for each query head */
  ALONE,                                    /* one query head and its key/value head */
  PLAIN,                                    /* no band and no lengths */
  REORDERED,                                /* the same with keys and values in another order */
  LEVEL,                                    /* scores that a constant can be added to exactly */
  SHIFTED,                                  /* the same with it added */
  BY_HEADS,                                 /* [B, H, T, D] */
  BY_POSITIONS,                             /* [B, T, H, D] */
  FIRST_HALF,
  SECOND_HALF,
  ALTERED
} altered_kind;

typedef struct altered {
  bool made; /* false: the property says nothing of this problem */
  inputs inputs;
  uint64_t checksum;
  truth truth; /* of the sampled rows, where their error bounds are needed; else empty */
} altered;

typedef struct properties {
  inputs *original;
  uint64_t checksum;

  /* The rows that are compared within bounds: positions as in truth, and their solutions. */
  int64_t row_count;
  int64_t *rows;
  const reference_row **solved;
  float *least, *most; /* [row_count, Dv] of the values that a row sees; NaN where there is none */
  double *shifts;      /* [row_count] the constant that SHIFTED adds */

  bool *untouched[SETS_OF_HIDDEN_KEYS]; /* [B H Tq]: rows that see no key that was overwritten */
  int64_t lone_head;
  altered of[ALTERED];
} properties;

/* Where a sampled row stands. */
typedef struct row_place {
  int64_t b, h, i;
} row_place;

static inline row_place row_place_of(const attn_problem *p, int64_t position) {
  return (row_place){position / p->query_length / p->query_heads, position / p->query_length % p->query_heads,
                     position % p->query_length};
}

#endif
