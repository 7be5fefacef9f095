/* All rows of an output along a few directions: what is computed along them is the reference's, and the one row of
 * thousands that is wrong is named first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "problem/random_problem.h"
#include "verify/expected.h"
#include "verify/projection.h"

static workload parse(const char *text) {
  workload w;
  char why[512] = "";
  if (!workload_parse_sound(text, &w, why, sizeof why)) fail_msg("'%s': %s", text, why);
  return w;
}

static void create(inputs *in, const workload *w) {
  char why[512] = "", name[WORKLOAD_NAME_BYTES];
  workload_name(w, name);
  if (!inputs_create(in, w, false, why, sizeof why)) fail_msg("'%s': %s", name, why);
}

/* A tensor's row of an output. */
static float *row_of(const inputs *in, tensor_id id, int64_t position) {
  const attn_problem *p = &in->problem;
  const attn_layout *layout = tensor_layout(p, id);
  const int64_t b = position / p->query_length / p->query_heads,
                h = position / p->query_length % p->query_heads;
  return (float *)(uintptr_t)tensor_data(&in->problem, &in->tensors, id) + b * layout->batch +
         h * layout->head + position % p->query_length * layout->position;
}

/* The reference's rows, for the caller to destroy; they are written as the outputs too. */
static expected write_truth(const inputs *in) {
  expected known;
  char why[512] = "";
  if (!expected_solve(&known, in, 0, why, sizeof why)) fail_msg("%s", why);
  for (int64_t n = 0; n < known.rows; n++) {
    const reference_row *row = &known.solved[n];
    for (int64_t e = 0; e < in->problem.value_dim; e++)
      row_of(in, TENSOR_OUTPUT, n)[e] = (float)row->output[e];
    if (in->problem.lse.type) *row_of(in, TENSOR_LSE, n) = (float)row->lse;
    for (int64_t j = 0; in->problem.weights.type && j < in->problem.key_length; j++)
      row_of(in, TENSOR_WEIGHTS, n)[j] = (float)row->weights[j];
  }
  return known;
}

static void assert_worst(const projection *projection, const inputs *in, const run_batch *batch, int64_t row,
                         const char *what) {
  int64_t worst[3];
  const int64_t count = projection_worst(projection, in, batch, 3, worst);
  if (count < 1 || worst[0] != row)
    fail_msg("%s: row %lld is wrong, not %lld", what, (long long)row, count ? (long long)worst[0] : -1LL);
}

/* ---- the truth ---- */

/* Infinity where one is not finite and the other is. */
static double difference(double a, double b) { return a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b); }

static void the_truth_along_the_directions_is_the_references(void **state) {
  (void)state;
  int made = 0, posed = 0;
  int64_t known_rows = 0;
  for (int64_t n = 0; n < 90; n++) {
    workload w = random_problem(11, n);
    if (w.function != ATTN_SOFTMAX && w.function != ATTN_LINEAR) continue;
    posed++;
    w.type = w.output_type = ATTN_ABSENT; /* what is written below is float32 */
    if (w.fill == FILL_NONFINITE || w.fill == FILL_LARGEST) w.fill = FILL_NORMAL;
    inputs in;
    projection projection;
    create(&in, &w);
    if (projection_create(&projection, &in)) {
      expected known = write_truth(&in);
      made++;
      for (int64_t row = 0; row < known.rows; row++) {
        const reference_row *truth = &known.solved[row];
        const projected_row *found = &projection.of[row];
        if (isnan(found->scores)) continue; /* it says that it knows nothing of the row */
        known_rows++;
        for (int k = 0; k < PROJECTION_DIRECTIONS; k++) {
          double along = 0, size = found->size * found->scores;
          for (int64_t e = 0; e < w.value_dim; e++) {
            along += projection.directions[k * w.value_dim + e] * truth->output[e];
            size += fabs(truth->output[e]) / (double)w.value_dim;
          }
          if (!(difference(along, found->along[k]) <=
                1e-5 * size + FLT_TRUE_MIN)) { /* the least of a float32 */
            char name[WORKLOAD_NAME_BYTES];
            workload_name(&w, name);
            fail_msg("%s, row %lld: %g along direction %d, not %g within 1e-5 of %g", name, (long long)row,
                     found->along[k], k, along, size);
          }
        }
        if (w.function == ATTN_SOFTMAX &&
            difference(truth->lse, found->normaliser) > 1e-5 * (found->scores + fabs(truth->lse)))
          fail_msg("row %lld: log-sum-exp %g, not %g", (long long)row, found->normaliser, truth->lse);
      }
      expected_destroy(&known);
      projection_destroy(&projection);
    }
    inputs_destroy(&in);
  }
  assert_int_equal(made, posed);
  assert_true(known_rows > 1000);
}

/* ---- the wrong row ---- */

static const char *const lines[] = {
    "full/B:1/H:2/D:64/T:160",
    "causal/B:2/H:4/Hkv:2/D:40/Dv:24/T:200/layout:bthd",
    "window:60/B:1/H:2/Hkv:1/D:128/T:130/layout:padded",
    "band:30,5,-7/B:2/H:2/D:32/Tq:90/Tk:160/lengths:160,101/softcap:5",
    "full/B:1/H:2/D:16/T:200/mask:q/bias:h/sink/lse",
    "causal_bottom_right/B:1/H:2/D:64/Tq:9/Tk:700/weights/lse",
    "full/B:1/H:2/D:64/T:130/fill:normal",
    "full/B:1/H:2/D:64/T:130/fill:equal",
    "full/B:1/H:2/D:64/T:130/fill:cancellation",
    "linear/full/B:1/H:2/D:16/T:130",
    "linear/causal/B:1/H:4/Hkv:2/D:16/Dv:32/T:130",
    "linear/band:40,0,0/B:2/H:2/D:8/T:100/lengths:100,47",
};
enum { LINES = sizeof lines / sizeof *lines };

static int64_t drawn(uint64_t n, int64_t count) { return (int64_t)(random_bits(5, n) % (uint64_t)count); }

/* By a dozen times what the reference allows, and by 3e-5 where a row sees few keys: less drowns in the rounding of
 * others. */
static void one_wrong_element_is_in_the_row_that_deviates_most(void **state) {
  (void)state;
  for (size_t n = 0; n < LINES; n++) {
    const workload w = parse(lines[n]);
    inputs in;
    projection projection;
    create(&in, &w);
    assert_true(projection_create(&projection, &in));
    expected known = write_truth(&in);
    for (uint64_t k = 0; k < 6; k++) {
      const int64_t row = drawn(2 * k, known.rows), e = drawn(2 * k + 1, w.value_dim);
      const reference_row *truth = &known.solved[row];
      float *element = row_of(&in, TENSOR_OUTPUT, row) + e, right = *element;
      if (!(truth->output_bound_probabilistic[e] > 0)) continue; /* sees no key */
      *element += (float)fmax(12 * truth->output_bound_probabilistic[e], 3e-5);
      assert_worst(&projection, &in, NULL, row, lines[n]);
      *element = right;
    }
    expected_destroy(&known);
    projection_destroy(&projection);
    inputs_destroy(&in);
  }
}

/* Where a few keys decide on each row, scores are large and rounding too. */
static void a_row_of_another_query_deviates_most_whatever_the_inputs(void **state) {
  (void)state;
  static const char *const fills[] = {
      "full/B:1/H:2/D:64/T:130/fill:heavy", "full/B:1/H:2/D:64/T:256/fill:saturated",
      "causal/B:1/H:2/D:64/T:130/fill:huge", "full/B:1/H:2/D:64/T:130/scale:30"};
  for (size_t n = 0; n < sizeof fills / sizeof *fills; n++) {
    const workload w = parse(fills[n]);
    inputs in;
    projection projection;
    create(&in, &w);
    assert_true(projection_create(&projection, &in));
    expected known = write_truth(&in);
    for (uint64_t k = 0; k < 6; k++) {
      const int64_t row = drawn(k, known.rows - 1);
      float right[64];
      memcpy(right, row_of(&in, TENSOR_OUTPUT, row), sizeof right);
      memcpy(row_of(&in, TENSOR_OUTPUT, row), row_of(&in, TENSOR_OUTPUT, row + 1), sizeof right);
      assert_worst(&projection, &in, NULL, row, fills[n]);
      memcpy(row_of(&in, TENSOR_OUTPUT, row), right, sizeof right);
    }
    expected_destroy(&known);
    projection_destroy(&projection);
    inputs_destroy(&in);
  }
}

/* A row that sees no key is zero, and anything else is wrong; so are a log-sum-exp, a weight and what is no number. */
static void what_else_is_wrong_deviates_most_too(void **state) {
  (void)state;
  const workload w = parse("band:20,0,-40/B:1/H:2/D:16/T:200/lse/weights");
  const struct {
    tensor_id id;
    int64_t row, at;
    float error;
  } cases[] = {{TENSOR_OUTPUT, 10, 3, 1e-6f},     {TENSOR_OUTPUT, 399, 15, NAN},
               {TENSOR_OUTPUT, 150, 0, INFINITY}, {TENSOR_LSE, 120, 0, 1e-3f},
               {TENSOR_LSE, 5, 0, INFINITY},      {TENSOR_WEIGHTS, 130, 85, 1e-3f},
               {TENSOR_WEIGHTS, 20, 3, 1e-3f},    {TENSOR_WEIGHTS, 131, 80, NAN}};
  inputs in;
  projection projection;
  create(&in, &w);
  assert_true(projection_create(&projection, &in));
  expected known = write_truth(&in);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    float *element = row_of(&in, cases[n].id, cases[n].row) + cases[n].at, right = *element;
    *element += cases[n].error;
    if (isinf(right)) *element = 0;
    assert_worst(&projection, &in, NULL, cases[n].row, tensor_table[cases[n].id].name);
    *element = right;
  }
  expected_destroy(&known);
  projection_destroy(&projection);
  inputs_destroy(&in);
}

/* ---- after a batch ---- */

static void do_nothing(const attn_call *call) { (void)call; }

/* The inputs are then those of the last run of a batch; outputs are right for them but for one element. */
static void what_a_batch_changes_is_followed(void **state) {
  (void)state;
  static const attn_variant nothing = {.name = "nothing", .summary = "of a test", .run = do_nothing};
  for (size_t n = 0; n < LINES; n++) {
    const workload w = parse(lines[n]);
    inputs in;
    projection projection;
    create(&in, &w);
    assert_true(projection_create(&projection, &in));
    for (uint64_t seed = 1; seed <= 2; seed++) {
      const run_setup setup = {.variant = &nothing, .threads = 1};
      run_batch batch = {.inputs = &in, .iterations = 3, .seed = seed};
      run_elapsed elapsed;
      assert_true(runner_time(&setup, &batch, &elapsed));
      assert_true(batch.changed_row >= 0);
      expected known = write_truth(&in);
      int64_t row = drawn(100 + seed, known.rows);
      while (row == batch.changed_row || !(known.solved[row].output_bound_probabilistic[0] > 0))
        row = (row + 1) % known.rows;
      *row_of(&in, TENSOR_OUTPUT, row) += (float)(3 * known.solved[row].output_bound_probabilistic[0]);
      assert_worst(&projection, &in, &batch, row, lines[n]);
      expected_destroy(&known);
      assert_true(runner_restore(&batch, 0));
    }
    projection_destroy(&projection);
    inputs_destroy(&in);
  }
}

/* Who writes but the row whose query changed is stale in all others that see the key. */
static void rows_that_do_not_follow_a_changed_key_deviate(void **state) {
  (void)state;
  static const attn_variant nothing = {.name = "nothing", .summary = "of a test", .run = do_nothing};
  const workload w = parse("full/B:1/H:1/D:32/T:400");
  inputs in;
  projection projection;
  create(&in, &w);
  assert_true(projection_create(&projection, &in));
  expected known = write_truth(&in);
  const run_setup setup = {.variant = &nothing, .threads = 1};
  run_batch batch = {.inputs = &in, .iterations = 1, .seed = 1};
  run_elapsed elapsed;
  assert_true(runner_time(&setup, &batch, &elapsed));
  int64_t worst[1];
  assert_int_equal(projection_worst(&projection, &in, &batch, 1, worst), 1);
  verdict verdict;
  expected stale;
  char why[128];
  assert_true(expected_solve_rows(&stale, &in, worst, 1, why, sizeof why));
  expected_compare(&stale, 0, &verdict);
  assert_false(verdict.passed);
  expected_destroy(&stale);
  expected_destroy(&known);
  projection_destroy(&projection);
  inputs_destroy(&in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_truth_along_the_directions_is_the_references),
      cmocka_unit_test(one_wrong_element_is_in_the_row_that_deviates_most),
      cmocka_unit_test(a_row_of_another_query_deviates_most_whatever_the_inputs),
      cmocka_unit_test(what_else_is_wrong_deviates_most_too),
      cmocka_unit_test(what_a_batch_changes_is_followed),
      cmocka_unit_test(rows_that_do_not_follow_a_changed_key_deviate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
