/* What the gradients of linear attention are made of, each with how far a right kernel may be off: features, decays,
 * and where the keys of a query lie. For linear_gradient.c and linear_decay.c; README.md, "The backward pass of
 * linear attention". */
#ifndef ATTN_REFERENCE_LINEAR_GRADIENT_H
#define ATTN_REFERENCE_LINEAR_GRADIENT_H

#include <math.h>

#include "feature_map.h"
#include "gradient.h"
#include "linear_state.h"
#include "roundings.h"

enum { LINEAR_BOUNDS = PROBABLE + 1 };

/* What is made of an element of a query or a key, how far a right kernel may be off, and the derivative. */
typedef struct linear_feature {
  double value, error, slope, slope_error;
} linear_feature;

/* elu(x) + 1 is its own derivative where it is not a line; the other maps do not round. */
static inline linear_feature linear_feature_of(const attn_problem *problem, double x) {
  if (problem->feature_map == ATTN_RELU) return (linear_feature){.value = x > 0 ? x : 0, .slope = x > 0};
  if (problem->feature_map == ATTN_IDENTITY) return (linear_feature){.value = x, .slope = 1};
  if (x > 0) return (linear_feature){x + 1, UNIT * (x + 1), 1, 0};
  const double value = exp(x), error = (EXPONENTIAL + 2 * UNIT * fmin(-x, 88)) * value + FLUSHED;
  return (linear_feature){value, error, value, error};
}

static inline double linear_size_of(linear_feature of) { return fabs(of.value) + of.error; }

/* By what a pair fades whose gates' logarithms sum to log: none, or so many. A gate of 0 is exact. */
typedef struct linear_fade {
  double value, error[LINEAR_BOUNDS];
} linear_fade;

static inline linear_fade linear_fade_of(double gates, double log) {
  linear_fade fade = {.value = gates > 0 ? exp(log) : 1};
  for (int form = WORST; form < LINEAR_BOUNDS && gates > 0 && log > -INFINITY; form++)
    fade.error[form] = (fade.value > 0 ? fade.value * reference_decay_error(form, gates, log) : 0) + FLUSHED;
  return fade;
}

/* Of an element that is, but for roundings, the one before it: what it is added to rounds as it did then. */
static inline bool linear_repeats(double x, double previous, double terms) {
  return fabs(x - previous) <= terms * UNIT * fabs(x);
}

/* Features of a key that are the one before: where those of the queries are, too, their products round alike. */
static inline double linear_repeated_features(const float *key, int64_t head_dim) {
  double repeated = 0;
  for (int64_t d = 1; d < head_dim; d++) repeated += key[d] == key[d - 1];
  return repeated;
}

static inline int64_t linear_row_number(const attn_problem *problem, int64_t b, int64_t h, int64_t i) {
  return (b * problem->query_heads + h) * problem->query_length + i;
}

/* Where the keys begin and end that a query sees. */
typedef struct linear_keys_seen {
  int64_t first, end;
} linear_keys_seen;

static inline linear_keys_seen linear_keys_of(const attn_problem *problem, int64_t b, int64_t i) {
  const int64_t position = i + (problem->offsets ? problem->offsets[b] : problem->offset);
  const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  linear_keys_seen seen = {0, keys};
  if (problem->left != ATTN_UNLIMITED && position - problem->left > 0) seen.first = position - problem->left;
  if (problem->right != ATTN_UNLIMITED && position + problem->right < keys - 1)
    seen.end = position + problem->right + 1;
  if (seen.end < seen.first) seen.end = seen.first;
  return seen;
}

/* Gates above 1: of these nothing is said. */
static inline bool linear_rises(const attn_problem *problem, int64_t b, int64_t kv_head) {
  const int64_t keys = problem->key_lengths ? problem->key_lengths[b] : problem->key_length;
  for (int64_t t = 0; problem->decay.type && t < keys; t++)
    if (reference_decay(problem, b, kv_head, t) > 0) return true;
  return false;
}

#endif
