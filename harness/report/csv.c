/* A report as comma-separated values, tidy: a row for each repetition or aggregate, a column for each thing that is known
 * of it, and the run's context in columns too, so that rows of several runs can be put together. First come the columns of
 * Google Benchmark's csv_reporter.cc. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/workload_columns.h"
#include "format.h"
#include "json.h"

static void print_text(const char *text, FILE *out) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

static void give_text(const char *text, FILE *out) {
  fputc(',', out);
  if (*text) print_text(text, out);
}

/* An empty field where there is no number. */
static void give_number(double value, FILE *out) {
  fputc(',', out);
  if (isfinite(value)) fprintf(out, "%.10g", value);
}

/* One repetition, an aggregate of all, or a point that was not measured. */
typedef struct csv_row {
  const char *aggregate; /* "": none */
  int64_t repetition;    /* -1: of none */
  double iterations, seconds, cpu_seconds, low, high, flops_per_second;
  bool is_spread; /* counters that are the same in each repetition have none */
  bool is_ratio;  /* times are shares, without a unit */
} csv_row;

typedef struct csv_table {
  const char *unit;
  json_t *context;
  FILE *out;
} csv_table;

/* ---- context ---- */

/* What of the context is one value, and no column of the rows. */
static bool is_column(const char *key, const json_t *value) {
  static const char *const taken[] = {"threads", "isa", "seed", "memory_bytes"};
  for (size_t n = 0; n < sizeof taken / sizeof *taken; n++)
    if (strcmp(taken[n], key) == 0) return false;
  return !json_is_object(value) && !json_is_array(value);
}

static void print_context_keys(const csv_table *table) {
  const char *key;
  json_t *value;
  json_object_foreach(table->context, key, value) if (is_column(key, value)) give_text(key, table->out);
}

static void print_context(const csv_table *table) {
  const char *key;
  json_t *value;
  json_object_foreach(table->context, key, value) {
    if (!is_column(key, value)) continue;
    if (json_is_string(value))
      give_text(json_string_value(value), table->out);
    else if (json_is_boolean(value))
      give_text(json_is_true(value) ? "true" : "false", table->out); /* in quotes, unlike error_occurred */
    else
      give_number(json_number_value(value), table->out);
  }
}

/* ---- rows ---- */

static const char *const point_columns[] = {"run_name", "family", "variant"};
static const char *const row_columns[] = {"threads",       "isa",           "aggregate_name", "repetitions",
                                          "repetition",    "real_time_low", "real_time_high", "bytes",
                                          "read_fraction", "read_level",    "limited_by"};

static const char first_columns[] =
    "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,"
    "error_message";
static const char *const rate_columns[] = {"error_bound_fraction", "flops_per_second", "peak_fraction"};

static bool is_among(const char *const *names, size_t count, const char *key) {
  for (size_t n = 0; n < count; n++)
    if (strcmp(names[n], key) == 0) return true;
  return false;
}

bool report_csv_has_column(const char *key) {
  const size_t length = strlen(key);
  for (const char *at = first_columns; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != '\0'))
    if (strcspn(at, ",") == length && strncmp(at, key, length) == 0) return true;
  for (int n = 0; n < WORKLOAD_COLUMNS; n++)
    if (strcmp(workload_columns[n].key, key) == 0) return true;
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    if (strcmp(format_memory_parts[part].key, key) == 0) return true;
  return is_among(rate_columns, sizeof rate_columns / sizeof *rate_columns, key) ||
         is_among(point_columns, sizeof point_columns / sizeof *point_columns, key) ||
         is_among(row_columns, sizeof row_columns / sizeof *row_columns, key);
}

static void print_columns(FILE *out) {
  for (size_t n = 0; n < sizeof point_columns / sizeof *point_columns; n++) give_text(point_columns[n], out);
  for (int n = 0; n < WORKLOAD_COLUMNS; n++) give_text(workload_columns[n].key, out);
  for (size_t n = 0; n < sizeof row_columns / sizeof *row_columns; n++) give_text(row_columns[n], out);
}

static void print_point(const csv_table *table, const result *result, const csv_row *row) {
  char text[WORKLOAD_NAME_BYTES];
  FILE *out = table->out;
  const double scale = row->is_ratio ? 1 : format_unit_seconds(table->unit);
  const bool is_measured = result->repetitions > 0;
  give_text(result->name, out);
  give_text(result->family, out);
  give_text(result->variant, out);
  for (int n = 0; n < WORKLOAD_COLUMNS; n++) {
    workload_columns[n].write(&result->workload, text);
    if (workload_columns[n].is_number)
      fprintf(out, ",%s", text);
    else
      give_text(text, out);
  }
  fprintf(out, ",%d", result->threads);
  give_text(result->isa, out);
  give_text(row->aggregate, out);
  fprintf(out, ",%zu", result->repetitions);
  give_number(row->repetition < 0 ? NAN : (double)row->repetition, out);
  give_number(row->low / scale, out);
  give_number(row->high / scale, out);
  give_number(result->bytes > 0 ? result->bytes : NAN, out);
  give_number(
      row->is_ratio ? NAN : result->read_fraction * (row->flops_per_second / result->flops_per_second), out);
  give_text(result->read_level, out);
  give_text(is_measured ? format_limit(result) : "", out);
  print_context(table);
  fputc('\n', out);
}

/* Bytes go with operations; a coefficient of variation is that of both. */
static double per_flop(const result *result, const csv_row *row) {
  return row->is_ratio ? 1 : result->bytes > 0 ? result->bytes / result->flops : NAN;
}

static void print_row(const csv_table *table, const result *result, const csv_row *row) {
  char name[WORKLOAD_NAME_BYTES + 16];
  FILE *out = table->out;
  snprintf(name, sizeof name, "%s%s%s", result->name, *row->aggregate ? "_" : "", row->aggregate);
  double scale = row->is_ratio ? 1 : format_unit_seconds(table->unit);
  double share = row->is_ratio ? row->flops_per_second
                               : result->peak_fraction * (row->flops_per_second / result->flops_per_second);
  double keep = row->is_spread ? 0 : 1;
  print_text(name, out);
  give_number(row->iterations, out);
  give_number(row->seconds / scale, out);
  give_number(row->cpu_seconds / scale, out);
  fprintf(out, ",%s", row->is_ratio ? "" : table->unit);
  give_number(per_flop(result, row) * row->flops_per_second, out);
  fputs(",,,,", out); /* items per second, label, error, message */
  give_number(keep * result->error_bound_fraction, out);
  give_number(row->flops_per_second, out);
  give_number(share, out);
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    give_number(keep * (double)format_memory(result, part), out);
  print_point(table, result, row);
}

static void print_unmeasured(const csv_table *table, const result *result) {
  const csv_row none = {.aggregate = "", .repetition = -1, .low = NAN, .high = NAN};
  FILE *out = table->out;
  print_text(result->name, out);
  fprintf(out, ",,,,,,,,%s,", result->state == RESULT_FAILED ? "true" : "false");
  print_text(result->reason, out);
  fputs(",,,", out); /* error, rate, share */
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    give_number(result->memory_only ? (double)format_memory(result, part) : NAN, out);
  print_point(table, result, &none);
}

static void print_aggregates(const csv_table *table, const result *result) {
  size_t count = result->repetitions;
  double n = (double)count, mean = statistics_mean(result->seconds, count);
  double cpu_mean = statistics_mean(result->cpu_seconds, count);
  double deviation = statistics_stddev(result->seconds, count);
  double cpu_deviation = statistics_stddev(result->cpu_seconds, count);
  const interval median = result->seconds_median;
  csv_row rows[] = {{"mean", -1, n, mean, cpu_mean, NAN, NAN, result->flops / mean, false, false},
                    {"median", -1, n, median.estimate, statistics_median(result->cpu_seconds, count),
                     median.low, median.high, result->flops / median.estimate, false, false},
                    {"stddev", -1, n, deviation, cpu_deviation, NAN, NAN, NAN, true, false},
                    {"cv", -1, n, deviation / mean, cpu_deviation / cpu_mean, NAN, NAN, NAN, true, true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) print_row(table, result, &rows[i]);
}

static void print_repetitions(const csv_table *table, const result *result) {
  for (size_t i = 0; i < result->repetitions; i++) {
    const double seconds = result->seconds[i];
    const csv_row row = {.aggregate = "",
                         .repetition = (int64_t)i,
                         .iterations = (double)result->iterations,
                         .seconds = seconds,
                         .cpu_seconds = result->cpu_seconds[i],
                         .low = NAN,
                         .high = NAN,
                         .flops_per_second = result->flops / seconds};
    print_row(table, result, &row);
  }
}

static void print_result(const csv_table *table, const result *result, const report_options *options) {
  if (result->state != RESULT_MEASURED || result->repetitions == 0) {
    print_unmeasured(table, result);
    return;
  }
  if (options->repetitions || result->repetitions == 1) print_repetitions(table, result);
  if (options->aggregates && result->repetitions > 1) print_aggregates(table, result);
}

void report_csv(const report *report, const report_options *options, FILE *out) {
  const csv_table table = {options->time_unit ? options->time_unit : "ns", report_json_context(report), out};
  fputs(first_columns, out);
  for (size_t n = 0; n < sizeof rate_columns / sizeof *rate_columns; n++) give_text(rate_columns[n], out);
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++) give_text(format_memory_parts[part].key, out);
  print_columns(out);
  print_context_keys(&table);
  fputc('\n', out);
  for (int family = 0; family < report_family_count(report); family++)
    for (size_t i = 0; i < report->result_count; i++)
      if (report->results[i].family_index == family) print_result(&table, &report->results[i], options);
  json_decref(table.context);
}
