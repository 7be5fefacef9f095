/* See results.h. */
#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *sweep_axis_name(sweep_axis axis) {
  static const char *const names[] = {[SWEPT_BOTH] = "T",
                                      [SWEPT_KEYS] = "Tk",
                                      [SWEPT_QUERIES] = "Tq",
                                      [SWEPT_BATCH] = "B",
                                      [SWEPT_HEAD_DIM] = "D"};
  return names[axis];
}

void result_destroy(result *result) {
  free(result->seconds);
  free(result->cpu_seconds);
  free(result->shares);
}

bool result_is_measured(const result *result) {
  return result->state == RESULT_MEASURED && result->seconds_median.estimate > 0;
}

bool result_has_memory(const result *result) {
  return result->state == RESULT_MEASURED || result->memory_only;
}

bool result_is_skipped(const result *result) {
  return result->state == RESULT_SKIPPED && !result->memory_only;
}

bool result_has_pattern(const result *result) {
  const attn_problem problem = workload_problem(&result->workload);
  return attn_has_pattern(&problem);
}

const char *result_problem(const char *name) {
  const char *slash = strchr(name, '/');
  return slash ? slash + 1 : name;
}

int64_t result_length(const result *result) {
  switch (result->swept) {
    case SWEPT_QUERIES: return result->workload.query_length;
    case SWEPT_BATCH: return result->workload.batch;
    case SWEPT_HEAD_DIM: return result->workload.head_dim;
    default: return result->workload.key_length;
  }
}

result_limit result_limit_of(const result *result) {
  if (!isfinite(result->peak_fraction) || !isfinite(result->read_fraction)) return LIMIT_UNKNOWN;
  if (!(result->peak_fraction > 0) || !(result->read_fraction > 0)) return LIMIT_UNKNOWN;
  return result->peak_fraction >= result->read_fraction ? LIMIT_MULTIPLY_ADDS : LIMIT_READS;
}

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
