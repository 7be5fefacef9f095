/* Memory for a row of a small problem. */
#ifndef ATTN_TESTS_ROW_ARRAYS_H
#define ATTN_TESTS_ROW_ARRAYS_H

#include "reference/reference.h"

enum { ROW_KEYS = 96, ROW_DIM = 24 };

typedef struct row_arrays {
  double weights[ROW_KEYS], scores[ROW_KEYS], notes[REFERENCE_NOTES * ROW_KEYS], features[ROW_DIM];
  double output[ROW_DIM], bound[ROW_DIM], probabilistic[ROW_DIM], deviation[ROW_DIM];
  bool visible[ROW_KEYS];
  int64_t order[ROW_KEYS];
} row_arrays;

/* A row that has these arrays, and nothing else yet. */
static inline reference_row row_in(row_arrays *arrays) {
  return (reference_row){.weights = arrays->weights,
                         .scores = arrays->scores,
                         .visible = arrays->visible,
                         .features = arrays->features,
                         .order = arrays->order,
                         .notes = arrays->notes,
                         .output = arrays->output,
                         .output_bound = arrays->bound,
                         .output_bound_probabilistic = arrays->probabilistic,
                         .output_deviation = arrays->deviation};
}

#endif
