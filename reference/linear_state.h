/* States of linear attention, in double precision: what all rows see of the keys before the first, and the state that all keys
 * leave, which is a sum over them as it stands, as the output is. */
#ifndef ATTN_REFERENCE_LINEAR_STATE_H
#define ATTN_REFERENCE_LINEAR_STATE_H

#include "gradient.h"

/* Row d of the initial state of a head [Dv], and one of its sums of features; 0 where there are none. */
static inline const float *reference_state_row(const attn_problem *problem, int64_t b, int64_t kv_head,
                                               int64_t d) {
  const attn_layout *at = &problem->states.state;
  return problem->states.state_data + b * at->batch + kv_head * at->head + d * at->position;
}

static inline double reference_state_sum(const attn_problem *problem, int64_t b, int64_t kv_head, int64_t d) {
  const attn_layout *at = &problem->states.state_sum;
  return at->type ? problem->states.state_sum_data[b * at->batch + kv_head * at->head + d] : 0;
}

/* [Dv]: row d of the final state of a head, and how far float32 arithmetic may be from it. */
void reference_final_state(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                           int64_t kv_head, int64_t d, reference_gradient *to);

/* [D]: its sums of features. */
void reference_final_state_sum(const attn_problem *problem, const attn_tensors *tensors, int64_t b,
                               int64_t kv_head, reference_gradient *to);

/* How far an output row [Dv] may move where the initial state is off by as much as this: [D, Dv] and [D]. row: solved. */
void reference_state_effect(const attn_problem *problem, const attn_tensors *tensors, int64_t b, int64_t h,
                            int64_t i, const reference_row *row, const double *state_error,
                            const double *sum_error, double *effect);

/* linear_bound.c: the relative error of phi(x), and of a decay by so many gates whose logarithms sum to log. */
double reference_phi_error(const attn_problem *problem, double x);
double reference_decay_error(int form, double gates, double log);

#endif
