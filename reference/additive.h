/* Additive scores, the definition: what the weights of a head make of the tanh of a query and a key, feature by
 * feature; and how far a float32 tanh may be from it. README.md derives the constants. */
#ifndef ATTN_REFERENCE_ADDITIVE_H
#define ATTN_REFERENCE_ADDITIVE_H

#include "rope.h"

/* In units of u: of a tanh that is made of an exponential and a quotient, relative to 1; of its argument, and of the
 * sizes of what is added up to it. */
#define REFERENCE_TANH 28.0
#define REFERENCE_TANH_ARGUMENT 5.0
#define REFERENCE_TANH_SIZES 3.0

/* A query and a key, and their positions. */
typedef struct reference_pair_of {
  const float *query, *key;
  int64_t query_position, key_position;
} reference_pair_of;

static inline const float *reference_additive_weights(const attn_problem *problem, int64_t h) {
  return problem->additive_data + h * problem->additive.head;
}

static inline double reference_additive(const attn_problem *problem, int64_t h, reference_pair_of of) {
  const float *weight = reference_additive_weights(problem, h);
  double sum = 0;
  for (int64_t d = 0; d < problem->head_dim; d++)
    sum += weight[d] * tanh(reference_rotated(problem, of.query_position, of.query, d).value +
                            reference_rotated(problem, of.key_position, of.key, d).value);
  return sum;
}

/* What the bound of such a sum is made of. */
typedef struct reference_additive_sizes {
  double weights;  /* sum of |w| */
  double tanhs;    /* what the sum is off for its tanhs, in units of u */
  double repeated; /* terms that are the one before */
} reference_additive_sizes;

/* The most that tanh changes where its argument does by so much: its slope 1 - tanh^2 falls on both sides of 0. */
static inline double reference_tanh_change(double x, double by) {
  const double nearest = tanh(fmax(fabs(x) - by, 0));
  return fmin(by * (1 - nearest * nearest), 2);
}

static inline reference_additive_sizes reference_additive_error(const attn_problem *problem, int64_t h,
                                                                reference_pair_of of, double unit) {
  const float *weight = reference_additive_weights(problem, h);
  reference_additive_sizes sizes = {0};
  double previous = 0;
  for (int64_t d = 0; d < problem->head_dim; d++) {
    const reference_feature query = reference_rotated(problem, of.query_position, of.query, d),
                            key = reference_rotated(problem, of.key_position, of.key, d);
    const double x = query.value + key.value, size = fabs((double)weight[d]), term = weight[d] * tanh(x);
    /* A rotation is off by 2u of what it adds. */
    const double turned = d < problem->rope_features ? 2 : 0;
    const double by = REFERENCE_TANH_ARGUMENT + (REFERENCE_TANH_SIZES + turned) * (query.size + key.size);
    sizes.weights += size;
    sizes.tanhs += size * (REFERENCE_TANH + reference_tanh_change(x, by * unit) / unit);
    sizes.repeated += term != 0 && term == previous;
    previous = term;
  }
  return sizes;
}

#endif
