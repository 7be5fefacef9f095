/* A variant made ready for one problem, to be timed in turns with what is not of this suite (library.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/statistics.h"
#include "base/timer.h"
#include "library.h"
#include "run/plugins.h"
#include "run/runner.h"

struct attnbench_kernel {
  inputs inputs;
  guarded workspace;
  run_setup setup;
  attn_call call;
  device_call on_device;
  bool began;
};

/* A variant of a plugin, which stays loaded, and, as in the program, the instruction set that ATTN_ISA names, where the
 * plugin has any. */
static bool choose(run_setup *setup, const char *plugin, const char *name, int device, char *why,
                   size_t why_size) {
  const char *wanted = getenv("ATTN_ISA");
  variant_list list = {0};
  if (!variant_list_add(&list, plugin, why, why_size)) return false;
  setup->variant = variant_list_find(&list, name);
  const char *const *sets = variant_list_instruction_sets_of(&list, setup->variant);
  setup->isa = isa_among(sets, wanted);
  const bool knows = !wanted || !sets[0] || setup->isa;
  variant_list_destroy(&list);
  if (!setup->variant) snprintf(why, why_size, "%s has no variant '%s'", plugin, name);
  if (!knows)
    snprintf(why, why_size, "ATTN_ISA: on this processor %s has no instruction set '%s'", plugin, wanted);
  if (!setup->variant || !knows) return false;
  return setup->variant->place == ATTN_HOST ||
         device_choose(device_of(setup->variant), device, why, why_size);
}

static bool begin(attnbench_kernel *kernel, char *why, size_t why_size) {
  const attn_problem *problem = &kernel->inputs.problem;
  const char *reason = runner_refusal_with(kernel->setup.variant, problem, kernel->setup.isa);
  if (reason) {
    snprintf(why, why_size, "%s: %s", kernel->setup.variant->name, reason);
    return false;
  }
  const size_t bytes = runner_workspace_bytes(&kernel->setup, problem);
  if (!guarded_create(&kernel->workspace, bytes, 64, why, why_size)) return false;
  kernel->call = runner_call(&kernel->setup, problem, &kernel->inputs.tensors, kernel->workspace.data);
  return kernel->began = device_begin(&kernel->on_device, &kernel->call, bytes, why, why_size);
}

attnbench_kernel *attnbench_ready(const char *line, const char *plugin, const char *variant, int device,
                                  int threads, char *why, size_t why_size) {
  workload w;
  if (!workload_parse_sound(line, &w, why, why_size)) return NULL;
  if (threads < 1) {
    snprintf(why, why_size, "threads is %d: a kernel runs with 1 or more", threads);
    return NULL;
  }
  attnbench_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel || !inputs_create(&kernel->inputs, &w, true, why, why_size)) {
    if (!kernel) snprintf(why, why_size, "no memory");
    free(kernel);
    return NULL;
  }
  kernel->setup = (run_setup){.threads = threads};
  if (choose(&kernel->setup, plugin, variant, device, why, why_size) && begin(kernel, why, why_size))
    return kernel;
  attnbench_release(kernel);
  return NULL;
}

double attnbench_repeat(attnbench_kernel *kernel, int64_t calls) {
  const attn_device *device = kernel->on_device.device;
  double seconds = 0;
  if (!device) {
    const double start = wall_seconds();
    for (int64_t n = 0; n < calls; n++) runner_invoke(&kernel->call);
    return wall_seconds() - start;
  }
  for (int64_t n = 0; n < calls; n++) {
    device->start_clock();
    runner_invoke(&kernel->call);
    seconds += device->stop_clock();
  }
  return seconds;
}

const void *attnbench_output(attnbench_kernel *kernel) {
  const device_call *there = &kernel->on_device;
  void *output = kernel->inputs.tensors.output;
  if (there->device)
    there->device->read(output, there->tensors[TENSOR_OUTPUT],
                        tensor_bytes(&kernel->inputs.problem, TENSOR_OUTPUT));
  return output;
}

const void *attnbench_written(attnbench_kernel *kernel, const char *tensor) {
  const attn_problem *p = &kernel->inputs.problem;
  for (tensor_id id = 0; id < TENSORS; id++)
    if (strcmp(tensor_table[id].name, tensor) == 0 && tensor_is_written(p, id))
      return tensor_data(p, &kernel->inputs.tensors, id);
  return NULL;
}

void attnbench_release(attnbench_kernel *kernel) {
  device_outcome outcome;
  if (!kernel) return;
  if (kernel->began) device_end(&kernel->on_device, &outcome);
  guarded_destroy(&kernel->workspace);
  inputs_destroy(&kernel->inputs);
  free(kernel);
}

void attnbench_median(const double *values, size_t count, double median_low_high[3]) {
  const interval found = statistics_median_interval(values, count, 0.95);
  median_low_high[0] = found.estimate;
  median_low_high[1] = found.low;
  median_low_high[2] = found.high;
}
