/* The verdict on arrays from anywhere: what a kernel in Python, in a notebook or on another machine gave for a
 * problem, held to the same rows and bounds as verify holds a variant to. */
#ifndef ATTN_HARNESS_JUDGE_H
#define ATTN_HARNESS_JUDGE_H

#include <stdio.h>

#include "problem/tensors.h"
#include "problem/workload.h"

/* Beside the attn_types, of arrays alone: no problem has it. */
enum { JUDGE_FLOAT64 = 64 };

/* An array [B, H, T, width] as tensor_stored_shape has it: 1 for the axes that the problem broadcasts or the tensor
 * lacks (the sinks are [1, H, 1, 1], the log-sum-exp is [B, H, Tq, 1]). Elements need no alignment. */
typedef struct judge_array {
  const void *data;   /* NULL: it is not given */
  int type;           /* an attn_type, or JUDGE_FLOAT64 */
  int64_t strides[4]; /* in bytes, of any sign or 0; of an axis of one element it is not looked at */
} judge_array;

/* What is judged. Inputs that are not given are drawn, as the problem line says; those that are given stand in their place, and
 * the reference works from them. Of the outputs the output itself is needed; a log-sum-exp and weights are judged where they
 * are given, whether the line asks for them or not. */
typedef struct judge_question {
  const workload *workload; /* its layout does not matter */
  judge_array arrays[TENSORS];
  uint32_t traits; /* ATTN_FLOAT32_WEIGHTS holds it to what that promises; 0 by custom */
  bool no_hint;    /* saves what a hint costs of outputs that are wrong */
} judge_question;

/* One element of an output, as a share of its bound. e: the feature of the output, the key of the weights. */
typedef struct judge_element {
  tensor_id tensor;
  int64_t b, h, i, e;
  double computed, expected, bound;
  double share; /* |computed - expected| / bound; infinite where no error is allowed */
} judge_element;

enum { JUDGE_PATTERN_BYTES = 256, JUDGE_HINT_BYTES = 256, JUDGE_KIND_BYTES = 16 };

typedef struct judge_verdict {
  bool ok;
  char problem[WORKLOAD_NAME_BYTES]; /* the line, with the seed */
  bool given[TENSORS];               /* which outputs were judged */
  judge_element worst; /* the one nearest to its bound, or farthest beyond; share 0: nothing differs */
  int64_t wrong_elements, wrong_rows;
  int64_t rows_checked,
      rows_total;           /* fewer are checked where the reference would take minutes: a seeded sample */
  double mean_square_share; /* above 1: errors are too large together, though none may be beyond its bound */
  char sentence[512];       /* what is wrong, as verify says it; empty where nothing is */
  char pattern
      [JUDGE_PATTERN_BYTES]; /* "wrong in 63 of 508 rows: heads 1-2 of 4"; empty where nothing is wrong */
  char kind
      [JUDGE_KIND_BYTES]; /* of the likely mistake, a word: "scale", "heads"; empty: none suggests itself */
  char hint[JUDGE_HINT_BYTES]; /* and a sentence about it */
} judge_verdict;

/* Any thread may call. Of the last problem with drawn inputs the solution is kept, with the memory of its inputs:
 * another output of it costs the verdict alone.
 *
 * False, with the reason in a sentence, where nothing can be judged: a problem that is not sound, an output that is
 * not given, an array of a type that the tensor cannot have, memory that is short.
 *
 * Outputs may have the type that the problem gives them, or a wider one (float32 where it says bf16, float64), which
 * is rounded to it first, as a kernel that stores would have. Inputs must be of the very type. */
bool judge(const judge_question *question, judge_verdict *verdict, char *why, size_t why_size);

/* Three lines, or four with a hint, each with its end of line. */
void judge_print(const judge_verdict *verdict, FILE *out);

/* The same as an object of JSON; numbers that are not finite are the texts "nan", "inf" and "-inf". */
void judge_json(const judge_verdict *verdict, FILE *out);

#endif
