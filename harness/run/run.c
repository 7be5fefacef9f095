/* See run.h. */
#include "run.h"

#include <stdio.h>

#include "device.h"
#include "supervisor.h"

void run_violate(run_outcome *outcome, const char *violation, const char *of) {
  if (outcome->violation[0]) return;
  snprintf(outcome->violation, sizeof outcome->violation, violation, of);
}

double run_slowest_seconds(const attn_variant *variant, const workload *w) {
  /* Plain loops without optimisation, under a sanitizer, on a busy machine. */
  const double slowest_flops_per_second = 1e8;
  const attn_device *device = device_of(variant);
  return workload_flops(w) /
         (device && device->flops_per_second > 0 ? device->flops_per_second : slowest_flops_per_second);
}

void run_enter(const run_setup *setup, const workload *w) {
  const double start_seconds = 10, times_slower = 10;
  supervisor_enter(&(supervised_run){.variant = setup->variant->name,
                                     .problem = setup->problem,
                                     .property = setup->property,
                                     .plugin = setup->origin,
                                     .isa = setup->isa,
                                     .threads = setup->threads,
                                     .limit_seconds = start_seconds +
                                                      times_slower * run_slowest_seconds(setup->variant, w)});
}
