/* The inputs that properties.c runs a variant on, beside those of the problem itself: each a copy with one
 * change under which the result is known. */
#ifndef ATTN_HARNESS_PROPERTY_INPUTS_H
#define ATTN_HARNESS_PROPERTY_INPUTS_H

#include "expected.h"

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
  ISOLATED, /* one key/value head of one entry, with its query heads */
  DECODED,  /* one query position */
  SINK_KEY, /* as PLAIN, with a key for the sink */
  OTHER,    /* other contents but for the first row of each tensor, elsewhere */
  RESCALED, /* another scale, of linear attention another epsilon */
  BIASED,   /* a bias of -inf hides some keys, of some rows all */
  UNSEEN,   /* the same with other numbers in those keys and their values */
  ALTERED
} altered_kind;

typedef struct altered {
  bool made; /* false: the property says nothing of this problem */
  inputs inputs;
  uint64_t checksum;
  expected expected; /* of the sampled rows, where their error bounds are needed; else empty */
} altered;

/* A problem with all that the properties set beside it, prepared once for all variants. */
typedef struct properties {
  inputs *original;
  uint64_t checksum;

  /* The rows that are compared within bounds: positions as in expected, and their solutions. */
  int64_t row_count;
  int64_t *rows;
  const reference_row **solved;
  float *least, *most; /* [row_count, Dv] of the values that a row sees; NaN where there is none */
  double *shifts;      /* [row_count] the constant that SHIFTED adds */

  bool *untouched[SETS_OF_HIDDEN_KEYS]; /* [B H Tq]: rows that see no key that was overwritten */
  int64_t lone_head;
  int64_t isolated_entry, isolated_head, decoded_query;
  altered of[ALTERED];
} properties;

/* The inputs and their expected rows, all or some, must stay. NULL, with the reason in words, when memory is
 * short. What is drawn comes from the workload's seed. */
properties *properties_prepare(inputs *inputs, const expected *known, char *why, size_t why_size);
void properties_destroy(properties *prepared);

/* Exchanges the contents of the original's inputs with those of OTHER: each then has the other's, at its own addresses. */
void properties_exchange(properties *prepared);

/* Gives both their own again, even if a run damaged one of them in between. */
void properties_undo_exchange(properties *prepared);

/* Gives the original the numbers of RESCALED, or its own again. */
void properties_rescale(properties *prepared, bool rescaled);

#endif
