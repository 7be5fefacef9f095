/* gate: what the command line asks of the gate. */
#define _GNU_SOURCE
#include <stdio.h>

#include "base/parts.h"
#include "commands.h"
#include "gate/gate.h"

int run_gate(const options *options) {
  char found[PARTS_PATH_BYTES], why[WHY_BYTES];
  for (size_t n = 0; n < options->problems.count; n++) {
    workload unused;
    if (!workload_parse_sound(options->problems.items[n], &unused, why, sizeof why))
      return command_complain(why);
  }
  if (options->problems.count > GATE_MAX_PROBLEMS) {
    snprintf(why, sizeof why, "gate takes --problem at most %d times, not %zu", GATE_MAX_PROBLEMS,
             options->problems.count);
    return command_complain(why);
  }
  const gate_options how = {
      .heads = command_texts(&options->gate.heads),
      .head_count = options->gate.heads.count,
      .bases = command_texts(&options->gate.bases),
      .base_count = options->gate.bases.count,
      .why_no_base = options->gate.why_no_base,
      .base_name = options->gate.base_name,
      .identical = options->gate.identical,
      .variants = command_texts(&options->variants),
      .variant_count = options->variants.count,
      .problems = command_texts(&options->problems),
      .problem_count = options->problems.count,
      .again = options->gate.again,
      .accepted = command_texts(&options->gate.accepted),
      .accepted_count = options->gate.accepted.count,
      .write_facts = options->gate.write_facts,
      .head_facts = options->gate.head_facts,
      .base_facts = options->gate.base_facts,
      .head_code = options->gate.head_code,
      .base_code = options->gate.base_code,
      .head_team = options->gate.head_team,
      .base_team = options->gate.base_team,
      .why_no_code = options->gate.why_no_code,
      .baseline = options->gate.baseline,
      .out = options->out,
      .scripts = command_scripts(options, found),
      .only = options->gate.only,
      .shadow = options->gate.shadow,
      .facts = options->gate.facts || !options->gate.times,
      .times = options->gate.times || !options->gate.facts,
      .budget = options->gate.budget,
      .smallest = options->gate.smallest / 100,
      .cases = options->gate.cases,
      .every = options->every,
      .seed = options->seed,
  };
  return gate_run(&how);
}

int run_gate_measure(const options *options) {
  const gate_measurement what = {
      .base = options->gate.bases.items[0],
      .head = options->gate.heads.items[0],
      .itself = options->gate.itself,
      .seed = options->seed,
      .quads = (size_t)options->gate.quads,
      .words = command_texts(&options->words),
      .word_count = options->words.count,
  };
  return gate_measure(&what);
}
