/* The names of the properties. */
#ifndef ATTN_HARNESS_PROPERTY_H
#define ATTN_HARNESS_PROPERTY_H

/* Bits where the two results must be the same bits; bound where each may be off by its own error bound, in the
 * probabilistic form. */
typedef enum property {
  PROPERTY_REPEAT,       /* bits: a second run */
  PROPERTY_WORKSPACE,    /* bits: whatever the workspace holds */
  PROPERTY_THREADS,      /* bits: any number of threads */
  PROPERTY_SIDE_EFFECTS, /* no call for memory inside run, no thread too many, nothing changed of the process */
  PROPERTY_EDGES, /* bound: buffers that begin where a guard page ends, instead of ending where one begins */
  PROPERTY_ONES,  /* bound: the weights of a row sum to one, seen with values of one and in the weights */
  PROPERTY_BETWEEN,  /* bound: outputs lie between the smallest and the largest visible value */
  PROPERTY_HIDDEN,   /* bits: a row whatever stands in keys and values that it cannot see, NaN included */
  PROPERTY_WIDE,     /* bits: a band as wide as the sequence is none */
  PROPERTY_GROUPS,   /* bound: shared keys and values, repeated for each query head or with one head alone */
  PROPERTY_ORDER,    /* bound: keys and values in another order */
  PROPERTY_SHIFT,    /* bound: one constant added to all scores of a row; the log-sum-exp moves by it */
  PROPERTY_LAYOUT,   /* bits: [B, H, T, D] and [B, T, H, D] */
  PROPERTY_HALVES,   /* bound: two halves of the keys, merged by their log-sum-exps */
  PROPERTY_COMPANY,  /* bits: one key/value head of one entry alone; where ATTN_BATCH_INVARIANT is promised */
  PROPERTY_SINK,     /* bound: a sink is one more key, whose value is zero */
  PROPERTY_DECODED,  /* bits: a query alone; where ATTN_DECODE_INVARIANT is promised */
  PROPERTY_BIAS,     /* bits: a bias of -inf hides its key, whatever finite numbers stand in it */
  PROPERTY_STATE,    /* bits: whatever ran before; other inputs at the same addresses, the same at others */
  PROPERTY_PATTERN,  /* bits: its terms in any order, a local term as a band; within bounds: a mask for it */
  PROPERTY_POSITION, /* bound: a bias for what positions add */
  PROPERTY_ROPE,     /* bound: with a rotary embedding, all positions shifted */
  PROPERTY_GENERAL,  /* bound: general scores by matrices of one for the product of a query and a key */
  PROPERTY_ADDITIVE, /* bound: additive scores with a vector moved from the keys to the queries */
  PROPERTY_DROPOUT,  /* bits: a keep mask of ones and a p of 0 for no dropout */
  PROPERTY_PARTS,    /* bound: a sequence in two parts, the state of the first handed to the second */
  PROPERTIES
} property;

#endif
