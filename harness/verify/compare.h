/* Where outputs differ from the reference rows that they are held to: every element is gone through, so this is for outputs
 * that are wrong, and for those of which one wants to know the worst element. */
#ifndef ATTN_HARNESS_COMPARE_H
#define ATTN_HARNESS_COMPARE_H

#include "expected.h"

/* One element of an output; e: the feature, or of weights the key. */
typedef struct element_error {
  tensor_id tensor;
  row_place at;
  int64_t e;
  double computed, expected, bound; /* the bound of which the error is the larger share */
  double share;
} element_error;

typedef struct examination {
  bool *rows;           /* [rows] of the expected ones which are wrong */
  bool *columns, *keys; /* [Dv] of the output, [Tk] of the weights or NULL */
  int64_t wrong_elements, wrong_rows;
  bool wrong_in[TENSORS];
  bool has_worst; /* some element is not exactly what was expected */
  element_error worst;
} examination;

/* What expected_compare holds to the bounds of a variant with these traits. False when memory is short. */
bool examine(const expected *known, uint32_t traits, examination *all);
void examination_destroy(examination *all);

/* The pattern of what is wrong, as pattern_describe says it. */
void examination_describe(const examination *all, const expected *known, char *text, size_t size);

#endif
