/* The truth of a layer: output rows in double precision, straight from the formula in variants/functions.h, and how far float32
 * arithmetic may be from them (README.md, "A layer"). Every row needs the keys and values of its whole entry, so that these are
 * projected once, into room that the caller provides. */
#ifndef ATTN_REFERENCE_LAYER_H
#define ATTN_REFERENCE_LAYER_H

#include "gradient.h"

/* What the roundings of a product of two vectors go by, of one of them: Euclid's norm, how many elements are the one before (of
 * weights the most of the rows up to this one), and the size of what is added. */
typedef struct reference_size {
  double norm, repeats, bias;
} reference_size;

/* All in one piece of memory. */
typedef struct reference_layer {
  double *w_k,
      *w_v; /* transposed, [M, Hkv D] and [M, Hkv Dv], so that a feature that comes in meets all that go out */
  double *keys, *values;                    /* [B, Tk, Hkv D] and [B, Tk, Hkv Dv] */
  reference_size *of_w_q, *of_w_k, *of_w_v; /* of each row */
  reference_size *of_memory;                /* [B, Tk] */
  double *repeats; /* [B, Tk] 1: the same as an earlier key, so that its roundings are as well; else 0 */
} reference_layer;

enum { REFERENCE_KEYS_AT_ONCE = 8 };

/* How many doubles such room is, and that of one row at work. */
size_t reference_layer_room(const attn_problem *problem);
size_t reference_layer_row_room(const attn_problem *problem);

/* Places it in that many zeros, and reads the weights. */
void reference_layer_begin(const attn_problem *problem, double *room, reference_layer *layer);

/* Projects keys and values of an entry, from one on and at most so many at once; each once, in any order. */
void reference_layer_project(const attn_problem *problem, const attn_tensors *tensors,
                             const reference_layer *layer, int64_t b, int64_t first);

/* When all are: finds those that repeat. */
void reference_layer_finish(const attn_problem *problem, const reference_layer *layer);

/* [M]: of position i of an entry. */
void reference_layer_row(const attn_problem *problem, const attn_tensors *tensors,
                         const reference_layer *layer, int64_t b, int64_t i, double *room,
                         reference_gradient *to);

#endif
