/* The verify subcommand: many problems, each prepared and solved once and then given to every variant
 * under every instruction set; a tally per variant; a table in the end. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crash.h"
#include "verify.h"
#include "verify_grid.h"

enum { MAX_REASONS = 12, MAX_FAILURES = 5, ISA_BYTES = 32 };

typedef struct failure {
  char problem[256], isa[ISA_BYTES], workload[WORKLOAD_NAME_BYTES];
  int threads;
} failure;

/* The case that came nearest to a bound. */
typedef struct worst_case {
  double share;
  char isa[ISA_BYTES], workload[WORKLOAD_NAME_BYTES];
} worst_case;

typedef struct tally {
  const attn_variant *variant;
  const char *origin;                  /* plugin, or NULL */
  const char *const *instruction_sets; /* NULL-terminated; {NULL} alone: only what it chooses */
  int64_t cases, failed, rows, rows_total;
  int64_t skipped[MAX_REASONS];
  const char *reasons[MAX_REASONS];
  worst_case bound, probabilistic;
  failure failures[MAX_FAILURES];
} tally;

/* One problem on its way through the variants. */
typedef struct trial {
  const verify_options *options;
  inputs inputs;
  truth truth;
  char name[WORKLOAD_NAME_BYTES];
  int64_t number;
} trial;

static bool is_asked_for(const verify_options *options, const char *name) {
  for (size_t n = 0; n < options->variant_count; n++)
    if (strcmp(options->variant_names[n], name) == 0) return true;
  return !options->variant_names || options->variant_count == 0;
}

/* The table that a variant came in. */
static const attn_table *table_of(const variant_list *list, const attn_variant *variant) {
  for (size_t t = 0; t < list->table_count; t++)
    for (uint32_t n = 0; n < list->tables[t]->count; n++)
      if (list->tables[t]->variants[n] == variant) return list->tables[t];
  return NULL;
}

static const char *const *instruction_sets_of(const variant_list *list, const attn_variant *variant) {
  static const char *const none[] = {NULL};
  const attn_table *table = table_of(list, variant);
  return table && table->instruction_sets ? table->instruction_sets() : none;
}

static void count_skip(tally *to, const char *reason) {
  for (int n = 0; n < MAX_REASONS; n++) {
    if (n == MAX_REASONS - 1) reason = "other reasons";
    if (to->reasons[n] && strcmp(to->reasons[n], reason) != 0) continue;
    to->reasons[n] = reason;
    to->skipped[n]++;
    return;
  }
}

static void count_worst(worst_case *worst, double share, const char *isa, const char *name) {
  if (share <= worst->share && worst->workload[0]) return;
  worst->share = share;
  snprintf(worst->isa, sizeof worst->isa, "%s", isa ? isa : "");
  snprintf(worst->workload, sizeof worst->workload, "%s", name);
}

static void count_failure(tally *to, const trial *at, const char *isa, int threads, const char *problem) {
  if (to->failed++ >= MAX_FAILURES) return;
  failure *entry = &to->failures[to->failed - 1];
  snprintf(entry->problem, sizeof entry->problem, "%s", problem);
  snprintf(entry->isa, sizeof entry->isa, "%s", isa ? isa : "");
  snprintf(entry->workload, sizeof entry->workload, "%s", at->name);
  entry->threads = threads;
}

/* Runs again with another number of threads, which must give the same bits. */
static bool check_threads(tally *to, trial *at, const char *isa, int threads, uint64_t bits, char *why,
                          size_t why_size) {
  if (threads == at->options->threads) return true;
  verdict result;
  if (!verify_run_against(to->variant, &at->inputs, &at->truth, threads, &result, why, why_size))
    return false;
  char problem[128];
  snprintf(problem, sizeof problem, "gives other bits with %d thread%s than with %d", threads,
           threads == 1 ? "" : "s", at->options->threads);
  if (!result.passed)
    count_failure(to, at, isa, threads, result.problem);
  else if (inputs_outputs_checksum(&at->inputs) != bits)
    count_failure(to, at, isa, at->options->threads, problem);
  return true;
}

static bool run_case(tally *to, trial *at, const char *isa, char *why, size_t why_size) {
  verdict result;
  if (isa)
    setenv("ATTN_ISA", isa, 1);
  else
    unsetenv("ATTN_ISA");
  crash_context(to->variant->name, at->name, to->origin, isa);
  const int64_t failed = to->failed;
  bool ran =
      verify_run_against(to->variant, &at->inputs, &at->truth, at->options->threads, &result, why, why_size);
  if (ran) {
    to->cases++;
    to->rows += result.rows_checked;
    to->rows_total += result.rows_total;
    count_worst(&to->bound, result.bound_share, isa, at->name);
    count_worst(&to->probabilistic, result.probabilistic_share, isa, at->name);
    if (!result.passed) count_failure(to, at, isa, at->options->threads, result.problem);
  }
  /* Two in three problems run once more; one that is asked for by name, with both. */
  const bool alone = at->options->problem_count > 0;
  const uint64_t bits = inputs_outputs_checksum(&at->inputs);
  if (ran && to->failed == failed && (alone || at->number % 3 == 0))
    ran = check_threads(to, at, isa, 1, bits, why, why_size);
  if (ran && to->failed == failed && (alone || at->number % 3 == 1))
    ran = check_threads(to, at, isa, 3, bits, why, why_size);
  crash_context(NULL, NULL, NULL, NULL);
  return ran;
}

static bool run_variant(tally *to, trial *at, char *why, size_t why_size) {
  const char *const *sets = to->instruction_sets;
  const char *reason = attn_unsupported(to->variant, &at->inputs.problem);
  bool ran = true, held = false;
  if (reason) {
    count_skip(to, reason);
    return true;
  }
  for (size_t n = 0; ran && sets[n]; n++) {
    if (at->options->isa && strcmp(at->options->isa, sets[n]) != 0) continue;
    held = true;
    ran = run_case(to, at, sets[n], why, why_size);
  }
  /* Nothing to hold it to: as it chooses itself. */
  return held ? ran : run_case(to, at, NULL, why, why_size);
}

/* How many rows the reference can solve in a few seconds, all of a small problem; 0: all. */
static int64_t affordable_rows(const workload *w) {
  const double row = (double)w->key_length * (double)(w->head_dim + w->value_dim) + 1;
  const double rows = (double)w->batch * (double)w->query_heads * (double)w->query_length;
  const double affordable = 4e9 / row;
  return rows <= affordable ? 0 : affordable < 64 ? 64 : (int64_t)affordable;
}

/* A problem that no variant can solve is counted as skipped, and not prepared. */
static bool anyone_solves(const tally *tallies, size_t count, const workload *w) {
  const attn_problem problem = workload_problem(w);
  char reason[8];
  if (!attn_check_problem(&problem, reason, sizeof reason)) return true; /* inputs_create says why not */
  for (size_t n = 0; n < count; n++)
    if (!attn_unsupported(tallies[n].variant, &problem)) return true;
  return false;
}

static bool run_problem(tally *tallies, size_t count, trial *at, const workload *w, char *why,
                        size_t why_size) {
  workload_name(w, at->name);
  if (!anyone_solves(tallies, count, w)) {
    const attn_problem problem = workload_problem(w);
    for (size_t n = 0; n < count; n++)
      count_skip(&tallies[n], attn_unsupported(tallies[n].variant, &problem));
    return true;
  }
  if (!inputs_create(&at->inputs, w, false, why, why_size)) return false;
  bool ran = truth_solve(&at->truth, &at->inputs, affordable_rows(w), why, why_size);
  if (ran) {
    for (size_t n = 0; ran && n < count; n++) ran = run_variant(&tallies[n], at, why, why_size);
    truth_destroy(&at->truth);
  }
  inputs_destroy(&at->inputs);
  return ran;
}

static bool run_problems(tally *tallies, size_t count, const verify_options *options, char *why,
                         size_t why_size) {
  trial at = {.options = options};
  for (size_t n = 0; n < options->problem_count; n++) {
    workload w;
    if (!workload_parse(options->problems[n], &w, why, why_size) ||
        !run_problem(tallies, count, &at, &w, why, why_size))
      return false;
  }
  if (options->problem_count) return true;
  const int64_t grid = verify_grid_count();
  for (at.number = 0; at.number < grid + options->random_count; at.number++) {
    workload w = at.number < grid ? verify_grid_problem(at.number)
                                  : verify_random_problem(options->seed, at.number - grid);
    if (!run_problem(tallies, count, &at, &w, why, why_size)) return false;
  }
  return true;
}

/* "; skipped 12: computes softmax attention (9), ..." */
static void print_skipped(const tally *of, FILE *out) {
  int64_t all = 0;
  for (int n = 0; n < MAX_REASONS; n++) all += of->skipped[n];
  if (all == 0) return;
  fprintf(out, "; skipped %" PRId64 ":", all);
  for (int n = 0; n < MAX_REASONS && of->reasons[n]; n++)
    fprintf(out, "%s %s (%" PRId64 ")", n ? "," : "", of->reasons[n], of->skipped[n]);
}

static void print_command(const tally *of, const failure *entry, const verify_options *options, FILE *out) {
  fprintf(out, "      reproduce: attnbench verify --variant %s --problem '%s'", of->variant->name,
          entry->workload);
  if (entry->isa[0]) fprintf(out, " --isa %s", entry->isa);
  fprintf(out, " --threads %d", entry->threads);
  for (size_t n = 0; n < options->plugin_count; n++) fprintf(out, " --plugin '%s'", options->plugins[n]);
  fputc('\n', out);
}

/* One line for a variant, more only where it failed. */
static void print_tally(const tally *of, const verify_options *options, FILE *out) {
  const worst_case *worst = &of->probabilistic;
  fprintf(out, "%-16s %-8s %6" PRId64 "  %-9.3g %-9.3g", of->variant->name,
          of->failed  ? "FAILED"
          : of->cases ? "passed"
                      : "not run",
          of->cases, of->bound.share, worst->share);
  if (worst->share > 0) fprintf(out, " %s%s%s", worst->workload, worst->isa[0] ? " with " : "", worst->isa);
  if (of->rows < of->rows_total)
    fprintf(out, "; checked %" PRId64 " of %" PRId64 " rows, a seeded sample", of->rows, of->rows_total);
  print_skipped(of, out);
  fputc('\n', out);
  for (int64_t n = 0; n < of->failed && n < MAX_FAILURES; n++) {
    fprintf(out, "    FAILED: %s\n", of->failures[n].problem);
    print_command(of, &of->failures[n], options, out);
  }
  if (of->failed > MAX_FAILURES)
    fprintf(out, "    and %" PRId64 " more failures\n", of->failed - MAX_FAILURES);
}

static int print_tallies(const tally *tallies, size_t count, const verify_options *options, double seconds,
                         FILE *out) {
  int64_t cases = 0, failed = 0;
  fprintf(out, "Worst errors as shares of what float32 may do: in the worst case, and with probability.\n");
  fprintf(out, "%-16s %-8s %6s  %-9s %-9s %s\n", "variant", "", "cases", "worst", "probable", "worst in");
  for (size_t n = 0; n < count; n++) {
    print_tally(&tallies[n], options, out);
    cases += tallies[n].cases;
    failed += tallies[n].failed;
  }
  fprintf(out, "\n%zu variant%s, %" PRId64 " cases, %" PRId64 " failed, %.1f s\n", count,
          count == 1 ? "" : "s", cases, failed, seconds);
  return failed > 0;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int verify_all(const variant_list *list, const verify_options *options, FILE *out) {
  char why[512] = "";
  const double start = now();
  size_t count = 0;
  tally *tallies = calloc(list->count + 1, sizeof *tallies);
  if (!tallies) {
    fprintf(stderr, "attnbench: no memory for the results of %zu variants\n", list->count);
    return 2;
  }
  for (size_t n = 0; n < list->count; n++)
    if (is_asked_for(options, list->variants[n]->name))
      tallies[count++] = (tally){.variant = list->variants[n],
                                 .origin = list->origins[n],
                                 .instruction_sets = instruction_sets_of(list, list->variants[n])};
  int status = 2;
  if (run_problems(tallies, count, options, why, sizeof why))
    status = print_tallies(tallies, count, options, now() - start, out);
  else
    fprintf(stderr, "attnbench: %s\n", why);
  unsetenv("ATTN_ISA");
  free(tallies);
  return status;
}
