/* The program: reads the command line, calls the part that does the work, and is the only place that
 * says what went wrong and decides on the exit status: 0 all is well, 1 a kernel is wrong, 2 nothing
 * could be done, 130 ended by Ctrl-C. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "commands.h"
#include "machine/affinity.h"
#include "options.h"
#include "run/instructions.h"
#include "run/supervisor.h"
#include "run/team.h"

/* Whether the first variant that is asked for is one of a team. */
static bool asks_for_team(const options *options) {
  static int answer = -1;
  char why[WHY_BYTES];
  if (answer >= 0) return answer;
  answer = 0;
  const attn_table *team = options->variants.count ? variant_list_peek_team(why, sizeof why) : NULL;
  for (uint32_t n = 0; team && n < team->count; n++)
    answer |= strcmp(team->variants[n]->name, options->variants.items[0]) == 0;
  return answer;
}

/* Under mpirun the variants of a team are verified, by all its processes; bench measures them where they are named, and else
 * has its ranks measure shards. */
static bool is_in_team(const options *options) {
  char path[PARTS_PATH_BYTES];
  const bool verifies = options->command == COMMAND_VERIFY || options->command == COMMAND_FUZZ;
  const bool measures = options->command == COMMAND_BENCH && !options->shard;
  return (verifies || measures) && !options->device && team_is_launched() &&
         parts_find("attnbench_mpi.so", path) && (verifies || asks_for_team(options));
}

/* Rank 0 speaks for all. */
static int complain(const options *options, const char *why) {
  if (is_in_team(options) && team_rank() > 0) return STATUS_UNUSABLE;
  return command_complain(why);
}

static bool load_variants(variant_list *list, const options *options, char *why, size_t why_size) {
  const bool added_own = options->device       ? variant_list_add_device(list, options->device, why, why_size)
                         : is_in_team(options) ? !options->own || variant_list_add_team(list, why, why_size)
                                               : !options->own || variant_list_add_own(list, why, why_size);
  if (!added_own) return false;
  /* Plugins' too, whether or not ours are in it. To be listed they need no team. */
  list->team = is_in_team(options) || options->command == COMMAND_LIST;
  supervisor_note_set(options->device, options->own);
  for (size_t i = 0; i < options->plugins.count; i++) {
    const char *plugin = options->plugins.items[i];
    if (supervisor_refuses(plugin)) continue;
    supervisor_loads(plugin);
    const bool added = variant_list_add(list, plugin, why, why_size);
    supervisor_loads(NULL);
    if (!added) return false;
  }
  return !is_in_team(options) || team_begin(why, why_size);
}

/* The output is written out, or that is said. */
static int flushed(int status) {
  const bool lost = fflush(stdout) != 0 || ferror(stdout); /* now, or when it was flushed before */
  if (lost && status == STATUS_GOOD) return command_complain("the standard output cannot be written");
  return status;
}

/* The commands that run variants, in a child of their own. */
static int run_kernels(void *context) {
  const options *options = context;
  char why[WHY_BYTES];
  variant_list list = {0};
  int status = STATUS_UNUSABLE;
  if (options->run_limit > 0) supervisor_limit(options->run_limit);
  if (options->command == COMMAND_GATE_MEASURE) /* of a part it could say nothing */
    return supervisor_ended_count() > 0 ? STATUS_WRONG : flushed(run_gate_measure(options));
  if (!load_variants(&list, options, why, sizeof why))
    complain(options, why);
  else if (options->command == COMMAND_VERIFY || options->command == COMMAND_FUZZ)
    status = run_verify(options, &list);
  else if (options->command == COMMAND_LIST)
    status = run_list(&list);
  else
    status = run_bench(options, &list);
  if (is_in_team(options)) status = team_end(flushed(status));
  variant_list_destroy(&list);
  return flushed(status);
}

static void put_help(const options *options, FILE *out) {
  if (strcmp(options->as, "man") == 0)
    options_manual(out);
  else if (strcmp(options->as, "bash") == 0)
    options_completion(out);
  else
    options_help(options->about, out);
}

static int run(const options *options) {
  if (options->command == COMMAND_HELP) put_help(options, stdout);
  if (options->command == COMMAND_PROBLEM) printf("%s\n", workload_grammar);
  if (options->command == COMMAND_VERSION)
    printf("attnbench %s (commit %s), interface %d\n", ATTNBENCH_VERSION, version_commit(),
           ATTN_INTERFACE_VERSION);
  if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION ||
      options->command == COMMAND_PROBLEM)
    return STATUS_GOOD;
  if (options->command == COMMAND_MACHINE) return run_machine(options);
  if (options->command == COMMAND_PLOTS) return run_plots(options);
  if (options->command == COMMAND_DUMP) return run_dump(options);
  if (options->command == COMMAND_JUDGE) return run_judge(options);
  if (options->command == COMMAND_REPORT) return run_report(options);
  if (options->command == COMMAND_MERGE) return run_merge(options);
  if (options->command == COMMAND_SHOW) return run_show(options);
  if (options->command == COMMAND_GATE) return run_gate(options);
  if (options->command == COMMAND_COUNT_INSTRUCTIONS)
    return instructions_child(options->plugins.count ? options->plugins.items[0] : NULL,
                              command_texts(&options->words), options->words.count);

  if (is_in_team(options)) supervisor_in_team(team_rank());
  return options->isolate ? supervise(run_kernels, (void *)(uintptr_t)options)
                          : run_kernels((void *)(uintptr_t)options);
}

/* Verification is tens of thousands of short runs. Threads that wait for each other spin for milliseconds unless OpenMP is
 * told otherwise, which takes processors from others (469 s instead of 35 on a busy machine), or else sleep at once, and
 * are woken each time (75 s instead of 52). OpenMP reads this when it is loaded, so the program begins again. */
static void wait_briefly(const options *options, char **argv) {
  if (options->command != COMMAND_VERIFY && options->command != COMMAND_FUZZ) return;
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "10000", 1) == 0)
    execv("/proc/self/exe", argv);
}

/* OpenMP reads that, too, when it is loaded. */
static bool pin(const options *options, char **argv, char *why, size_t why_size) {
  if (!options->pin || affinity_is_pinned()) return true;
  affinity_pin(argv, (size_t)options->threads);
  snprintf(why, why_size, "--pin: the processors that this process may use cannot be read");
  return false;
}

int main(int argc, char **argv) {
  char why[WHY_BYTES];
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is then a write that fails, and is said */
  options options;
  const bool parsed = options_parse(&options, argc, argv, why, sizeof why);
  if (parsed) wait_briefly(&options, argv);
  const bool ready = parsed && pin(&options, argv, why, sizeof why);
  int status = ready ? run(&options) : complain(&options, why);
  options_destroy(&options);
  return flushed(status);
}
