/* See linear_gates.h. */
#include "linear_gates.h"

void linear_load_gates(const tile_kernels *kernels, const attn_problem *problem, int64_t b, int64_t kv_head,
                       int64_t first, int64_t end, linear_gates *gates) {
  const float *decay = problem->decay_data + b * problem->decay.batch + kv_head * problem->decay.head;
  for (int64_t j = 0; j < TILE_MAX_ROWS; j++)
    gates->gate[j] = first + j < end ? decay[first + j] * 0x1.715476p+0f : 0; /* log2(e) */
  kernels->exp2(TILE_MAX_ROWS, gates->gate);
  gates->all = 1;
  for (int64_t j = TILE_MAX_ROWS - 1; j >= 0; j--) {
    gates->behind[j] = gates->all;
    gates->all *= gates->gate[j];
  }
}

void linear_fade_rows(int64_t count, int64_t width, const float *factor, float *rows, int64_t stride) {
  for (int64_t r = 0; r < count; r++)
    for (int64_t d = 0; d < width; d++) rows[r * stride + d] *= factor[r];
}

void linear_fade_columns(int64_t count, int64_t rows, const float *restrict factor, float *restrict columns) {
  for (int64_t n = 0; n < count; n++)
    for (int64_t r = 0; r < rows; r++) columns[n * rows + r] *= factor[r];
}

void linear_fade_pairs(const linear_gates *gates, int64_t keys, int64_t rows, const float *restrict to,
                       float *restrict pairs) {
  float fade[TILE_MAX_ROWS];
  for (int64_t r = 0; r < rows; r++) fade[r] = 1;
  for (int64_t j = keys - 1; j >= 0; j--)
    for (int64_t r = 0; r < rows; r++) {
      pairs[j * rows + r] *= fade[r];
      fade[r] *= to[r] > (float)j ? gates->gate[j] : 1;
    }
}

float linear_meet_decays(const linear_gates *gates, int64_t seen, double of_keys_before, float *weights,
                         float *grads, double *decay_grads) {
  double share[TILE_MAX_ROWS] = {0}, before = of_keys_before;
  float fade = 1;
  for (int64_t r = seen - 1; r >= 0; r--) {
    weights[r] *= fade;
    share[r] = (double)weights[r] * grads[r];
    grads[r] *= fade;
    fade *= gates->gate[r];
  }
  for (int64_t r = 0; r < seen; r++) {
    decay_grads[r] += before;
    before += share[r];
  }
  return fade;
}

double linear_product(int64_t count, const float *x, const float *y) {
  enum { CHAINS = 8 };
  double sums[CHAINS] = {0}, sum = 0;
  int64_t n = 0;
  for (; n + CHAINS <= count; n += CHAINS)
    for (int c = 0; c < CHAINS; c++) sums[c] += (double)x[n + c] * y[n + c];
  for (; n < count; n++) sum += (double)x[n] * y[n];
  for (int c = 0; c < CHAINS; c++) sum += sums[c];
  return sum;
}
