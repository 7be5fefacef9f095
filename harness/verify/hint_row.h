/* One output row as a kernel with a mistake would give it: the reference's formulas in double precision, with a place
 * for each thing that kernels get wrong. */
#ifndef ATTN_HARNESS_HINT_ROW_H
#define ATTN_HARNESS_HINT_ROW_H

#include "problem/rows.h"

typedef enum mask_use { MASK_KEPT, MASK_IGNORED, MASK_INVERTED, MASK_AFTER_SOFTMAX } mask_use;
typedef enum keep_use { KEEP_KEPT, KEEP_IGNORED, KEEP_UNSCALED, KEEP_BEFORE_SUM } keep_use;
typedef enum empty_use {
  EMPTY_ZEROS,
  EMPTY_NAN,
  EMPTY_MEAN,
  EMPTY_SOFTMAX,
  EMPTY_LSE_0,
  EMPTY_LSE_INFINITE
} empty_use;
typedef enum phi_use { PHI_ELU_1, PHI_ELU, PHI_RELU, PHI_IDENTITY, PHI_X_BELOW_0 } phi_use;

/* What a row asks; hint_ask fills in what is right, a mistake changes some of it. */
typedef struct asked {
  const attn_problem *problem;
  const attn_tensors *tensors; /* 16 bits widened */
  row_place at;

  /* Where it reads; i counts for all but keys and values. */
  row_place query, key, value, bias, mask, pattern;
  int64_t sink_head, features;
  attn_range keys; /* by band and lengths, without the pattern */
  mask_use mask_use;
  row_place keep;
  keep_use keep_use;
  bool pattern_ignored;

  double scale, softcap, softcap_inside, bias_factor, sink_factor, score_factor, epsilon;
  bool softcap_last, bias_before_scale; /* softcap * tanh((score + bias) / softcap); scale * (dot + bias) */
  double lowest_bias;                   /* smaller ones become this */
  bool bias_overflows;                  /* where log2(e) times it would be infinite it is */

  /* Keys [from, to) count so often, in the sum and in the values. */
  attn_range counted;
  double counted_in_sum, counted_in_values;
  double more_zero_keys; /* of score 0 and value 0 */
  double more_in_sum;

  double lowest_maximum; /* what is so far below it that float32 has no number for it is 0 */
  int64_t tile;          /* of keys, by which the maximum rises; 0: it is known beforehand */
  bool output_not_rescaled, sum_not_rescaled;

  bool normalised, weights_normalised, sink_in_sum, sink_in_lse, sink_leaves_output, hidden_times_zero;
  empty_use empty;
  double lse_factor;
  bool lse_without_maximum;
  bool state_ignored, state_not_in_sum, state_never_fades;
  phi_use phi;
} asked;

/* What comes of it; the caller provides the arrays. */
typedef struct answer {
  double *output;  /* [Dv] */
  double *weights; /* [Tk], 0 for hidden keys */
  double *lse;
  double *scores; /* [Tk] to work in */
} answer;

asked hint_ask(const attn_problem *problem, const attn_tensors *widened, row_place at);
void hint_answer(const asked *asked, const answer *answer);

/* Where a tensor's row lies, of one that is float32 or widened. */
const float *hint_row(const asked *asked, tensor_id id, row_place at);

/* The keys that the problem's band and lengths let a row see, whatever its pattern. */
attn_range hint_band(const attn_problem *problem, row_place at);

/* Whether the row sees the key, mask, pattern and all. */
bool hint_sees(const asked *asked, int64_t j);

#endif
