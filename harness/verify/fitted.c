/* See fitted.h. A child that goes on where another one ended has to come to the same problems in the same order: how many are
 * asked for does not depend on what a variant takes. */
#include "fitted.h"

#include <stdio.h>
#include <stdlib.h>

#include "covering.h"
#include "fitted_pairs.h"

struct fitted {
  verification *all;
  problem_plan plan;
  fitting **of; /* [all->count]; NULL: it takes enough as it is */
};

/* ---- who takes few ---- */

/* Whether it takes less than a quarter of what its function is posed, by a part of it. */
static bool takes_few(const verification *all, const problem_plan *plan, const attn_variant *variant) {
  enum { STEP = 7 };
  int64_t of_function = 0, taken = 0;
  for (int64_t n = 0; n < plan->count; n += STEP) {
    const workload w = plan->problem(all->options, n).workload;
    if (w.function != variant->function) continue;
    of_function++;
    taken += fitting_takes(variant, &w);
  }
  return 4 * taken < of_function;
}

fitted *fitted_create(verification *all, const problem_plan *plan) {
  fitted *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->all = all;
  made->plan = *plan;
  made->of = calloc(all->count + 1, sizeof(fitting *));
  bool had_memory = made->of != NULL;
  for (size_t v = 0; had_memory && v < all->count; v++) {
    if (!all->of[v].variant || all->of[v].ended || !takes_few(all, plan, all->of[v].variant)) continue;
    made->of[v] = fitting_create(all->of[v].variant);
    had_memory = made->of[v] != NULL;
  }
  if (had_memory) return made;
  fitted_destroy(made);
  return NULL;
}

void fitted_destroy(fitted *of) {
  if (!of) return;
  for (size_t v = 0; of->of && v < of->all->count; v++) fitting_destroy(of->of[v]);
  free(of->of);
  free(of);
}

/* ---- posing ---- */

/* Which problems were posed, by their names. */
typedef struct names {
  uint64_t *marks;
  size_t room, count;
} names;

/* False when it is there already. Of millions not all are remembered. */
static bool add_name(names *to, const workload *w) {
  char name[WORKLOAD_NAME_BYTES];
  if (2 * to->count > to->room) return true;
  uint64_t mark = 1469598103934665603u;
  workload_name(w, name);
  for (const char *at = name; *at; at++) mark = (mark ^ (unsigned char)*at) * 1099511628211u;
  for (size_t n = mark % to->room;; n = (n + 1) % to->room) {
    if (to->marks[n] == mark) return false;
    if (to->marks[n] != 0) continue;
    to->marks[n] = mark;
    to->count++;
    return true;
  }
}

typedef struct posing {
  fitted *fitted;
  size_t variant;
  const fitting *fitting;
  names names;
  char *why;
  size_t why_size;
} posing;

/* Gives it to the one variant. */
static bool pose(verification *all, size_t variant, const planned_problem *planned, unsigned wanted,
                 char *why, size_t why_size) {
  const int threads = planned->threads ? planned->threads : all->options->threads;
  all->only = variant + 1;
  const bool ran = verification_run(all, &planned->workload, threads, planned->turn, wanted, why, why_size);
  all->only = 0;
  return ran;
}

/* What the variant makes of a wanted problem, each time another one. False: nothing new, as what it takes as it is. */
static bool fit_new(posing *at, int64_t n, workload *w) {
  enum { TRIES = 6 };
  if (w->function != at->fitting->variant->function || fitting_takes(at->fitting->variant, w)) return false;
  if (!fitting_fit(at->fitting, n, w)) return false;
  for (int try = 0; try < TRIES && !add_name(&at->names, w); try++)
    fitting_vary(at->fitting, n + (int64_t)1000 * try, w);
  return true;
}

static bool pose_fitted(posing *at, int64_t n, planned_problem planned, unsigned wanted) {
  if (!fit_new(at, n, &planned.workload)) {
    at->fitted->all->asked++;
    return true;
  }
  return pose(at->fitted->all, at->variant, &planned, wanted, at->why, at->why_size);
}

static const unsigned repeats[] = {REPEAT_WITH_1, REPEAT_WITH_3, 0}; /* two in three run once more */

static bool pose_pairs(posing *at) {
  verification *all = at->fitted->all;
  fitted_pairs *pairs = fitted_pairs_create(at->fitting);
  bool ran = true;
  if (!pairs) return true;
  const int64_t step = at->fitted->plan.step, count = fitted_pairs_count(pairs);
  for (int64_t n = 0; ran && n < count && !verification_is_decided(all); n += step) {
    const planned_problem planned = fitted_pairs_problem(pairs, n);
    (void)add_name(&at->names, &planned.workload);
    ran = pose(all, at->variant, &planned, repeats[n % 3], at->why, at->why_size);
  }
  coverage *noted = &all->of[at->variant].coverage;
  if (ran && step == 1 && !verification_is_decided(all))
    fitted_pairs_pairs(pairs, &noted->pairs, &noted->possible);
  fitted_pairs_destroy(pairs);
  return ran;
}

/* The problems of properties among the others, as for all variants. */
static bool pose_plan(posing *at) {
  verification *all = at->fitted->all;
  const problem_plan *plan = &at->fitted->plan;
  int64_t held = 0;
  for (int64_t n = 0; n < plan->count && !verification_is_decided(all); n += plan->step) {
    if (!pose_fitted(at, n, plan->problem(all->options, n), repeats[n % 3])) return false;
    for (; held < plan->to_hold && held * plan->count <= n * plan->to_hold && !verification_is_decided(all);
         held++) {
      const planned_problem planned = {properties_problem(all->options->seed, held), .turn = -1};
      if (!pose_fitted(at, held, planned, HOLD_PROPERTIES_IN_TURN)) return false;
    }
  }
  return true;
}

static bool pose_all(posing *at) {
  enum { MOST_NAMES = 1000000 };
  const problem_plan *plan = &at->fitted->plan;
  at->names.room =
      4 * (size_t)(plan->count < MOST_NAMES ? plan->count : MOST_NAMES) + (size_t)4 * COVERING_ROWS;
  at->names.marks = calloc(at->names.room, sizeof *at->names.marks);
  const bool ran = at->names.marks && pose_pairs(at) && pose_plan(at);
  if (!at->names.marks) snprintf(at->why, at->why_size, "no memory for the names of problems");
  free(at->names.marks);
  return ran;
}

bool fitted_run(fitted *of, char *why, size_t why_size) {
  verification *all = of->all;
  const int64_t most = of->plan.count + of->plan.to_hold + COVERING_ROWS;
  for (size_t v = 0; v < all->count && !verification_is_decided(all); v++) {
    const int64_t asked = all->asked;
    posing at = {.fitted = of, .variant = v, .fitting = of->of[v], .why = why, .why_size = why_size};
    if (at.fitting && at.fitting->count > 0 && verification_has_turn(all, v) && !pose_all(&at)) return false;
    all->asked = asked + most;
  }
  return true;
}

bool fitted_run_one(fitted *of, const workload *wanted, int64_t n, int threads, unsigned wanted_checks,
                    char *why, size_t why_size) {
  verification *all = of->all;
  for (size_t v = 0; v < all->count && !verification_is_decided(all); v++) {
    planned_problem planned = {*wanted, threads, -1};
    const fitting *fitting = of->of[v];
    if (fitting && verification_has_turn(all, v) && wanted->function == fitting->variant->function &&
        !fitting_takes(fitting->variant, wanted) && fitting_fit(fitting, n, &planned.workload)) {
      if (!pose(all, v, &planned, wanted_checks, why, why_size)) return false;
    } else {
      all->asked++;
    }
  }
  return true;
}
