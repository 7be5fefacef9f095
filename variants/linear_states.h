/* What linear attention brings along from keys before its first and leaves for those behind its last: a part of attention.h. A
 * sequence may be cut anywhere, and the final state of one part be the state of the next (functions.h has the formulas). Where
 * sums are unnormalised there are no sums of features. A limited left has no state: what it would forget is not known. */
#ifndef ATTN_LINEAR_STATES_H
#define ATTN_LINEAR_STATES_H

/* Of the set of optional parts. */
enum { ATTN_STATE = 1 << 24, ATTN_FINAL_STATE = 1 << 25 };

/* All float32, whatever the type of the keys. The position of a layout is here that of a feature. */
typedef struct attn_linear_states {
  attn_layout state, state_sum;             /* sums of phi(k) v and of phi(k): both, or the first alone */
  attn_layout final_state, final_state_sum; /* the same that are wanted, written whole */
  const float *state_data;                  /* [B, Hkv, D, Dv] */
  const float *state_sum_data;              /* [B, Hkv, D] */
  float *final_state_data;                  /* [B, Hkv, D, Dv] */
  float *final_state_sum_data;              /* [B, Hkv, D] */
} attn_linear_states;

#endif
