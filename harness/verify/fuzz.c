/* See fuzz.h. A failure is shrunk by the very command that is printed in the end: each candidate is given
 * to `attnbench verify` in a process of its own. So it reproduces, whatever the kernel did to this process,
 * and a kernel that crashes is shrunk like one that is wrong. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/interrupt.h"
#include "base/parts.h"
#include "base/random.h"
#include "fitted.h"
#include "shrink.h"
#include "shrunk_sizes.h"
#include "verification.h"
#include "base/timer.h"
#include "run/supervisor.h"
#include "run/team.h"
#include "run/team_command.h"
#include "grid.h"
#include "problem/random_problem.h"

enum { ATTEMPTS = 3 };

/* A failure while it is shrunk. */
typedef struct reproduction {
  const char *program, *variant, *isa; /* isa: NULL when none is forced */
  const verify_options *options;
  bool crashed;      /* a crash stays a crash */
  char problem[768]; /* what the last command that failed said */
  bool ran;          /* the last command, and its problem was judged */
} reproduction;

/* As supervisor.h words what ended a process. */
static bool is_crash(const char *problem) {
  return strncmp(problem, "crashed (", 9) == 0 || strncmp(problem, "ended the process", 17) == 0;
}

/* Looks for what a failing verification says; false when it passed or could not run. */
static bool read_failure(const char *said, int status, bool *crashed, char *problem, size_t size) {
  static const char mark[] = "FAILED: ";
  const char *line = strstr(said, mark);
  if (status != 1 || !line) return false;
  line += sizeof mark - 1;
  *crashed = is_crash(line);
  snprintf(problem, size, "%.*s", (int)strcspn(line, "\n"), line);
  return true;
}

static bool command_fails(const failing *candidate, void *context) {
  reproduction *of = context;
  char name[WORKLOAD_NAME_BYTES], threads[16], limit[32], problem[sizeof of->problem], why[256];
  workload_name(&candidate->workload, name);
  snprintf(threads, sizeof threads, "%d", candidate->threads);
  const char *const words[] = {of->program, "verify", "--variant", of->variant,
                               "--problem", name,     "--threads", threads};
  char **argv = calloc(sizeof words / sizeof *words + 2 * of->options->plugin_count + 8, sizeof *argv);
  size_t count = 0;
  if (!argv) return false;
  for (size_t n = 0; n < sizeof words / sizeof *words; n++) argv[count++] = (char *)(uintptr_t)words[n];
  if (of->isa) {
    argv[count++] = (char *)(uintptr_t) "--isa";
    argv[count++] = (char *)(uintptr_t)of->isa;
  }
  if (of->options->run_limit > 0) {
    snprintf(limit, sizeof limit, "%g", of->options->run_limit);
    argv[count++] = (char *)(uintptr_t) "--run-limit";
    argv[count++] = limit;
  }
  if (of->options->device) {
    argv[count++] = (char *)(uintptr_t) "--device";
    argv[count++] = (char *)(uintptr_t)of->options->device;
  }
  if (of->options->own_left_out) argv[count++] = (char *)(uintptr_t) "--own=false";
  for (size_t n = 0; n < of->options->plugin_count; n++) {
    argv[count++] = (char *)(uintptr_t) "--plugin";
    argv[count++] = (char *)(uintptr_t)of->options->plugins[n];
  }
  char *said;
  of->ran = false;
  const int status = of->options->in_team
                         ? team_command_run(team_ranks(of->isa), argv, &said, why, sizeof why)
                         : child_run(argv, NULL, &said, why, sizeof why);
  free(argv);
  if (status < 0) return false;
  bool crashed;
  const bool fails = read_failure(said, status, &crashed, problem, sizeof problem) && crashed == of->crashed;
  if (fails) memcpy(of->problem, problem, sizeof problem);
  of->ran = fails || status == 0;
  free(said);
  return fails;
}

/* The words of the failure are kept. */
static size_answer command_answers(const failing *candidate, void *context) {
  reproduction of = *(const reproduction *)context;
  return command_fails(candidate, &of) ? SIZE_FAILS : of.ran ? SIZE_PASSES : SIZE_REFUSED;
}

/* What a small problem no longer shows. */
static void print_sizes(const reproduction *of, const failing *smallest, double seconds, FILE *out) {
  reproduction asked = *of;
  char said[1024];
  shrunk_sizes_describe(smallest, seconds, command_answers, &asked, said, sizeof said);
  if (*said) fprintf(out, "%s\n", said);
}

/* Shrinks and says what came of it; false when the failure does not come again. */
static bool shrink_failure(reproduction *of, failing *subject, double seconds, FILE *out) {
  bool fails = false;
  for (int n = 0; n < ATTEMPTS && !fails && !interrupt_wanted(); n++) fails = command_fails(subject, of);
  if (!fails) return false;
  const double start = wall_seconds();
  const int64_t tries = shrink(subject, seconds, command_fails, of);
  failure smallest = {.threads = subject->threads};
  workload_name(&subject->workload, smallest.workload);
  snprintf(smallest.isa, sizeof smallest.isa, "%s", of->isa ? of->isa : "");
  fprintf(out, "shrunk in %.1f s with %" PRId64 " tries: %s\n", wall_seconds() - start, tries, of->problem);
  print_sizes(of, subject, seconds, out);
  fprintf(out, "reproduce: ");
  failure_print_command(&smallest, of->variant, of->options, out);
  fputc('\n', out);
  return true;
}

static const failure *first_failure(const verification *all, const variant_verdicts **of) {
  for (size_t n = 0; n < all->count; n++)
    if (all->of[n].failed > 0) {
      *of = &all->of[n];
      return &all->of[n].failures[0];
    }
  return NULL;
}

static bool report_failure(const verification *all, const char *program, double shrink_seconds, FILE *out) {
  char why[128];
  const variant_verdicts *variant_verdicts = NULL;
  const failure *first = first_failure(all, &variant_verdicts);
  if (!first) return false;
  if (all->options->in_team && team_rank() > 0)
    return true; /* it waits for rank 0, which starts other teams */
  interrupt_decide_alone();
  fprintf(out, "FAILED: %s%s%s on %s with %d thread%s: %s\n", variant_verdicts->name,
          first->isa[0] ? " with " : "", first->isa, first->workload, first->threads,
          first->threads == 1 ? "" : "s", first->problem);
  fflush(out);
  failing subject = {.threads = first->threads};
  reproduction of = {.program = program,
                     .variant = variant_verdicts->name,
                     .isa = first->isa[0] ? first->isa : NULL,
                     .options = all->options,
                     .crashed = is_crash(first->problem)};
  const bool hangs = strncmp(first->problem, "did not end", 11) == 0; /* each try would take as long */
  if (!hangs && workload_parse(first->workload, &subject.workload, why, sizeof why) &&
      shrink_failure(&of, &subject, shrink_seconds, out))
    return true;
  fprintf(out, "%s: not shrunk\nreproduce: ",
          hangs ? "each try would take as long" : "it did not fail again in a process of its own");
  failure_print_command(first, variant_verdicts->name, all->options, out);
  fputc('\n', out);
  return true;
}

/* How many threads a problem is first run with; 1 and 3 always follow. */
static int draw_threads(uint64_t seed, int64_t n) {
  return 1 + (int)(random_bits(random_mixed(seed ^ UINT64_C(0x7412ead5)), (uint64_t)n) % 16);
}

/* Properties cost many runs: they have half of the time at most, but for the last problem that they are held on. */
static bool properties_are_due(const verification *all) {
  return team_decides(2 * all->progress->properties_seconds <= wall_seconds() - all->progress->started);
}

static planned_problem drawn(const verify_options *options, int64_t n) {
  return (planned_problem){.workload = random_problem(options->seed, n), .turn = -1};
}

/* As it is to all that take it, and fitted to each that takes few as they are. */
static bool pose(verification *all, fitted *fitted, int64_t n, char *why, size_t why_size) {
  const uint64_t seed = all->options->seed;
  const workload w = random_problem(seed, n);
  const int threads = draw_threads(seed, n);
  const unsigned wanted =
      REPEAT_WITH_1 | REPEAT_WITH_3 | (properties_are_due(all) ? HOLD_PROPERTIES_IN_TURN : 0);
  return verification_run(all, &w, threads, -1, wanted, why, why_size) &&
         fitted_run_one(fitted, &w, n, threads, wanted, why, why_size);
}

/* Problems until the time is over, one at least. Their number, or -1 with the reason in words. */
static int64_t search(verification *all, double until, char *why, size_t why_size) {
  enum { SAMPLE = 4000 };
  fitted *fitted = fitted_create(all, &(problem_plan){.count = SAMPLE, .step = 1, .problem = drawn});
  bool ran = fitted != NULL;
  for (int64_t n = 0; ran && (n == 0 || (team_decides(wall_seconds() < until) && !interrupt_wanted() &&
                                         !verification_failed(all)));
       n++)
    ran = pose(all, fitted, n, why, why_size);
  fitted_destroy(fitted);
  return ran ? all->progress->problems : -1;
}

static void print_passed(const verification *all, FILE *out) {
  const int64_t asked[REFERENCE_FUNCTIONS] = {0}; /* no number of them */
  verification_print(all, out);
  verification_print_coverage(all, asked, out);
}

int fuzz_all(const variant_list *list, const verify_options *options, double seconds, FILE *out) {
  static char program[PARTS_PATH_BYTES];
  char why[512] = "no memory for the results";
  verification all;
  int64_t problems = -1;
  interrupt_catch();
  if (!*supervisor_root()) fprintf(out, "fuzz with seed %" PRIu64 " for %g s\n", options->seed, seconds);
  fflush(out); /* what ends this process may lose it */
  const bool created = verification_create(&all, list, options);
  if (created) {
    all.stops = all.together = true;
    problems = search(&all, all.progress->started + seconds, why, sizeof why);
  }
  const double start = created ? all.progress->started : wall_seconds();
  if (problems < 0)
    fprintf(stderr, "attnbench: %s\n", why);
  else if (!parts_program(program) || !report_failure(&all, program, seconds, out))
    print_passed(&all, out);
  const int64_t failed = verification_failed(&all);
  const bool ran = problems <= 0 || failed > 0 || verification_ran(&all, false);
  if (problems >= 0)
    fprintf(out, "%s%" PRId64 " problems, %" PRId64 " cases of %zu variant%s, %" PRId64 " failed, %.1f s\n",
            interrupt_wanted() ? "interrupted: " : "", problems, verification_cases(&all), all.count,
            all.count == 1 ? "" : "s", failed, wall_seconds() - start);
  interrupt_release();
  verification_destroy(&all);
  return problems < 0 || !ran ? 2 : failed > 0;
}

int fuzz_shrink(const verify_options *options, double seconds, FILE *out) {
  char program[PARTS_PATH_BYTES], why[512] = "/proc/self/exe cannot be read";
  const char *variant = options->variant_names[0];
  failing subject = {.threads = options->threads};
  reproduction of = {.program = program, .variant = variant, .isa = options->isa, .options = options};
  bool shrunk = false;
  if (parts_program(program) && workload_parse(options->problems[0], &subject.workload, why, sizeof why)) {
    workload_seed_unnamed(&subject.workload, options->seed);
    interrupt_catch();
    snprintf(why, sizeof why, "%s does not fail on %s with %d threads: there is nothing to shrink", variant,
             options->problems[0], options->threads);
    for (int crashed = 0; crashed < 2 && !shrunk; crashed++) {
      of.crashed = crashed;
      shrunk = shrink_failure(&of, &subject, seconds, out);
    }
    interrupt_release();
  }
  if (!shrunk) fprintf(stderr, "attnbench: %s\n", why);
  return shrunk ? 1 : 2;
}
