/* See forward_fill.h. */
#include "forward_fill.h"

#include <math.h>
#include <stdlib.h>

#include "reference/reference.h"

static void fill_row(const attn_problem *p, const attn_tensors *tensors, int64_t n, reference_row *row) {
  const int64_t b = n / p->query_length / p->query_heads, h = n / p->query_length % p->query_heads;
  const int64_t i = n % p->query_length;
  float *output =
      (float *)tensors->output + b * p->output.batch + h * p->output.head + i * p->output.position;
  reference_softmax.solve(p, tensors, b, h, i, row);
  for (int64_t e = 0; e < p->value_dim; e++) output[e] = (float)row->output[e];
  tensors->lse[b * p->lse.batch + h * p->lse.head + i * p->lse.position] = (float)row->lse;
}

void fill_forward(const attn_problem *p, const attn_tensors *tensors) {
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  const size_t Tk = (size_t)p->key_length + 1, Dv = (size_t)p->value_dim + 1;
#pragma omp parallel if (rows * p->key_length > 4096)
  {
    double *numbers = malloc((2 * Tk + Dv) * sizeof *numbers);
    bool *visible = malloc(Tk * sizeof *visible);
    reference_row row = {.weights = numbers,
                         .scores = numbers ? numbers + Tk : NULL,
                         .output = numbers ? numbers + 2 * Tk : NULL,
                         .visible = visible};
#pragma omp for schedule(dynamic, 16)
    for (int64_t n = 0; n < rows; n++)
      if (numbers && visible) fill_row(p, tensors, n, &row);
    free(numbers);
    free(visible);
  }
}
