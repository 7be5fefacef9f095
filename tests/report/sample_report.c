/* See sample_report.h. */
#include "tests/report/sample_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const sample_variant sample_variants[SAMPLE_VARIANTS] = {
    {"naive", "full", 8, 2, 2, 2e-6, 1.9, 4 << 20, 0.021, 4096},
    {"blocked", "full", 8, 2, 1, 2e-6, 0.31, 256 << 10, 0.018, 8192},
    {"blas", "full", 8, 2, 2, 8e-6, 0.041, 4 << 20, 0.012, 8192},
    {"fused", "full", 8, 2, 0, 4e-6, 0.026, 192 << 10, 0.009, 8192},
    {"linear", "linear/full", 8, 1, 0, 4e-6, 1.4e-3, 16 << 10, 0.004, 65536},
    {"sliding_window", "window:256", 8, 1, 0, 4e-6, 7.1e-3, 192 << 10, 0.008, 65536},
    {"multi_query", "full", 1, 2, 0, 4e-6, 0.0252, 200 << 10, 0.009, 8192},
    {"grouped_query", "full", 2, 2, 0, 4e-6, 0.0256, 196 << 10, 0.009, 8192},
};

static void sample_machine(machine *machine) {
  static const machine_rate peaks[] = {{"portable", 26e9, 25e9, 27e9, 0, 27e9, ATTN_FLOAT32},
                                       {"avx2", 54e9, 53e9, 55e9, 0, 55e9, ATTN_FLOAT32},
                                       {"avx512", 105e9, 102e9, 107e9, 0, 107e9, ATTN_FLOAT32}};
  static const machine_rate reads[] = {{"read L1", 310e9, 300e9, 315e9, 32 << 10, 316e9, ATTN_ABSENT},
                                       {"read memory", 11e9, 9e9, 12e9, 512 << 20, 12e9, ATTN_ABSENT}};
  memset(machine, 0, sizeof *machine);
  snprintf(machine->cpu, sizeof machine->cpu, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz");
  snprintf(machine->compiler, sizeof machine->compiler, "gcc 12.2.0");
  snprintf(machine->flags, sizeof machine->flags, "-O3 -g");
  snprintf(machine->host, sizeof machine->host, "host");
  snprintf(machine->kernel, sizeof machine->kernel, "Linux 6.1.0");
  machine->optimised = true;
  machine->cores = 2;
  machine->mhz = 2700;
  machine->l1_bytes = 48 << 10;
  machine->l2_bytes = 2 << 20;
  machine->l3_bytes = (size_t)105 << 20;
  machine->memory_bytes = (size_t)8 << 30;
  machine->load_average = 0.25;
  machine->threads = 1;
  memcpy(machine->peaks, peaks, sizeof peaks);
  machine->peak_count = 3;
  machine->sgemm = (machine_rate){"sgemm", 79e9, 77e9, 80e9, 0, 80e9, ATTN_FLOAT32};
  memcpy(machine->reads, reads, sizeof reads);
  machine->read_count = 2;
}

static double scaled(double base, int length, int exponent) { return base * pow(length / 1024.0, exponent); }

static result *next_result(report *report) {
  result *grown = realloc(report->results, (report->result_count + 1) * sizeof *grown);
  if (!grown) abort();
  report->results = grown;
  return memset(&grown[report->result_count++], 0, sizeof *grown);
}

/* An odd hash of the point, -1 to 1: noise that is the same in every run. */
static double wobble(int family, int length, size_t repetition) {
  double x = sin(12.9898 * family + 78.233 * log2(length) + 37.719 * (double)repetition) * 43758.5453;
  return 2 * (x - floor(x)) - 1;
}

static void fill_times(result *result, const sample_variant *variant, int length) {
  double seconds = variant->fixed + scaled(variant->factor, length, variant->exponent);
  result->repetitions = SAMPLE_REPETITIONS;
  result->seconds = calloc(SAMPLE_REPETITIONS, sizeof *result->seconds);
  result->cpu_seconds = calloc(SAMPLE_REPETITIONS, sizeof *result->cpu_seconds);
  if (!result->seconds || !result->cpu_seconds) abort();
  for (size_t i = 0; i < SAMPLE_REPETITIONS; i++) {
    /* 0 in the middle, two below it, two above: the median is exact. */
    double side = i == 2 ? 0 : i < 2 ? -1 : 1;
    result->seconds[i] = seconds * (1 + 0.005 * side * (1 + wobble(result->family_index, length, i)));
    result->cpu_seconds[i] = 0.999 * result->seconds[i];
  }
  result->seconds_median = statistics_median_interval(result->seconds, SAMPLE_REPETITIONS, 0.95);
  result->iterations = (int64_t)ceil(0.2 / seconds);
  result->flops_per_second = result->flops / result->seconds_median.estimate;
  result->peak_fraction = result->flops_per_second / 105e9;
}

static void add_point(report *report, const sample_variant *variant, int family, int instance, int length) {
  result *result = next_result(report);
  char sizes[128], why[256];
  snprintf(sizes, sizeof sizes, "%s/B:1/H:8/Hkv:%d/D:64", variant->band, variant->kv_heads);
  snprintf(result->variant, sizeof result->variant, "%s", variant->name);
  snprintf(result->family, sizeof result->family, "%s/%s", variant->name, sizes);
  snprintf(result->name, sizeof result->name, "%s/%s/T:%d", variant->name, sizes, length);
  if (!workload_parse(strchr(result->name, '/') + 1, &result->workload, why, sizeof why)) abort();
  result->family_index = family;
  result->instance_index = instance;
  result->threads = 1;
  result->flops = workload_flops(&result->workload);
  fill_times(result, variant, length);
  result->workspace_bytes = (size_t)scaled((double)variant->workspace, length, variant->workspace_exponent);
  result->workspace_touched_bytes = result->workspace_bytes;
  result->stack_bytes = 2112;
  result->static_bytes = 320;
  result->memory_bytes = result->workspace_touched_bytes + result->stack_bytes + result->static_bytes;
  result->error_bound_fraction =
      variant->error * pow(length / 1024.0, -0.25) * (1 + 0.2 * wobble(family, length, 9));
  result->rows_total = INT64_C(8) * length;
  result->rows_checked = length < 1024 ? result->rows_total : 4096;
  result->rows_projected = result->rows_total;
}

static void add_growth(report *report, const sample_variant *variant, int family) {
  growth *growth = &report->growths[report->growth_count++];
  snprintf(growth->family, sizeof growth->family, "%s/%s/B:1/H:8/Hkv:%d/D:64", variant->name, variant->band,
           variant->kv_heads);
  snprintf(growth->variant, sizeof growth->variant, "%s", variant->name);
  growth->family_index = family;
  growth->has_time = growth->has_workspace = true;
  growth->time = (interval){variant->exponent - 0.01, variant->exponent - 0.03, variant->exponent + 0.01};
  growth->workspace =
      (interval){variant->workspace_exponent, variant->workspace_exponent, variant->workspace_exponent};
  growth->time_declared = variant->exponent;
  growth->workspace_declared = variant->workspace_exponent;
  growth->time_coefficient = variant->factor / pow(1024, variant->exponent);
  growth->time_rms = 0.01;
  growth->time_law = (power_law){variant->fixed, growth->time_coefficient * pow(variant->longest / 3.0, 0.01),
                                 growth->time.estimate - 0.001};
  growth->from_length = variant->longest / 32.0;
  growth->to_length = variant->longest;
}

void sample_report(report *report, const sample_variant *variants, size_t count, int shortest) {
  memset(report, 0, sizeof *report);
  sample_machine(&report->machine);
  snprintf(report->started, sizeof report->started, "2026-11-21T03:30:17+00:00");
  snprintf(report->executable, sizeof report->executable, "build/attnbench");
  snprintf(report->isa, sizeof report->isa, "avx512");
  report->seed = 1;
  report->peak_memory_bytes = 300 << 20;
  report->growths = calloc(count, sizeof *report->growths);
  if (!report->growths) abort();
  for (size_t v = 0; v < count; v++) {
    int instance = 0;
    for (int length = shortest; length <= variants[v].longest; length *= 2)
      add_point(report, &variants[v], (int)v, instance++, length);
    if (instance >= 3) add_growth(report, &variants[v], (int)v);
  }
}

void sample_unmeasured(report *report, const char *name, int family_index, result_state state,
                       const char *reason) {
  result *result = next_result(report);
  char why[256];
  snprintf(result->name, sizeof result->name, "%s", name);
  const char *slash = strchr(name, '/'), *length = strstr(name, "/T:");
  if (!slash || !length) abort();
  snprintf(result->family, sizeof result->family, "%.*s", (int)(length - name), name);
  snprintf(result->variant, sizeof result->variant, "%.*s", (int)(slash - name), name);
  if (!workload_parse(slash + 1, &result->workload, why, sizeof why)) abort();
  result->family_index = family_index;
  result->instance_index = 99;
  result->threads = 1;
  result->state = state;
  result->error_bound_fraction = NAN;
  snprintf(result->reason, sizeof result->reason, "%s", reason);
}

void sample_whole_report(report *report) {
  sample_report(report, sample_variants, SAMPLE_VARIANTS, 128);
  sample_unmeasured(report, "naive/full/B:1/H:8/Hkv:8/D:64/T:8192", 0, RESULT_SKIPPED,
                    "needs \"6 GiB\", has\n\t5, caf\xc3\xa9");
}

const report_options sample_all_rows = {.repetitions = true, .aggregates = true};

char *sample_text(const report *report, const report_options *options, const char *format) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  if (strcmp(format, "json") == 0)
    assert_true(report_json(report, options, file));
  else if (strcmp(format, "csv") == 0)
    report_csv(report, options, file);
  else
    report_console(report, options, file);
  fclose(file);
  return text;
}

const result *sample_result(const report *report, const char *name) {
  for (size_t i = 0; i < report->result_count; i++)
    if (strcmp(report->results[i].name, name) == 0) return &report->results[i];
  fail_msg("%s is missing", name);
  return NULL;
}
