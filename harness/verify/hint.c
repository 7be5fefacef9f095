/* See hint.h. Strong evidence first: a mistake that gives the very numbers, then what the numbers tell, then where they are. */
#include "hint.h"

#include <math.h>
#include <stdio.h>

#include "hint_analysis.h"
#include "hint_mistakes.h"

const char hint_kinds[] = "alignment, band, bias, columns, empty, features, function, heads, hidden, keys, "
                          "lengths, lse, mask, maximum, precision, rows, "
                          "scale, sink, softcap, sum";

/* What may be left of the error of a row, in the mean over rows and in any of them. */
static const double most_left = 0.1, most_left_of_one = 0.35;

/* Less is rounding. */
static const double nothing_left = 0.005;

/* What this mistake leaves of the errors; infinite where it is not made in one of these rows, or says what is not so. */
static double try(const hint_rows *rows, const mistake *mistake, int64_t parameter) {
  double sum = 0;
  for (int n = 0; n < rows->count; n++) {
    asked asked = hint_rows_ask(rows, n);
    if (!mistake->make(&asked, parameter)) return INFINITY;
    hint_answer(&asked, &rows->answer);
    const double left = hint_unexplained(rows, n);
    if (!(left <= most_left_of_one)) return INFINITY;
    sum += left;
  }
  return fmax(sum / rows->count, nothing_left);
}

/* The mistake that explains most. Of those that explain alike much the first. */
static bool find_mistake(const hint_rows *rows, hint *found) {
  const unsigned function = 1u << rows->known->inputs->problem.function;
  const mistake *best = NULL;
  int64_t with = 0;
  double left = most_left;
  for (const mistake *m = hint_mistakes; m < hint_mistakes + hint_mistake_count; m++)
    for (size_t n = 0; n < m->parameter_count && m->functions & function; n++) {
      const double tried = try(rows, m, m->parameters[n]);
      if (best ? !(tried < 0.5 * left) : !(tried < left)) continue;
      best = m;
      with = m->parameters[n];
      left = tried;
    }
  if (!best) return false;
  snprintf(found->kind, sizeof found->kind, "%s", best->kind);
  snprintf(found->words, sizeof found->words, best->words, (long long)with);
  return true;
}

void hint_find(const expected *known, const examination *wrong, hint *found) {
  static bool (*const ways[])(const hint_rows *, hint *) = {
      find_mistake,     hint_of_one_key,   hint_of_columns, hint_of_nonfinite, hint_of_other_rows,
      hint_of_a_factor, hint_of_precision, hint_of_lse,     hint_of_places};
  hint_rows rows;
  *found = (hint){0};
  if (wrong->wrong_elements == 0) {
    hint_say(found, "precision",
             "each element is within its bound, and all together are too far off: something is rounded too "
             "often, or cut off");
    return;
  }
  if (!hint_rows_create(&rows, known, wrong)) return;
  bool is_found = false;
  for (size_t n = 0; n < sizeof ways / sizeof *ways && !is_found; n++) is_found = ways[n](&rows, found);
  hint_rows_destroy(&rows);
}
