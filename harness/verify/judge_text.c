/* A verdict in words and as JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

/* ---- words ---- */

static void put_place(const judge_element *at, FILE *out) {
  fprintf(out, "%s[b %" PRId64 ", h %" PRId64 ", i %" PRId64, tensor_table[at->tensor].name, at->b, at->h,
          at->i);
  if (at->tensor != TENSOR_LSE) fprintf(out, ", e %" PRId64, at->e);
  fputc(']', out);
}

/* A NaN has no sign. */
static double unsigned_nan(double number) { return isnan(number) ? (double)NAN : number; }

static void put_worst(const judge_element *worst, FILE *out) {
  if (!(worst->share > 0)) {
    fputs("every element is exactly the reference's, or nothing is said of it", out);
    return;
  }
  put_place(worst, out);
  fprintf(out, " is %.9g, the reference is %.9g within %.3g: ", unsigned_nan(worst->computed),
          unsigned_nan(worst->expected), worst->bound);
  if (isfinite(worst->share))
    fprintf(out, "%.3g of the bound", worst->share);
  else
    fputs("no error of this kind is allowed", out);
}

static void put_judged(const judge_verdict *verdict, FILE *out) {
  const char *before = "";
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!verdict->given[id]) continue;
    fprintf(out, "%s%s", before, tensor_table[id].name);
    before = ", ";
  }
  fprintf(out, " of %" PRId64, verdict->rows_checked);
  if (verdict->rows_checked < verdict->rows_total)
    fprintf(out, " of %" PRId64 " rows, a seeded sample", verdict->rows_total);
  else
    fputs(verdict->rows_total == 1 ? " row" : " rows", out);
}

void judge_print(const judge_verdict *verdict, FILE *out) {
  fprintf(out, "%s: %s: ", verdict->ok ? "right" : "WRONG", verdict->problem);
  put_judged(verdict, out);
  fputs("\n  worst: ", out);
  put_worst(&verdict->worst, out);
  if (verdict->ok) {
    fprintf(out, "\n  together: root mean square of the errors %.3g of what is allowed\n",
            fmax(0, verdict->mean_square_share));
    return;
  }
  if (verdict->wrong_elements > 0)
    fprintf(out, "\n  beyond their bounds: %" PRId64 " element%s, %s\n", verdict->wrong_elements,
            verdict->wrong_elements == 1 ? "" : "s", verdict->pattern);
  else
    fprintf(out, "\n  together: %s\n", verdict->sentence);
  if (*verdict->hint) fprintf(out, "  hint: %s: %s\n", verdict->kind, verdict->hint);
}

/* ---- JSON ---- */

/* JSON has no other numbers. */
static json_t *number(double value) {
  if (isfinite(value)) return json_real(value);
  return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static json_t *worst_of(const judge_element *worst) {
  json_t *object = json_object();
  json_object_set_new(object, "tensor", json_string(tensor_table[worst->tensor].name));
  json_object_set_new(object, "b", json_integer(worst->b));
  json_object_set_new(object, "h", json_integer(worst->h));
  json_object_set_new(object, "i", json_integer(worst->i));
  json_object_set_new(object, "e", json_integer(worst->e));
  json_object_set_new(object, "computed", number(worst->computed));
  json_object_set_new(object, "expected", number(worst->expected));
  json_object_set_new(object, "bound", number(worst->bound));
  json_object_set_new(object, "share", number(worst->share));
  return object;
}

void judge_json(const judge_verdict *verdict, FILE *out) {
  json_t *object = json_object(), *judged = json_array();
  for (tensor_id id = 0; id < TENSORS; id++)
    if (verdict->given[id]) json_array_append_new(judged, json_string(tensor_table[id].name));
  json_object_set_new(object, "ok", json_boolean(verdict->ok));
  json_object_set_new(object, "problem", json_string(verdict->problem));
  json_object_set_new(object, "judged", judged);
  json_object_set_new(object, "worst", worst_of(&verdict->worst));
  json_object_set_new(object, "wrong_elements", json_integer(verdict->wrong_elements));
  json_object_set_new(object, "wrong_rows", json_integer(verdict->wrong_rows));
  json_object_set_new(object, "rows_checked", json_integer(verdict->rows_checked));
  json_object_set_new(object, "rows_total", json_integer(verdict->rows_total));
  json_object_set_new(object, "mean_square_share", number(verdict->mean_square_share));
  json_object_set_new(object, "sentence", json_string(verdict->sentence));
  json_object_set_new(object, "pattern", json_string(verdict->pattern));
  json_object_set_new(object, "kind", json_string(verdict->kind));
  json_object_set_new(object, "hint", json_string(verdict->hint));
  json_dumpf(object, out, JSON_INDENT(2));
  fputc('\n', out);
  json_decref(object);
}
