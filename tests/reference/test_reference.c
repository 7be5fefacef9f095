/* The reference's own proof: quadruple precision on random small problems, and answers of 60 digits from an
 * independent program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/cases.h"
#include "problem/widened.h"
#include "reference/layer.h"
#include "reference/linear_state.h"
#include "reference/reference.h"
#include "reference/roundings.h"
#include "tests/reference/oracle.h"
#include "tests/reference/row_arrays.h"

enum {
  MAX_KEYS = ROW_KEYS,
  MAX_DIM = ROW_DIM,
  MAX_BATCH = 2,
  MAX_HEADS = 4,
  MOST_REACH = 30,
  MOST_BUCKETS = 40,
  MOST_ANGLES = 128 * MAX_DIM / 2
};

static uint64_t drawn;

static uint64_t next(void) { /* xorshift64*, Vigna 2016 */
  drawn ^= drawn >> 12;
  drawn ^= drawn << 25;
  drawn ^= drawn >> 27;
  return drawn * UINT64_C(2685821657736338717);
}

static int64_t between(int64_t low, int64_t high) {
  return low + (int64_t)(next() % (uint64_t)(high - low + 1));
}

static float uniform(void) { return (float)((double)(next() >> 11) * 0x1p-52 - 1); }

typedef struct arena {
  attn_problem problem;
  uint8_t keep[MAX_BATCH * MAX_HEADS * 24 * MAX_KEYS];
  float state[MAX_BATCH * MAX_HEADS * MAX_DIM * MAX_DIM], state_sum[MAX_BATCH * MAX_HEADS * MAX_DIM];
  float slopes[4], decay[MAX_BATCH * MAX_HEADS * MAX_KEYS], table[4 * (2 * MOST_REACH + 1)],
      buckets[4 * MOST_BUCKETS], cosines[MOST_ANGLES], sines[MOST_ANGLES];
  attn_tensors tensors;
  int64_t offsets[MAX_BATCH], lengths[MAX_BATCH];
  float query[MAX_BATCH * MAX_HEADS * 24 * MAX_DIM];
  float key[MAX_BATCH * MAX_HEADS * MAX_KEYS * MAX_DIM];
  float value[MAX_BATCH * MAX_HEADS * MAX_KEYS * MAX_DIM];
  float bias[MAX_BATCH * MAX_HEADS * 24 * MAX_KEYS];
  uint8_t mask[MAX_BATCH * MAX_HEADS * 24 * MAX_KEYS];
  row_arrays arrays;
  reference_row row;
} arena;

static arena a;

static void fill(float *data, size_t count, double size) {
  for (size_t n = 0; n < count; n++) data[n] = (float)(uniform() * size);
}

static void use_arena(void) {
  attn_problem *p = &a.problem;
  const attn_type mask = p->mask.type, bias = p->bias.type;
  p->query = attn_packed(ATTN_FLOAT32, p->query_heads, p->query_length, p->head_dim);
  p->key = attn_packed(ATTN_FLOAT32, p->kv_heads, p->key_length, p->head_dim);
  p->value = attn_packed(ATTN_FLOAT32, p->kv_heads, p->key_length, p->value_dim);
  p->mask = attn_packed(mask, p->query_heads, p->query_length, p->key_length);
  p->bias = attn_packed(bias, p->query_heads, p->query_length, p->key_length);
  a.tensors =
      (attn_tensors){.query = a.query, .key = a.key, .value = a.value, .mask = a.mask, .bias = a.bias};
  a.row = row_in(&a.arrays);
}

/* Queries stand where there are angles. */
static void draw_rope(attn_problem *p) {
  p->rope_features = 2 * between(1, p->head_dim / 2);
  p->rope_positions = 128;
  p->rope_interleaved = between(0, 1);
  p->rope_cos = p->rope_sin = attn_packed(ATTN_FLOAT32, 1, 1, p->rope_features / 2);
  p->rope_cos_data = a.cosines;
  p->rope_sin_data = a.sines;
  p->offset = p->offset < 0 ? -p->offset : p->offset;
  for (int64_t b = 0; b < p->batch; b++) a.offsets[b] = a.offsets[b] < 0 ? -a.offsets[b] : a.offsets[b];
}

static void draw_states(attn_problem *p) {
  attn_linear_states *s = &p->states;
  p->left = ATTN_UNLIMITED;
  s->state = s->final_state = attn_packed(ATTN_FLOAT32, p->kv_heads, p->head_dim, p->value_dim);
  if (!p->unnormalised)
    s->state_sum = s->final_state_sum = attn_packed(ATTN_FLOAT32, p->kv_heads, 1, p->head_dim);
  s->state_data = a.state;
  s->state_sum_data = a.state_sum;
}

static void draw_problem(attn_function function) {
  attn_problem *p = &a.problem;
  *p = (attn_problem){.function = function, .batch = between(1, MAX_BATCH), .kv_heads = between(1, 2)};
  p->query_heads = p->kv_heads * between(1, 2);
  p->query_length = between(1, 24);
  p->key_length = between(0, MAX_KEYS);
  p->head_dim = between(1, MAX_DIM);
  p->value_dim = between(1, MAX_DIM);
  p->scale = uniform() * 4;
  p->epsilon = between(0, 1) ? 1e-6 : 0;
  p->left = between(0, 1) ? between(0, 40) : ATTN_UNLIMITED;
  p->right = between(0, 1) ? between(0, 40) : ATTN_UNLIMITED;
  p->offset = between(-20, 80);
  for (int64_t b = 0; b < p->batch; b++) {
    a.offsets[b] = between(-20, 80);
    a.lengths[b] = between(0, p->key_length);
  }
  p->offsets = between(0, 1) ? a.offsets : NULL;
  p->key_lengths = between(0, 1) ? a.lengths : NULL;
  if (function == ATTN_SOFTMAX) {
    p->softcap = between(0, 2) ? 0 : 5;
    p->mask.type = between(0, 1) ? ATTN_UINT8 : ATTN_ABSENT;
    p->bias.type = between(0, 1) ? ATTN_FLOAT32 : ATTN_ABSENT;
    if (between(0, 1)) p->alibi = attn_packed(ATTN_FLOAT32, p->query_heads, 1, 1);
    p->alibi_data = a.slopes;
    p->relative_distance = between(1, MOST_REACH);
    if (between(0, 1))
      p->relative = attn_packed(ATTN_FLOAT32, p->query_heads, 1, 2 * p->relative_distance + 1);
    p->relative_data = a.table;
    p->t5_both = between(0, 1);
    p->t5_buckets = p->t5_both ? 2 * between(2, MOST_BUCKETS / 2) : between(2, MOST_BUCKETS);
    p->t5_distance = p->t5_buckets / 2 + between(1, 90);
    if (between(0, 1)) p->t5 = attn_packed(ATTN_FLOAT32, p->query_heads, 1, p->t5_buckets);
    p->t5_data = a.buckets;
    if (between(0, 1) && p->head_dim > 1) draw_rope(p);
    if (between(0, 1)) p->keep = attn_packed(ATTN_UINT8, p->query_heads, p->query_length, p->key_length);
    p->dropout_p = p->keep.type ? (double)between(0, 9) / 10 : 0;
    p->keep_data = a.keep;
  }
  if (function == ATTN_LINEAR) {
    p->feature_map = (attn_feature_map)between(ATTN_ELU1, ATTN_IDENTITY);
    p->unnormalised = between(0, 2) == 0;
    if (between(0, 1)) p->decay = attn_packed(ATTN_FLOAT32, p->kv_heads, 1, p->key_length);
    p->decay_data = a.decay;
    if (between(0, 1)) draw_states(p);
  }
  use_arena();
  const double size = between(0, 2) ? 1 : 8;
  fill(a.query, sizeof a.query / sizeof *a.query, size);
  fill(a.key, sizeof a.key / sizeof *a.key, size);
  fill(a.value, sizeof a.value / sizeof *a.value, 1);
  fill(a.bias, sizeof a.bias / sizeof *a.bias, 2);
  fill(a.slopes, sizeof a.slopes / sizeof *a.slopes, 0.5);
  fill(a.state, sizeof a.state / sizeof *a.state, 8);
  fill(a.state_sum, sizeof a.state_sum / sizeof *a.state_sum, 8);
  for (size_t n = 0; n < sizeof a.state_sum / sizeof *a.state_sum; n++)
    a.state_sum[n] = fabsf(a.state_sum[n]);
  fill(a.decay, sizeof a.decay / sizeof *a.decay, 0.3);
  for (size_t n = 0; n < sizeof a.decay / sizeof *a.decay; n++) a.decay[n] = -fabsf(a.decay[n]);
  fill(a.table, sizeof a.table / sizeof *a.table, 2);
  fill(a.buckets, sizeof a.buckets / sizeof *a.buckets, 2);
  fill(a.cosines, sizeof a.cosines / sizeof *a.cosines, 1);
  fill(a.sines, sizeof a.sines / sizeof *a.sines, 1);
  for (size_t n = 0; n < sizeof a.mask; n++) a.mask[n] = between(0, 3) > 0;
  for (size_t n = 0; n < sizeof a.keep; n++) a.keep[n] = between(0, 3) > 0;
}

/* The bound of float32 arithmetic, at the precision of double: 2^29 times finer. Underflow has another
 * threshold there, so what it adds to the bound is left as it is. */
static double double_bound(double bound) { return bound * 0x1p-29; }

static double check_final_states(const attn_problem *p) {
  double values[MAX_DIM], worsts[MAX_DIM], probable[MAX_DIM], sizes[MAX_DIM] = {0}, truth[MAX_DIM], sum,
                                                              worst = 0;
  reference_gradient row = {values, worsts, probable, sizes, NULL};
  for (int64_t n = 0; n < p->batch * p->kv_heads * p->head_dim; n++) {
    const int64_t b = n / p->head_dim / p->kv_heads, h = n / p->head_dim % p->kv_heads, d = n % p->head_dim;
    oracle_final_state(p, &a.tensors, b, h, d, truth, &sum);
    reference_final_state(p, &a.tensors, b, h, d, &row);
    for (int64_t e = 0; e < p->value_dim; e++)
      worst = fmax(worst, reference_error_share(values[e], truth[e], double_bound(probable[e])));
    if (p->unnormalised) continue;
    reference_final_state_sum(p, &a.tensors, b, h, &row);
    worst = fmax(worst, reference_error_share(values[d], sum, double_bound(probable[d])));
  }
  return worst;
}

static void check_against_oracle(attn_function function, int problems) {
  double worst = 0;
  for (int n = 0; n < problems; n++) {
    draw_problem(function);
    const attn_problem *p = &a.problem;
    const int64_t rows = p->batch * p->query_heads * p->query_length;
    if (p->states.final_state.type) worst = fmax(worst, check_final_states(p));
    if (!(worst <= 1)) fail_msg("problem %d, the final state: %g times the bound", n, worst);
    for (int64_t r = 0; r < rows; r++) {
      const int64_t head = r / p->query_length, b = head / p->query_heads, h = head % p->query_heads;
      double output[MAX_DIM], lse = 0;
      reference_solve(p, &a.tensors, b, h, r % p->query_length, &a.row);
      oracle_row(p, &a.tensors, b, h, r % p->query_length, output, &lse);
      for (int64_t e = 0; e < p->value_dim; e++)
        worst = fmax(worst,
                     reference_error_share(a.row.output[e], output[e], double_bound(a.row.output_bound[e])));
      if (function == ATTN_SOFTMAX)
        worst = fmax(worst, reference_error_share(a.row.lse, lse, double_bound(a.row.lse_bound)));
      if (!(worst <= 1)) fail_msg("problem %d, row %lld: %g times the bound", n, (long long)r, worst);
    }
  }
  print_message("worst share of the bound at double precision: %.3g\n", worst);
}

static void softmax_agrees_with_quadruple_precision(void **unused) {
  (void)unused;
  drawn = 1;
  check_against_oracle(ATTN_SOFTMAX, 60);
}

static void linear_agrees_with_quadruple_precision(void **unused) {
  (void)unused;
  drawn = 2;
  check_against_oracle(ATTN_LINEAR, 40);
}

/* ---- The independent cases ---- */

/* Error in units of the last place of double, of a quantity of so large terms. */
static double ulps(double computed, double expected, double size) {
  if (computed == expected) return 0;
  return fabs(computed - expected) / (DBL_EPSILON * size);
}

/* What weights that are not divided add up to, by size: at most so much. */
static double weights_size(const golden_case *given, const attn_tensors *x, int64_t b, int64_t h, int64_t i) {
  const attn_problem *p = &given->inputs.problem;
  const int64_t kv_head = h / (p->query_heads / p->kv_heads);
  const float *q = (const float *)x->query + b * p->query.batch + h * p->query.head + i * p->query.position;
  double size = 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    const float *k = (const float *)x->key + b * p->key.batch + kv_head * p->key.head + j * p->key.position;
    for (int64_t d = 0; a.row.visible[j] && d < p->head_dim; d++)
      size += (1 + fabs((double)q[d])) * (1 + fabs((double)k[d]));
  }
  return p->unnormalised ? size : 1;
}

/* Scores of size s carry errors of s units in the last place into the exponent. */
static double check_case(const golden_case *given) {
  const attn_problem *p = &given->inputs.problem;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  double worst = 0;
  widened widened;
  assert_true(widened_create(&widened, &given->inputs.problem, &given->inputs.tensors, false));
  for (int64_t r = 0; r < rows; r++) {
    const int64_t head = r / p->query_length;
    reference_solve(p, &widened.tensors, head / p->query_heads, head % p->query_heads, r % p->query_length,
                    &a.row);
    const double weights = weights_size(given, &widened.tensors, head / p->query_heads, head % p->query_heads,
                                        r % p->query_length);
    double largest_score = 0;
    for (int64_t j = 0; p->function == ATTN_SOFTMAX && j < p->key_length; j++)
      if (a.row.visible[j]) largest_score = fmax(largest_score, fabs(a.row.scores[j]));
    if (given->answers[TENSOR_LSE])
      worst = fmax(worst, ulps(a.row.lse, given->answers[TENSOR_LSE][r], 1 + largest_score));
    for (int64_t e = 0; e < p->value_dim; e++) {
      double size = 0; /* sum_j p_j |v_j| is at most the largest |v| */
      for (int64_t j = 0; j < p->key_length; j++) {
        const int64_t kv_head = head % p->query_heads / (p->query_heads / p->kv_heads);
        const float *value = (const float *)widened.tensors.value + (head / p->query_heads) * p->value.batch +
                             kv_head * p->value.head + j * p->value.position;
        if (a.row.visible[j]) size = fmax(size, fabs((double)value[e]));
      }
      worst = fmax(worst, ulps(a.row.output[e], given->answers[TENSOR_OUTPUT][r * p->value_dim + e],
                               size * weights * (1 + largest_score)));
    }
  }
  widened_destroy(&widened);
  return worst;
}

/* Weights and elements of x are at most 1, so that an element of the output is at most this. */
static double check_layer(const golden_case *given) {
  const inputs *in = &given->inputs;
  const attn_problem *p = &in->problem;
  const int64_t M = p->layer.model_dim;
  const double size = (double)(p->query_heads * p->value_dim) * (double)(M + 1);
  double *room = calloc(reference_layer_room(p) + 1, sizeof *room), worst = 0;
  double *of_row = calloc(reference_layer_row_room(p) + 1, sizeof *of_row);
  double *values = calloc((size_t)(4 * M), sizeof *values);
  assert_true(room && of_row && values);
  reference_gradient row = {values, values + M, values + 2 * M, values + 3 * M, NULL};
  reference_layer layer;
  reference_layer_begin(p, room, &layer);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t j = 0; j < p->key_length; j += REFERENCE_KEYS_AT_ONCE)
      reference_layer_project(p, &in->tensors, &layer, b, j);
  reference_layer_finish(p, &layer);
  for (int64_t n = 0; n < p->batch * p->query_length; n++) {
    reference_layer_row(p, &in->tensors, &layer, n / p->query_length, n % p->query_length, of_row, &row);
    for (int64_t m = 0; m < M; m++)
      worst = fmax(worst, ulps(row.values[m], given->answers[TENSOR_OUTPUT][n * M + m], size));
  }
  free(room);
  free(of_row);
  free(values);
  return worst;
}

static void every_independent_case_is_met_within_four_units_in_the_last_place(void **unused) {
  (void)unused;
  DIR *folder = opendir(ATTN_SOURCE_DIR "/tests/cases");
  assert_non_null(folder);
  use_arena();
  int cases = 0;
  double worst = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[1024], why[2048];
    if (strchr(entry->d_name, '.')) continue; /* README.md, programs and the folder itself */
    snprintf(path, sizeof path, ATTN_SOURCE_DIR "/tests/cases/%s", entry->d_name);
    golden_case given;
    if (!case_load(&given, path, why, sizeof why)) fail_msg("%s", why);
    if (given.inputs.problem.key_length > MAX_KEYS || given.inputs.problem.value_dim > MAX_DIM)
      fail_msg("%s is larger than this test's arrays", entry->d_name);
    const bool backward = tensors_are_backward(&given.inputs.problem); /* test_gradient.c */
    const double share = backward                                      ? 0
                         : tensors_are_of_layer(&given.inputs.problem) ? check_layer(&given)
                                                                       : check_case(&given);
    if (!(share <= 4)) fail_msg("%s: %g units in the last place", entry->d_name, share);
    worst = fmax(worst, share);
    case_destroy(&given);
    cases++;
  }
  closedir(folder);
  print_message("%d cases, worst %.3g units in the last place\n", cases, worst);
  assert_int_equal(cases, 130);
}

/* The series that bounds are made of, on either side of where the library takes over. */
static void series_are_bounds_and_hardly_more(void **state) {
  (void)state;
  const long double rounding = 0x1p-50L;
  for (double x = 0x1p-40; x < 2; x *= 1.01) {
    const long double grown = expm1l(x), kept = expl(-(long double)x);
    assert_true(bound_grown(x) >= grown * (1 - rounding) && bound_grown(x) <= grown * (1 + 1e-6L));
    assert_true(bound_kept(x) <= kept * (1 + rounding) && bound_kept(x) >= kept * (1 - 1e-8L));
  }
  assert_true(bound_grown(0) == 0 && bound_kept(0) == 1);
  assert_true(bound_grown(INFINITY) == INFINITY && bound_kept(INFINITY) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(series_are_bounds_and_hardly_more),
      cmocka_unit_test(softmax_agrees_with_quadruple_precision),
      cmocka_unit_test(linear_agrees_with_quadruple_precision),
      cmocka_unit_test(every_independent_case_is_met_within_four_units_in_the_last_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
