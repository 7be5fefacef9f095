/* See results.h. */
#include "results.h"

#include <stdlib.h>
#include <string.h>

int64_t result_length(const result *result) { return result->workload.key_length; }

const growth *report_growth(const report *report, int family_index) {
  for (size_t i = 0; i < report->growth_count; i++)
    if (report->growths[i].family_index == family_index) return &report->growths[i];
  return NULL;
}

int report_family_count(const report *report) {
  int count = 0;
  for (size_t i = 0; i < report->result_count; i++)
    if (report->results[i].family_index >= count) count = report->results[i].family_index + 1;
  return count;
}

const machine_rate *report_peak(const report *report) {
  const machine *machine = &report->machine;
  if (machine->peak_count == 0) return NULL;
  for (size_t i = 0; i < machine->peak_count; i++)
    if (strcmp(machine->peaks[i].name, report->isa) == 0) return &machine->peaks[i];
  const machine_rate *fastest = &machine->peaks[0];
  for (size_t i = 1; i < machine->peak_count; i++)
    if (machine->peaks[i].median > fastest->median) fastest = &machine->peaks[i];
  return fastest;
}
