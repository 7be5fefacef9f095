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

const machine_rate *report_peak(const report *report, attn_type type) {
  return machine_peak(&report->machine, report->isa, type);
}
