/* A report in Google Benchmark's JSON schema (its json_reporter.cc), so that the tools that read that
 * schema work unchanged: compare.py, plotters, dashboards. What only attnbench knows stands beside it under keys of
 * its own; report_read.c rebuilds the report from them. Numbers that are not finite have no form in
 * JSON and are left out. */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/types.h"
#include "problem/workload_columns.h"
#include "base/version.h"
#include "format.h"
#include "json.h"

static json_t *text_value(const char *text) {
  json_t *value = json_string(text);
  if (value) return value;
  /* Not UTF-8: keep what is ASCII. */
  char *plain = strdup(text);
  if (!plain) return NULL;
  for (char *at = plain; *at; at++)
    if ((unsigned char)*at >= 0x80) *at = '?';
  value = json_string(plain);
  free(plain);
  return value;
}

static bool put_text(json_t *object, const char *key, const char *text) {
  return json_object_set_new(object, key, text_value(text)) == 0;
}

static bool put_integer(json_t *object, const char *key, int64_t value) {
  return json_object_set_new(object, key, json_integer(value)) == 0;
}

static bool put_bool(json_t *object, const char *key, bool value) {
  return json_object_set_new(object, key, json_boolean(value)) == 0;
}

static bool put_number(json_t *object, const char *key, double value) {
  return !isfinite(value) || json_object_set_new(object, key, json_real(value)) == 0;
}

/* ---- context ---- */

static bool put_cache(json_t *caches, const char *type, int level, size_t bytes) {
  if (bytes == 0) return true;
  json_t *cache = json_object();
  bool good = put_text(cache, "type", type) && put_integer(cache, "level", level) &&
              put_integer(cache, "size", (int64_t)bytes) &&
              put_integer(cache, "num_sharing", 0); /* 0 is Google Benchmark's word for unknown */
  return json_array_append_new(caches, cache) == 0 && good;
}

static json_t *rate_value(const machine_rate *rate) {
  json_t *value = json_object();
  if (put_text(value, "name", rate->name) && put_number(value, "median", rate->median) &&
      put_number(value, "low", rate->low) && put_number(value, "high", rate->high) &&
      put_number(value, "fastest", rate->fastest) &&
      put_integer(value, "working_set_bytes", (int64_t)rate->working_set_bytes) &&
      (rate->type == ATTN_ABSENT || put_text(value, "type", element_type_of(rate->type)->name)))
    return value;
  json_decref(value);
  return NULL;
}

static bool put_rates(json_t *context, const char *key, const machine_rate *rates, size_t count) {
  json_t *array = json_array();
  bool good = true;
  for (size_t i = 0; i < count; i++) good = good && json_array_append_new(array, rate_value(&rates[i])) == 0;
  return json_object_set_new(context, key, array) == 0 && good;
}

static bool put_machine(json_t *context, const machine *machine) {
  json_t *caches = json_array();
  bool good = put_cache(caches, "Data", 1, machine->l1_bytes) &&
              put_cache(caches, "Unified", 2, machine->l2_bytes) &&
              put_cache(caches, "Unified", 3, machine->l3_bytes);
  if (json_object_set_new(context, "caches", caches) != 0 || !good) return false;
  json_t *load = json_array();
  good =
      !isfinite(machine->load_average) || json_array_append_new(load, json_real(machine->load_average)) == 0;
  return json_object_set_new(context, "load_avg", load) == 0 && good;
}

/* As context, since Google Benchmark has no place for it. */
static bool put_disturbance(json_t *context, const disturbance *found) {
  return !(found->seconds > 0) ||
         (put_number(context, "watched_seconds", found->seconds) &&
          put_integer(context, "involuntary_switches", found->involuntary_switches) &&
          put_number(context, "others_share", found->others_share) &&
          put_number(context, "stolen_share", found->stolen_share) &&
          put_number(context, "clock_step_seconds", found->clock_step_seconds) &&
          put_number(context, "shortest_batch_seconds", found->shortest_batch_seconds));
}

static bool put_pair(json_t *context, const char *pair) {
  const size_t length = strcspn(pair, "=");
  char *key = strndup(pair, length);
  const bool good = key && put_text(context, key, pair + length + (pair[length] == '='));
  free(key);
  return good;
}

static bool put_environment(json_t *context, const environment *environment) {
  bool good = true;
  for (size_t n = 0; n < ENVIRONMENT_FACTS; n++)
    good =
        good && (!environment->facts[n][0] || put_text(context, environment_key(n), environment->facts[n]));
  return good;
}

json_t *report_json_context(const report *report) {
  const machine *machine = &report->machine;
  char seed[24]; /* as text: JSON readers keep 53 bits of a number */
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)report->seed);
  json_t *context = json_object();
  bool good =
      put_text(context, "date", report->started) && put_text(context, "host_name", machine->host) &&
      put_text(context, "executable", report->executable) &&
      put_integer(context, "num_cpus", machine->cores) &&
      put_integer(context, "mhz_per_cpu", (int64_t)llround(machine->mhz)) &&
      put_bool(context, "cpu_scaling_enabled", machine->frequency_scaling) && put_machine(context, machine) &&
      put_text(context, "library_version", "attnbench " ATTNBENCH_VERSION) &&
      put_text(context, "library_build_type", machine->optimised ? "release" : "debug") &&
      put_disturbance(context, &report->disturbance) && put_integer(context, "json_schema_version", 1) &&
      put_integer(context, REPORT_VERSION_KEY, REPORT_VERSION) && put_text(context, "cpu", machine->cpu) &&
      put_text(context, "kernel", machine->kernel) && put_text(context, "compiler", machine->compiler) &&
      put_text(context, "flags", machine->flags) && put_environment(context, &report->environment) &&
      put_integer(context, "memory_bytes", (int64_t)machine->memory_bytes) &&
      put_integer(context, "threads", machine->threads) && put_text(context, "isa", report->isa) &&
      put_text(context, "instructions_isa", report->instructions_isa) && put_text(context, "seed", seed) &&
      put_bool(context, "cold", report->cold) && put_bool(context, "interrupted", report->interrupted) &&
      put_integer(context, "peak_memory_bytes", (int64_t)report->peak_memory_bytes) &&
      put_rates(context, "peaks", machine->peaks, machine->peak_count) &&
      put_rates(context, "sgemm", &machine->sgemm, machine->sgemm.median > 0) &&
      put_rates(context, "reads", machine->reads, machine->read_count) && device_json_put(context, machine) &&
      sweep_json_put(context, report);
  for (size_t n = 0; n < report->context_count; n++) good = good && put_pair(context, report->context[n]);
  if (good) return context;
  json_decref(context);
  return NULL;
}

bool report_json_has_context(const char *key) {
  /* What is written only where it was measured counts too. */
  static planned_point point;
  static char nothing[] = "{}";
  merged_run run = {.context = nothing};
  report everything = {.disturbance.seconds = 1,
                       .machine.device.name = "device",
                       .plan = {.points = &point, .point_count = 1},
                       .runs = &run,
                       .run_count = 1};
  environment_describe(&everything.environment);
  json_t *context = report_json_context(&everything);
  const json_t *of_run = json_array_get(json_object_get(context, "runs"), 0);
  const bool has = json_object_get(context, key) || json_object_get(of_run, key);
  json_decref(context);
  return has;
}

bool report_json_takes_key(const char *key) {
  json_t *text = json_string(key);
  json_decref(text);
  return text != NULL;
}

/* ---- benchmarks ---- */

typedef struct row_kind {
  const char *suffix; /* NULL: one repetition */
  const char *unit;
} row_kind;

/* The parts of the problem, so that no reader has to take the name apart. */
static bool put_columns(json_t *row, const result *result) {
  char text[WORKLOAD_NAME_BYTES];
  bool good = put_text(row, "variant", result->variant);
  for (int n = 0; n < WORKLOAD_COLUMNS; n++) {
    const workload_column *column = &workload_columns[n];
    column->write(&result->workload, text);
    good = good && (column->is_number ? put_integer(row, column->key, strtoll(text, NULL, 10))
                                      : put_text(row, column->key, text));
  }
  good = good && (!result->host[0] || put_text(row, "host", result->host));
  return good && put_text(row, "isa", result->isa) && put_text(row, "swept", sweep_axis_name(result->swept));
}

static json_t *row_value(const result *result, const row_kind *kind, size_t repetition) {
  json_t *row = json_object();
  char name[WORKLOAD_NAME_BYTES + 16];
  snprintf(name, sizeof name, "%s%s%s", result->name, kind->suffix ? "_" : "",
           kind->suffix ? kind->suffix : "");
  bool good = put_text(row, "name", name) && put_integer(row, "family_index", result->family_index) &&
              put_integer(row, "per_family_instance_index", result->instance_index) &&
              put_text(row, "run_name", result->name) &&
              put_text(row, "run_type", kind->suffix ? "aggregate" : "iteration") &&
              put_integer(row, "repetitions", result->repetitions ? (int64_t)result->repetitions : 1) &&
              (kind->suffix || put_integer(row, "repetition_index", (int64_t)repetition)) &&
              put_integer(row, "threads", result->threads) &&
              (!kind->suffix || (put_text(row, "aggregate_name", kind->suffix) &&
                                 put_text(row, "aggregate_unit", kind->unit))) &&
              put_columns(row, result);
  if (good) return row;
  json_decref(row);
  return NULL;
}

static bool put_times(json_t *row, int64_t iterations, double real, double cpu, const char *unit) {
  return put_integer(row, "iterations", iterations) && put_number(row, "real_time", real) &&
         put_number(row, "cpu_time", cpu) && put_text(row, "time_unit", unit);
}

/* What each second moved, if each byte is moved once; of a spread too, since it goes with the rate. */
static bool put_bytes(json_t *row, const result *result, double rate, bool is_ratio) {
  if (!(result->bytes > 0) || !(result->flops > 0)) return true;
  const double share = result->read_fraction * (rate / result->flops_per_second);
  return put_number(row, "bytes_per_second", is_ratio ? rate : rate * result->bytes / result->flops) &&
         put_number(row, "read_fraction", is_ratio ? rate : share);
}

static bool put_limit(json_t *row, const result *result) {
  return put_number(row, "bytes", result->bytes) && put_text(row, "read_level", result->read_level) &&
         put_text(row, "limited_by", format_limit(result));
}

static bool put_checks(json_t *row, const result *result) {
  char checked[FORMAT_CHECKED_BYTES];
  format_checked(checked, result);
  return put_integer(row, "rows_checked", result->rows_checked) &&
         put_integer(row, "rows_projected", result->rows_projected) &&
         put_integer(row, "rows_total", result->rows_total) && put_text(row, "checked", checked) &&
         put_text(row, "family", result->family);
}

/* Appends the row in any case, so that it is freed with the array. */
static bool append(json_t *rows, json_t *row, bool good) {
  return json_array_append_new(rows, row) == 0 && good;
}

/* Nothing of it varies between repetitions, so a spread has zeros. */
static bool put_memory(json_t *row, const result *result, bool is_spread) {
  bool good = true;
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    good = good && put_integer(row, format_memory_parts[part].key,
                               is_spread ? 0 : (int64_t)format_memory(result, part));
  return good;
}

static bool append_unmeasured(json_t *rows, const result *result, const char *unit) {
  static const row_kind kind = {NULL, NULL};
  bool failed = result->state == RESULT_FAILED;
  json_t *row = row_value(result, &kind, 0);
  bool good =
      row && put_bool(row, failed ? "error_occurred" : "skipped", true) &&
      put_text(row, failed ? "error_message" : "skip_message", result->reason) &&
      put_times(row, 0, 0, 0, unit) &&
      (!result->memory_only || (put_bool(row, "memory_only", true) && put_memory(row, result, false))) &&
      (!failed || put_number(row, "error_bound_fraction", result->error_bound_fraction)) &&
      put_checks(row, result);
  return append(rows, row, good);
}

static bool append_repetition(json_t *rows, const result *result, size_t repetition, const char *unit) {
  static const row_kind kind = {NULL, NULL};
  double seconds = result->seconds[repetition], scale = format_unit_seconds(unit);
  double rate = result->flops / seconds;
  json_t *row = row_value(result, &kind, repetition);
  bool good =
      row &&
      put_times(row, result->iterations, seconds / scale, result->cpu_seconds[repetition] / scale, unit) &&
      put_number(row, "flops_per_second", rate) &&
      put_number(row, "peak_fraction", result->peak_fraction * (rate / result->flops_per_second)) &&
      put_memory(row, result, false) &&
      put_number(row, "error_bound_fraction", result->error_bound_fraction) &&
      put_bytes(row, result, rate, false) && put_limit(row, result) &&
      put_number(row, "flops", result->flops) && put_checks(row, result);
  return append(rows, row, good);
}

static double coefficient_of_variation(const double *values, size_t count) {
  return statistics_stddev(values, count) / statistics_mean(values, count);
}

static const struct aggregate {
  row_kind kind;
  double (*of)(const double *values, size_t count);
} aggregates[] = {{{"mean", "time"}, statistics_mean},
                  {{"median", "time"}, statistics_median},
                  {{"stddev", "time"}, statistics_stddev},
                  {{"cv", "percentage"}, coefficient_of_variation}};

/* Every counter is aggregated over the repetitions, as Google Benchmark does; those that are the same in
 * each repetition have no spread. */
static bool append_aggregate(json_t *rows, const result *result, const struct aggregate *aggregate,
                             const double *rates, const char *unit) {
  size_t count = result->repetitions;
  bool is_ratio = strcmp(aggregate->kind.unit, "percentage") == 0;
  bool is_spread = is_ratio || aggregate->of == statistics_stddev;
  double scale = is_ratio ? 1 : format_unit_seconds(unit);
  double rate = aggregate->of(rates, count);
  double share = is_ratio ? rate : result->peak_fraction * (rate / result->flops_per_second);
  json_t *row = row_value(result, &aggregate->kind, 0);
  bool good = row &&
              put_times(row, (int64_t)count, aggregate->of(result->seconds, count) / scale,
                        aggregate->of(result->cpu_seconds, count) / scale, unit) &&
              put_number(row, "flops_per_second", rate) && put_number(row, "peak_fraction", share) &&
              put_bytes(row, result, rate, is_ratio) && put_memory(row, result, is_spread) &&
              put_number(row, "error_bound_fraction", is_spread ? 0 : result->error_bound_fraction);
  if (aggregate->of == statistics_median)
    good = good && put_number(row, "real_time_low", result->seconds_median.low / scale) &&
           put_number(row, "real_time_high", result->seconds_median.high / scale) &&
           put_number(row, "flops", result->flops) && put_limit(row, result) && put_checks(row, result);
  return append(rows, row, good);
}

static bool append_aggregates(json_t *rows, const result *result, const char *unit) {
  double *rates = calloc(result->repetitions, sizeof *rates);
  if (!rates) return false;
  for (size_t i = 0; i < result->repetitions; i++) rates[i] = result->flops / result->seconds[i];
  bool good = true;
  for (size_t i = 0; i < sizeof aggregates / sizeof aggregates[0]; i++)
    good = good && append_aggregate(rows, result, &aggregates[i], rates, unit);
  free(rates);
  return good;
}

/* Without the aggregates that only more repetitions have, a single repetition is always given. */
static bool append_result(json_t *rows, const result *result, const report_options *options,
                          const char *unit) {
  if (result->state != RESULT_MEASURED || result->repetitions == 0)
    return append_unmeasured(rows, result, unit);
  bool good = true;
  if (options->repetitions || result->repetitions == 1)
    for (size_t i = 0; i < result->repetitions; i++) good = good && append_repetition(rows, result, i, unit);
  if (options->aggregates && result->repetitions > 1) good = good && append_aggregates(rows, result, unit);
  return good;
}

/* ---- growth ---- */

/* Least squares of cpu = coefficient T^exponent over the range of the fit, as Google Benchmark's complexity.cc. */
static double cpu_coefficient(const report *report, const growth *growth) {
  double product = 0, square = 0;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    double length = (double)result_length(result);
    if (result->family_index != growth->family_index || result->state != RESULT_MEASURED) continue;
    if (result->repetitions == 0 || length < growth->from_length || length > growth->to_length) continue;
    double power = pow(length, growth->time_declared);
    product += power * statistics_median(result->cpu_seconds, result->repetitions);
    square += power * power;
  }
  return product / square;
}

static bool put_exponent(json_t *row, const char *what, interval exponent) {
  char low[40], high[40], estimate[40];
  snprintf(estimate, sizeof estimate, "%s_exponent", what);
  snprintf(low, sizeof low, "%s_exponent_low", what);
  snprintf(high, sizeof high, "%s_exponent_high", what);
  return put_number(row, estimate, exponent.estimate) && put_number(row, low, exponent.low) &&
         put_number(row, high, exponent.high);
}

static json_t *growth_row(const growth *growth, const result *first, const char *suffix, const char *unit) {
  json_t *row = json_object();
  char name[WORKLOAD_NAME_BYTES + 16];
  snprintf(name, sizeof name, "%s_%s", growth->family, suffix);
  bool good = put_text(row, "name", name) && put_integer(row, "family_index", growth->family_index) &&
              put_integer(row, "per_family_instance_index", 0) && put_text(row, "run_name", growth->family) &&
              put_text(row, "run_type", "aggregate") &&
              put_integer(row, "repetitions", (int64_t)first->repetitions) &&
              put_integer(row, "threads", first->threads) && put_text(row, "aggregate_name", suffix) &&
              put_text(row, "aggregate_unit", unit);
  if (good) return row;
  json_decref(row);
  return NULL;
}

static bool append_growth(json_t *rows, const report *report, const growth *growth, const result *first,
                          const char *unit) {
  static const char *const classes[] = {"(1)", "N", "N^2", "N^3"};
  if (!growth->has_time && !growth->has_workspace && !growth->is_hidden) return true;
  double scale = format_unit_seconds(unit);
  const double declared = growth->time_declared;
  const bool is_class = declared == floor(declared) && declared >= 0 && declared <= 3;
  json_t *row = growth_row(growth, first, "BigO", "time");
  bool good = row && (!growth->has_time ||
                      (put_number(row, "cpu_coefficient", cpu_coefficient(report, growth) / scale) &&
                       put_number(row, "real_coefficient", growth->time_coefficient / scale)));
  good = good && put_text(row, "big_o", is_class ? classes[(int)declared] : "f(N)") &&
         put_text(row, "time_unit", unit) && put_text(row, "swept", sweep_axis_name(growth->swept)) &&
         (is_class ? put_integer(row, "time_declared", (int64_t)declared)
                   : put_number(row, "time_declared", declared)) &&
         (growth->workspace_declared == GROWTH_UNDECLARED ||
          put_integer(row, "workspace_declared", growth->workspace_declared)) &&
         put_number(row, "from_length", growth->from_length) &&
         put_number(row, "to_length", growth->to_length);
  if (growth->has_time)
    good = good && put_exponent(row, "time", growth->time) &&
           put_number(row, "time_constant", growth->time_law.constant / scale) &&
           put_number(row, "time_factor", growth->time_law.coefficient / scale) &&
           put_number(row, "time_power", growth->time_law.exponent);
  if (growth->has_time)
    good = good && put_integer(row, "time_passes", (int64_t)growth->blocks) &&
           put_number(row, "time_exponent_varying", growth->time_varying);
  if (growth->memory_only) good = good && json_object_set_new(row, "memory_only", json_true()) == 0;
  if (growth->is_hidden) good = good && json_object_set_new(row, "time_hidden", json_true()) == 0;
  if (growth->has_instructions) good = good && put_exponent(row, "instructions", growth->instructions);
  if (growth->has_workspace) good = good && put_exponent(row, "workspace", growth->workspace);
  good = append(rows, row, good);
  if (!growth->has_time) return good;
  json_t *rms = growth_row(growth, first, "RMS", "percentage");
  return append(rows, rms, rms && put_number(rms, "rms", growth->time_rms)) && good;
}

static bool append_family(json_t *rows, const report *report, const report_options *options, int family,
                          const char *unit) {
  const result *first = NULL;
  bool good = true;
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    if (result->family_index != family) continue;
    if (!first || first->repetitions == 0) first = result;
    good = good && append_result(rows, result, options, unit);
  }
  const growth *growth = report_growth(report, family);
  return good && (!growth || !first || append_growth(rows, report, growth, first, unit));
}

bool report_json(const report *report, const report_options *options, FILE *out) {
  const char *unit = options->time_unit ? options->time_unit : "ns"; /* one for all, so that files compare */
  json_t *root = json_object(), *rows = json_array();
  bool good = json_object_set_new(root, "context", report_json_context(report)) == 0;
  good = json_object_set_new(root, "benchmarks", rows) == 0 && good;
  for (int family = 0; good && family < report_family_count(report); family++)
    good = append_family(rows, report, options, family, unit);
  good = good && json_dumpf(root, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
  json_decref(root);
  return good;
}
