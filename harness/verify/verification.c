/* See verification.h. */
#include "verification.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/timer.h"
#include "problem/check.h"
#include "problem/types.h"
#include "run/supervisor.h"
#include "run/team.h"

/* One problem on its way through the variants. */
typedef struct case_run {
  inputs *inputs;
  const expected *expected;
  char name[WORKLOAD_NAME_BYTES];
  const char *isa; /* forced at the moment, or NULL */
  int threads;
  unsigned wanted, held;  /* held: properties, bits */
  int turn;               /* of the instruction set that it is run under; -1: every one */
  properties *properties; /* NULL: not to be held */
  int64_t held_turn;      /* of the instruction set that is held to them; -1: every one */
} case_run;

static bool is_asked_for(const verify_options *options, const char *name) {
  for (size_t n = 0; n < options->variant_count; n++)
    if (strcmp(options->variant_names[n], name) == 0) return true;
  return !options->variant_names || options->variant_count == 0;
}

static void count_skip(variant_verdicts *to, const char *reason) {
  for (int n = 0; n < VERDICT_REASONS; n++) {
    if (n == VERDICT_REASONS - 1) reason = "other reasons";
    char *known = to->reasons[n];
    if (*known && strncmp(known, reason, VERDICT_REASON_BYTES - 1) != 0) continue;
    snprintf(known, VERDICT_REASON_BYTES, "%s", reason);
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

static void count_failure(variant_verdicts *to, const case_run *at, int threads, const char *problem) {
  if (to->failed++ >= VERDICT_FAILURES) return;
  failure *entry = &to->failures[to->failed - 1];
  snprintf(entry->problem, sizeof entry->problem, "%s", problem);
  snprintf(entry->isa, sizeof entry->isa, "%s", at->isa ? at->isa : "");
  snprintf(entry->workload, sizeof entry->workload, "%s", at->name);
  entry->threads = threads;
}

/* Of outputs that are wrong, as the last run left them, and only where the failure will be shown; in a team by the
 * rank that has found it. */
static void note_hint(variant_verdicts *to, const case_run *at, const verdict *result) {
  examination wrong;
  if (result->passed || to->failed == 0 || to->failed > VERDICT_FAILURES) return;
  hint *hint = &to->failures[to->failed - 1].hint;
  if (examine(at->expected, to->variant->traits, &wrong)) {
    if (wrong.wrong_elements > 0 || result->mean_square_share > 1) hint_find(at->expected, &wrong, hint);
    examination_destroy(&wrong);
  }
  if (to->variant->place == ATTN_TEAM) team_share(result->rank, hint, sizeof *hint);
}

/* Of the last run. */
static uint64_t outputs_checksum(const variant_verdicts *to, const case_run *at) {
  return to->variant->place == ATTN_TEAM ? team_outputs_checksum() : inputs_outputs_checksum(at->inputs);
}

static run_setup setup_of(const variant_verdicts *to, const case_run *at, int threads) {
  return (run_setup){
      .variant = to->variant, .origin = to->origin, .isa = at->isa, .threads = threads, .problem = at->name};
}

/* Of memory for the workspace: the others may need less. What a device says of itself is clearer. */
static bool count_shortage(variant_verdicts *to, const char *why) {
  count_skip(to, to->variant->place == ATTN_HOST ? "asks for more workspace than there is memory" : why);
  return true;
}

/* Runs again with another number of threads, which must give the same bits. */
static bool repeat_case(variant_verdicts *to, case_run *at, int threads, uint64_t bits, char *why,
                        size_t why_size) {
  if (threads == at->threads) return true;
  verdict result;
  const run_setup setup = setup_of(to, at, threads);
  if (!verify_run_against(&setup, at->inputs, at->expected, false, &result, why, why_size))
    return count_shortage(to, why);
  char problem[128];
  snprintf(problem, sizeof problem, "gives other bits with %d thread%s than with %d", threads,
           threads == 1 ? "" : "s", at->threads);
  if (!result.passed) {
    count_failure(to, at, threads, result.problem);
    note_hint(to, at, &result);
  } else if (!(to->variant->traits & ATTN_FREE_BITS) && outputs_checksum(to, at) != bits) {
    count_failure(to, at, at->threads, problem);
  }
  return true;
}

static bool hold_properties(variant_verdicts *to, case_run *at, char *why, size_t why_size) {
  property_verdict verdict;
  const run_setup setup = setup_of(to, at, at->threads);
  if (!properties_hold(at->properties, &setup, at->held, &verdict, why, why_size))
    return count_shortage(to, why);
  to->properties_checked += __builtin_popcount(verdict.checked | verdict.failed);
  if (!verdict.failed) return true;
  count_failure(to, at, at->threads, verdict.problem);
  if (to->failed <= VERDICT_FAILURES) to->failures[to->failed - 1].hint = verdict.hint;
  return true;
}

/* Under the instruction set that at->isa names. */
static bool run_case(variant_verdicts *to, case_run *at, bool with_properties, char *why, size_t why_size) {
  verdict result;
  const run_setup setup = setup_of(to, at, at->threads);
  const int64_t failed = to->failed;
  if (!verify_run_against(&setup, at->inputs, at->expected, to->cases == 0, &result, why, why_size))
    return count_shortage(to, why);
  to->cases++;
  to->rows += result.rows_checked;
  to->rows_total += result.rows_total;
  count_worst(&to->bound, result.bound_share, at->isa, at->name);
  count_worst(&to->probabilistic, result.probabilistic_share, at->isa, at->name);
  if (!result.passed) count_failure(to, at, at->threads, result.problem);
  note_hint(to, at, &result);
  if (!tightness_add(&to->tightness, at->inputs->workload.fill, &result)) {
    snprintf(why, why_size, "no memory for the results");
    return false;
  }
  bool ran = true;
  const uint64_t bits = outputs_checksum(to, at);
  if (to->failed == failed && (at->wanted & REPEAT_WITH_1)) ran = repeat_case(to, at, 1, bits, why, why_size);
  if (ran && to->failed == failed && (at->wanted & REPEAT_WITH_3))
    ran = repeat_case(to, at, 3, bits, why, why_size);
  if (ran && to->failed == failed && with_properties) ran = hold_properties(to, at, why, why_size);
  return ran;
}

static bool is_its_turn(const verification *all, int64_t turn, size_t set, size_t set_count) {
  return turn < 0 || all->options->isa || (size_t)turn % set_count == set;
}

enum { MOST_SETS = 32 };

/* The instruction sets of a variant under which it does something of its own with the problem; their number. */
static size_t sets_for(const variant_verdicts *to, const attn_problem *problem, const char *sets[MOST_SETS]) {
  size_t count = 0;
  for (size_t n = 0; to->instruction_sets[n] && count < MOST_SETS; n++)
    if (!runner_refusal_with(to->variant, problem, to->instruction_sets[n]))
      sets[count++] = to->instruction_sets[n];
  return count;
}

static bool has_set(const variant_verdicts *to, const char *isa) {
  for (size_t n = 0; isa && to->instruction_sets[n]; n++)
    if (strcmp(to->instruction_sets[n], isa) == 0) return true;
  return false;
}

/* Why a problem is not given to a variant, or NULL. */
static const char *skip_reason(const verification *all, const variant_verdicts *to, const workload *w,
                               const attn_problem *problem) {
  enum { MOST_SECONDS = 10 }; /* as plain loops take them */
  const attn_device *device = device_of(to->variant);
  const char *sets[MOST_SETS], *isa = all->options->isa, *reason = runner_refusal(to->variant, problem);
  const bool is_finite = w->fill != FILL_NONFINITE && w->fill != FILL_LARGEST;
  if (!reason && to->variant->traits & ATTN_FINITE && !is_finite) return "takes finite numbers alone";
  if (!reason && device && device->flops_per_second > 0 && all->options->problem_count == 0 &&
      run_slowest_seconds(to->variant, w) > MOST_SECONDS)
    return "would take seconds on this device";
  if (reason || !has_set(to, isa) || !runner_refusal_with(to->variant, problem, isa)) return reason;
  return sets_for(to, problem, sets) > 0 ? "has nothing of its own there for the instruction set" : NULL;
}

static bool run_variant(const verification *all, variant_verdicts *to, case_run *at, char *why,
                        size_t why_size) {
  const char *sets[MOST_SETS];
  const char *reason = skip_reason(all, to, &at->inputs->workload, &at->inputs->problem);
  const int64_t turn = at->turn < 0 && all->options->isa_in_turn ? all->progress->begun : at->turn;
  bool ran = true, held = false;
  if (reason) {
    count_skip(to, reason);
    return true;
  }
  coverage_add(&to->coverage, &at->inputs->workload, all->only > 0);
  const size_t set_count = sets_for(to, &at->inputs->problem, sets);
  for (size_t n = 0; ran && n < set_count && !(all->stops && to->failed) && !interrupt_wanted(); n++) {
    if (all->options->isa && strcmp(all->options->isa, sets[n]) != 0) continue;
    held = true;
    if (!is_its_turn(all, turn, n, set_count)) continue;
    at->isa = sets[n];
    /* Under one alone there is no other to be held. */
    const bool its_turn = turn >= 0 || is_its_turn(all, at->held_turn, n, set_count);
    ran = run_case(to, at, at->properties && its_turn, why, why_size);
  }
  if (held) return ran;
  /* Nothing to hold it to: as it chooses itself. */
  at->isa = NULL;
  return run_case(to, at, at->properties != NULL, why, why_size);
}

bool verification_has_turn(const verification *all, size_t n) {
  return !all->of[n].ended && (all->only == 0 || all->only == n + 1) &&
         (all->together || all->of[n].group == all->progress->group);
}

/* Those left of the last problem. */
static bool run_variants(verification *all, case_run *at, char *why, size_t why_size) {
  size_t *n = &all->progress->variant;
  bool ran = true;
  for (; ran && *n < all->count && !verification_is_decided(all); ++*n)
    if (verification_has_turn(all, *n)) ran = run_variant(all, &all->of[*n], at, why, why_size);
  return ran;
}

/* False when an earlier child has run it to its end. */
static bool begin_problem(verification *all) {
  verification_progress *progress = all->progress;
  if (++all->asked > progress->begun) {
    progress->begun = all->asked;
    progress->variant = 0;
    progress->problems++;
  }
  return all->asked == progress->begun && progress->variant < all->count;
}

/* A problem that no variant can solve is counted as skipped, and not prepared. */
static bool anyone_solves(verification *all, const workload *w) {
  const attn_problem problem = workload_problem(w);
  char why[8];
  if (!check_problem(&problem, why, sizeof why)) return true; /* inputs_create says why not */
  size_t *n = &all->progress->variant;
  for (; *n < all->count; ++*n) {
    if (!verification_has_turn(all, *n)) continue;
    const char *reason = skip_reason(all, &all->of[*n], w, &problem);
    if (!reason) return true;
    count_skip(&all->of[*n], reason);
  }
  return false;
}

/* Each once, whichever children it takes; returns how many of this plugin's and of this kind came before. */
static int64_t count_held(verification_progress *progress, bool is_narrow) {
  int64_t *held = progress->held;
  if (progress->held_last != progress->begun) held[is_narrow]++;
  progress->held_last = progress->begun;
  if (held[0] + held[1] > progress->properties_problems) progress->properties_problems = held[0] + held[1];
  return held[is_narrow] - 1;
}

static bool run_with_properties(verification *all, case_run *at, char *why, size_t why_size) {
  const double start = wall_seconds();
  const int64_t before = count_held(all->progress, element_type_is_narrow(at->inputs->problem.query.type));
  at->held_turn = at->wanted & HOLD_PROPERTIES ? -1 : before;
  at->properties = properties_prepare(at->inputs, at->expected, why, why_size);
  const bool ran = at->properties && run_variants(all, at, why, why_size);
  if (at->properties) properties_destroy(at->properties);
  all->progress->properties_seconds += wall_seconds() - start;
  return ran;
}

/* Of these, those that ask for properties are held to them where that does not take too long. */
static bool run_solved(verification *all, case_run *at, char *why, size_t why_size) {
  at->held = PROPERTIES_ALL & ~all->options->properties_left_out;
  const bool wanted = at->held && at->wanted & (HOLD_PROPERTIES | HOLD_PROPERTIES_IN_TURN);
  const bool held = wanted && properties_can_be_held(&at->inputs->workload);
  all->progress->properties_too_large += wanted && !held;
  return (held ? run_with_properties : run_variants)(all, at, why, why_size);
}

bool verification_run(verification *all, const workload *w, int threads, int turn, unsigned wanted, char *why,
                      size_t why_size) {
  if (!begin_problem(all) || !anyone_solves(all, w)) return true;
  inputs inputs;
  expected known;
  case_run at = {.inputs = &inputs, .expected = &known, .threads = threads, .turn = turn, .wanted = wanted};
  workload_name(w, at.name);
  if (!inputs_create(&inputs, w, false, why, why_size)) return false;
  bool ran = expected_solve(&known, &inputs, expected_affordable_rows(w), why, why_size);
  if (ran) {
    ran = run_solved(all, &at, why, why_size);
    expected_destroy(&known);
  }
  inputs_destroy(&inputs);
  return ran;
}

bool verification_run_case(verification *all, inputs *inputs, const expected *known, const char *name,
                           int threads, char *why, size_t why_size) {
  case_run at = {.inputs = inputs,
                 .expected = known,
                 .threads = threads,
                 .turn = -1,
                 .wanted = REPEAT_WITH_1 | REPEAT_WITH_3};
  snprintf(at.name, sizeof at.name, "%s", name);
  return !begin_problem(all) || run_variants(all, &at, why, why_size);
}

/* "; skipped 12: computes softmax attention (9), ..." */
static void print_skipped(const variant_verdicts *of, FILE *out) {
  int64_t all = 0;
  for (int n = 0; n < VERDICT_REASONS; n++) all += of->skipped[n];
  if (all == 0) return;
  fprintf(out, "; skipped %" PRId64 ":", all);
  for (int n = 0; n < VERDICT_REASONS && of->reasons[n][0]; n++)
    fprintf(out, "%s %s (%" PRId64 ")", n ? "," : "", of->reasons[n], of->skipped[n]);
}

void failure_print_command(const failure *entry, const char *variant, const verify_options *options,
                           FILE *out) {
  /* In a team, of how many ranks stands in the instruction set's place. */
  if (strncmp(entry->isa, "ranks", 5) == 0) fprintf(out, "mpirun -n %s ", entry->isa + 5);
  fprintf(out, "attnbench verify --variant %s", variant);
  if (options->cases) {
    fputs(" --cases ", out);
    text_put_quoted(options->cases, out);
  }
  if (!options->cases && entry->workload[0]) fprintf(out, " --problem '%s'", entry->workload);
  if (entry->isa[0]) fprintf(out, " --isa %s", entry->isa);
  if (entry->threads > 0) fprintf(out, " --threads %d", entry->threads);
  if (options->run_limit > 0) fprintf(out, " --run-limit %g", options->run_limit);
  if (options->device) fprintf(out, " --device %s", options->device);
  if (options->own_left_out) fputs(" --own=false", out);
  for (size_t n = 0; n < options->plugin_count; n++) {
    fputs(" --plugin ", out);
    text_put_quoted(options->plugins[n], out);
  }
}

/* One line for a variant, more only where it failed. */
static void print_verdicts(const variant_verdicts *of, const verify_options *options, FILE *out) {
  const worst_case *worst = &of->probabilistic;
  fprintf(out, "%-*s %-8s %6" PRId64 "  %-9.3g %-9.3g", VARIANT_COLUMN, of->name,
          of->failed  ? "FAILED"
          : of->cases ? "passed"
                      : "not run",
          of->cases, of->bound.share, worst->share);
  if (worst->share > 0) fprintf(out, " %s%s%s", worst->workload, worst->isa[0] ? " with " : "", worst->isa);
  if (of->rows < of->rows_total)
    fprintf(out, "; checked %" PRId64 " of %" PRId64 " rows, a seeded sample", of->rows, of->rows_total);
  print_skipped(of, out);
  fputc('\n', out);
  for (int64_t n = 0; n < of->failed && n < VERDICT_FAILURES; n++) {
    fprintf(out, "    FAILED: %s%s%s\n", options->cases ? of->failures[n].workload : "",
            options->cases ? ": " : "", of->failures[n].problem);
    if (of->failures[n].hint.kind[0])
      fprintf(out, "      hint: %s: %s\n", of->failures[n].hint.kind, of->failures[n].hint.words);
    fprintf(out, "      reproduce: ");
    failure_print_command(&of->failures[n], of->name, options, out);
    fputc('\n', out);
  }
  if (of->failed > VERDICT_FAILURES)
    fprintf(out, "    and %" PRId64 " more failures\n", of->failed - VERDICT_FAILURES);
}

static void print_properties(const verification *all, FILE *out) {
  const verification_progress *progress = all->progress;
  const int held = __builtin_popcount(PROPERTIES_ALL & ~all->options->properties_left_out);
  int64_t checked = 0;
  for (size_t n = 0; n < all->count; n++) checked += all->of[n].properties_checked;
  if (progress->properties_problems > 0)
    fprintf(out, "\n%d propert%s held on %" PRId64 " problem%s: %" PRId64 " checks, %.1f s\n", held,
            held == 1 ? "y" : "ies", progress->properties_problems,
            progress->properties_problems == 1 ? "" : "s", checked, progress->properties_seconds);
  if (progress->properties_too_large > 0)
    fprintf(out, "\nproperties not held on %" PRId64 " problem%s that would take too long\n",
            progress->properties_too_large, progress->properties_too_large == 1 ? "" : "s");
}

/* What a pass does not say. */
static void print_unchecked(const variant_verdicts *of, FILE *out) {
  const uint32_t traits = of->variant ? of->variant->traits : 0;
  if (!(traits & (ATTN_FREE_BITS | ATTN_FINITE))) return;
  fprintf(out, "Unchecked, as %s says of itself:%s%s%s\n", of->name,
          traits & ATTN_FREE_BITS ? " the same bits again, with other threads and in other layouts" : "",
          traits & ATTN_FREE_BITS && traits & ATTN_FINITE ? ";" : "",
          traits & ATTN_FINITE ? " NaN, infinity and what overflows" : "");
}

void verification_print(const verification *all, FILE *out) {
  if (omp_get_num_procs() == 1)
    fprintf(out,
            "There is one processor here: threads take turns on it, and races between them may not show.\n");
  fprintf(out, "Worst errors as shares of what float32 may do: in the worst case, and with probability.\n");
  fprintf(out, "%-*s %-8s %6s  %-9s %-9s %s\n", VARIANT_COLUMN, "variant", "", "cases", "worst", "probable",
          "worst in");
  for (size_t n = 0; n < all->count; n++) print_verdicts(&all->of[n], all->options, out);
  print_properties(all, out);
  for (size_t n = 0; n < all->count; n++) print_unchecked(&all->of[n], out);
}

void verification_print_tightness(const verification *all, FILE *out) {
  fprintf(out,
          "\nHow tight the bounds are: median and largest share of the cases, for uniform and normal inputs "
          "and for those that hurt.\n");
  tightness_print_head(out);
  for (size_t n = 0; n < all->count; n++)
    if (all->of[n].cases > 0) tightness_print(&all->of[n].tightness, all->of[n].name, out);
}

void verification_print_coverage(const verification *all, const int64_t asked[REFERENCE_FUNCTIONS],
                                 FILE *out) {
  fprintf(out, "\nCoverage:\n");
  for (size_t n = 0; n < all->count; n++)
    if (all->of[n].variant)
      coverage_print(&all->of[n].coverage, all->of[n].name, asked[all->of[n].variant->function], out);
}

int64_t verification_cases(const verification *all) {
  int64_t cases = 0;
  for (size_t n = 0; n < all->count; n++) cases += all->of[n].cases;
  return cases;
}

int64_t verification_failed(const verification *all) {
  int64_t failed = 0;
  for (size_t n = 0; n < all->count; n++) failed += all->of[n].failed;
  return failed;
}

bool verification_is_decided(const verification *all) {
  return (all->stops && verification_failed(all) > 0) || interrupt_wanted();
}

bool verification_ran(const verification *all, bool each) {
  for (size_t n = 0; n < all->count; n++) {
    const variant_verdicts *of = &all->of[n];
    if (of->cases > 0 || (!each && verification_cases(all) > 0)) continue;
    fprintf(stderr, "attnbench: " VERIFY_NOTHING "%s takes none of these problems (%s)\n", of->name,
            of->reasons[0][0] ? of->reasons[0] : "none was given");
    return false;
  }
  return true;
}

/* What of a verification outlives a child. */
typedef struct kept {
  verification_progress progress;
  size_t count;
  variant_verdicts of[];
} kept;

static kept *keep_new(const variant_list *list, const verify_options *options) {
  kept *new = supervisor_keep(sizeof *new + list->count * sizeof *new->of);
  if (!new) return NULL;
  new->progress.started = wall_seconds();
  for (size_t n = 0; n < list->count; n++)
    if (is_asked_for(options, list->variants[n]->name))
      snprintf(new->of[new->count++].name, VARIANT_NAME_BYTES, "%s", list->variants[n]->name);
  return new;
}

/* A variant that ended a child has failed. */
static void note_ended(variant_verdicts *of) {
  const ended_run *end = supervisor_ended(of->name);
  if (of->ended || (of->variant && !end)) return;
  of->ended = true;
  if (of->failed++ >= VERDICT_FAILURES) return;
  failure *entry = &of->failures[of->failed - 1];
  if (!end) {
    snprintf(entry->problem, sizeof entry->problem, "its plugin cannot be loaded again");
    return;
  }
  snprintf(entry->problem, sizeof entry->problem, "%s%s%s; it was left out since", end->how,
           end->property[0] ? ", while held to: " : "", end->property);
  snprintf(entry->isa, sizeof entry->isa, "%s", end->isa);
  snprintf(entry->workload, sizeof entry->workload, "%s", end->problem);
  entry->threads = end->threads;
}

/* Variants come in the order of their plugins. */
bool verification_create(verification *all, const variant_list *list, const verify_options *options) {
  *all = (verification){.options = options};
  kept *was = *supervisor_root();
  if (!was) was = *supervisor_root() = keep_new(list, options);
  if (!was) return false;
  all->of = was->of;
  all->count = was->count;
  all->progress = &was->progress;
  for (size_t n = 0; n < all->count; n++) {
    variant_verdicts *of = &all->of[n];
    of->variant = variant_list_find(list, of->name);
    of->origin = of->variant ? variant_list_origin(list, of->variant) : NULL;
    of->instruction_sets = of->variant ? variant_list_instruction_sets_of(list, of->variant) : NULL;
    of->group = n > 0 ? of[-1].group + (of->origin != of[-1].origin) : 0;
    note_ended(of);
  }
  return true;
}

bool verification_next_plugin(verification *all) {
  verification_progress *progress = all->progress;
  const size_t last = all->count > 0 ? all->of[all->count - 1].group : 0;
  if (progress->group == last || verification_is_decided(all)) return false;
  progress->group++;
  all->asked = progress->begun = progress->held[0] = progress->held[1] = progress->held_last = 0;
  supervisor_renew();
  return true;
}

void verification_destroy(verification *all) {
  *supervisor_root() = NULL;
  *all = (verification){0};
}
