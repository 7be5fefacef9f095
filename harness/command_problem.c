/* Commands about one problem, which run no variant: dump and judge for kernels that live elsewhere, show for who sees
 * whom. */
#define _GNU_SOURCE
#include <stdio.h>

#include "base/folder.h"
#include "base/parts.h"
#include "commands.h"
#include "problem/dump.h"
#include "report/show.h"
#include "verify/judge_folder.h"

int run_dump(const options *options) {
  char why[WHY_BYTES], reason[512];
  workload workload;
  const char *line = options->words.items[0];
  if (!workload_parse(line, &workload, reason, sizeof reason) ||
      !workload_check(&workload, reason, sizeof reason)) {
    snprintf(why, sizeof why, "dump %s: %s", line, reason);
    return command_complain(why);
  }
  workload_seed_unnamed(&workload, options->seed);
  if (!dump_write(&workload, options->out, why, sizeof why)) return command_complain(why);
  printf("The inputs lie in %s, with problem.json\n", options->out);
  return STATUS_GOOD;
}

int run_judge(const options *options) {
  char why[WHY_BYTES];
  const judge_files files = {.folder = options->words.items[0],
                             .output = options->output,
                             .lse = options->lse,
                             .weights = options->weights,
                             .gradients = options->gradients,
                             .states = options->states};
  const int status = judge_folder(&files, options->json, stdout, why, sizeof why);
  return status == STATUS_UNUSABLE ? command_complain(why) : status;
}

int run_show(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES];
  const int width = command_terminal_width();
  const show_paper paper = {
      .out = stdout, .width = width ? width : 80, .color = command_wants_color(options)};
  const show_request request = {.problem = options->words.items[0],
                                .batch = options->show.batch,
                                .head = options->show.head,
                                .tile = options->show.tile,
                                .weights = options->show.weights,
                                .folder = options->out,
                                .style = command_style(options, found)};
  if ((options->out && !folder_make(options->out, why, sizeof why)) ||
      !show_problem(&request, &paper, why, sizeof why))
    return command_status(command_complain(why));
  if (options->out) printf("\nThe pictures lie in %s\n", options->out);
  return STATUS_GOOD;
}
