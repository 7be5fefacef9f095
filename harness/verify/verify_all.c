/* The verify subcommand: problems by name, or the grid and a random sample. */
#include <inttypes.h>
#include <stdio.h>

#include "verification.h"
#include "base/interrupt.h"
#include "base/timer.h"
#include "fitted.h"
#include "grid.h"
#include "problem/random_problem.h"

static bool run_named(verification *all, char *why, size_t why_size) {
  const verify_options *options = all->options;
  for (size_t n = 0; n < options->problem_count && !verification_is_decided(all); n++) {
    workload w;
    if (!workload_parse(options->problems[n], &w, why, why_size)) return false;
    workload_seed_unnamed(&w, options->seed);
    if (!verification_run(all, &w, options->threads, -1, REPEAT_WITH_1 | REPEAT_WITH_3 | HOLD_PROPERTIES, why,
                          why_size))
      return false;
  }
  return true;
}

/* What was posed, and what of it was chosen so that pairs meet. */
static void print_problems(const verify_options *options, FILE *out) {
  int64_t pairs, possible;
  pair_problems_pairs(&pairs, &possible);
  fprintf(out, "\n");
  if (options->every > 1) fprintf(out, "one in %" PRId64 " of ", options->every);
  fprintf(out,
          "%" PRId64 " problems: %" PRId64 " of a grid, %" PRId64 " in which %" PRId64
          " pairs of sizes, features, layouts, inputs, threads and instruction sets meet, all that can (%.1f "
          "%% of all "
          "%" PRId64 "), %" PRId64 " at random\n",
          verify_grid_count() + options->random_count, verify_grid_count() - pair_problems_count(),
          pair_problems_count(), possible, 100 * (double)possible / (double)pairs, pairs,
          options->random_count);
}

static int64_t greatest_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

/* The n-th of the grid and the sample, in an order in which neighbours lie far apart: a fault that only some kind of
 * problem shows is found soon. Steps by the golden section, made coprime to the count. */
static int64_t scattered(int64_t n, int64_t count) {
  int64_t step = (int64_t)((double)count * 0.618) + 1;
  while (greatest_divisor(step, count) != 1) step++;
  return n * step % count;
}

/* Of the grid and, behind it, the sample. */
static planned_problem problem_at(const verify_options *options, int64_t n) {
  const int64_t grid = verify_grid_count();
  if (n < grid) return verify_grid_problem(n);
  return (planned_problem){.workload = random_problem(options->seed, n - grid), .turn = -1};
}

static bool run_one(verification *all, int64_t n, char *why, size_t why_size) {
  /* Two in three problems run once more. */
  static const unsigned repeats[] = {REPEAT_WITH_1, REPEAT_WITH_3, 0};
  const planned_problem planned = problem_at(all->options, n);
  const int threads = planned.threads ? planned.threads : all->options->threads;
  return verification_run(all, &planned.workload, threads, planned.turn, repeats[n % 3], why, why_size);
}

static bool hold_one(verification *all, int64_t n, char *why, size_t why_size) {
  const workload w = properties_problem(all->options->seed, n);
  return verification_run(all, &w, all->options->threads, -1, HOLD_PROPERTIES_IN_TURN, why, why_size);
}

static problem_plan plan_of(const verify_options *options) {
  return (problem_plan){.count = verify_grid_count() + options->random_count,
                        .step = options->every > 1 ? options->every : 1,
                        .to_hold = properties_problems(options->random_count),
                        .problem = problem_at};
}

/* The problem at a multiple of the step. As many are chosen from the front of the order, for steps along it leave it: 24 of them
 * are nearly a sixth of a turn short, and go round in six places. */
static int64_t chosen(const problem_plan *plan, int64_t place) {
  return scattered(place / plan->step, plan->count);
}

/* The problems of properties among the others, for what only they show is to be found as soon. */
static bool run_plan(verification *all, const problem_plan *plan, char *why, size_t why_size) {
  const int64_t count = plan->count, to_hold = plan->to_hold, step = plan->step;
  int64_t held = 0;
  for (int64_t place = 0; place < count && !verification_is_decided(all); place += step) {
    if (!run_one(all, chosen(plan, place), why, why_size)) return false;
    for (; held < to_hold && held * count <= place * to_hold && !verification_is_decided(all); held++)
      if (!hold_one(all, held, why, why_size)) return false;
  }
  return true;
}

static void print_coverage(const verification *all, FILE *out) {
  const problem_plan plan = plan_of(all->options);
  int64_t asked[REFERENCE_FUNCTIONS] = {0};
  for (int64_t place = 0; place < plan.count; place += plan.step)
    asked[problem_at(all->options, chosen(&plan, place)).workload.function]++;
  verification_print_coverage(all, asked, out);
}

static bool run_grid_and_sample(verification *all, char *why, size_t why_size) {
  const problem_plan plan = plan_of(all->options);
  fitted *fitted = fitted_create(all, &plan);
  if (!fitted) return false;
  const bool ran = run_plan(all, &plan, why, why_size) && fitted_run(fitted, why, why_size);
  fitted_destroy(fitted);
  return ran;
}

static bool run_all(verification *all, char *why, size_t why_size) {
  bool ran;
  do ran = (all->options->problem_count ? run_named : run_grid_and_sample)(all, why, why_size);
  while (ran && verification_next_plugin(all));
  return ran;
}

int verify_all(const variant_list *list, const verify_options *options, FILE *out) {
  char why[512] = "no memory for the results";
  verification all;
  int status = 2;
  interrupt_catch();
  const bool created = verification_create(&all, list, options);
  all.stops = options->fail_fast;
  const bool ran = created && run_all(&all, why, sizeof why);
  /* What is interrupted in the midst of a problem has not run, and what was found before is shown. */
  if (ran || (created && interrupt_wanted())) {
    verification_print(&all, out);
    if (options->problem_count == 0 && !interrupt_wanted()) verification_print_tightness(&all, out);
    if (options->problem_count == 0 && !verification_is_decided(&all)) {
      print_coverage(&all, out);
      print_problems(options, out);
    }
    const int64_t failed = verification_failed(&all);
    fprintf(out, "\n%s%zu variant%s, %" PRId64 " cases, %" PRId64 " failed, %.1f s\n",
            interrupt_wanted() ? "interrupted: " : "", all.count, all.count == 1 ? "" : "s",
            verification_cases(&all), failed, wall_seconds() - all.progress->started);
    status = failed > 0 ? 1 : verification_ran(&all, options->problem_count == 0) ? 0 : 2;
  } else {
    fprintf(stderr, "attnbench: %s\n", why);
  }
  interrupt_release();
  verification_destroy(&all);
  return status;
}
