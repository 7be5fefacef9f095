/* The verify subcommand: problems by name, or the grid and a random sample. */
#include <inttypes.h>
#include <stdio.h>

#include "verification.h"
#include "base/timer.h"
#include "grid.h"
#include "problem/random_problem.h"

/* Nothing that is still to run matters. */
static bool is_decided(const verification *all) { return all->stops && verification_failed(all) > 0; }

static bool run_named(verification *all, char *why, size_t why_size) {
  const verify_options *options = all->options;
  for (size_t n = 0; n < options->problem_count && !is_decided(all); n++) {
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

static bool run_one(verification *all, int64_t n, char *why, size_t why_size) {
  /* Two in three problems run once more. */
  static const unsigned repeats[] = {REPEAT_WITH_1, REPEAT_WITH_3, 0};
  const int64_t grid = verify_grid_count();
  posed_problem posed = {.turn = -1};
  if (n < grid)
    posed = verify_grid_problem(n);
  else
    posed.workload = random_problem(all->options->seed, n - grid);
  const int threads = posed.threads ? posed.threads : all->options->threads;
  return verification_run(all, &posed.workload, threads, posed.turn, repeats[n % 3], why, why_size);
}

static bool hold_one(verification *all, int64_t n, char *why, size_t why_size) {
  const workload w = properties_problem(all->options->seed, n);
  return verification_run(all, &w, all->options->threads, -1, HOLD_PROPERTIES_IN_TURN, why, why_size);
}

/* The problems of properties among the others, for what only they show is to be found as soon. */
static bool run_grid_and_sample(verification *all, char *why, size_t why_size) {
  const int64_t sample = all->options->random_count, count = verify_grid_count() + sample;
  const int64_t to_hold = properties_problems(sample);
  const int64_t step = all->options->every > 1 ? all->options->every : 1;
  int64_t held = 0;
  for (int64_t place = 0; place < count && !is_decided(all); place += step) {
    if (!run_one(all, scattered(place, count), why, why_size)) return false;
    for (; held < to_hold && held * count <= place * to_hold && !is_decided(all); held++)
      if (!hold_one(all, held, why, why_size)) return false;
  }
  return true;
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
  const bool created = verification_create(&all, list, options);
  all.stops = options->fail_fast;
  if (created && run_all(&all, why, sizeof why)) {
    verification_print(&all, out);
    if (options->problem_count == 0) verification_print_tightness(&all, out);
    if (options->problem_count == 0 && !is_decided(&all)) print_problems(options, out);
    const int64_t failed = verification_failed(&all);
    fprintf(out, "\n%zu variant%s, %" PRId64 " cases, %" PRId64 " failed, %.1f s\n", all.count,
            all.count == 1 ? "" : "s", verification_cases(&all), failed,
            wall_seconds() - all.progress->started);
    status = failed > 0 ? 1 : verification_ran(&all, options->problem_count == 0) ? 0 : 2;
  } else {
    fprintf(stderr, "attnbench: %s\n", why);
  }
  verification_destroy(&all);
  return status;
}
