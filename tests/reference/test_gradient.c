/* The proof of the reference's gradients: central differences in quadruple precision, and answers of 60 digits from
 * an independent program. */
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
#include "problem/rows.h"
#include "reference/gradient.h"
#include "tests/reference/oracle.h"

enum { MOST = 4096 };

static double lse[MOST], delta[MOST], delta_size[MOST], normaliser[4][MOST];
static reference_given given = {lse,           delta,         delta_size,
                                normaliser[0], normaliser[1], {normaliser[2], normaliser[3]}};
static double numbers[2][4][256], room[8 * MOST];

static reference_gradient gradient(int n) {
  return (reference_gradient){numbers[n][0], numbers[n][1], numbers[n][2], numbers[n][3], NULL};
}

/* The log-sum-exp and the output in double precision, and not as they are given, rounded. */
static void give_exactly(const inputs *in) {
  const attn_problem *p = &in->problem;
  static double weights[MOST], scores[MOST], features[256], output[256];
  static bool visible[MOST];
  const bool is_linear = p->function == ATTN_LINEAR_BACKWARD;
  reference_give(p, &in->tensors, &given);
  reference_row row = {
      .weights = weights, .scores = scores, .features = features, .output = output, .visible = visible};
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    const float *grad = (const float *)(const void *)row_at(in, TENSOR_OUTPUT_GRAD, at).first;
    (is_linear ? &reference_linear : &reference_softmax)->solve(p, &in->tensors, at.b, at.h, at.i, &row);
    lse[n] = row.lse;
    delta[n] = delta_size[n] = 0;
    for (int64_t e = 0; e < p->value_dim; e++) {
      const double product = grad[e] * output[e];
      delta[n] += product;
      delta_size[n] += fabs(product);
    }
  }
}

/* A row of a gradient; of values the second. */
static reference_gradient solved(const inputs *in, tensor_id id, row_place at) {
  const attn_problem *p = &in->problem;
  reference_gradient first = gradient(0), second = gradient(1);
  switch (id) {
    case TENSOR_QUERY_GRAD:
      reference_query_gradient(p, &in->tensors, &given, at.b, at.h, at.i, &first);
      break;
    case TENSOR_BIAS_GRAD: reference_bias_gradient(p, &in->tensors, &given, at.b, at.h, at.i, &first); break;
    case TENSOR_SINK_GRAD: reference_sink_gradient(p, &in->tensors, &given, at.h, &first); break;
    case TENSOR_STATE_GRAD:
      reference_linear_state_gradient(p, &in->tensors, &given, at.b, at.h, at.i, &first);
      break;
    case TENSOR_STATE_SUM_GRAD:
      reference_linear_state_sum_gradient(p, &in->tensors, &given, at.b, at.h, &first);
      break;
    case TENSOR_DECAY_GRAD:
      reference_linear_decay_gradient(p, &in->tensors, &given, at.b, at.h, at.i, room, &first);
      break;
    default: reference_key_gradients(p, &in->tensors, &given, at.b, at.h, at.i, &first, &second);
  }
  return id == TENSOR_VALUE_GRAD ? second : first;
}

static const struct {
  tensor_id grad, of;
} pairs[] = {{TENSOR_QUERY_GRAD, TENSOR_QUERY}, {TENSOR_KEY_GRAD, TENSOR_KEY},
             {TENSOR_VALUE_GRAD, TENSOR_VALUE}, {TENSOR_BIAS_GRAD, TENSOR_BIAS},
             {TENSOR_SINK_GRAD, TENSOR_SINK},   {TENSOR_DECAY_GRAD, TENSOR_DECAY},
             {TENSOR_STATE_GRAD, TENSOR_STATE}, {TENSOR_STATE_SUM_GRAD, TENSOR_STATE_SUM}};

/* Where an element of a gradient's row lies in what it is of: decays lie along a row, and their gradients below each other. */
static const float *element_of(const inputs *in, int pair, row_place at, int64_t d) {
  const bool is_decay = pairs[pair].of == TENSOR_DECAY;
  const number_row row = row_at(in, pairs[pair].of, is_decay ? (row_place){at.b, at.h, 0} : at);
  return (const float *)(const void *)row_element(row, is_decay ? at.i : d);
}

/* The largest error of a gradient as a share of what its bound admits where double stands for float32. `truth` says what each
 * element is. */
static double worst_error(const inputs *in, double (*truth)(const inputs *, int pair, row_place, int64_t d)) {
  double worst = 0;
  give_exactly(in);
  for (int n = 0; n < (int)(sizeof pairs / sizeof *pairs); n++) {
    const tensor_shape s = tensor_stored_shape(&in->problem, pairs[n].grad);
    if (!tensor_layout(&in->problem, pairs[n].grad)->type) continue;
    for (int64_t row = 0; row < s.batch * s.heads * s.length; row++) {
      const row_place at = {row / s.length / s.heads, row / s.length % s.heads, row % s.length};
      const reference_gradient of = solved(in, pairs[n].grad, at);
      for (int64_t d = 0; d < s.width; d++) {
        const double right = truth(in, n, at, d), bound = of.worst[d] * (DBL_EPSILON / FLT_EPSILON);
        worst = fmax(worst, reference_error_share(of.values[d], right, bound));
      }
    }
  }
  return worst;
}

static double by_differences(const inputs *in, int pair, row_place at, int64_t d) {
  return oracle_gradient(element_of(in, pair, at, d));
}

static void gradients_are_central_differences_in_quadruple_precision(void **unused) {
  (void)unused;
  static const char *const problems[] = {
      "backward/full/B:1/H:2/D:3/T:6",
      "backward/causal/B:2/H:4/Hkv:2/D:3/Dv:5/T:5",
      "backward/window:2/B:1/H:2/Hkv:1/D:4/T:8/softcap:1.5/scale:1",
      "backward/causal_bottom_right/B:1/H:2/D:3/Tq:3/Tk:7/bias:hq/sink",
      "backward/full/B:2/H:2/D:3/Tq:5/Tk:4/bias:q/softcap:2",
      "backward/full/B:2/H:2/D:3/T:5/bias:b/sink",
      "backward/full/B:2/H:2/D:3/T:4/bias:1/mask:bhq",
      "backward/causal/B:2/H:2/D:3/T:6/lengths:6,2/alibi",
      "backward/causal/B:2/H:2/D:3/T:6/offsets:2,-3/alibi/sink/fill:normal",
      "backward/full/B:1/H:2/D:3/T:5/scale:-0.7/fill:heavy",
      "linear_backward/full/B:1/H:2/D:3/T:6",
      "linear_backward/causal/B:2/H:4/Hkv:2/D:3/Dv:5/T:5",
      "linear_backward/window:2/B:1/H:2/Hkv:1/D:4/T:8/epsilon:0.5",
      "linear_backward/causal_bottom_right/B:1/H:2/D:3/Tq:3/Tk:7/epsilon:0",
      "linear_backward/band:inf,1,-2/B:1/H:2/D:3/Dv:2/Tq:7/Tk:5/fill:normal",
      "linear_backward/causal/B:2/H:2/D:3/T:6/lengths:6,2/epsilon:1",
      "linear_backward/causal/B:2/H:2/D:3/T:6/offsets:2,-3/fill:normal",
      "linear_backward/full/B:2/H:4/Hkv:2/D:3/T:5/fill:normal",
      "linear_backward/causal/B:1/H:2/D:3/T:6/phi:relu",
      "linear_backward/full/B:1/H:2/D:3/T:6/phi:identity/epsilon:50",
      "linear_backward/causal/B:1/H:2/D:4/T:6/phi:identity/unnormalised",
      "linear_backward/full/B:1/H:2/D:3/T:6/unnormalised",
      "linear_backward/causal/B:1/H:2/D:3/T:6/decay",
      "linear_backward/causal/B:2/H:4/Hkv:2/D:3/Dv:5/T:7/decay/unnormalised/phi:identity",
      "linear_backward/causal_bottom_right/B:1/H:4/Hkv:2/D:3/Tq:3/Tk:7/decay/epsilon:0.5",
      "linear_backward/causal/B:3/H:2/D:3/Dv:2/Tq:7/Tk:5/offsets:-2,3,1/lengths:5,5,4/decay/fill:normal",
      "linear_backward/window:2/B:1/H:2/Hkv:1/D:3/T:8/decay/epsilon:0.5",
      "linear_backward/band:3,1,-1/B:1/H:2/D:3/Tq:7/Tk:6/decay",
      "linear_backward/full/B:1/H:2/Hkv:1/D:3/Tq:5/Tk:6/decay/phi:relu/epsilon:1",
      "linear_backward/full/B:1/H:2/D:3/Dv:2/Tq:4/Tk:5/state",
      "linear_backward/causal/B:2/H:4/Hkv:2/D:3/Dv:5/T:6/state/decay",
      "linear_backward/causal/B:3/H:2/D:3/Dv:2/Tq:7/Tk:5/offsets:-3,3,1/lengths:5,0,4/state/decay",
      "linear_backward/causal/B:1/H:2/Hkv:1/D:4/T:5/state/phi:identity/unnormalised/decay",
      "linear_backward/band:inf,2,-1/B:1/H:2/D:3/Tq:7/Tk:6/state/decay/epsilon:0.5",
      "backward/causal/B:2/H:2/Hkv:1/D:5/T:6/rope:half/softcap:2",
      "backward/full/B:2/H:2/D:6/Dv:3/Tq:3/Tk:5/offsets:2,7/rope:interleaved,4/bias:h",
      "backward/full/B:2/H:4/Hkv:2/D:3/T:5/dropout:0.3/sink",
      "backward/causal/B:1/H:2/D:3/T:6/dropout:0.5,q/bias:hq/softcap:2",
  };
  double worst = 0;
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
    char why[512];
    workload w;
    inputs in = {0};
    if (!workload_parse_sound(problems[n], &w, why, sizeof why) ||
        !inputs_create(&in, &w, false, why, sizeof why))
      fail_msg("%s", why);
    attn_problem forward = in.problem;
    forward.function = in.problem.function == ATTN_LINEAR_BACKWARD ? ATTN_LINEAR : ATTN_SOFTMAX;
    oracle_find_gradients(&forward, &in.tensors);
    const double error = worst_error(&in, by_differences);
    if (!(error <= 1)) fail_msg("%s: %g times the bound", problems[n], error);
    worst = fmax(worst, error);
    inputs_destroy(&in);
  }
  print_message("worst share of the bound at double precision: %.3g\n", worst);
}

static const golden_case *asked;

static double by_case(const inputs *in, int pair, row_place at, int64_t d) {
  const tensor_shape s = tensor_stored_shape(&in->problem, pairs[pair].grad);
  return asked->answers[pairs[pair].grad][((at.b * s.heads + at.h) * s.length + at.i) * s.width + d];
}

static void every_independent_case_is_met(void **unused) {
  (void)unused;
  DIR *folder = opendir(ATTN_SOURCE_DIR "/tests/cases");
  int cases = 0;
  double worst = 0;
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[1024], why[2048];
    if (strncmp(entry->d_name, "backward", 8) != 0) continue;
    golden_case loaded;
    snprintf(path, sizeof path, ATTN_SOURCE_DIR "/tests/cases/%s", entry->d_name);
    if (!case_load(&loaded, path, why, sizeof why)) fail_msg("%s", why);
    asked = &loaded;
    const double error = worst_error(&loaded.inputs, by_case);
    if (!(error <= 1)) fail_msg("%s: %g times the bound", entry->d_name, error);
    worst = fmax(worst, error);
    case_destroy(&loaded);
    cases++;
  }
  closedir(folder);
  print_message("%d cases, worst share of the bound at double precision: %.3g\n", cases, worst);
  assert_int_equal(cases, 13);
}

/* ---- what holds of all gradients ---- */

static void pose(inputs *in, const char *line) {
  char why[512];
  workload w;
  if (!workload_parse_sound(line, &w, why, sizeof why) || !inputs_create(in, &w, false, why, sizeof why))
    fail_msg("%s", why);
  give_exactly(in);
}

static void keys_that_nobody_sees_have_gradients_of_exactly_zero(void **unused) {
  (void)unused;
  inputs in = {0};
  pose(&in, "backward/causal/B:1/H:2/D:3/Tq:4/Tk:9/lengths:7");
  for (int64_t j = 0; j < 9; j++) {
    const bool is_seen = j < 4;
    for (int id = TENSOR_KEY_GRAD; id <= TENSOR_VALUE_GRAD; id++) {
      const reference_gradient of = solved(&in, (tensor_id)id, (row_place){0, 1, j});
      for (int d = 0; d < 3; d++)
        assert_true(is_seen ? of.worst[d] > 0
                            : of.values[d] == 0 && of.worst[d] == 0 && of.probabilistic[d] == 0);
    }
  }
  inputs_destroy(&in);
}

/* A sum may stay small whose parts do not. */
static void where_the_sum_of_a_gap_may_overflow_gradients_have_no_bound(void **unused) {
  (void)unused;
  static const tensor_id of_scores[] = {TENSOR_QUERY_GRAD, TENSOR_BIAS_GRAD, TENSOR_SINK_GRAD};
  inputs in = {0};
  pose(&in, "backward/full/B:1/H:1/D:3/T:4/bias:hq/sink");
  for (size_t n = 0; n < sizeof of_scores / sizeof *of_scores; n++) {
    delta_size[0] = 1;
    assert_true(isfinite(solved(&in, of_scores[n], (row_place){0, 0, 0}).worst[0]));
    delta_size[0] = 2.0 * FLT_MAX;
    assert_true(isinf(solved(&in, of_scores[n], (row_place){0, 0, 0}).worst[0]));
  }
  inputs_destroy(&in);
}

/* Weights sum to one: what is added to all values goes to the output, and what is added to all scores of a row nowhere. */
static void constants_in_values_and_in_scores_have_their_gradients(void **unused) {
  (void)unused;
  inputs in = {0};
  pose(&in, "backward/causal/B:1/H:1/D:3/T:8/bias:hq/softcap:2");
  for (int e = 0; e < 3; e++) {
    double of_values = 0, of_output = 0;
    for (int64_t n = 0; n < 8; n++) {
      of_values += solved(&in, TENSOR_VALUE_GRAD, (row_place){0, 0, n}).values[e];
      of_output += row_number(row_at(&in, TENSOR_OUTPUT_GRAD, (row_place){0, 0, n}), e);
    }
    assert_true(fabs(of_values - of_output) < 1e-13);
  }
  for (int64_t i = 0; i < 8; i++) {
    const reference_gradient of = solved(&in, TENSOR_BIAS_GRAD, (row_place){0, 0, i});
    double sum = 0, size = 0;
    for (int j = 0; j < 8; j++) sum += of.values[j], size += fabs(of.values[j]);
    assert_true(fabs(sum) < 1e-13 && (i == 0 || size > 1e-3));
  }
  inputs_destroy(&in);
}

static void linear_gradients_of_unseen_keys_and_of_weights_of_equal_values_are_zero(void **unused) {
  (void)unused;
  inputs in = {0};
  pose(&in, "linear_backward/causal/B:1/H:2/D:3/Tq:4/Tk:9/lengths:7");
  for (int64_t j = 0; j < 9; j++)
    for (int id = TENSOR_KEY_GRAD; id <= TENSOR_VALUE_GRAD; id++) {
      const reference_gradient of = solved(&in, (tensor_id)id, (row_place){0, 1, j});
      for (int d = 0; d < 3; d++)
        assert_true(j < 4 ? of.worst[d] > 0
                          : of.values[d] == 0 && of.worst[d] == 0 && of.probabilistic[d] == 0);
    }
  inputs_destroy(&in);

  /* Without epsilon the weights sum to one: what is added to all values goes to the output, and where all values are the same the
   * weights do not matter. */
  pose(&in, "linear_backward/causal/B:1/H:1/D:3/T:8/epsilon:0");
  for (int e = 0; e < 3; e++) {
    double of_values = 0, of_output = 0;
    for (int64_t n = 0; n < 8; n++) {
      of_values += solved(&in, TENSOR_VALUE_GRAD, (row_place){0, 0, n}).values[e];
      of_output += row_number(row_at(&in, TENSOR_OUTPUT_GRAD, (row_place){0, 0, n}), e);
    }
    assert_true(fabs(of_values - of_output) < 1e-13);
  }
  for (int n = 0; n < 3 * 8; n++) ((float *)(uintptr_t)in.tensors.value)[n] = 0.75f;
  give_exactly(&in);
  for (int id = TENSOR_QUERY_GRAD; id <= TENSOR_KEY_GRAD; id++)
    for (int64_t n = 0; n < 8; n++)
      for (int d = 0; d < 3; d++)
        assert_true(fabs(solved(&in, (tensor_id)id, (row_place){0, 0, n}).values[d]) < 1e-14);
  inputs_destroy(&in);
}

/* What a key adds to the gradient of a query, as a share of its bound: the most of the features. */
static double share_of_key(const inputs *in, const reference_gradient *of, int64_t i, int64_t j) {
  const attn_problem *p = &in->problem;
  const number_row query = row_at(in, TENSOR_QUERY, (row_place){0, 0, i}),
                   key = row_at(in, TENSOR_KEY, (row_place){0, 0, j}),
                   value = row_at(in, TENSOR_VALUE, (row_place){0, 0, j}),
                   grad = row_at(in, TENSOR_OUTPUT_GRAD, (row_place){0, 0, i});
  double gap = -delta[i], share = 0;
  for (int64_t e = 0; e < p->value_dim; e++) gap += row_number(grad, e) * row_number(value, e);
  for (int64_t d = 0; d < p->head_dim; d++) {
    const double x = row_number(key, d), q = row_number(query, d);
    const double part = gap / normaliser[0][i] * (x > 0 ? x + 1 : exp(x)) * (q > 0 ? 1 : exp(q));
    share = fmax(share, fabs(part) / of->probabilistic[d]);
  }
  return share;
}

/* So that a kernel that leaves one out is wrong, though its sums cancel. */
static void one_key_of_two_thousand_lies_above_the_bound_of_linear_gradients(void **unused) {
  (void)unused;
  enum { T = 2048, ROWS = 8 };
  inputs in = {0};
  pose(&in, "linear_backward/full/B:1/H:1/D:8/T:2048");
  int64_t seen = 0;
  for (int64_t row = 0; row < ROWS; row++) {
    const reference_gradient of = solved(&in, TENSOR_QUERY_GRAD, (row_place){0, 0, row});
    for (int64_t j = 0; j < T; j++) seen += share_of_key(&in, &of, row, j) > 1;
  }
  print_message("%.3f of the keys show in a row of 2048\n", (double)seen / (T * ROWS));
  assert_true(seen > T * ROWS * 9 / 10);
  inputs_destroy(&in);
}

/* Nothing lies before the first key, no query stands at those behind the last's own, two do not exist, and a gate of
 * 0 hides what is before. */
static void gradients_of_decays_that_no_pair_fades_by_are_exactly_zero(void **unused) {
  (void)unused;
  enum { HIDES = 3 };
  inputs in = {0};
  pose(&in, "linear_backward/causal/B:1/H:2/Hkv:1/D:3/Tq:6/Tk:9/lengths:7/decay");
  *(float *)(void *)row_element(row_at(&in, TENSOR_DECAY, (row_place){0, 0, 0}), HIDES) = -INFINITY;
  give_exactly(&in);
  for (int64_t t = 0; t < 9; t++) {
    const reference_gradient of = solved(&in, TENSOR_DECAY_GRAD, (row_place){0, 0, t});
    const bool is_zero = of.values[0] == 0 && of.worst[0] == 0 && of.probabilistic[0] == 0;
    assert_true(is_zero == (t == 0 || t == HIDES || t >= 6));
  }
  inputs_destroy(&in);
}

/* g w of a pair, which is what a decay's gradient lacks that leaves it out. */
static double of_pair(const inputs *in, int64_t h, int64_t i, int64_t j) {
  const attn_problem *p = &in->problem;
  const int64_t n = h * p->query_length + i, kv_head = h / (p->query_heads / p->kv_heads);
  const number_row query = row_at(in, TENSOR_QUERY, (row_place){0, h, i}),
                   key = row_at(in, TENSOR_KEY, (row_place){0, kv_head, j}),
                   value = row_at(in, TENSOR_VALUE, (row_place){0, kv_head, j}),
                   grad = row_at(in, TENSOR_OUTPUT_GRAD, (row_place){0, h, i});
  double gap = -delta[n], weight = 0, log = 0;
  for (int64_t e = 0; e < p->value_dim; e++) gap += row_number(grad, e) * row_number(value, e);
  for (int64_t d = 0; d < p->head_dim; d++) {
    const double q = row_number(query, d), k = row_number(key, d);
    weight += (q > 0 ? q + 1 : exp(q)) * (k > 0 ? k + 1 : exp(k));
  }
  const number_row decays = row_at(in, TENSOR_DECAY, (row_place){0, kv_head, 0});
  for (int64_t t = j + 1; t <= i; t++) log += row_number(decays, t);
  return gap * weight * exp(log) / normaliser[0][n];
}

/* Though they are as many as the square of the length, and their sum is hardly more than one of them. */
static void one_pair_of_thousands_lies_above_the_bound_of_a_decays_gradient(void **unused) {
  (void)unused;
  enum { T = 256, APART = 15 };
  inputs in = {0};
  pose(&in, "linear_backward/causal/B:1/H:4/Hkv:4/D:16/T:256/decay");
  int64_t seen = 0, posed = 0;
  for (int64_t h = 0; h < 4; h++)
    for (int64_t t = APART; t < T; t += APART) {
      const double bound = solved(&in, TENSOR_DECAY_GRAD, (row_place){0, h, t}).probabilistic[0];
      for (int64_t i = t; i < T && i < t + APART; i++)
        for (int64_t j = t - APART; j < t; j++, posed++) seen += fabs(of_pair(&in, h, i, j)) > bound;
    }
  print_message("%.3f of the pairs around a decay show, of %d\n", (double)seen / (double)posed, T * T / 4);
  assert_true(seen > posed * 8 / 10);
  inputs_destroy(&in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_central_differences_in_quadruple_precision),
      cmocka_unit_test(every_independent_case_is_met),
      cmocka_unit_test(keys_that_nobody_sees_have_gradients_of_exactly_zero),
      cmocka_unit_test(where_the_sum_of_a_gap_may_overflow_gradients_have_no_bound),
      cmocka_unit_test(constants_in_values_and_in_scores_have_their_gradients),
      cmocka_unit_test(one_key_of_two_thousand_lies_above_the_bound_of_linear_gradients),
      cmocka_unit_test(linear_gradients_of_unseen_keys_and_of_weights_of_equal_values_are_zero),
      cmocka_unit_test(gradients_of_decays_that_no_pair_fades_by_are_exactly_zero),
      cmocka_unit_test(one_pair_of_thousands_lies_above_the_bound_of_a_decays_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
