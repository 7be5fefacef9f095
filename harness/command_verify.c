/* verify and fuzz: the same variants, problems and instruction sets. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "commands.h"
#include "measure/sweep.h"
#include "run/runner.h"
#include "run/supervisor.h"
#include "run/team.h"
#include "verify/fuzz.h"
#include "verify/golden.h"
#include "verify/properties.h"
#include "verify/verify.h"

/* The names in all tables, each once. */
static void list_isas(const variant_list *list, char *text, size_t size) {
  int written = 0;
  for (size_t t = 0; t < list->table_count; t++) {
    const char *const *sets = list->tables[t]->instruction_sets ? list->tables[t]->instruction_sets() : NULL;
    for (size_t n = 0; sets && sets[n] && written >= 0 && (size_t)written < size; n++) {
      const variant_list before = {.tables = list->tables, .table_count = t};
      if (!variant_list_find_isa(&before, sets[n]))
        written += snprintf(text + written, size - (size_t)written, " %s", sets[n]);
    }
  }
}

/* The instruction set that the command line, or else the environment, holds variants to, of whichever table; NULL when
 * neither does. False when no table has it on this processor. */
bool command_isa(const options *options, const variant_list *list, const char **isa, char *why,
                 size_t why_size) {
  const char *wanted = options->isa ? options->isa : getenv("ATTN_ISA");
  char known[1024] = "";
  *isa = wanted ? variant_list_find_isa(list, wanted) : NULL;
  if (!wanted || *isa) return true;
  list_isas(list, known, sizeof known);
  snprintf(why, why_size, "%s: this processor has no instruction set '%s'; it has%s",
           options->isa ? "--isa" : "ATTN_ISA", wanted, known);
  return false;
}

/* A problem that was asked for by name must be one that the named variants can solve. */
static bool check_verify_problem(const options *options, const variant_list *list, const char *text,
                                 char *why, size_t why_size) {
  workload workload;
  if (!workload_parse_sound(text, &workload, why, why_size)) return false;
  attn_problem problem = workload_problem(&workload);
  for (size_t i = 0; i < options->variants.count; i++) {
    const char *name = options->variants.items[i];
    const attn_variant *variant = variant_list_find(list, name);
    /* In a team it is to take all ranks, or as many as were asked for. */
    const char *ranks = variant->place != ATTN_TEAM ? NULL : options->isa ? options->isa : team_all();
    const char *reason = runner_refusal_with(variant, &problem, ranks);
    if (!reason || supervisor_ended(name)) continue;
    snprintf(why, why_size, "%s cannot solve this problem: it %s", name, reason);
    return false;
  }
  return true;
}

static void list_properties(char *text, size_t size) {
  size_t written = 0;
  for (int n = 0; n < PROPERTIES && written < size; n++)
    written += (size_t)snprintf(text + written, size - written, "%s, ", property_name((property)n));
}

/* Bits of those that are not named; none, where nothing is. */
static bool find_left_out(const options *options, unsigned *left_out, char *why, size_t why_size) {
  *left_out = options->properties.count ? PROPERTIES_ALL : 0;
  for (size_t i = 0; i < options->properties.count; i++) {
    const char *name = options->properties.items[i];
    int n = 0;
    while (n < PROPERTIES && strcmp(property_name((property)n), name) != 0) n++;
    if (n < PROPERTIES) {
      *left_out &= ~(1u << n);
    } else if (strcmp(name, "none") != 0) {
      char known[1024];
      list_properties(known, sizeof known);
      snprintf(why, why_size, "there is no property '%s'; there are: %snone", name, known);
      return false;
    }
  }
  return true;
}

/* verify and fuzz: the same variants, problems and instruction sets. */
int run_verify(const options *options, const variant_list *list) {
  char why[WHY_BYTES];
  const char *isa;
  unsigned left_out;
  if (!sweep_check_variants(list, &options->variants, why, sizeof why) ||
      !command_isa(options, list, &isa, why, sizeof why) ||
      !find_left_out(options, &left_out, why, sizeof why))
    return command_complain(why);
  for (size_t i = 0; i < options->problems.count; i++)
    if (!check_verify_problem(options, list, options->problems.items[i], why, sizeof why))
      return command_complain(why);
  const char *const *names = options->variants.count ? (const char *const *)options->variants.items : NULL;
  verify_options how = {
      .variant_names = names,
      .variant_count = options->variants.count,
      .problems = (const char *const *)options->problems.items,
      .problem_count = options->problems.count,
      .cases = options->cases,
      .isa = isa,
      .seed = options->seed,
      .random_count = options->count,
      .every = options->every,
      .fail_fast = options->fail_fast,
      .properties_left_out = left_out,
      .threads = (int)options->threads,
      .run_limit = options->run_limit,
      .device = options->device,
      .own_left_out = !options->own,
      .in_team = list->team,
      .plugins = (const char *const *)options->plugins.items,
      .plugin_count = options->plugins.count,
  };
  if (options->cases) return golden_verify(list, &how, stdout);
  if (options->command == COMMAND_FUZZ && options->problems.count)
    return list->team && team_rank() > 0
               ? STATUS_GOOD /* rank 0 starts other teams; its status is that of all */
               : fuzz_shrink(&how, options->seconds, stdout);
  const int status = options->command == COMMAND_VERIFY ? verify_all(list, &how, stdout)
                                                        : fuzz_all(list, &how, options->seconds, stdout);
  return status != STATUS_WRONG && interrupt_wanted() ? STATUS_INTERRUPTED : status;
}
