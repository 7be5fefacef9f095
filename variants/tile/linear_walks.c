/* See linear_walks.h. */
#include "linear_walks.h"

#include <string.h>

void linear_join_state(const linear_backward *of, linear_scratch *mine, int64_t count, const float *features,
                       tile_rows value, tile_rows factor, const tile_ahead *next) {
  const int64_t Dv = of->problem->value_dim;
  for (int64_t d = 0; count > 0 && d < of->depth; d += of->kernels->max_rows) {
    const int64_t wide = strip(of, d);
    of->kernels->accumulate((tile_size){wide, count, Dv}, (tile_matrix){features + d, of->depth}, value, NULL,
                            d == 0 ? next : NULL, (tile_target){mine->state + Dv * d, wide});
    of->kernels->accumulate((tile_size){wide, count, 1}, (tile_matrix){features + d, of->depth}, factor, NULL,
                            NULL, (tile_target){mine->sums + d, 0});
  }
}

void linear_apply_state(const linear_backward *of, linear_scratch *mine, int64_t count, tile_rows rows,
                        const tile_ahead *next) {
  const int64_t Dv = of->problem->value_dim;
  if (Dv == 0) memset(mine->grads, 0, (size_t)(count * of->depth) * sizeof(float));
  for (int64_t d = 0; Dv > 0 && d < of->depth; d += of->kernels->max_rows) {
    const int64_t wide = strip(of, d);
    of->kernels->scores((tile_size){wide, count, Dv}, (tile_matrix){mine->state + Dv * d, wide}, rows, 1,
                        d == 0 ? next : NULL, (tile_target){mine->grads + d, of->depth});
  }
}

void linear_add_pairs(const linear_backward *of, linear_scratch *mine, int64_t first, int64_t count,
                      int64_t terms, tile_rows weights, const float *features) {
  for (int64_t d = 0; d < of->depth; d += of->kernels->max_rows)
    of->kernels->accumulate((tile_size){strip(of, d), terms, count}, (tile_matrix){features + d, of->depth},
                            weights, NULL, NULL,
                            (tile_target){mine->grads + first * of->depth + d, of->depth});
}

void linear_pack_columns(const linear_backward *of, int64_t rows, int64_t count, int64_t width,
                         tile_rows from, float *columns) {
  const void *row[ROWS];
  for (int64_t r = 0; r < count; r++) row[r] = (const float *)from.x + r * from.stride;
  of->kernels->pack(rows, count, width, row, 1, columns);
}

void linear_fade_state(const linear_backward *of, linear_scratch *mine) {
  const int64_t depth = of->depth;
  linear_fade_rows(1, depth, &mine->gates.all, mine->sums, depth);
  linear_fade_rows(1, depth * of->problem->value_dim, &mine->gates.all, mine->state, 0);
}

void linear_multiply_rows(const linear_backward *of, int64_t count, const float *rows, const float *x,
                          const float *minus, const float *y, double *products) {
  const int64_t depth = of->depth;
  float with_x[ROWS], with_y[ROWS];
  of->kernels->dot_pairs(count, depth, (tile_matrix){rows, depth}, (tile_matrix){x, depth}, with_x);
  of->kernels->dot_pairs(count, depth, (tile_matrix){rows, depth}, (tile_matrix){y, 0}, with_y);
  for (int64_t r = 0; r < count; r++) products[r] = with_x[r] - (double)minus[r] * with_y[r];
}
