/* See judge.h. Arrays are copied to where a variant would have written them, and what judges variants judges them. */
#include "judge.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "problem/check.h"
#include "problem/features.h"
#include "compare.h"
#include "gradients.h"
#include "hint.h"

static double load_float64(const void *element) {
  double number;
  memcpy(&number, element, sizeof number);
  return number;
}

/* Of an array, whose type may be one that no problem has. */
static const element_type *type_of(int type) {
  static const element_type float64 = {.name = "f64", .words = "float64", .bytes = 8, .load = load_float64};
  return type == JUDGE_FLOAT64 ? &float64 : element_type_of((attn_type)type);
}

/* ---- what may be given ---- */

static bool check_output(tensor_id id, attn_type wanted, int given, complaint to) {
  const element_type *type = type_of(given), *own = element_type_of(wanted);
  if (given == (int)wanted || given == JUDGE_FLOAT64 || (given == ATTN_FLOAT32 && own->bytes == 2))
    return true;
  return wrong(to, "%s: the array is of %s and must be %s%s, or of a wider type that is rounded to it",
               tensor_table[id].words, type ? type->words : "an unknown type", own->words,
               own->bytes == 2 ? ", as the problem says" : "");
}

static bool check_input(tensor_id id, attn_type wanted, int given, complaint to) {
  const element_type *type = type_of(given);
  if (!wanted) return wrong(to, "%s: the problem has no such tensor", tensor_table[id].words);
  return given == (int)wanted ||
         wrong(to, "%s: the array is of %s, and the problem says %s", tensor_table[id].words,
               type ? type->words : "an unknown type", element_type_of(wanted)->words);
}

static bool check_arrays(const judge_question *question, const attn_problem *p, complaint to) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    const bool needed = tensor_is_written(p, id) && id != TENSOR_LSE && id != TENSOR_WEIGHTS;
    if (needed && !question->arrays[id].data && tensor_elements(p, id) > 0)
      return wrong(to, "%s is not given: there is nothing to judge", tensor_table[id].words);
    const judge_array *array = &question->arrays[id];
    const attn_type wanted = tensor_layout(p, id)->type;
    if (!array->data) continue;
    if (!(tensor_is_written(p, id) ? check_output : check_input)(id, wanted, array->type, to)) return false;
  }
  return true;
}

/* The problem with the outputs that are given. */
static bool pose(const judge_question *question, workload *asked, complaint to) {
  *asked = *question->workload;
  asked->layout = LAYOUT_BHTD;
  asked->wants_lse = question->arrays[TENSOR_LSE].data && !function_is_backward(asked->function);
  asked->wants_weights = question->arrays[TENSOR_WEIGHTS].data != NULL;
  if (!reference_function_of(asked->function)->has_scores && (asked->wants_lse || asked->wants_weights))
    return wrong(to, "linear attention has no %s: leave it out",
                 asked->wants_lse ? "log-sum-exp" : "weights");
  return workload_check(asked, to.text, to.size);
}

/* ---- copies ---- */

/* Element by element, as numbers: so a NaN never is the one that marks what nobody wrote. */
static void take(inputs *in, tensor_id id, const judge_array *array) {
  const tensor_shape shape = tensor_stored_shape(&in->problem, id);
  const element_type *type = type_of(array->type);
  const bool same_bits =
      array->type == (int)tensor_layout(&in->problem, id)->type && !tensor_is_written(&in->problem, id);
  const char *data = array->data;
  for (int64_t b = 0; b < shape.batch; b++)
    for (int64_t h = 0; h < shape.heads; h++)
      for (int64_t i = 0; i < shape.length; i++) {
        const number_row row = row_at(in, id, (row_place){b, h, i});
        const char *from = data + b * array->strides[0] + h * array->strides[1] + i * array->strides[2];
        for (int64_t e = 0; e < shape.width; e++) {
          const char *element = from + e * array->strides[3];
          if (same_bits)
            memcpy(row_element(row, e), element, type->bytes);
          else
            row_set(row, e, type->load(element));
        }
      }
}

static void take_arrays(inputs *in, const judge_question *question) {
  inputs_poison_outputs(in);
  for (tensor_id id = 0; id < TENSORS; id++)
    if (question->arrays[id].data && tensor_elements(&in->problem, id) > 0)
      take(in, id, &question->arrays[id]);
}

/* ---- the verdict ---- */

static judge_element element_of(const element_error *error) {
  return (judge_element){.tensor = error->tensor,
                         .b = error->at.b,
                         .h = error->at.h,
                         .i = error->at.i,
                         .e = error->e,
                         .computed = error->computed,
                         .expected = error->expected,
                         .bound = error->bound,
                         .share = error->share};
}

/* alone: there are no other rows. */
static void fill_gradients(judge_verdict *to, const gradients *of, uint32_t traits, bool alone) {
  const gradient_error worst = gradients_worst(of, traits);
  to->wrong_elements += worst.wrong_elements;
  to->wrong_rows += worst.wrong_rows;
  if (!alone && !(worst.share > to->worst.share)) return;
  to->worst = (judge_element){.tensor = worst.row ? worst.row->tensor : TENSOR_QUERY_GRAD,
                              .e = worst.element,
                              .computed = worst.computed,
                              .expected = worst.expected,
                              .bound = worst.bound,
                              .share = worst.share};
  if (worst.row) to->worst.b = worst.row->at.b, to->worst.h = worst.row->at.h, to->worst.i = worst.row->at.i;
}

static void fill(judge_verdict *to, const expected *known, uint32_t traits, const verdict *result,
                 const examination *seen, bool with_hint) {
  hint hint = {0};
  to->ok = result->passed;
  if (seen->has_worst) to->worst = element_of(&seen->worst);
  to->wrong_elements = seen->wrong_elements;
  to->wrong_rows = seen->wrong_rows;
  if (known->gradients) fill_gradients(to, known->gradients, traits, true);
  if (known->states) fill_gradients(to, known->states, traits, false);
  to->rows_checked = result->rows_checked;
  to->rows_total = result->rows_total;
  to->mean_square_share = result->mean_square_share;
  if (to->ok) return;
  const bool of_states = seen->wrong_rows == 0 && to->wrong_rows > 0; /* alone */
  const gradients *others = known->gradients ? known->gradients : of_states ? known->states : NULL;
  if (others)
    snprintf(to->pattern, sizeof to->pattern, "wrong in %lld of %lld rows%s", (long long)to->wrong_rows,
             (long long)others->count, gradients_words(&known->inputs->problem));
  else
    examination_describe(seen, known, to->pattern, sizeof to->pattern);
  /* What is wrong is said apart from where. */
  const char *where = *to->pattern ? strstr(result->problem, to->pattern) : NULL;
  const size_t length =
      where && where - result->problem >= 2 ? (size_t)(where - result->problem) - 2 : strlen(result->problem);
  snprintf(to->sentence, sizeof to->sentence, "%.*s", (int)length, result->problem);
  if (with_hint && !others) hint_find(known, seen, &hint);
  snprintf(to->kind, sizeof to->kind, "%s", hint.kind);
  snprintf(to->hint, sizeof to->hint, "%s", hint.words);
}

/* What is known of a problem: its inputs, in which outputs that are given take their place, and its solution. */
typedef struct solved_problem {
  inputs inputs;
  expected known;
} solved_problem;

/* False, with the reason in words and nothing to destroy. */
static bool solve(solved_problem *problem, const workload *asked, const judge_question *question,
                  complaint why) {
  inputs *in = &problem->inputs;
  if (!inputs_create(in, asked, false, why.text, why.size)) return false;
  take_arrays(in, question);
  /* What was drawn is sound; what was given may list a key that is none. */
  if (check_pattern_tensors(&in->problem, why.text, why.size) &&
      expected_solve(&problem->known, in, expected_affordable_rows(&in->workload), why.text, why.size))
    return true;
  inputs_destroy(in);
  return false;
}

static void solved_destroy(solved_problem *problem) {
  expected_destroy(&problem->known);
  inputs_destroy(&problem->inputs);
}

static bool judge_solved(const solved_problem *problem, const judge_question *question, judge_verdict *to,
                         complaint why) {
  verdict result;
  examination seen;
  if (!examine(&problem->known, question->traits, &seen)) return wrong(why, "no memory for the verdict");
  expected_compare(&problem->known, question->traits, &result);
  fill(to, &problem->known, question->traits, &result, &seen, !question->no_hint);
  examination_destroy(&seen);
  return true;
}

/* The last problem of drawn inputs, for the solution costs far more than the verdict, and who writes a kernel or
 * compares many asks the same again and again. */
static struct {
  pthread_mutex_t lock;
  char name[WORKLOAD_NAME_BYTES]; /* empty: there is none */
  solved_problem problem;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool judge_last(const workload *asked, const judge_question *question, judge_verdict *to,
                       complaint why) {
  char name[WORKLOAD_NAME_BYTES];
  workload_name(asked, name);
  if (strcmp(name, last.name) == 0) {
    take_arrays(&last.problem.inputs, question);
  } else {
    if (*last.name) solved_destroy(&last.problem);
    *last.name = 0;
    if (!solve(&last.problem, asked, question, why)) return false;
    memcpy(last.name, name, sizeof name);
  }
  return judge_solved(&last.problem, question, to, why);
}

static bool judge_alone(const workload *asked, const judge_question *question, judge_verdict *to,
                        complaint why) {
  solved_problem problem;
  if (!solve(&problem, asked, question, why)) return false;
  const bool judged = judge_solved(&problem, question, to, why);
  solved_destroy(&problem);
  return judged;
}

bool judge(const judge_question *question, judge_verdict *to, char *why, size_t why_size) {
  const complaint complaint = {why, why_size};
  workload asked;
  bool is_drawn = true;
  *to = (judge_verdict){.worst.tensor = TENSOR_OUTPUT};
  workload_name(question->workload, to->problem);
  if (!pose(question, &asked, complaint)) return false;
  const attn_problem problem = workload_problem(&asked);
  for (tensor_id id = 0; id < TENSORS; id++) {
    const bool is_given = question->arrays[id].data != NULL, is_output = tensor_is_written(&problem, id);
    to->given[id] = is_given && is_output;
    is_drawn = is_drawn && (is_output || !is_given);
  }
  if (!check_arrays(question, &problem, complaint)) return false;
  /* Where another thread is judging, this one solves its own. */
  if (!is_drawn || pthread_mutex_trylock(&last.lock) != 0)
    return judge_alone(&asked, question, to, complaint);
  const bool judged = judge_last(&asked, question, to, complaint);
  pthread_mutex_unlock(&last.lock);
  return judged;
}
