/* See hint_analysis.h. */
#include "hint_analysis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What may be left of an error that is explained. */
static const double little = 0.03;

/* With fewer features than that, some key explains everything. */
enum { LEAST_FEATURES = 4 };

bool hint_say(hint *found, const char *kind, const char *words, ...) {
  va_list arguments;
  snprintf(found->kind, sizeof found->kind, "%s", kind);
  va_start(arguments, words);
  vsnprintf(found->words, sizeof found->words, words, arguments);
  va_end(arguments);
  return true;
}

/* ---- rows without a key ---- */

static bool sees_no_key(const hint_rows *rows, int n) {
  asked a = hint_rows_ask(rows, n);
  bool sees = false;
  hint_answer(&a, &rows->answer);
  for (int64_t j = 0; j < a.problem->key_length && !sees; j++)
    sees = hint_sees(&a, j) && (a.problem->function != ATTN_SOFTMAX || rows->answer.scores[j] != -INFINITY);
  return !sees;
}

bool hint_of_empty_rows(const hint_rows *rows, hint *found) {
  for (int n = 0; n < rows->count; n++)
    if (!sees_no_key(rows, n)) return false;
  return hint_say(found, "empty",
                  "only rows that see no key are wrong: their output is zeros, their log-sum-exp -inf or the "
                  "sink");
}

/* ---- rows that nobody wrote ---- */

static int64_t unwritten_in(const hint_rows *rows, int n) {
  const inputs *in = rows->known->inputs;
  const number_row row =
      row_at(in, TENSOR_OUTPUT, row_place_of(&in->problem, rows->known->positions[rows->rows[n]]));
  int64_t unwritten = 0;
  for (int64_t e = 0; e < in->problem.value_dim; e++)
    unwritten += element_is_poison(row.type, row_element(row, e));
  return unwritten;
}

/* Parts of rows alone: features are left out. */
bool hint_of_unwritten(const hint_rows *rows, hint *found) {
  const int64_t Dv = rows->known->inputs->problem.value_dim;
  int whole = 0, part = 0;
  for (int n = 0; n < rows->count; n++) {
    const int64_t unwritten = unwritten_in(rows, n);
    whole += unwritten > 0 && unwritten == Dv;
    part += unwritten > 0 && unwritten < Dv;
  }
  if (3 * (whole + part) < rows->count) return false;
  if (whole == 0) return hint_say(found, "columns", "some features of %lld are never written", (long long)Dv);
  return hint_say(found, "rows", "rows are never written: how they are dealt out, or where they are stored");
}

/* ---- one key ---- */

typedef enum fate { LEFT_OUT, TWICE, SEEN, ODD } fate;
typedef enum position { LAST, FIRST, BEHIND_LAST, BEFORE_FIRST, BEHIND_LENGTH, MASKED, ELSEWHERE } position;

typedef struct one_key {
  int64_t j;
  fate fate;
  position position;
} one_key;

static position position_of(const asked *a, int64_t j) {
  const int64_t length = a->problem->key_lengths ? a->problem->key_lengths[a->at.b] : a->problem->key_length;
  if (j >= length) return BEHIND_LENGTH;
  if (j < a->keys.first) return BEFORE_FIRST;
  if (j >= a->keys.end) return BEHIND_LAST;
  if (!hint_sees(a, j)) return MASKED;
  if (j == a->keys.end - 1) return LAST;
  return j == a->keys.first ? FIRST : ELSEWHERE;
}

/* Dropping key j of weight w moves the output by -w / (1 - w) (v_j - o), counting it twice by w / (1 + w) (v_j - o). */
static bool find_key(const hint_rows *rows, int n, one_key *found) {
  const attn_problem *p = &rows->known->inputs->problem;
  asked a = hint_rows_ask(rows, n);
  const double norm = hint_error(rows, n);
  const reference_row *reference = hint_rows_reference(rows, n);
  double best = little, factor = 0;
  *found = (one_key){0};
  if (!isfinite(norm) || norm == 0) return false;
  for (int64_t j = 0; j < p->key_length; j++) {
    const float *value = hint_row(&a, TENSOR_VALUE, (row_place){a.value.b, a.value.h, j});
    double along = 0, squares = 0;
    for (int64_t e = 0; e < p->value_dim; e++) {
      const double to = (double)value[e] - reference->output[e];
      along += to * rows->error[e];
      squares += to * to;
    }
    const double left = squares > 0 ? sqrt(fmax(0, 1 - along * along / squares / (norm * norm))) : 1;
    if (!(left < best)) continue;
    best = left;
    factor = along / squares;
    found->j = j;
  }
  if (best == little) return false;
  hint_answer(&a, &rows->answer);
  const double weight = rows->answer.weights[found->j];
  found->position = position_of(&a, found->j);
  found->fate = !hint_sees(&a, found->j)                                    ? SEEN
                : fabs(factor + weight / (1 - weight)) < 0.1 * fabs(factor) ? LEFT_OUT
                : fabs(factor - weight / (1 + weight)) < 0.1 * fabs(factor) ? TWICE
                                                                            : ODD;
  return true;
}

bool hint_of_one_key(const hint_rows *rows, hint *found) {
  static const char *const fates[] = {"is left out", "counts twice", "is seen though it is hidden",
                                      "has a wrong weight"};
  static const struct {
    const char *kind, *words;
  } positions[] = {{"keys", "the last visible key"},
                   {"keys", "the first visible key"},
                   {"band", "a key behind the band"},
                   {"band", "a key before the band"},
                   {"lengths", "a key beyond the key length"},
                   {"mask", "a key that the mask hides"},
                   {"keys", "one key"}};
  const attn_problem *p = &rows->known->inputs->problem;
  int votes[ODD + 1][ELSEWHERE + 1] = {{0}};
  one_key key = {0}, example = {0};
  if (p->value_dim < LEAST_FEATURES || p->function != ATTN_SOFTMAX || !rows->wrong->wrong_in[TENSOR_OUTPUT])
    return false;
  for (int n = 0; n < rows->count; n++) {
    if (!find_key(rows, n, &key)) continue;
    if (++votes[key.fate][key.position] * 3 >= rows->count * 2 &&
        votes[key.fate][key.position] == (rows->count * 2 + 2) / 3) {
      example = key;
      const asked a = hint_rows_ask(rows, n);
      return hint_say(found, positions[example.position].kind,
                      "%s %s: key %lld in row b %lld, h %lld, i %lld", positions[example.position].words,
                      fates[example.fate], (long long)example.j, (long long)a.at.b, (long long)a.at.h,
                      (long long)a.at.i);
    }
  }
  return false;
}

/* ---- rows ---- */

static bool is_answer_of(const hint_rows *rows, int n, const reference_row *other) {
  const int64_t Dv = rows->known->inputs->problem.value_dim;
  for (int64_t e = 0; e < Dv && rows->wrong->wrong_in[TENSOR_OUTPUT]; e++)
    if (!(reference_error_share(hint_computed(rows, TENSOR_OUTPUT, n, e), other->output[e],
                                other->output_bound[e]) <= 1))
      return false;
  return !rows->known->inputs->problem.lse.type || !rows->wrong->wrong_in[TENSOR_LSE] ||
         reference_error_share(hint_computed(rows, TENSOR_LSE, n, 0), other->lse, other->lse_bound) <= 1;
}

bool hint_of_other_rows(const hint_rows *rows, hint *found) {
  const attn_problem *p = &rows->known->inputs->problem;
  int matches = 0;
  int64_t from = -1, to = -1;
  /* A single number is that of some other row by chance. */
  const bool tells = rows->wrong->wrong_in[TENSOR_OUTPUT] ? p->value_dim >= 2 : rows->count >= 4;
  if (rows->wrong->wrong_in[TENSOR_WEIGHTS] && !rows->wrong->wrong_in[TENSOR_OUTPUT]) return false;
  for (int n = 0; n < rows->count && tells; n++)
    for (int64_t m = 0; m < rows->known->rows; m++) {
      if (m == rows->rows[n] || !is_answer_of(rows, n, &rows->known->solved[m])) continue;
      to = rows->known->positions[rows->rows[n]];
      from = rows->known->positions[m];
      matches++;
      break;
    }
  if (matches == 0 || matches * 3 < rows->count * 2) return false;
  const row_place wrong = row_place_of(p, to), right = row_place_of(p, from);
  return hint_say(
      found, "rows",
      "rows hold the answers of other rows: b %lld, h %lld, i %lld has that of b %lld, h %lld, i %lld",
      (long long)wrong.b, (long long)wrong.h, (long long)wrong.i, (long long)right.b, (long long)right.h,
      (long long)right.i);
}

/* ---- factors ---- */

bool hint_of_a_factor(const hint_rows *rows, hint *found) {
  const attn_problem *p = &rows->known->inputs->problem;
  double least = INFINITY, most = -INFINITY;
  if (p->value_dim < 2 || !rows->wrong->wrong_in[TENSOR_OUTPUT]) return false;
  for (int n = 0; n < rows->count; n++) {
    const reference_row *reference = hint_rows_reference(rows, n);
    const double norm = hint_error(rows, n);
    double along = 0, squares = 0, left = 0;
    if (!isfinite(norm) || norm == 0) return false;
    for (int64_t e = 0; e < p->value_dim; e++) {
      along += reference->output[e] * rows->error[e];
      squares += reference->output[e] * reference->output[e];
    }
    const double factor = along / squares;
    for (int64_t e = 0; e < p->value_dim; e++)
      left +=
          (rows->error[e] - factor * reference->output[e]) * (rows->error[e] - factor * reference->output[e]);
    if (!(sqrt(left) <= little * norm)) return false;
    least = fmin(least, 1 + factor);
    most = fmax(most, 1 + factor);
  }
  if (most - least <= 0.01 * fabs(most))
    return hint_say(found, "sum",
                    "wrong rows are %.4g times what they should be: a factor, or the sum of the weights",
                    most);
  return hint_say(
      found, "sum",
      "each wrong row is a multiple of the right one, %.4g to %.4g times: the sum of the weights is wrong",
      least, most);
}

/* ---- sizes and places ---- */

bool hint_of_nonfinite(const hint_rows *rows, hint *found) {
  int nonfinite = 0, empty = 0, partly = 0, large = 0;
  for (int n = 0; n < rows->count; n++) {
    const attn_problem *p = &rows->known->inputs->problem;
    asked a = hint_rows_ask(rows, n);
    double largest = -INFINITY;
    int64_t seen = 0;
    const bool is_wrong = !isfinite(hint_error(rows, n)) ||
                          (p->lse.type && !isfinite(hint_computed(rows, TENSOR_LSE, n, 0)) &&
                           hint_computed(rows, TENSOR_LSE, n, 0) != hint_rows_reference(rows, n)->lse);
    if (!is_wrong) continue;
    nonfinite++;
    hint_answer(&a, &rows->answer);
    for (int64_t j = 0; j < p->key_length; j++) {
      const bool counts = hint_sees(&a, j) && rows->answer.scores[j] != -INFINITY;
      seen += counts;
      if (counts) largest = fmax(largest, fabs(rows->answer.scores[j]));
    }
    empty += seen == 0;
    partly += seen > 0 && seen < p->key_length;
    large += largest > 80;
  }
  if (nonfinite == 0 || nonfinite * 3 < rows->count * 2) return false;
  if (empty * 2 > nonfinite)
    return hint_say(
        found, "empty",
        "rows that see no key are wrong: their output is zeros, their log-sum-exp -inf or the sink");
  if (large * 2 > nonfinite && rows->known->inputs->problem.function == ATTN_SOFTMAX)
    return hint_say(found, "maximum",
                    "exponentials overflow: the row's maximum is not subtracted, or not the right one");
  if (partly * 2 > nonfinite)
    return hint_say(
        found, "empty",
        "NaN where a row has seen no key yet (-inf minus -inf), or where hidden values are multiplied by 0");
  return false;
}

/* The largest error among the features that are marked as wrong, or not, in the rows that are looked at. */
static double largest_error(const hint_rows *rows, bool marked) {
  double largest = 0;
  for (int n = 0; n < rows->count; n++) {
    hint_error(rows, n);
    for (int64_t e = 0; e < rows->known->inputs->problem.value_dim; e++)
      if (rows->wrong->columns[e] == marked)
        largest = isfinite(rows->error[e]) ? fmax(largest, fabs(rows->error[e])) : INFINITY;
  }
  return largest;
}

/* Those that are not wrong must be right indeed: of errors that all have, some stay within the bound. */
bool hint_of_columns(const hint_rows *rows, hint *found) {
  const int64_t Dv = rows->known->inputs->problem.value_dim;
  int64_t first = Dv, wrong = 0;
  if (!rows->wrong->wrong_in[TENSOR_OUTPUT]) return false;
  for (int64_t e = Dv - 1; e >= 0; e--) {
    wrong += rows->wrong->columns[e];
    if (rows->wrong->columns[e]) first = e;
  }
  const double right = largest_error(rows, false);
  if (wrong == Dv || wrong == 0 || !isfinite(right) || !(right <= little * largest_error(rows, true)))
    return false;
  if (wrong == Dv - first)
    return hint_say(found, "columns",
                    "only the features from %lld on of %lld are wrong: what is behind whole vectors of Dv",
                    (long long)first, (long long)Dv);
  return hint_say(found, "columns",
                  "only %lld of %lld features are wrong: how they are dealt out, stored or copied",
                  (long long)wrong, (long long)Dv);
}

/* The norm of a row's error where the truth is finite: what a NaN reaches says nothing of how a number was rounded. */
static double finite_error(const hint_rows *rows, int n) {
  const reference_row *reference = hint_rows_reference(rows, n);
  double squares = 0;
  hint_error(rows, n);
  for (int64_t e = 0; e < rows->known->inputs->problem.value_dim; e++)
    if (isfinite(reference->output[e])) squares += rows->error[e] * rows->error[e];
  return sqrt(squares);
}

bool hint_of_precision(const hint_rows *rows, hint *found) {
  const double small = 0.06; /* of a row */
  const attn_problem *p = &rows->known->inputs->problem;
  double largest = 0;
  if (!rows->wrong->wrong_in[TENSOR_OUTPUT] && !rows->wrong->wrong_in[TENSOR_LSE]) return false;
  for (int n = 0; n < rows->count; n++) {
    const reference_row *reference = hint_rows_reference(rows, n);
    const double norm = finite_error(rows, n);
    double squares = 0;
    for (int64_t e = 0; e < p->value_dim; e++)
      if (isfinite(reference->output[e])) squares += reference->output[e] * reference->output[e];
    if (!isfinite(norm)) return false;
    if (squares == 0 && norm > 0) return false;
    if (squares > 0) largest = fmax(largest, norm / sqrt(squares));
    if (p->lse.type && isfinite(reference->lse) &&
        !(fabs(hint_computed(rows, TENSOR_LSE, n, 0) - reference->lse) <= small))
      return false;
  }
  if (!(largest <= small)) return false;
  return hint_say(found, "precision",
                  "errors are small, %.2g of a row at most, and like no other mistake: something is rounded "
                  "to fewer bits, or an exponential is approximate",
                  largest);
}

bool hint_of_lse(const hint_rows *rows, hint *found) {
  if (!rows->wrong->wrong_in[TENSOR_LSE] || rows->wrong->wrong_in[TENSOR_OUTPUT]) return false;
  return hint_say(found, "lse",
                  "the output is right and the log-sum-exp is not: how it is made of maximum and sum, or "
                  "where it is written");
}

/* What remains is where: whole heads, and rows behind whole tiles. */
bool hint_of_places(const hint_rows *rows, hint *found) {
  const attn_problem *p = &rows->known->inputs->problem;
  const expected *known = rows->known;
  const int64_t heads = p->batch * p->query_heads;
  int64_t *wrong = calloc((size_t)heads + 1, sizeof *wrong), *all = calloc((size_t)heads + 1, sizeof *all);
  int64_t whole = 0, untouched = 0, first_row = INT64_MAX, last_right = -1;
  for (int64_t n = 0; n < known->rows && wrong && all; n++) {
    const int64_t head = known->positions[n] / p->query_length, i = known->positions[n] % p->query_length;
    all[head]++;
    wrong[head] += rows->wrong->rows[n];
    if (rows->wrong->rows[n] && i < first_row) first_row = i;
    if (!rows->wrong->rows[n] && i > last_right) last_right = i;
  }
  for (int64_t n = 0; n < heads && wrong && all; n++) {
    untouched += all[n] > 0 && wrong[n] == 0;
    whole += all[n] > 0 && wrong[n] * 10 >= all[n] * 9;
  }
  free(wrong);
  free(all);
  if (untouched > 0 && whole > 0 && whole + untouched == heads)
    return hint_say(
        found, "heads",
        "whole heads are wrong and others right: which head of keys, values, bias or sinks they read");
  if (first_row > last_right && first_row > 0 && first_row < INT64_MAX)
    return hint_say(found, "rows", "only rows from %lld on are wrong: what is behind whole tiles of queries",
                    (long long)first_row);
  return false;
}
