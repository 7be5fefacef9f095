/* See property_check.h. */
#include "property_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "run/team.h"
#include "team_verdict.h"

bool check_fails(property_check *t, const char *format, ...) {
  if (t->failed) return false;
  t->failed = true;
  const int length = snprintf(t->problem, sizeof t->problem, "%s: ", t->property);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->problem + length, sizeof t->problem - (size_t)length, format, arguments);
  va_end(arguments);
  return false;
}

/* ---- In a team ---- */

/* Takes over what any rank complains of. */
static team_word agree(property_check *t, bool at_end) {
  team_word own = {.at_end = at_end, .failed = t->failed, .violated = t->violated, .compared = t->compared};
  _Static_assert(sizeof own.problem == sizeof t->problem, "either has room for the other");
  memcpy(own.problem, t->problem, sizeof own.problem);
  const team_word all = team_word_agree(&own, t->setup.isa);
  t->failed = all.failed;
  t->violated = all.violated;
  memcpy(t->problem, all.problem, sizeof t->problem);
  return all;
}

/* Who has failed is here before those who learn of it at their next run. */
int check_end_in_team(property_check *t) {
  if (t->setup.variant->place != ATTN_TEAM) return -1;
  for (int n = 0; n < ALTERED; n++) inputs_rest(&t->all->of[n].inputs);
  for (;;) {
    const team_word all = agree(t, true);
    if (!all.at_end) continue;
    t->compared = all.compared;
    return all.rank;
  }
}

/* ---- Runs ---- */

static void note_run(property_check *t, const altered *on) {
  t->ran[1] = t->ran[0];
  t->ran[0] = on;
}

/* False where memory is short or the variant did what it may not. Workspaces as in run_watch. */
static bool run_on(property_check *t, inputs *in, uint64_t checksum, int threads, int workspace) {
  const run_watch watch = {.workspace = workspace,
                           .workspace_in_front = t->workspace_in_front,
                           .side_effects = t->side_effects,
                           .inputs_checksum = checksum};
  run_setup setup = t->setup;
  run_outcome outcome;
  setup.threads = threads;
  if (setup.variant->place == ATTN_TEAM && agree(t, false).failed) return false;
  t->had_memory = runner_run(&setup, in, &watch, &outcome, t->why, t->why_size);
  if (!t->had_memory) return false;
  if (!outcome.violation[0]) return true;
  t->violated = true;
  return check_fails(t, "%s", outcome.violation);
}

bool check_run_original(property_check *t, int threads, int workspace) {
  note_run(t, NULL);
  return run_on(t, t->all->original, t->all->checksum, threads, workspace);
}

bool check_run_altered(property_check *t, const altered *on) {
  note_run(t, on);
  return run_on(t, (inputs *)(uintptr_t)&on->inputs, on->checksum, t->setup.threads, RUN_POISONED);
}

const altered *check_altered(const property_check *t, altered_kind kind) {
  altered *on = &t->all->of[kind];
  if (!on->made || runner_refusal(t->setup.variant, &on->inputs.problem)) return NULL;
  if (!inputs_need(&on->inputs)) team_give_up("what is not its own cannot be read back");
  return on;
}

/* ---- Comparisons ---- */

double check_number(const inputs *in, tensor_id id, row_place at, int64_t n) {
  return row_number(row_at(in, id, at), n);
}

row_place check_row(const property_check *t, int64_t r) {
  return row_place_of(&t->all->original->problem, t->all->rows[r]);
}

/* NaN may carry other bits, but not those of the poison: that was not written. */
static bool same_element(number_row a, number_row b, int64_t n) {
  const unsigned char *one = row_element(a, n), *other = row_element(b, n);
  return memcmp(one, other, a.type->bytes) == 0 ||
         (isnan(row_number(a, n)) && isnan(row_number(b, n)) && !element_is_poison(a.type, one) &&
          !element_is_poison(b.type, other));
}

bool check_same_bits(number_row a, number_row b, int64_t width) {
  for (int64_t n = 0; n < width; n++)
    if (!same_element(a, b, n)) return false;
  return true;
}

/* Of every output that has rows of queries. */
static bool same_rows(const inputs *a, row_place in_a, const inputs *b, row_place in_b) {
  for (tensor_id id = 0; id < TENSORS; id++) {
    if (!tensor_is_written(&a->problem, id) || !tensor_layout(&a->problem, id)->type) continue;
    if (tensor_is_final_state(id)) continue;
    if (!check_same_bits(row_at(a, id, in_a), row_at(b, id, in_b), tensor_shape_of(&a->problem, id).width))
      return false;
  }
  return true;
}

static bool expect_same_row(property_check *t, const inputs *a, row_place in_a, const inputs *b,
                            row_place in_b, const char *when) {
  if (!inputs_owns(a, in_a.i) || !inputs_owns(b, in_b.i)) return true;
  t->compared++;
  return same_rows(a, in_a, b, in_b) || check_fails(t, "%s, row b %lld, h %lld, i %lld has other bits", when,
                                                    (long long)in_a.b, (long long)in_a.h, (long long)in_a.i);
}

void check_same_rows(property_check *t, const inputs *a, const inputs *b, const bool *rows,
                     const char *when) {
  const attn_problem *p = &a->problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++)
    if ((!rows || rows[n]) && !expect_same_row(t, a, row_place_of(p, n), b, row_place_of(p, n), when)) return;
}

void check_same_as_original(property_check *t, const altered *on, row_place first, const char *when) {
  const attn_problem *p = &on->inputs.problem;
  for (int64_t n = 0; n < p->batch * p->query_heads * p->query_length; n++) {
    const row_place at = row_place_of(p, n);
    const row_place from = {first.b + at.b, first.h + at.h, first.i + at.i};
    if (!expect_same_row(t, t->all->original, from, &on->inputs, at, when)) return;
  }
}

bool check_near(property_check *t, int64_t r, const char *what, int64_t e, double computed, double expected,
                double bound, const char *when) {
  if (!isfinite(expected)) return true;
  t->compared++;
  if (bound == INFINITY || fabs(computed - expected) <= bound) return true;
  const row_place at = check_row(t, r);
  return check_fails(t, "%s, %s[b %lld, h %lld, i %lld, %lld] is %.9g instead of %.9g within %.3g", when,
                     what, (long long)at.b, (long long)at.h, (long long)at.i, (long long)e, computed,
                     expected, bound);
}

void check_near_row(property_check *t, int64_t r, const inputs *a, row_place in_a, const reference_row *of_a,
                    const inputs *b, row_place in_b, const reference_row *of_b, double shift,
                    const char *when) {
  if (!inputs_owns(a, in_a.i) || !inputs_owns(b, in_b.i)) return;
  for (int64_t e = 0; e < a->problem.value_dim; e++) {
    if (!check_is_finite(of_a, e) || !check_is_finite(of_b, e)) continue;
    const double bound = of_a->output_bound_probabilistic[e] + of_b->output_bound_probabilistic[e];
    if (!check_near(t, r, "output", e, check_number(b, TENSOR_OUTPUT, in_b, e),
                    check_number(a, TENSOR_OUTPUT, in_a, e), bound, when))
      return;
  }
  if (!a->problem.lse.type || !check_has_finite_lse(of_a) || !check_has_finite_lse(of_b)) return;
  check_near(t, r, "lse", 0, check_number(b, TENSOR_LSE, in_b, 0),
             check_number(a, TENSOR_LSE, in_a, 0) + shift,
             of_a->lse_bound_probabilistic + of_b->lse_bound_probabilistic, when);
}
