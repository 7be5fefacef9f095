/* What the inputs of the properties are, and how each is made: a copy of the original's with one change, which is the
 * problem's (property_shapes.c) or one of numbers (property_numbers.c). */
#ifndef ATTN_HARNESS_PROPERTY_COPIES_H
#define ATTN_HARNESS_PROPERTY_COPIES_H

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
  PLAIN,                                    /* no band and no lengths, sinks that a bias can be */
  REORDERED,                                /* the same with keys and values in another order */
  LEVEL,                                    /* scores that a constant can be added to exactly */
  SHIFTED,                                  /* the same with it added */
  BY_HEADS,                                 /* [B, H, T, D] */
  BY_POSITIONS,                             /* [B, T, H, D] */
  FIRST_HALF,
  SECOND_HALF,
  ISOLATED,    /* one key/value head of one entry, with its query heads */
  DECODED,     /* one query position */
  SINK_KEY,    /* as PLAIN, with a key for the sink */
  OTHER,       /* other contents but for the first row of each tensor, elsewhere */
  RESCALED,    /* another scale, of linear attention another epsilon */
  BIASED,      /* a bias of -inf hides some keys, of some rows all */
  UNSEEN,      /* the same with other numbers in those keys and their values */
  TURNED,      /* the terms of the pattern the other way round */
  AS_BAND,     /* a pattern of one local term as a band */
  AS_MASK,     /* a pattern as a mask */
  AS_BIAS,     /* what positions add as a bias */
  FARTHER,     /* a rotary embedding whose tables begin at a later position */
  BY_ONE,      /* matrices of general scores that are one */
  AS_DOT,      /* the same without general scores */
  UNMOVED,     /* additive scores of queries and keys that a vector can be added to exactly */
  MOVED,       /* the same with one added to the queries and taken from the keys */
  UNDROPPED,   /* no dropout */
  ALL_KEPT,    /* the same with a keep mask of ones and a p of 0 */
  FIRST_PART,  /* some first keys of linear attention, with their final state */
  SECOND_PART, /* the others, going on from it */
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
  const struct gradients *states;    /* rows of a final state; else NULL */
  struct gradients *handed;          /* those of FIRST_PART's, all */
  double *effects;                   /* [row_count, Dv]: what their bounds come to in SECOND_PART */
  const struct gradients *gradients; /* of the backward pass, whose rows these are; else NULL */

  /* The rows that are compared within bounds: positions as in expected, and their solutions. */
  int64_t row_count;
  int64_t *rows;
  const reference_row **solved;
  double *least, *most; /* [row_count, Dv] of the values that a row sees; NaN where there is none */
  double *shifts;       /* [row_count] the constant that SHIFTED adds */

  bool *untouched[SETS_OF_HIDDEN_KEYS]; /* [B H Tq]: rows that see no key that was overwritten */
  int64_t lone_head;
  int64_t isolated_entry, isolated_head, decoded_query;
  altered of[ALTERED];
} properties;

/* What of the original a copy holds: from this entry, head, query and key on. */
typedef struct source {
  int64_t entry, query_head, kv_head, query, key;
  int64_t group;        /* heads of the copy to one key/value head of the original */
  const int64_t *order; /* or: each key of the copy; NULL: one after the other */
  bool turns_queries;   /* queries take the keys' order too */
  bool with_pattern;    /* that of the original is in the mask of the copy, which has none */
} source;

static const source property_whole = {.group = 1};

/* The n-th number drawn for a purpose. */
uint64_t property_draw(const properties *all, uint64_t purpose, uint64_t n);

/* Begins an altered problem with the numbers of the original, which may be changed until it is finished; make does both.
 * with_bounds: its sampled rows are solved. False, with the reason in words, when memory is short. */
bool property_begin(properties *all, altered_kind kind, const workload *w, const source *from, char *why,
                    size_t why_size);
bool property_finish(properties *all, altered_kind kind, bool with_bounds, char *why, size_t why_size);
bool property_make(properties *all, altered_kind kind, const workload *w, const source *from,
                   bool with_bounds, char *why, size_t why_size);

/* Leaves a rotary embedding out. */
void property_leave_out_rope(workload *w);

/* Leaves the pattern out. */
void property_leave_out_pattern(workload *w);

/* The same of what positions add to the scores. */
void property_leave_out_position(workload *w);
void property_leave_out_general(workload *w);
void property_leave_out_dropout(workload *w);

/* Puts a mask in its place, which varies over all axes, where the original has one; returns that. */
bool property_pattern_to_mask(const properties *all, workload *w, source *from);

/* Whether a query row sees a key, by band, lengths, mask and pattern. */
bool property_sees(const inputs *in, row_place row, int64_t j);

/* Whether outputs are averages of values: no weight is negative, they are divided by their sum, and there is nothing else. */
static inline bool property_averages(const attn_problem *p) {
  return !p->unnormalised && p->feature_map != ATTN_IDENTITY && !p->states.state.type;
}

/* Those that gradients are compared on. */
bool property_make_gradients(properties *all, char *why, size_t why_size);

/* All that the problem allows of either kind; of numbers after shapes. */
bool property_make_shapes(properties *all, char *why, size_t why_size);
bool property_make_numbers(properties *all, char *why, size_t why_size);

#endif
