/* What a problem of ATTN_LAYER has beside those of softmax attention: the weights that it projects with. A part of attention.h.
 *
 * Such a problem has no tensors of heads: query is x [B, 1, Tq, M], key the memory [B, 1, Tk, M] or, where x is its own memory,
 * absent, value absent, output [B, 1, Tq, M]. What hides keys or adds to scores is as it always is, by query heads. All of it is
 * float32. */
#ifndef ATTN_LAYER_WEIGHTS_H
#define ATTN_LAYER_WEIGHTS_H

/* Matrices are [out, in], as torch.nn.Linear has them: a row for each feature that comes out, rows a stride of `position`
 * apart. Biases: all four, or none (type ATTN_ABSENT). */
typedef struct attn_layer_weights {
  int64_t model_dim; /* M, the features that come in and go out: 1 or more, and 0 of other functions */
  attn_layout w_q, w_k, w_v, w_o;
  attn_layout b_q, b_k, b_v, b_o;
  const float *w_q_data; /* [H D, M], a head's rows next to each other */
  const float *w_k_data; /* [Hkv D, M] */
  const float *w_v_data; /* [Hkv Dv, M] */
  const float *w_o_data; /* [M, H Dv] */
  const float *b_q_data; /* [H D] */
  const float *b_k_data; /* [Hkv D] */
  const float *b_v_data; /* [Hkv Dv] */
  const float *b_o_data; /* [M] */
} attn_layer_weights;

#endif
