/* See hint.h. Strong evidence first: a mistake that gives the very numbers, then what the numbers tell, then where they are. */
#include "hint.h"

#include <math.h>
#include <stdio.h>

#include "gradients.h"
#include "hint_analysis.h"
#include "hint_mistakes.h"

/* What may be left of the error of a row, in the mean over rows and in any of them. */
static const double most_left = 0.1, most_left_of_one = 0.35;

/* Less is rounding. */
static const double nothing_left = 0.005;

/* With fewer features some mistake explains a row by chance. */
enum { FEATURES_THAT_TELL = 4 };

/* What this mistake leaves of the errors; infinite where in more rows than may be `odd` it is not made, or says what
 * is not so. */
static double try(const hint_rows *rows, const mistake *mistake, int64_t parameter, int odd) {
  double sum = 0;
  int explained = 0;
  for (int n = 0; n < rows->count && n - explained <= odd; n++) {
    asked asked = hint_rows_ask(rows, n);
    if (!mistake->make(&asked, parameter)) continue;
    hint_answer(&asked, &rows->answer);
    const double left = hint_unexplained(rows, n);
    if (!(left <= most_left_of_one)) continue;
    sum += left;
    explained++;
  }
  return rows->count - explained > odd ? INFINITY : fmax(sum / explained, nothing_left);
}

/* The mistake that explains most. Of those that explain alike much the first. */
static bool find_mistake_with(const hint_rows *rows, hint *found, int odd) {
  const unsigned function = 1u << rows->known->inputs->problem.function;
  const mistake *best = NULL;
  int64_t with = 0;
  double left = most_left;
  for (size_t group = 0; group < HINT_MISTAKES; group++) {
    const mistake *first = hint_mistakes[group]->of, *end = first + hint_mistakes[group]->count;
    for (const mistake *m = first; m < end; m++)
      for (size_t n = 0; n < m->parameter_count && m->functions & function; n++) {
        const double tried = try(rows, m, m->parameters[n], odd);
        if (best ? !(tried < 0.5 * left) : !(tried < left)) continue;
        best = m;
        with = m->parameters[n];
        left = tried;
      }
  }
  if (!best) return false;
  snprintf(found->kind, sizeof found->kind, "%s", best->kind);
  snprintf(found->words, sizeof found->words, best->words, (long long)with);
  return true;
}

/* One that explains every row. */
static bool find_mistake(const hint_rows *rows, hint *found) { return find_mistake_with(rows, found, 0); }

/* One that explains most: in a few rows, where a tile ends or a number is not finite, more comes of it. */
static bool find_mistake_of_most(const hint_rows *rows, hint *found) {
  const int odd = rows->count / 4;
  return odd > 0 && rows->known->inputs->problem.value_dim >= FEATURES_THAT_TELL &&
         find_mistake_with(rows, found, odd);
}

void hint_find(const expected *known, const examination *wrong, hint *found) {
  static bool (*const ways[])(const hint_rows *, hint *) = {
      find_mistake,     hint_of_empty_rows, hint_of_unwritten, find_mistake_of_most,
      hint_of_one_key,  hint_of_columns,    hint_of_nonfinite, hint_of_other_rows,
      hint_of_a_factor, hint_of_precision,  hint_of_lse,       hint_of_places};
  hint_rows rows;
  *found = (hint){0};
  if (wrong->wrong_elements == 0 && known->states && gradients_worst(known->states, 0).wrong_rows > 0) return;
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
