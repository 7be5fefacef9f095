/* What is computed: the functions that a problem may ask for, with the formulas that define them, and the terms of a
 * pattern. A part of attention.h. */
#ifndef ATTN_FUNCTIONS_H
#define ATTN_FUNCTIONS_H

#include <stdint.h>

/* The mathematical function; it decides which reference a variant is held to.
 *
 * ATTN_SOFTMAX (Vaswani et al. 2017, section 3.2.1), for query i and key j:
 *     score_ij = scale * sum_d q_id k_jd
 *     score_ij = scale * sum_e (sum_d q_id W_de) k_je     where there are general scores (Luong et al. 2015), W of the head; of
 *                                                         rotated q and k where these are
 *     score_ij = scale * sum_d w_d tanh(q_id + k_jd)      where there are additive scores (Bahdanau et al. 2015), w of the
 *                                                         head; the same of q and k, which are projected already
 *     score_ij = softcap * tanh(score_ij / softcap)       where softcap > 0
 *     score_ij = score_ij + bias_ij                       where there is a bias
 *     score_ij = score_ij - alibi_h |j - (i + offset)|    where there are ALiBi slopes (Press et al. 2022)
 *     score_ij = score_ij + relative_h[r]                 where there is a relative table (Shaw et al. 2018), r = j -
 *                                                         (i + offset) but at least -R and at most R
 *     score_ij = score_ij + t5_h[bucket(j - (i + offset))]    where there are T5's buckets (Raffel et al. 2020; attn_t5_bucket)
 *     o_i      = sum_j exp(score_ij) v_j / sum_j exp(score_ij)    over the visible keys
 *     lse_i    = log(sum_j exp(score_ij))                 natural logarithm
 * Where there is a rotary embedding (Su et al. 2021), q_i and k_j are rotated before all else, by row p = i + offset
 * and row j of the tables: of R features, taken in pairs, (a, b) becomes (a cos_pn - b sin_pn, b cos_pn + a sin_pn)
 * in the n-th; features from R on stay.
 * Where there are sinks (gpt-oss), one for each query head, exp(sink_h) joins the sum of both and has no value.
 * Where there is dropout (Srivastava et al. 2014), by a mask that is given and a p from 0 up to, but not, 1, values
 * meet the weights that it leaves; the sum and the log-sum-exp do not change:
 *     kept_ij = 1 / (1 - p) where keep_ij is not 0, else 0
 *     o_i     = sum_j kept_ij exp(score_ij) v_j / sum_j exp(score_ij)
 *
 * ATTN_LINEAR (Katharopoulos et al. 2020, section 3.2), phi the feature map:
 *     w_ij = phi(q_i).phi(k_j)                            with decay (gated linear attention, RetNet, scalar Mamba-2) times
 *                                                         exp(sum_t decay_t), j < t <= i + offset, t of the keys that exist:
 *                                                         1 for the query's own key and those ahead of it
 *     o_i  = sum_j w_ij v_j / (sum_j w_ij + epsilon)      over the visible keys; unnormalised: sum_j w_ij v_j alone
 * Where there is a state S, z of keys before the first (linear_states.h), every row sees it:
 * a_i = exp(sum_t decay_t), t <= i + offset,
 *     o_i  = (sum_j w_ij v_j + a_i phi(q_i) S) / (sum_j w_ij + a_i phi(q_i).z + epsilon)
 * and the final state is that of all keys that exist, seen or not, with A = exp of the sum of all their decays:
 *     S'   = A S + sum_j exp(sum_t decay_t, t > j) phi(k_j) v_j^T       z' = A z + sum_j exp(sum_t decay_t, t > j) phi(k_j)
 *
 * ATTN_SOFTMAX_BACKWARD (Dao et al. 2022, appendix B.4): the gradients of sum_ie do_ie o_ie, from the gradient do of
 * the output, and from the output o and the log-sum-exp as they are given. With s_ij = scale * sum_d q_id k_jd:
 *     p_ij    = exp(score_ij - lse_i)                   of the visible keys; 0 where the score is -inf
 *     delta_i = sum_e do_ie o_ie
 *     g_ij    = p_ij (kept_ij sum_e do_ie v_je - delta_i)    the gradient of score_ij; kept_ij is 1 without dropout
 *     x_ij    = g_ij (1 - tanh(s_ij / softcap)^2)       of s_ij; g_ij itself without a softcap
 *     dq_i    = scale sum_j x_ij k_j
 *     dk_j    = scale sum_i x_ij q_i                    over all query heads that read the key, as is
 *     dv_j    = sum_i p_ij kept_ij do_i
 *     dbias   = g, summed over the axes on which the bias has stride 0
 *     dsink_h = -sum_bi exp(sink_h - lse_i) delta_i     over the queries that exist
 *
 * With a rotary embedding q and k are the rotated ones, and dq_i and dk_j are turned back: (a, b) becomes (a cos + b
 * sin, b cos - a sin).
 *
 * ATTN_LINEAR_BACKWARD: the same of linear attention, from q, k, v, do and the output o as it is given. There is no
 * other tensor of the forward pass: the normaliser is made again. phi' is the derivative of phi, with w_ij =
 * phi(q_i).phi(k_j):
 *     n_i     = sum_j w_ij + epsilon                     over the visible keys, as below
 *     delta_i = sum_e do_ie o_ie
 *     g_ij    = (sum_e do_ie v_je - delta_i) / n_i       the gradient of w_ij
 *     dq_i    = phi'(q_i) sum_j g_ij phi(k_j)            feature by feature
 *     dk_j    = phi'(k_j) sum_i g_ij phi(q_i)            over all query heads that read the key, as is
 *     dv_j    = sum_i w_ij do_i / n_i
 * Where there is a decay, w_ij fades as above, f_ij = exp(sum_t decay_t, j < t <= i + offset, t of the keys that
 * exist):
 *     dq_i    = phi'(q_i) sum_j g_ij f_ij phi(k_j)       dk_j likewise
 *     ddecay_t = sum g_ij w_ij                           over all pairs that fade by it, of all query heads that read the keys
 * Where there is a state S, z, what a row sees of it counts as its keys do, a_i as above:
 *     n_i      = sum_j w_ij + a_i phi(q_i).z + epsilon
 *     dq_i     = phi'(q_i) (sum_j g_ij f_ij phi(k_j) + a_i (S do_i - delta_i z) / n_i)
 *     dS       = sum_i a_i phi(q_i) do_i^T / n_i         dz = -sum_i a_i phi(q_i) delta_i / n_i
 *     ddecay_t has a_i phi(q_i).(S do_i - delta_i z) / n_i as well, of the queries i + offset >= t
 * ATTN_LAYER (Vaswani et al. 2017, section 3.2.2), from x [B, Tq, M] and a memory m [B, Tk, M], which is x itself in
 * self-attention:
 *     q_h = W_Q,h x + b_Q,h,  k_g = W_K,g m + b_K,g,  v_g = W_V,g m + b_V,g    head h of H, g of Hkv
 *     y   = W_O [o_1 ... o_H] + b_O    o_h as of ATTN_SOFTMAX from q_h, k_g and v_g, with all that adds to scores or hides keys
 * A row that sees no key has o = 0, so y = b_O.
 *
 * A row that sees no key, nor a state: output zeros, log-sum-exp -inf or the sink, weights zeros. NaN and infinity in
 * an input reach the output rows that see them and no other; a key whose score is -inf, or that is dropped, may be
 * left out, or count with weight 0. */
typedef enum attn_function {
  ATTN_SOFTMAX = 0,
  ATTN_LINEAR = 1,
  ATTN_SOFTMAX_BACKWARD = 2,
  ATTN_LINEAR_BACKWARD = 3,
  ATTN_LAYER = 4
} attn_function;

/* phi(x) of linear attention: elu(x) + 1, which is x + 1 where x > 0 and e^x elsewhere; max(x, 0); x. A NaN stays one. */
typedef enum attn_feature_map { ATTN_ELU1 = 0, ATTN_RELU = 1, ATTN_IDENTITY = 2 } attn_feature_map;

/* One term of a pattern; p = i + offset is the position of query i, divisions round down. It lets these keys j through: */
typedef enum attn_term_kind {
  ATTN_LOCAL,   /* p - a <= j <= p + b; either may be ATTN_UNLIMITED */
  ATTN_FIRST,   /* j < a */
  ATTN_GLOBAL,  /* j < a, or all where p < a */
  ATTN_DILATED, /* p - j is a multiple of b, and at most a b either way */
  ATTN_STRIDED, /* p - j is a multiple of a */
  ATTN_FIXED,   /* j / a = p / a, or j mod a >= a - b */
  ATTN_RANDOM /* j / b is one of the a draws of attn_random_block (visibility.h) for row p / b by the seed */
} attn_term_kind;

typedef struct attn_term {
  attn_term_kind kind;
  int64_t a, b, seed; /* those that the kind does not name are 0 */
} attn_term;

enum { ATTN_MOST_TERMS = 4 };

#endif
