/* See hint_rows.h. */
#include "hint_rows.h"

#include <math.h>
#include <stdlib.h>

#include "hint_mistakes.h"

/* Products that trying every mistake may cost. */
static const double most_products = 3e9;

static int affordable(const attn_problem *p) {
  double tries = 0;
  for (size_t group = 0; group < HINT_MISTAKES; group++)
    for (size_t n = 0; n < hint_mistakes[group]->count; n++)
      tries += (double)hint_mistakes[group]->of[n].parameter_count;
  const double row = tries * ((double)p->key_length * (double)(p->head_dim + p->value_dim) + 1);
  const double rows = most_products / row;
  return rows >= HINT_MOST_ROWS ? HINT_MOST_ROWS : rows < 2 ? 2 : (int)rows;
}

/* The first, the last and some between. */
static void choose(hint_rows *rows, int wanted) {
  const int64_t wrong = rows->wrong->wrong_rows;
  int64_t seen = 0;
  for (int64_t n = 0; n < rows->known->rows && rows->count < wanted; n++) {
    if (!rows->wrong->rows[n]) continue;
    const int64_t next = wrong <= wanted ? rows->count : rows->count * (wrong - 1) / (wanted - 1);
    if (seen++ >= next) rows->rows[rows->count++] = n;
  }
}

bool hint_rows_create(hint_rows *rows, const expected *known, const examination *wrong) {
  const attn_problem *p = &known->inputs->problem;
  const size_t Dv = (size_t)p->value_dim, Tk = (size_t)p->key_length;
  *rows = (hint_rows){.known = known, .wrong = wrong};
  choose(rows, affordable(p));
  if (rows->count == 0 ||
      !widened_create(&rows->widened, &known->inputs->problem, &known->inputs->tensors, false))
    return false;
  rows->numbers = calloc(3 * Dv + 2 * Tk + 2, sizeof *rows->numbers);
  if (!rows->numbers) {
    hint_rows_destroy(rows);
    return false;
  }
  rows->answer.output = rows->numbers;
  rows->error = rows->numbers + Dv;
  rows->direction = rows->numbers + 2 * Dv;
  rows->answer.weights = rows->numbers + 3 * Dv;
  rows->answer.scores = rows->numbers + 3 * Dv + Tk;
  rows->answer.lse = rows->numbers + 3 * Dv + 2 * Tk;
  return true;
}

void hint_rows_destroy(hint_rows *rows) {
  widened_destroy(&rows->widened);
  free(rows->numbers);
  rows->numbers = NULL;
}

static row_place place_of(const hint_rows *rows, int n) {
  return row_place_of(&rows->known->inputs->problem, rows->known->positions[rows->rows[n]]);
}

asked hint_rows_ask(const hint_rows *rows, int n) {
  return hint_ask(&rows->known->inputs->problem, &rows->widened.tensors, place_of(rows, n));
}

const reference_row *hint_rows_reference(const hint_rows *rows, int n) {
  return &rows->known->solved[rows->rows[n]];
}

double hint_computed(const hint_rows *rows, tensor_id id, int n, int64_t e) {
  return row_number(row_at(rows->known->inputs, id, place_of(rows, n)), e);
}

double hint_error(const hint_rows *rows, int n) {
  const reference_row *reference = hint_rows_reference(rows, n);
  double squares = 0;
  for (int64_t e = 0; e < rows->known->inputs->problem.value_dim; e++) {
    rows->error[e] = hint_computed(rows, TENSOR_OUTPUT, n, e) - reference->output[e];
    squares += rows->error[e] * rows->error[e];
  }
  return sqrt(squares);
}

/* Differences of one tensor's row: to the truth, and what the answer leaves of them. */
typedef struct difference {
  double whole, left;
  bool is_wrong, contradicts, is_within; /* what is left of each element is within its bound */
} difference;

static void add(difference *to, double computed, double reference, double answered, double bound) {
  bound = fabs(bound);
  if (!(bound < (double)INFINITY)) return;
  if (!isfinite(reference)) {
    /* What lost it must be the mistake. */
    to->contradicts = to->contradicts || isfinite(computed) != isfinite(answered);
    to->is_wrong = to->is_wrong || isfinite(computed);
    to->whole += isfinite(computed);
    return;
  }
  if (!isfinite(computed) || !isfinite(answered)) {
    /* In float32 what is very large is infinite. */
    const bool same = !isfinite(computed) && (!isfinite(answered) || fabs(answered) > 1e38);
    to->contradicts = to->contradicts || !same;
    to->is_wrong = to->is_wrong || !isfinite(computed);
    to->whole += same;
    return;
  }
  const double whole = computed - reference, left = computed - answered;
  to->is_wrong = to->is_wrong || fabs(whole) > bound;
  to->is_within = to->is_within && fabs(left) <= bound;
  to->whole += whole * whole;
  to->left += left * left;
}

/* Of a tensor that is right in this row the answer must say so too. */
static double unexplained(const difference *of) {
  const double some_rounding = 0.5;
  if (of->contradicts || (!of->is_wrong && !of->is_within)) return INFINITY;
  if (!of->is_wrong) return 0;
  const double ratio = sqrt(of->left / of->whole);
  return of->is_within && ratio < some_rounding ? some_rounding * ratio : ratio;
}

double hint_unexplained(const hint_rows *rows, int n) {
  const attn_problem *p = &rows->known->inputs->problem;
  const reference_row *reference = hint_rows_reference(rows, n);
  const answer *answer = &rows->answer;
  difference output = {.is_within = true}, lse = output, weights = output;
  for (int64_t e = 0; e < p->value_dim; e++)
    add(&output, hint_computed(rows, TENSOR_OUTPUT, n, e), reference->output[e], answer->output[e],
        reference->output_bound[e]);
  if (p->lse.type) {
    const double computed = hint_computed(rows, TENSOR_LSE, n, 0);
    if (isfinite(reference->lse)) add(&lse, computed, reference->lse, *answer->lse, reference->lse_bound);
    /* An empty row's is -inf, and any other number wrong. */
    if (!isfinite(reference->lse) && computed != reference->lse) {
      const double answered = *answer->lse, rounding = 1e-4, as_if_infinite = -1000;
      lse.is_wrong = true;
      lse.whole = 1;
      /* -inf is right, and so +inf an answer of its own; NaN comes with an output of NaN. */
      lse.contradicts =
          (isinf(computed) && *answer->lse != computed) ||
          (isfinite(computed) && !(computed < as_if_infinite && answered == reference->lse) &&
           !(fabs(computed - answered) <= rounding * (1 + fabs(answered)) && isfinite(answered)));
    }
  }
  for (int64_t j = 0; j < p->key_length && p->weights.type; j++)
    add(&weights, hint_computed(rows, TENSOR_WEIGHTS, n, j), reference->weights[j], answer->weights[j],
        reference->weights_bound * reference->weights[j] + reference->weights_vanish);
  /* Only all together are too far off: an answer has to be near what was computed, not within a bound. */
  if (!output.is_wrong && !lse.is_wrong && !weights.is_wrong)
    return output.whole > 0 && !output.contradicts ? sqrt(output.left / output.whole) : INFINITY;
  const double all[] = {unexplained(&output), unexplained(&lse), unexplained(&weights)};
  return fmax(all[0], fmax(all[1], all[2]));
}
