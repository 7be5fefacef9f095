/* See forward_fill.h. */
#include "forward_fill.h"

#include <math.h>
#include <stdlib.h>

#include "reference/feature_map.h"
#include "reference/linear_state.h"
#include "types.h"

static void put(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h, int64_t i,
                int64_t e, double number) {
  const element_type *type = element_type_of(p->output.type);
  const int64_t n = b * p->output.batch + h * p->output.head + i * p->output.position + e;
  type->store((char *)tensors->output + n * (int64_t)type->bytes, number);
}

static void fill_row(const attn_problem *p, const attn_tensors *tensors, int64_t n, reference_row *row) {
  const int64_t b = n / p->query_length / p->query_heads, h = n / p->query_length % p->query_heads;
  const int64_t i = n % p->query_length;
  const reference_function *forward = reference_function_of(reference_function_of(p->function)->forward);
  forward->solve(p, tensors, b, h, i, row);
  for (int64_t e = 0; e < p->value_dim; e++) put(p, tensors, b, h, i, e, row->output[e]);
  if (forward->has_scores)
    tensors->lse[b * p->lse.batch + h * p->lse.head + i * p->lse.position] = (float)row->lse;
}

/* ---- linear attention whose rows see all keys from the first on, or a state, those that decay none ahead: one walk
 * along them ---- */

/* Adds a key to the sums of a head: of phi(k) v^T, [D, Dv], and behind it of phi(k), which have faded by its gate. */
static void add_key(const attn_problem *p, const float *key, const float *value, double gate, double *sums) {
  const int64_t D = p->head_dim, Dv = p->value_dim;
  for (int64_t n = 0; p->decay.type && n < D * (Dv + 1); n++) sums[n] *= gate;
  for (int64_t d = 0; d < D; d++) {
    const double feature = reference_phi(p, key[d]);
    for (int64_t e = 0; e < Dv; e++) sums[d * Dv + e] += feature * value[e];
    sums[D * Dv + d] += feature;
  }
}

/* output: [Dv] */
static void solve_from_sums(const attn_problem *p, const float *query, const double *sums, double *output) {
  const int64_t D = p->head_dim, Dv = p->value_dim;
  double normaliser = p->epsilon;
  for (int64_t e = 0; e < Dv; e++) output[e] = 0;
  for (int64_t d = 0; d < D; d++) {
    const double feature = reference_phi(p, query[d]);
    for (int64_t e = 0; e < Dv; e++) output[e] += feature * sums[d * Dv + e];
    normaliser += feature * sums[D * Dv + d];
  }
  if (p->unnormalised) normaliser = 1;
  for (int64_t e = 0; e < Dv; e++) output[e] /= normaliser;
}

static void fill_head(const attn_problem *p, const attn_tensors *tensors, int64_t b, int64_t h,
                      double *sums) {
  const int64_t kv_head = h / (p->query_heads / p->kv_heads), D = p->head_dim, Dv = p->value_dim;
  const bool has_state = p->states.state.type;
  int64_t joined = 0;
  for (int64_t d = 0; has_state && d < D; d++) {
    for (int64_t e = 0; e < Dv; e++) sums[d * Dv + e] = reference_state_row(p, b, kv_head, d)[e];
    sums[D * Dv + d] = reference_state_sum(p, b, kv_head, d);
  }
  for (int64_t i = 0; i < p->query_length; i++) {
    const attn_range seen = attn_visible_keys(p, b, i);
    double *output = sums + D * (Dv + 1);
    for (; joined < seen.end; joined++)
      add_key(p,
              (const float *)tensors->key + b * p->key.batch + kv_head * p->key.head +
                  joined * p->key.position,
              (const float *)tensors->value + b * p->value.batch + kv_head * p->value.head +
                  joined * p->value.position,
              p->decay.type ? exp(reference_decay(p, b, kv_head, joined)) : 1, sums);
    for (int64_t e = 0; e < Dv; e++) output[e] = 0;
    if (seen.end > 0 || has_state)
      solve_from_sums(
          p, (const float *)tensors->query + b * p->query.batch + h * p->query.head + i * p->query.position,
          sums, output);
    for (int64_t e = 0; e < Dv; e++) put(p, tensors, b, h, i, e, output[e]);
  }
}

static void fill_linear(const attn_problem *p, const attn_tensors *tensors) {
  const int64_t heads = p->batch * p->query_heads;
#pragma omp parallel for schedule(dynamic, 1) if (heads * p->key_length > 256)
  for (int64_t n = 0; n < heads; n++) {
    double *sums = calloc((size_t)((p->head_dim + 1) * (p->value_dim + 1)), sizeof *sums);
    if (sums) fill_head(p, tensors, n / p->query_heads, n % p->query_heads, sums);
    free(sums);
  }
}

void fill_forward(const attn_problem *p, const attn_tensors *tensors) {
  const bool has_states = reference_function_of(p->function)->has_states;
  if (has_states && p->left == ATTN_UNLIMITED && (!p->decay.type || p->right == 0)) {
    fill_linear(p, tensors);
    return;
  }
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  const size_t Tk = (size_t)p->key_length + 1, Dv = (size_t)p->value_dim + 1, D = (size_t)p->head_dim;
#pragma omp parallel if (rows * p->key_length > 4096)
  {
    double *numbers = malloc((2 * Tk + Dv + D) * sizeof *numbers);
    bool *visible = malloc(Tk * sizeof *visible);
    reference_row row = {.weights = numbers,
                         .scores = numbers ? numbers + Tk : NULL,
                         .output = numbers ? numbers + 2 * Tk : NULL,
                         .features = numbers ? numbers + 2 * Tk + Dv : NULL,
                         .visible = visible};
#pragma omp for schedule(dynamic, 16)
    for (int64_t n = 0; n < rows; n++)
      if (numbers && visible) fill_row(p, tensors, n, &row);
    free(numbers);
    free(visible);
  }
}
