/* The judge of arrays from anywhere: what is right passes in every type and order of axes, what is wrong is named with its likely
 * mistake, and what is no answer at all is refused in a sentence. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/types.h"
#include "verify/expected.h"
#include "verify/hint_mistakes.h"
#include "verify/hint_words.h"
#include "verify/judge.h"

/* ---- answers ---- */

/* The reference's answer to a problem, packed: what a kernel without any error would give. */
typedef struct answers {
  workload workload;
  inputs inputs;
  int64_t rows, width, keys;
  double *output, *lse, *weights;
} answers;

static void solve(answers *to, const char *line) {
  char why[256];
  expected known;
  if (!workload_parse_sound(line, &to->workload, why, sizeof why)) fail_msg("%s", why);
  to->workload.wants_lse = to->workload.wants_weights = to->workload.function == ATTN_SOFTMAX;
  assert_true(inputs_create(&to->inputs, &to->workload, false, why, sizeof why));
  assert_true(expected_solve(&known, &to->inputs, 0, why, sizeof why));
  to->rows = known.rows;
  to->width = to->workload.value_dim;
  to->keys = to->workload.key_length;
  to->output = calloc((size_t)(known.rows * to->width) + 1, sizeof(double));
  to->lse = calloc((size_t)known.rows + 1, sizeof(double));
  to->weights = calloc((size_t)(known.rows * to->keys) + 1, sizeof(double));
  assert_true(to->output && to->lse && to->weights);
  for (int64_t n = 0; n < known.rows; n++) {
    const reference_row *row = &known.solved[n];
    to->lse[n] = row->lse;
    for (int64_t e = 0; e < to->width; e++) to->output[n * to->width + e] = row->output[e];
    for (int64_t j = 0; j < to->keys && row->weights; j++) to->weights[n * to->keys + j] = row->weights[j];
  }
  expected_destroy(&known);
}

static void forget(answers *of) {
  inputs_destroy(&of->inputs);
  free(of->output);
  free(of->lse);
  free(of->weights);
}

static judge_array packed(const workload *w, const void *data, int type, int64_t bytes, int64_t width) {
  return (judge_array){data,
                       type,
                       {w->query_heads * w->query_length * width * bytes, w->query_length * width * bytes,
                        width * bytes, bytes}};
}

static judge_question question_of(const workload *w, const answers *given) {
  judge_question question = {.workload = w};
  question.arrays[TENSOR_OUTPUT] = packed(w, given->output, JUDGE_FLOAT64, 8, given->width);
  if (w->function == ATTN_SOFTMAX) question.arrays[TENSOR_LSE] = packed(w, given->lse, JUDGE_FLOAT64, 8, 1);
  return question;
}

static judge_verdict verdict_of(const judge_question *question) {
  char why[512];
  judge_verdict verdict;
  if (!judge(question, &verdict, why, sizeof why)) fail_msg("%s", why);
  return verdict;
}

/* ---- what is right ---- */

static const char *const problems[] = {
    "causal/B:2/H:4/Hkv:2/D:16/Dv:12/T:20",
    "window:5/B:1/H:2/D:8/Tq:9/Tk:30/lengths:21/mask:bhq/bias:h/sink/softcap:2",
    "full/B:2/H:2/D:8/T:17/bf16",
    "causal/B:1/H:2/D:8/T:17/f16/layout:padded/fill:normal",
    "full/B:1/H:1/D:4/T:9/bf16/out:f32",
    "linear/causal/B:1/H:2/D:8/T:30",
    "full/B:1/H:2/D:8/T:40/fill:nonfinite",
    "full/B:1/H:2/D:8/T:64/fill:exact",
    "full/B:0/H:2/D:8/T:4",
};

static void right_answers_pass(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
    answers right;
    solve(&right, problems[n]);
    judge_question question = question_of(&right.workload, &right);
    if (right.workload.function == ATTN_SOFTMAX)
      question.arrays[TENSOR_WEIGHTS] = packed(&right.workload, right.weights, JUDGE_FLOAT64, 8, right.keys);
    const judge_verdict verdict = verdict_of(&question);
    if (!verdict.ok) fail_msg("%s: %s", problems[n], verdict.sentence);
    assert_true(verdict.worst.share <= 1);
    assert_int_equal(verdict.wrong_elements, 0);
    assert_int_equal(verdict.rows_checked, right.rows);
    assert_string_equal(verdict.kind, "");
    forget(&right);
  }
}

/* The problem's own type, a wider one, [B, T, H, D] and back to front: the same numbers, the same verdict. */
static void neither_type_nor_strides_change_the_verdict(void **state) {
  (void)state;
  answers right;
  solve(&right, "causal/B:2/H:3/D:8/T:11/bf16");
  const workload *w = &right.workload;
  const int64_t H = w->query_heads, T = w->query_length, D = right.width;
  float *floats = calloc((size_t)(right.rows * D), sizeof *floats);
  uint16_t *halves = calloc((size_t)(right.rows * D), sizeof *halves);
  judge_question question = {.workload = w};
  for (int64_t n = 0; n < right.rows; n++)
    for (int64_t e = 0; e < D; e++) {
      const int64_t b = n / T / H, h = n / T % H, i = n % T;
      floats[((b * T + (T - 1 - i)) * H + h) * D + e] = (float)right.output[n * D + e];
      element_type_of(ATTN_BFLOAT16)->store(&halves[n * D + e], right.output[n * D + e]);
    }
  question.arrays[TENSOR_OUTPUT] = packed(w, halves, ATTN_BFLOAT16, 2, D);
  const judge_verdict own = verdict_of(&question);
  question.arrays[TENSOR_OUTPUT] =
      (judge_array){floats + (T - 1) * H * D, ATTN_FLOAT32, {T * H * D * 4, D * 4, -H * D * 4, 4}};
  const judge_verdict other = verdict_of(&question);
  assert_true(own.ok && other.ok);
  assert_true(own.worst.share == other.worst.share && own.worst.share > 0);
  free(floats);
  free(halves);
  forget(&right);
}

/* ---- what is wrong ---- */

static void the_worst_element_is_named(void **state) {
  (void)state;
  answers given;
  solve(&given, "full/B:2/H:2/D:8/Dv:6/T:10");
  given.output[((1 * 2 + 0) * 10 + 7) * 6 + 4] += 0.5;
  given.output[3] += 0.001;
  const judge_question question = question_of(&given.workload, &given);
  const judge_verdict verdict = verdict_of(&question);
  assert_false(verdict.ok);
  assert_int_equal(verdict.worst.tensor, TENSOR_OUTPUT);
  assert_int_equal(verdict.worst.b, 1);
  assert_int_equal(verdict.worst.h, 0);
  assert_int_equal(verdict.worst.i, 7);
  assert_int_equal(verdict.worst.e, 4);
  assert_true(fabs(verdict.worst.computed - verdict.worst.expected - 0.5) < 1e-6);
  assert_true(verdict.worst.share > 1000 && verdict.worst.bound > 0);
  assert_int_equal(verdict.wrong_elements, 2);
  assert_int_equal(verdict.wrong_rows, 2);
  assert_non_null(strstr(verdict.pattern, "wrong in 2 of 40 rows"));
  forget(&given);
}

/* What was answered is the answer to another problem with the same inputs. */
static const struct {
  const char *asked, *answered, *kind;
} mistaken[] = {
    {"causal/B:2/H:4/D:16/T:40", "causal/B:2/H:4/D:16/T:40/scale:1", "scale"},
    {"full/B:1/H:2/D:16/T:40", "full/B:1/H:2/D:16/T:40/scale:0.0625", "scale"},
    {"full/B:1/H:2/D:64/T:40/scale:0.3", "full/B:1/H:2/D:64/T:40", "scale"},
    {"full/B:1/H:2/D:16/T:40/bf16", "full/B:1/H:2/D:16/T:40/bf16/scale:1", "scale"},
    {"causal_bottom_right/B:2/H:2/D:16/Tq:20/Tk:33", "causal/B:2/H:2/D:16/Tq:20/Tk:33", "alignment"},
    {"causal/B:2/H:2/D:16/Tq:20/Tk:33", "causal_bottom_right/B:2/H:2/D:16/Tq:20/Tk:33", "alignment"},
    {"causal/B:2/H:2/D:16/T:33", "full/B:2/H:2/D:16/T:33", "band"},
    {"window:6/B:2/H:2/D:16/T:33", "window:7/B:2/H:2/D:16/T:33", "band"},
    {"window:6/B:2/H:2/D:16/T:33", "window:5/B:2/H:2/D:16/T:33", "band"},
    {"causal/B:2/H:2/D:16/T:33", "band:inf,1,0/B:2/H:2/D:16/T:33", "band"},
    {"full/B:2/H:2/D:16/T:33/lengths:20,31", "full/B:2/H:2/D:16/T:33", "lengths"},
    {"full/B:2/H:2/D:16/T:33/lengths:20,31", "full/B:2/H:2/D:16/T:33/lengths:21,32", "lengths"},
    {"full/B:2/H:2/D:16/T:33/lengths:20,31", "full/B:2/H:2/D:16/T:33/lengths:20,20", "lengths"},
    {"full/B:2/H:2/D:16/T:33/see:strided:3", "full/B:2/H:2/D:16/T:33", "pattern"},
    {"causal/B:2/H:2/D:16/T:33/docs:5", "causal/B:2/H:2/D:16/T:33", "pattern"},
    {"full/B:1/H:2/D:16/T:33/blocks:4,8", "full/B:1/H:2/D:16/T:33", "pattern"},
    {"full/B:1/H:2/D:16/T:33/see:strided:5/offsets:3", "full/B:1/H:2/D:16/T:33/see:strided:5", "pattern"},
    {"full/B:1/H:2/D:16/T:33/see:strided:3/scale:0.3", "full/B:1/H:2/D:16/T:33/see:strided:3", "scale"},
    {"causal/B:2/H:2/D:16/T:33/docs:5/scale:0.3", "causal/B:2/H:2/D:16/T:33/docs:5", "scale"},
    {"full/B:2/H:2/D:16/T:33/mask:bhq", "full/B:2/H:2/D:16/T:33", "mask"},
    {"full/B:2/H:2/D:16/T:33/bias:bhq", "full/B:2/H:2/D:16/T:33", "bias"},
    {"full/B:2/H:2/D:16/T:33/sink", "full/B:2/H:2/D:16/T:33", "sink"},
    {"full/B:2/H:2/D:16/T:33/softcap:0.5/fill:normal", "full/B:2/H:2/D:16/T:33/fill:normal", "softcap"},
    {"linear/B:1/H:2/D:8/T:30/epsilon:5", "linear/B:1/H:2/D:8/T:30/epsilon:0", "sum"},
    {"linear/causal/B:1/H:2/D:8/T:30", "linear/full/B:1/H:2/D:8/T:30", "band"},
};

static void expect_kind(const char *what, const judge_question *question, const char *kind) {
  const judge_verdict verdict = verdict_of(question);
  assert_false(verdict.ok);
  if (strcmp(verdict.kind, kind) != 0 || !verdict.hint[0])
    fail_msg("%s: the hint is '%s: %s' and not of the kind %s", what, verdict.kind, verdict.hint, kind);
}

static void the_answer_to_another_problem_tells_the_mistake(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof mistaken / sizeof *mistaken; n++) {
    answers asked, given;
    solve(&asked, mistaken[n].asked);
    solve(&given, mistaken[n].answered);
    const judge_question question = question_of(&asked.workload, &given);
    expect_kind(mistaken[n].asked, &question, mistaken[n].kind);
    forget(&asked);
    forget(&given);
  }
}

/* Changes to right answers. */
static void swap_heads(answers *given) {
  const int64_t head = given->workload.query_length * given->width;
  for (int64_t n = 0; n < head; n++) {
    const double kept = given->output[n];
    given->output[n] = given->output[head + n];
    given->output[head + n] = kept;
  }
}
static void lose_columns(answers *given) {
  for (int64_t n = 0; n < given->rows; n++)
    for (int64_t e = given->width - 3; e < given->width; e++) given->output[n * given->width + e] = 0;
}
static void lse_of_base_2(answers *given) {
  for (int64_t n = 0; n < given->rows; n++) given->lse[n] /= log(2);
}
static void halve(answers *given) {
  for (int64_t n = 0; n < given->rows * given->width; n++) given->output[n] /= 2;
}
static void cut_off(answers *given) {
  for (int64_t n = 0; n < given->rows * given->width; n++) {
    uint16_t half;
    element_type_of(ATTN_BFLOAT16)->store(&half, given->output[n]);
    given->output[n] = element_type_of(ATTN_BFLOAT16)->load(&half);
  }
}
/* The formula without the key that each row sees last. */
static void lose_last_key(answers *given) {
  const attn_problem *p = &given->inputs.problem;
  for (int64_t n = 0; n < given->rows; n++) {
    const row_place at = row_place_of(p, n);
    const int64_t last = attn_visible_keys(p, at.b, at.i).end - 1;
    const number_row value = row_at(&given->inputs, TENSOR_VALUE, (row_place){at.b, at.h, last});
    const double weight = given->weights[n * given->keys + last];
    for (int64_t e = 0; e < given->width; e++) {
      double *output = &given->output[n * given->width + e];
      *output = weight < 1 ? (*output - weight * row_number(value, e)) / (1 - weight) : 0;
    }
    given->lse[n] = given->lse[n] + log1p(-weight);
  }
}

static void changed_answers_tell_the_mistake(void **state) {
  (void)state;
  static const struct {
    const char *what;
    void (*change)(answers *given);
    const char *kind;
  } changes[] = {{"heads are swapped", swap_heads, "rows"},
                 {"the last columns are zeros", lose_columns, "columns"},
                 {"the log-sum-exp is in base 2", lse_of_base_2, "lse"},
                 {"outputs are halved", halve, "sum"},
                 {"outputs are rounded to bfloat16", cut_off, "precision"},
                 {"the last key is lost", lose_last_key, "keys"}};
  for (size_t n = 0; n < sizeof changes / sizeof *changes; n++) {
    answers given;
    solve(&given, "full/B:1/H:2/D:16/Dv:20/T:40");
    changes[n].change(&given);
    const judge_question question = question_of(&given.workload, &given);
    expect_kind(changes[n].what, &question, changes[n].kind);
    forget(&given);
  }
}

/* As where a tile ends in hidden keys: most rows have the mistake alone, a few have it and another. */
static void a_mistake_is_told_by_most_of_the_rows(void **state) {
  (void)state;
  answers asked, given;
  solve(&asked, "causal/B:1/H:2/D:16/T:33");
  solve(&given, "band:inf,1,0/B:1/H:2/D:16/T:33");
  for (int64_t e = 0; e < given.width; e++) given.output[(given.rows - 1) * given.width + e] /= 3;
  const judge_question question = question_of(&asked.workload, &given);
  expect_kind("the band, and the last row", &question, "band");
  forget(&asked);
  forget(&given);
}

/* What a kernel says of rows that see nothing is told from what it says of others. */
static void wrong_rows_without_a_key_are_named(void **state) {
  (void)state;
  static const double empty[][2] = {{0, INFINITY}, {0, 0}, {0.25, -INFINITY}, {NAN, NAN}};
  for (size_t n = 0; n < sizeof empty / sizeof *empty; n++) {
    answers given;
    solve(&given, "causal_bottom_right/B:1/H:2/D:16/Tq:40/Tk:20/lengths:15");
    for (int64_t row = 0; row < given.rows; row++) {
      if (given.lse[row] != -INFINITY) continue;
      for (int64_t e = 0; e < given.width; e++) given.output[row * given.width + e] = empty[n][0];
      given.lse[row] = empty[n][1];
    }
    const judge_question question = question_of(&given.workload, &given);
    expect_kind("rows without a key", &question, "empty");
    forget(&given);
  }
}

static bool is_listed(const char *kind) {
  char list[] = HINT_KINDS;
  for (char *rest = list, *word; (word = strsep(&rest, ", \n"));)
    if (strcmp(word, kind) == 0) return true;
  return false;
}

static void every_mistake_is_of_a_kind_that_is_listed(void **state) {
  (void)state;
  for (size_t group = 0; group < HINT_MISTAKES; group++)
    for (size_t n = 0; n < hint_mistakes[group]->count; n++) {
      const char *kind = hint_mistakes[group]->of[n].kind;
      if (!is_listed(kind)) fail_msg("%s is not in the list", kind);
    }
}

static void zeros_noise_and_nan_are_wrong(void **state) {
  (void)state;
  for (int how = 0; how < 3; how++)
    for (size_t n = 0; n < 6; n++) {
      answers given;
      solve(&given, problems[n]);
      for (int64_t m = 0; m < given.rows * given.width; m++)
        given.output[m] = how == 0 ? 0 : how == 1 ? sin((double)m) : (double)NAN;
      judge_question question = question_of(&given.workload, &given);
      const judge_verdict verdict = verdict_of(&question);
      assert_false(verdict.ok);
      assert_true(verdict.wrong_elements > 0 && verdict.worst.share > 1);
      question.no_hint = true;
      assert_string_equal(verdict_of(&question).hint, "");
      forget(&given);
    }
}

/* ---- inputs of one's own ---- */

static void given_inputs_stand_in_the_place_of_drawn_ones(void **state) {
  (void)state;
  answers right;
  solve(&right, "full/B:1/H:2/D:8/T:12");
  judge_question question = question_of(&right.workload, &right);
  float *values = calloc((size_t)(right.rows * right.width), sizeof *values);
  for (int64_t n = 0; n < right.rows; n++)
    for (int64_t e = 0; e < 8; e++) {
      const row_place at = row_place_of(&right.inputs.problem, n);
      values[n * 8 + e] = -2 * (float)row_number(row_at(&right.inputs, TENSOR_VALUE, at), e);
      right.output[n * 8 + e] *= -2;
    }
  assert_false(verdict_of(&question).ok);
  question.arrays[TENSOR_VALUE] = packed(&right.workload, values, ATTN_FLOAT32, 4, 8);
  const judge_verdict verdict = verdict_of(&question);
  if (!verdict.ok) fail_msg("%s", verdict.sentence);
  free(values);
  forget(&right);
}

/* The judge keeps the solution of the last problem that was drawn: neither another seed, nor outputs that were not
 * there, nor what was given before may be taken for it. */
static void each_answer_is_held_to_its_own_problem(void **state) {
  (void)state;
  static const char *const lines[] = {"causal/B:1/H:2/D:8/T:12/seed:1", "causal/B:1/H:2/D:8/T:12/seed:2",
                                      "full/B:1/H:2/D:8/T:12/seed:2"};
  enum { LINES = sizeof lines / sizeof *lines };
  answers of[LINES];
  for (int n = 0; n < LINES; n++) solve(&of[n], lines[n]);
  for (int asked = 0; asked < LINES; asked++)
    for (int given = 0; given < LINES; given++) {
      judge_question question = question_of(&of[asked].workload, &of[given]);
      for (int with_lse = 1; with_lse >= 0; with_lse--) {
        if (!with_lse) question.arrays[TENSOR_LSE].data = NULL;
        const judge_verdict verdict = verdict_of(&question), again = verdict_of(&question);
        if (verdict.ok != (asked == given))
          fail_msg("%s on the answer to %s: %d", lines[asked], lines[given], verdict.ok);
        assert_int_equal(verdict.given[TENSOR_LSE], with_lse);
        assert_true(again.ok == verdict.ok && again.worst.share == verdict.worst.share);
      }
    }
  for (int n = 0; n < LINES; n++) forget(&of[n]);
}

/* ---- what cannot be judged ---- */

static void expect_refusal(const judge_question *question, const char *words) {
  char why[512] = "";
  judge_verdict verdict;
  if (judge(question, &verdict, why, sizeof why)) fail_msg("judged, in place of: %s", words);
  if (!strstr(why, words)) fail_msg("'%s' is not in '%s'", words, why);
}

static void what_is_no_answer_is_refused_in_a_sentence(void **state) {
  (void)state;
  answers right, narrow, linear;
  solve(&right, "full/B:1/H:2/D:8/T:12");
  solve(&narrow, "full/B:1/H:2/D:8/T:12/bf16");
  solve(&linear, "linear/B:1/H:2/D:8/T:12");
  judge_question question = {.workload = &right.workload};
  expect_refusal(&question, "the output is not given");
  question = question_of(&right.workload, &right);
  question.arrays[TENSOR_OUTPUT].type = ATTN_FLOAT16;
  expect_refusal(&question, "the output: the array is of float16 and must be float32, or of a wider type");
  question.arrays[TENSOR_OUTPUT].type = 77;
  expect_refusal(&question, "an unknown type");
  question = question_of(&narrow.workload, &narrow);
  question.arrays[TENSOR_OUTPUT].type = ATTN_FLOAT16;
  expect_refusal(&question, "the output: the array is of float16 and must be bfloat16, as the problem says");
  question = question_of(&right.workload, &right);
  question.arrays[TENSOR_QUERY] = question.arrays[TENSOR_OUTPUT];
  expect_refusal(&question, "the queries: the array is of float64, and the problem says float32");
  question = question_of(&right.workload, &right);
  question.arrays[TENSOR_SINK] = question.arrays[TENSOR_OUTPUT];
  expect_refusal(&question, "the sinks: the problem has no such tensor");
  question = question_of(&linear.workload, &linear);
  question.arrays[TENSOR_LSE] = question.arrays[TENSOR_OUTPUT];
  expect_refusal(&question, "linear attention has no log-sum-exp");
  workload unsound = right.workload;
  unsound.kv_heads = 3;
  question = question_of(&unsound, &right);
  expect_refusal(&question, "not a multiple of kv_heads");
  forget(&right);
  forget(&narrow);
  forget(&linear);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_answers_pass),
      cmocka_unit_test(each_answer_is_held_to_its_own_problem),
      cmocka_unit_test(neither_type_nor_strides_change_the_verdict),
      cmocka_unit_test(the_worst_element_is_named),
      cmocka_unit_test(the_answer_to_another_problem_tells_the_mistake),
      cmocka_unit_test(changed_answers_tell_the_mistake),
      cmocka_unit_test(a_mistake_is_told_by_most_of_the_rows),
      cmocka_unit_test(wrong_rows_without_a_key_are_named),
      cmocka_unit_test(every_mistake_is_of_a_kind_that_is_listed),
      cmocka_unit_test(zeros_noise_and_nan_are_wrong),
      cmocka_unit_test(given_inputs_stand_in_the_place_of_drawn_ones),
      cmocka_unit_test(what_is_no_answer_is_refused_in_a_sentence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
