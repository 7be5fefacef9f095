/* Verification: a correct kernel passes every problem, and each of a row of wrong ones is caught, by the
 * check that is there for it. The kernels here are one loop with a fault that is switched on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "verify/verify.h"
#include "verify/grid.h"
#include "problem/check.h"
#include "problem/random_problem.h"

typedef enum fault {
  NO_FAULT,
  SCALE_TWICE,
  LAST_KEY_DROPPED,
  FIRST_KEY_TWICE,
  CAUSAL_BY_ONE,
  LENGTH_IGNORED,
  MASK_INVERTED,
  SOFTCAP_FORGOTTEN,
  WRONG_KV_HEAD,
  EMPTY_ROW_NAN,
  LSE_BASE_2,
  COARSE_EXPONENTIAL,
  HIDDEN_VALUE_TIMES_ZERO,
  WEIGHTS_UNNORMALISED,
  LAST_ROW_UNWRITTEN,
  GAP_WRITTEN,
  WORKSPACE_OVERRUN,
  WORKSPACE_READ,
  INPUT_CHANGED,
  ROUNDING_CHANGED,
  DENORMALS_FLUSHED,
  THREAD_DEPENDENT,
} fault;

static fault planted;

static size_t workspace_size(const attn_call *call) {
  return (size_t)call->problem->key_length * sizeof(float);
}

/* 1 when key j may be seen. */
static bool sees(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i, int64_t j) {
  attn_problem changed = *p;
  if (planted == LENGTH_IGNORED) changed.key_lengths = NULL;
  attn_range keys = attn_visible_keys(&changed, b, i);
  if (planted == CAUSAL_BY_ONE && p->right == 0 && keys.end < p->key_length) keys.end++;
  if (planted == LAST_KEY_DROPPED && keys.end > keys.first + 1) keys.end--;
  if (j < keys.first || j >= keys.end) return false;
  if (!p->mask.type) return true;
  bool open = t->mask[b * p->mask.batch + h * p->mask.head + i * p->mask.position + j] != 0;
  return planted == MASK_INVERTED ? !open : open;
}

static float score(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t kv = planted == WRONG_KV_HEAD ? h % p->kv_heads : h / (p->query_heads / p->kv_heads);
  const float *q = (const float *)t->query + b * p->query.batch + h * p->query.head + i * p->query.position;
  const float *k = (const float *)t->key + b * p->key.batch + kv * p->key.head + j * p->key.position;
  float dot = 0;
  for (int64_t d = 0; d < p->head_dim; d++) dot += q[d] * k[d];
  dot *= (float)p->scale;
  if (planted == SCALE_TWICE) dot *= (float)p->scale;
  if (p->softcap > 0 && planted != SOFTCAP_FORGOTTEN)
    dot = (float)p->softcap * tanhf(dot / (float)p->softcap);
  if (!p->bias.type) return dot;
  return dot + ((const float *)t->bias)[b * p->bias.batch + h * p->bias.head + i * p->bias.position + j];
}

static float exponential(float x, int64_t j) {
  float e = expf(x);
  if (planted == COARSE_EXPONENTIAL) e *= j % 2 ? 1 + 1e-4f : 1 - 1e-4f;
  if (planted == FIRST_KEY_TWICE && j == 0) e *= 2;
  return e;
}

static void solve_row(const attn_problem *p, const attn_tensors *t, int64_t b, int64_t h, int64_t i,
                      float *weights) {
  const int64_t kv = h / (p->query_heads / p->kv_heads);
  float *out = (float *)t->output + b * p->output.batch + h * p->output.head + i * p->output.position;
  float max = -INFINITY, sum = 0;
  bool any = false;
  for (int64_t j = 0; j < p->key_length; j++) {
    const bool seen = sees(p, t, b, h, i, j);
    weights[j] = seen ? score(p, t, b, h, i, j) : -INFINITY;
    any = any || isnan(weights[j]) || weights[j] > -INFINITY;
    max = fmaxf(max, weights[j]);
  }
  for (int64_t j = 0; j < p->key_length; j++) {
    weights[j] = any && sees(p, t, b, h, i, j) ? exponential(weights[j] - max, j) : 0;
    sum += weights[j];
  }
  for (int64_t d = 0; d < p->value_dim; d++) out[d] = !any && planted == EMPTY_ROW_NAN ? NAN : 0;
  for (int64_t j = 0; j < p->key_length; j++) {
    const float *v =
        (const float *)t->value + b * p->value.batch + kv * p->value.head + j * p->value.position;
    if (any && sees(p, t, b, h, i, j) && planted != WEIGHTS_UNNORMALISED) weights[j] /= sum;
    if (planted != HIDDEN_VALUE_TIMES_ZERO && (!any || !sees(p, t, b, h, i, j))) continue;
    for (int64_t d = 0; d < p->value_dim; d++) out[d] += weights[j] * v[d];
  }
  if (planted == WEIGHTS_UNNORMALISED)
    for (int64_t d = 0; d < p->value_dim && any; d++) out[d] /= sum;
  if (p->lse.type)
    t->lse[b * p->lse.batch + h * p->lse.head + i * p->lse.position] =
        any ? (max + logf(sum)) * (planted == LSE_BASE_2 ? 1.442695f : 1) : -INFINITY;
  if (p->weights.type && p->key_length > 0)
    memcpy((float *)t->weights + b * p->weights.batch + h * p->weights.head + i * p->weights.position,
           weights, (size_t)p->key_length * sizeof(float));
  if (planted == GAP_WRITTEN && i == 0) out[p->value_dim] = 0; /* behind the last row is a guard page */
  if (planted == THREAD_DEPENDENT && p->value_dim > 0 && i == 0) out[0] = nextafterf(out[0], INFINITY);
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const attn_tensors *t = &call->tensors;
  float *weights = call->workspace;
  const fault wanted = planted;
  if (planted == WORKSPACE_OVERRUN) weights[p->key_length] = 0;
  if (planted == THREAD_DEPENDENT && call->threads != 1) planted = NO_FAULT;
  const int64_t rows = p->batch * p->query_heads * p->query_length;
  for (int64_t row = 0; row < rows - (planted == LAST_ROW_UNWRITTEN); row++)
    solve_row(p, t, row / p->query_length / p->query_heads, row / p->query_length % p->query_heads,
              row % p->query_length, weights);
  planted = wanted;
  if (planted == ROUNDING_CHANGED) fesetround(FE_UPWARD);
#ifdef __SSE__
  if (planted == DENORMALS_FLUSHED) _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
#endif
  if (planted == INPUT_CHANGED && rows > 0) ((float *)t->query)[0] += 1;
}

/* Adds what the workspace held before. */
static void run_reading_workspace(const attn_call *call) {
  const attn_problem *p = call->problem;
  const float held = p->key_length > 0 ? *(float *)call->workspace : 0;
  run(call);
  if (planted == WORKSPACE_READ && p->batch * p->query_heads * p->query_length * p->value_dim > 0)
    *(float *)call->tensors.output += held;
}

static const attn_variant kernel = {.name = "kernel",
                                    .summary = "three loops",
                                    .function = ATTN_SOFTMAX,
                                    .features = ATTN_BAND | ATTN_OFFSET | ATTN_KEY_LENGTHS | ATTN_MASK |
                                                ATTN_BIAS | ATTN_SOFTCAP | ATTN_LSE | ATTN_WEIGHTS,
                                    .types = 1u << ATTN_FLOAT32,
                                    .time_exponent = 2,
                                    .workspace_exponent = 1,
                                    .workspace_size = workspace_size,
                                    .run = run_reading_workspace};

static verdict verify(const char *text, int64_t max_rows) {
  workload w;
  inputs in;
  verdict result = {0};
  const run_setup setup = {.variant = &kernel, .threads = 2};
  char why[512] = "";
  if (!workload_parse(text, &w, why, sizeof why) || !inputs_create(&in, &w, false, why, sizeof why) ||
      !verify_run(&setup, &in, max_rows, &result, why, sizeof why))
    fail_msg("%s: %s", text, why);
  inputs_destroy(&in);
  return result;
}

static void a_correct_kernel_passes_grid_and_sample(void **state) {
  (void)state;
  planted = NO_FAULT;
  const int64_t grid = verify_grid_count();
  int64_t run_count = 0;
  /* Every seventh of the grid: all of it is what `attnbench verify` runs. */
  for (int64_t n = 0; n < grid + 60; n += n < grid ? 7 : 1) {
    const workload w = n < grid ? verify_grid_problem(n).workload : random_problem(5, n - grid);
    const attn_problem problem = workload_problem(&w);
    if (runner_refusal(&kernel, &problem)) continue;
    char name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    const verdict result = verify(name, 0);
    if (!result.passed) fail_msg("%s: %s", name, result.problem);
    assert_true(result.bound_share <= 1 && result.probabilistic_share <= 1);
    assert_int_equal(result.rows_checked, result.rows_total);
    run_count++;
  }
  assert_in_range(run_count, 100, 1000);
}

static void every_planted_fault_is_caught(void **state) {
  (void)state;
  const struct {
    fault fault;
    const char *problem, *words;
  } cases[] = {
      {SCALE_TWICE, "full/B:1/H:1/D:16/T:20", "times the worst-case bound"},
      {LAST_KEY_DROPPED, "full/B:1/H:1/D:16/T:128", "output["},
      {FIRST_KEY_TWICE, "full/B:1/H:1/D:16/Tq:3/Tk:8192", "output["},
      {CAUSAL_BY_ONE, "causal/B:1/H:1/D:16/T:20", "output[b 0, h 0, i 0, d 0]"},
      {LENGTH_IGNORED, "full/B:2/H:1/D:16/T:20/lengths:20,10", "output[b 1"},
      {MASK_INVERTED, "full/B:1/H:1/D:16/T:20/mask:q", "output["},
      {SOFTCAP_FORGOTTEN, "full/B:1/H:1/D:16/T:20/softcap:2", "output["},
      {WRONG_KV_HEAD, "full/B:1/H:4/Hkv:2/D:16/T:20", "output[b 0, h 1"},
      {EMPTY_ROW_NAN, "full/B:1/H:1/D:16/T:20/lengths:0", "is nan, the reference is 0"},
      {LSE_BASE_2, "full/B:1/H:1/D:16/T:20/lse", "lse[b 0"},
      {COARSE_EXPONENTIAL, "full/B:1/H:1/D:16/T:128", "bound"},
      {HIDDEN_VALUE_TIMES_ZERO, "full/B:1/H:1/D:16/T:20/lengths:10/fill:nonfinite", "is nan"},
      {WEIGHTS_UNNORMALISED, "full/B:1/H:1/D:16/T:20/weights", "weights[b 0"},
      {LAST_ROW_UNWRITTEN, "full/B:1/H:2/D:16/T:20", "16 elements of output are not written"},
      {GAP_WRITTEN, "full/B:1/H:2/D:16/T:20/layout:padded", "that lie between its rows"},
      {WORKSPACE_OVERRUN, "full/B:1/H:1/D:16/T:20", "writes beyond its workspace"},
      {WORKSPACE_READ, "full/B:1/H:1/D:16/T:20", "output[b 0, h 0, i 0, d 0] is nan"},
      {INPUT_CHANGED, "full/B:1/H:1/D:16/T:20", "changes its inputs"},
      {ROUNDING_CHANGED, "full/B:1/H:1/D:16/T:20", "leaves the rounding mode changed"},
#ifdef __SSE__
      {DENORMALS_FLUSHED, "full/B:1/H:1/D:16/T:20", "leaves denormal numbers flushed to zero"},
#endif
  };
  for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
    planted = NO_FAULT;
    verdict result = verify(cases[n].problem, 0);
    if (!result.passed) fail_msg("without a fault, %s: %s", cases[n].problem, result.problem);
    planted = cases[n].fault;
    result = verify(cases[n].problem, 0);
    if (result.passed) fail_msg("fault %d is not caught on %s", (int)cases[n].fault, cases[n].problem);
    if (!strstr(result.problem, cases[n].words))
      fail_msg("'%s' is not in: %s", cases[n].words, result.problem);
  }
  planted = NO_FAULT;
}

/* Where a bound is infinite nothing is checked: a fill must leave rows that are. */
static void every_fill_is_held_to_a_finite_bound(void **state) {
  (void)state;
  planted = NO_FAULT;
  for (int fill = FILL_UNIFORM; fill <= FILL_NONFINITE; fill++) {
    static const char *const shapes[] = {"causal/B:2/H:2/D:32/T:90/lse", "full/B:1/H:1/D:20/T:70/mask:q"};
    for (size_t n = 0; n < sizeof shapes / sizeof *shapes; n++) {
      char why[128], name[WORKLOAD_NAME_BYTES];
      workload w;
      assert_true(workload_parse(shapes[n], &w, why, sizeof why));
      w.fill = (workload_fill)fill;
      workload_name(&w, name);
      const verdict result = verify(name, 0);
      if (!result.passed) fail_msg("%s: %s", name, result.problem);
      if (result.bound_share == 0) fail_msg("%s: nothing was held to a bound", name);
    }
  }
}

static void sampled_rows_include_the_edges(void **state) {
  (void)state;
  workload w;
  inputs in;
  expected known;
  char why[256];
  assert_true(workload_parse("window:20/B:1/H:2/D:4/T:500", &w, why, sizeof why));
  assert_true(inputs_create(&in, &w, false, why, sizeof why));
  assert_true(expected_solve(&known, &in, 50, why, sizeof why));
  assert_int_equal(known.rows, 50);
  assert_int_equal(known.rows_total, 1000);
  const int64_t edges[] = {0, 20, 21, 499, 500, 520, 521, 999};
  for (size_t n = 0; n < sizeof edges / sizeof edges[0]; n++) {
    bool found = false;
    for (int64_t row = 0; row < known.rows; row++) found = found || known.positions[row] == edges[n];
    if (!found) fail_msg("row %d is not in the sample", (int)edges[n]);
  }
  for (int64_t row = 1; row < known.rows; row++) assert_true(known.positions[row] > known.positions[row - 1]);
  expected_destroy(&known);
  assert_true(expected_solve(&known, &in, 3, why, sizeof why));
  assert_int_equal(known.positions[0], 0);
  assert_int_equal(known.positions[2], 999);
  expected_destroy(&known);
  inputs_destroy(&in);
}

static void rows_outside_the_sample_must_be_written(void **state) {
  (void)state;
  planted = NO_FAULT;
  const verdict result = verify("full/B:1/H:2/D:8/T:300", 10);
  assert_true(result.passed && result.sampled);
  assert_int_equal(result.rows_checked, 10);
  planted = LAST_ROW_UNWRITTEN;
  assert_false(verify("full/B:1/H:2/D:8/T:300", 1).passed);
  planted = NO_FAULT;
}

static void random_problems_are_sound_and_differ(void **state) {
  (void)state;
  char first[WORKLOAD_NAME_BYTES], second[WORKLOAD_NAME_BYTES];
  for (int64_t n = 0; n < 3000; n++) {
    const workload w = random_problem(9, n);
    const attn_problem problem = workload_problem(&w);
    char why[256] = "", name[WORKLOAD_NAME_BYTES];
    workload_name(&w, name);
    if (!check_problem(&problem, why, sizeof why)) fail_msg("%s: %s", name, why);
  }
  const workload one = random_problem(9, 0), other = random_problem(10, 0);
  workload_name(&one, first);
  workload_name(&other, second);
  assert_string_not_equal(first, second);
}

/* The subcommand on this one kernel, as it prints. */
static int verify_table(const char *problem, char **text) {
  const attn_variant *variants[] = {&kernel};
  const char *origins[] = {"./mine.so"};
  const variant_list list = {.variants = variants, .origins = origins, .count = 1};
  const char *const plugins[] = {"./mine.so"};
  const verify_options options = {.problems = &problem,
                                  .problem_count = 1,
                                  .threads = 2,
                                  .seed = 1,
                                  .plugins = plugins,
                                  .plugin_count = 1};
  size_t size;
  FILE *out = open_memstream(text, &size);
  int status = verify_all(&list, &options, out);
  fclose(out);
  return status;
}

static void the_table_says_how_to_reproduce_a_failure(void **state) {
  (void)state;
  char *text;
  planted = NO_FAULT;
  assert_int_equal(verify_table("causal/B:1/H:2/D:16/T:20", &text), 0);
  assert_non_null(strstr(text, "1 variant, 1 cases, 0 failed"));
  free(text);
  planted = LAST_KEY_DROPPED;
  assert_int_equal(verify_table("causal/B:1/H:2/D:16/T:20", &text), 1);
  assert_non_null(strstr(text, "reproduce: attnbench verify --variant kernel --problem "
                               "'causal/B:1/H:2/Hkv:2/D:16/T:20' --threads 2 --plugin './mine.so'\n"));
  free(text);
  planted = THREAD_DEPENDENT;
  assert_int_equal(verify_table("full/B:1/H:2/D:16/T:20", &text), 1);
  assert_non_null(strstr(text, "gives other bits with 1 thread than with 2"));
  free(text);
  planted = NO_FAULT;
  assert_int_equal(verify_table("linear/full/B:1/H:2/D:16/T:20", &text), 2); /* nothing ran */
  assert_non_null(strstr(text, "skipped 1: computes softmax attention (1)"));
  free(text);
}

static void problems_that_cannot_be_run_are_status_2(void **state) {
  (void)state;
  char *text;
  assert_int_equal(verify_table("full/B:1/H:3/Hkv:2", &text), 2);
  free(text);
  assert_int_equal(verify_table("fool", &text), 2);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_correct_kernel_passes_grid_and_sample),
      cmocka_unit_test(every_planted_fault_is_caught),
      cmocka_unit_test(every_fill_is_held_to_a_finite_bound),
      cmocka_unit_test(sampled_rows_include_the_edges),
      cmocka_unit_test(rows_outside_the_sample_must_be_written),
      cmocka_unit_test(random_problems_are_sound_and_differ),
      cmocka_unit_test(the_table_says_how_to_reproduce_a_failure),
      cmocka_unit_test(problems_that_cannot_be_run_are_status_2),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
