/* A report as comma-separated values: the columns of Google Benchmark's csv_reporter.cc, then our counters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"

static void print_text(const char *text, FILE *out) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

/* An empty field where there is no number. */
static void print_number(double value, FILE *out) {
  fputc(',', out);
  if (isfinite(value)) fprintf(out, "%.10g", value);
}

/* One repetition, or an aggregate of all: which says how. */
typedef struct csv_row {
  const char *suffix;
  double iterations, seconds, cpu_seconds, flops_per_second;
  bool is_spread; /* counters that are the same in each repetition have none */
  bool is_ratio;  /* times are shares, without a unit */
} csv_row;

static void print_row(const result *result, const csv_row *row, const char *unit, FILE *out) {
  char name[WORKLOAD_NAME_BYTES + 16];
  snprintf(name, sizeof name, "%s%s", result->name, row->suffix);
  double scale = row->is_ratio ? 1 : format_unit_seconds(unit);
  double share = row->is_ratio ? row->flops_per_second
                               : result->peak_fraction * (row->flops_per_second / result->flops_per_second);
  double keep = row->is_spread ? 0 : 1;
  print_text(name, out);
  print_number(row->iterations, out);
  print_number(row->seconds / scale, out);
  print_number(row->cpu_seconds / scale, out);
  fprintf(out, ",%s,,,,,", row->is_ratio ? "" : unit); /* bytes and items per second, label, error, message */
  print_number(keep * result->error_bound_fraction, out);
  print_number(row->flops_per_second, out);
  print_number(share, out);
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    print_number(keep * (double)format_memory(result, part), out);
  fputc('\n', out);
}

static void print_unmeasured(const result *result, FILE *out) {
  print_text(result->name, out);
  fprintf(out, ",,,,,,,,%s,", result->state == RESULT_FAILED ? "true" : "false");
  print_text(result->reason, out);
  for (int n = 0; n < 3 + FORMAT_MEMORY_PARTS; n++) fputc(',', out);
  fputc('\n', out);
}

static void print_aggregates(const result *result, const char *unit, FILE *out) {
  size_t count = result->repetitions;
  double n = (double)count, mean = statistics_mean(result->seconds, count);
  double cpu_mean = statistics_mean(result->cpu_seconds, count);
  double deviation = statistics_stddev(result->seconds, count);
  double cpu_deviation = statistics_stddev(result->cpu_seconds, count);
  double median = statistics_median(result->seconds, count);
  csv_row rows[] = {{"_mean", n, mean, cpu_mean, result->flops / mean, false, false},
                    {"_median", n, median, statistics_median(result->cpu_seconds, count),
                     result->flops / median, false, false},
                    {"_stddev", n, deviation, cpu_deviation, NAN, true, false},
                    {"_cv", n, deviation / mean, cpu_deviation / cpu_mean, NAN, true, true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) print_row(result, &rows[i], unit, out);
}

static void print_result(const result *result, const report_options *options, const char *unit, FILE *out) {
  if (result->state != RESULT_MEASURED || result->repetitions == 0) {
    print_unmeasured(result, out);
    return;
  }
  if (options->repetitions || result->repetitions == 1)
    for (size_t i = 0; i < result->repetitions; i++) {
      double seconds = result->seconds[i];
      csv_row row = {
          "",   (double)result->iterations, seconds, result->cpu_seconds[i], result->flops / seconds, false,
          false};
      print_row(result, &row, unit, out);
    }
  if (options->aggregates && result->repetitions > 1) print_aggregates(result, unit, out);
}

void report_csv(const report *report, const report_options *options, FILE *out) {
  const char *unit = options->time_unit ? options->time_unit : "ns";
  fputs("name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,"
        "error_message,\"error_bound_fraction\",\"flops_per_second\",\"peak_fraction\"",
        out);
  for (int part = 0; part < FORMAT_MEMORY_PARTS; part++)
    fprintf(out, ",\"%s\"", format_memory_parts[part].key);
  fputc('\n', out);
  for (int family = 0; family < report_family_count(report); family++)
    for (size_t i = 0; i < report->result_count; i++)
      if (report->results[i].family_index == family) print_result(&report->results[i], options, unit, out);
}
