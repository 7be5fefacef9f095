/* A report as a table for people: Google Benchmark's columns, then the rates with their shares of the machine's best, memory
 * and error. The table is walked twice, once to measure the columns and once to print them, so that it is as
 * narrow as its contents allow. On a terminal that is narrower than that, names stand on lines of their own. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "format.h"

enum { NAME, TIME, CPU, ITERATIONS, SPREAD, FLOPS, PEAK, BYTES, READ, MEMORY, ERROR, COLUMNS };
static const char *const heads[COLUMNS] = {"Benchmark", "Time", "CPU",  "Iterations", "+-",   "GFLOP/s",
                                           "Peak",      "GB/s", "Read", "Memory",     "Error"};

typedef enum color { GREEN = 32, BLUE = 34, CYAN = 36, RED = 31, YELLOW = 33 } color;

typedef struct table {
  const report_options *options;
  FILE *out; /* NULL while the columns are measured */
  int widths[COLUMNS];
  bool names_apart;     /* too wide: each name stands on a line of its own */
  bool hidden[COLUMNS]; /* too wide even so */
} table;

enum { INDENT = 2 };

typedef struct row {
  color color;
  char name[WORKLOAD_NAME_BYTES + 16];
  char cells[COLUMNS][FORMAT_BYTES]; /* [0] is unused */
  const char *reason;                /* stands in place of the cells */
} row;

static void paint(const table *table, color color, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void paint(const table *table, color color, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (table->options->color) fprintf(table->out, "\033[%dm", (int)color);
  vfprintf(table->out, format, arguments);
  if (table->options->color) fputs("\033[m", table->out);
  va_end(arguments);
}

static void widen(int *width, const char *text) {
  int length = (int)strlen(text);
  if (length > *width) *width = length;
}

static int width_of_cells(const table *table) {
  int width = 0;
  for (int i = 1; i < COLUMNS; i++) width += table->hidden[i] ? 0 : 1 + table->widths[i];
  return width;
}

/* What fits the least is left out, from what matters least on. */
static void fit(table *table) {
  static const int order[] = {ITERATIONS, CPU, MEMORY};
  const int most = table->options->width;
  table->names_apart = most > 0 && table->widths[NAME] + width_of_cells(table) > most;
  for (size_t n = 0; n < sizeof order / sizeof *order; n++)
    if (table->names_apart && INDENT - 1 + width_of_cells(table) > most) table->hidden[order[n]] = true;
}

static void give(table *table, const row *row) {
  if (!table->out) {
    widen(&table->widths[0], row->name);
    for (int i = 1; i < COLUMNS; i++) widen(&table->widths[i], row->cells[i]);
    return;
  }
  if (table->names_apart)
    paint(table, row->color, "%s\n%*s", row->name, INDENT - 1, "");
  else
    paint(table, row->color, "%-*s", table->widths[NAME], row->name);
  if (row->reason) {
    paint(table, row->color == RED ? RED : YELLOW, " %s: %s", row->color == RED ? "FAILED" : "SKIPPED",
          row->reason);
  } else {
    int last = COLUMNS - 1;
    while (last > 0 && row->cells[last][0] == 0) last--;
    for (int i = 1; i <= last; i++)
      if (!table->hidden[i]) paint(table, i < 3 ? YELLOW : CYAN, " %*s", table->widths[i], row->cells[i]);
  }
  fputc('\n', table->out);
}

static void give_rate(char cell[FORMAT_BYTES], double rate, double spread) {
  format_number(cell, rate * 1e-9, format_digits(rate, spread * rate));
}

/* "79%", and a star behind the share that limits. */
static void give_share(char cell[FORMAT_BYTES], double share, double spread, bool limits) {
  if (!isfinite(share)) return;
  const int digits = format_digits(share, spread * share);
  format_number(cell, 100 * share, digits < 3 ? digits : 3);
  const size_t used = strlen(cell);
  snprintf(cell + used, FORMAT_BYTES - used, "%%%s", limits ? "*" : " ");
}

/* spread: half the width of the median's interval, as a share of the median; it holds for the rates too. */
static void give_time(table *table, const result *result, const char *suffix, double seconds,
                      double cpu_seconds, double spread, bool has_rate) {
  row row = {.color = GREEN};
  snprintf(row.name, sizeof row.name, "%s%s", result->name, suffix);
  format_time(row.cells[1], seconds, format_digits(seconds, spread * seconds), table->options->time_unit);
  format_time(row.cells[2], cpu_seconds, format_digits(cpu_seconds, spread * cpu_seconds),
              table->options->time_unit);
  snprintf(row.cells[3], FORMAT_BYTES, "%lld",
           (long long)(*suffix ? (int64_t)result->repetitions : result->iterations));
  if (has_rate) {
    if (table->options->brief || strcmp(suffix, "_median") == 0) format_spread(row.cells[4], spread);
    double rate = result->flops / seconds;
    const double pace = rate / result->flops_per_second; /* 1 at the median */
    const result_limit limit = result_limit_of(result);
    give_rate(row.cells[FLOPS], rate, spread);
    give_share(row.cells[PEAK], result->peak_fraction * pace, spread, limit == LIMIT_MULTIPLY_ADDS);
    if (result->bytes > 0) {
      give_rate(row.cells[BYTES], result->bytes / seconds, spread);
      give_share(row.cells[READ], result->read_fraction * pace, spread, limit == LIMIT_READS);
    }
    format_bytes(row.cells[MEMORY], (double)result->memory_bytes);
    format_share(row.cells[ERROR], result->error_bound_fraction);
  }
  give(table, &row);
}

static void give_variation(table *table, const result *result) {
  size_t count = result->repetitions;
  row row = {.color = GREEN};
  double of_time = statistics_stddev(result->seconds, count) / statistics_mean(result->seconds, count);
  double of_cpu = statistics_stddev(result->cpu_seconds, count) / statistics_mean(result->cpu_seconds, count);
  snprintf(row.name, sizeof row.name, "%s_cv", result->name);
  snprintf(row.cells[1], FORMAT_BYTES, "%.1f %%", 100 * of_time);
  snprintf(row.cells[2], FORMAT_BYTES, "%.1f %%", 100 * of_cpu);
  snprintf(row.cells[3], FORMAT_BYTES, "%zu", count);
  give(table, &row);
}

static void give_aggregates(table *table, const result *result, double spread) {
  size_t count = result->repetitions;
  give_time(table, result, "_mean", statistics_mean(result->seconds, count),
            statistics_mean(result->cpu_seconds, count), spread, true);
  give_time(table, result, "_median", result->seconds_median.estimate,
            statistics_median(result->cpu_seconds, count), spread, true);
  give_time(table, result, "_stddev", statistics_stddev(result->seconds, count),
            statistics_stddev(result->cpu_seconds, count), 0.1, false);
  give_variation(table, result);
}

static void give_result(table *table, const result *result) {
  if (result->state != RESULT_MEASURED || result->repetitions == 0) {
    row row = {.color = result->state == RESULT_FAILED ? RED : GREEN, .reason = result->reason};
    snprintf(row.name, sizeof row.name, "%s", result->name);
    give(table, &row);
    return;
  }
  double spread = result->repetitions > 1
                      ? format_half_width(result->seconds_median) / result->seconds_median.estimate
                      : INFINITY;
  if (table->options->brief) {
    give_time(table, result, "", result->seconds_median.estimate,
              statistics_median(result->cpu_seconds, result->repetitions), spread, true);
    return;
  }
  if (table->options->repetitions || result->repetitions == 1)
    for (size_t i = 0; i < result->repetitions; i++)
      give_time(table, result, "", result->seconds[i], result->cpu_seconds[i], spread, true);
  if (table->options->aggregates && result->repetitions > 1) give_aggregates(table, result, spread);
}

static void give_all(table *table, const report *report) {
  for (int family = 0; family < report_family_count(report); family++)
    for (size_t i = 0; i < report->result_count; i++)
      if (report->results[i].family_index == family) give_result(table, &report->results[i]);
}

static void print_rule(const table *table) {
  const int width = (table->names_apart ? INDENT - 1 : table->widths[NAME]) + width_of_cells(table);
  for (int i = 0; i < width; i++) fputc('-', table->out);
  fputc('\n', table->out);
}

/* What a star stands for, where there is one. */
static void print_legend(const report *report, FILE *out) {
  bool any = false;
  for (size_t i = 0; i < report->result_count && !any; i++)
    any =
        report->results[i].state == RESULT_MEASURED && result_limit_of(&report->results[i]) != LIMIT_UNKNOWN;
  if (any)
    fprintf(out, "Peak: share of the multiply-adds' peak. Read: share of the rate at which the\n"
                 "cache or memory that holds inputs and outputs is read, if each byte is moved\n"
                 "once. *: the larger of the two, which limits.\n");
}

static void print_results(table *table, const report *report, FILE *out) {
  table->out = NULL;
  give_all(table, report);
  table->out = out;
  for (int i = 0; i < COLUMNS; i++) {
    table->hidden[i] =
        i >= BYTES && i <= READ && table->widths[i] == 0; /* a report of before knows of no bytes */
    widen(&table->widths[i], heads[i]);
  }
  fit(table);
  print_rule(table);
  if (table->names_apart)
    fprintf(out, "%s\n%*s", heads[NAME], INDENT - 1, "");
  else
    fprintf(out, "%-*s", table->widths[NAME], heads[NAME]);
  for (int i = 1; i < COLUMNS; i++)
    if (!table->hidden[i]) fprintf(out, " %*s", table->widths[i], heads[i]);
  fputc('\n', out);
  print_rule(table);
  give_all(table, report);
  print_legend(report, out);
}

/* ---- context ---- */

/* "105 GFLOP/s (102 to 107)": the digits that the spread supports. */
static void print_rate(const char *what, const machine_rate *rate, const char *unit, FILE *out) {
  char median[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
  interval spread = {rate->median, rate->low, rate->high};
  int digits = format_digits(rate->median, format_half_width(spread));
  if (digits > 3) digits = 3;
  if (digits < 2) digits = 2;
  format_number(median, rate->median * 1e-9, digits);
  format_number(low, rate->low * 1e-9, digits);
  format_number(high, rate->high * 1e-9, digits);
  fprintf(out, "  %s%s %s %s (%s to %s)\n", what, rate->name, median, unit, low, high);
}

static void print_caches(const machine *machine, FILE *out) {
  const size_t sizes[] = {machine->l1_bytes, machine->l2_bytes, machine->l3_bytes};
  bool any = false;
  for (int level = 0; level < 3; level++) {
    if (sizes[level] == 0) continue;
    char text[FORMAT_BYTES];
    format_bytes(text, (double)sizes[level]);
    fprintf(out, "%s L%d %s", any ? "," : "  caches", level + 1, text);
    any = true;
  }
  if (any) fputc('\n', out);
}

static void print_device(const attn_device_facts *is, const attn_device_state *state, FILE *out) {
  char memory[FORMAT_BYTES];
  if (!is->name[0]) return;
  fprintf(out, "  on %s, %d multiprocessor%s", is->name, is->multiprocessors,
          is->multiprocessors == 1 ? "" : "s");
  if (is->capability) fprintf(out, ", sm_%d", is->capability);
  format_bytes(memory, (double)is->memory_bytes);
  if (is->memory_bytes) fprintf(out, ", %s", memory);
  if (isfinite(state->clock_mhz))
    fprintf(out, ", %.0f of %.0f MHz at the least, %.0f degrees", state->clock_mhz, state->highest_clock_mhz,
            state->celsius);
  fputc('\n', out);
}

/* In these words; nothing where it is not known. */
static void print_fact(const report *report, const char *format, const char *key, FILE *out) {
  const char *text = environment_fact(&report->environment, key);
  const char *at = strstr(format, "%s");
  if (text && *text) fprintf(out, "%.*s%s%s", (int)(at - format), format, text, at + strlen("%s"));
}

/* Each run that was merged, and what of its host shares are of. */
static void print_runs(const report *report, FILE *out) {
  for (size_t n = 0; n < report->run_count; n++) {
    const merged_run *run = &report->runs[n];
    const machine *machine = &run->machine;
    const machine_rate *peak = machine_peak(machine, run->isa, ATTN_FLOAT32);
    fprintf(out, "  %s, shard %d/%d: %s, %d thread%s, instruction set %s\n", run->host, run->shard,
            run->shards, machine->cpu, machine->threads, machine->threads == 1 ? "" : "s", run->isa);
    if (peak) print_rate("  multiply-add ", peak, "GFLOP/s", out);
  }
}

static void print_machine(const report *report, FILE *out) {
  const machine *machine = &report->machine;
  fprintf(out, "%s, %d x %.0f MHz, %d thread%s, instruction set %s\n", machine->cpu, machine->cores,
          machine->mhz, machine->threads, machine->threads == 1 ? "" : "s", report->isa);
  print_fact(report, "processors %s, ", "affinity", out);
  print_fact(report, "pinned: %s\n", "pinned", out);
  print_caches(machine, out);
  print_device(&machine->device, &machine->state, out);
  for (size_t i = 0; i < machine->peak_count; i++)
    print_rate("multiply-add ", &machine->peaks[i], "GFLOP/s", out);
  if (machine->sgemm.median > 0) print_rate("", &machine->sgemm, "GFLOP/s", out);
  for (size_t i = 0; i < machine->read_count; i++) print_rate("", &machine->reads[i], "GB/s", out);
  if (isfinite(machine->load_average)) fprintf(out, "  load average %.2f\n", machine->load_average);
}

static void print_context(const report *report, FILE *out) {
  fprintf(out, "%s, %s, attnbench %s", report->started, report->executable, ATTNBENCH_VERSION);
  print_fact(report, " (%s)", "attnbench_commit", out);
  fputc('\n', out);
  if (report->run_count > 0)
    print_runs(report, out);
  else
    print_machine(report, out);
  for (size_t n = 0; n < report->context_count; n++) {
    const size_t key = strcspn(report->context[n], "=");
    fprintf(out, "%.*s: %s\n", (int)key, report->context[n], report->context[n] + key + 1);
  }
  report_warnings(report, "***WARNING*** ", out);
  report_few_repetitions(report, "***WARNING*** ", out);
  if (report->cold) fprintf(out, "Each iteration had inputs that lay in no cache.\n");
  if (report->interrupted) fprintf(out, "Interrupted: what follows is what was measured until then.\n");
}

/* ---- growth ---- */

enum { VERDICT_WIDTH = sizeof "grows slower than declared" - 1 };

static color verdict_color(const char *verdict) {
  return strcmp(verdict, "as declared") == 0 ? GREEN : strcmp(verdict, "inconclusive") == 0 ? YELLOW : RED;
}

static void print_exponent(const table *table, const char *unknown, interval exponent, double declared) {
  char text[FORMAT_BYTES], wanted[FORMAT_BYTES] = "-";
  const bool is_declared = declared != GROWTH_UNDECLARED;
  const char *verdict = unknown || !is_declared ? "" : format_verdict(exponent, declared);
  if (unknown)
    snprintf(text, sizeof text, "%s", unknown);
  else
    format_exponent(text, exponent);
  if (is_declared) snprintf(wanted, sizeof wanted, "%g", declared);
  fprintf(table->out, "  %-19s %-3s ", text, wanted);
  paint(table, verdict_color(verdict), "%-*s", VERDICT_WIDTH, verdict);
}

/* Instructions are those of a build for another instruction set, so that they stand beside the times and no
 * more: where time is inconclusive, they are the second opinion. */
static void print_instructions(const table *table, const growth *growth) {
  char exponent[FORMAT_BYTES] = "-";
  if (growth->has_instructions) format_exponent(exponent, growth->instructions);
  fprintf(table->out, "  %s", exponent);
}

static void print_advice(const table *table, const report *report) {
  char advice[ADVICE_BYTES];
  for (size_t n = 0; n < report->growth_count; n++) {
    format_advice(advice, &report->growths[n]);
    if (advice[0]) fprintf(table->out, "%s: %s\n", report->growths[n].variant, advice);
  }
  if (report->instructions_note[0])
    fprintf(table->out, "Instructions were not counted: %s\n", report->instructions_note);
}

static void print_growths_narrow(const table *table, const report *report) {
  for (int family = 0; family < report_family_count(report); family++) {
    const growth *growth = report_growth(report, family);
    if (!growth) continue;
    paint(table, BLUE, "%s", growth->family);
    fprintf(table->out, "  of %s\n  time         ", sweep_axis_name(growth->swept));
    print_exponent(table, format_no_time(growth), growth->time, growth->time_declared);
    fprintf(table->out, "\n  workspace    ");
    print_exponent(table, growth->has_workspace ? NULL : "too few points", growth->workspace,
                   growth->workspace_declared);
    fprintf(table->out, "\n  instructions ");
    print_instructions(table, growth);
    fputc('\n', table->out);
  }
}

static void print_growths_wide(const table *table, const report *report) {
  int width = (int)strlen("Family");
  for (size_t i = 0; i < report->growth_count; i++) widen(&width, report->growths[i].family);
  char instructions[64] = "Instructions";
  if (report->instructions_isa[0])
    snprintf(instructions, sizeof instructions, "Instructions (%s)", report->instructions_isa);
  fprintf(table->out, "%-*s  %-2s  %-*s  %-*s  %s\n", width, "Family", "of", 24 + VERDICT_WIDTH, "Time",
          24 + VERDICT_WIDTH, "Workspace", instructions);
  for (int family = 0; family < report_family_count(report); family++) {
    const growth *growth = report_growth(report, family);
    if (!growth) continue;
    paint(table, BLUE, "%-*s", width, growth->family);
    fprintf(table->out, "  %-2s", sweep_axis_name(growth->swept));
    print_exponent(table, format_no_time(growth), growth->time, growth->time_declared);
    print_exponent(table, growth->has_workspace ? NULL : "too few points", growth->workspace,
                   growth->workspace_declared);
    print_instructions(table, growth);
    fputc('\n', table->out);
  }
}

static void print_growths(const table *table, const report *report) {
  if (report->growth_count == 0) return;
  fprintf(table->out, "\nGrowth: exponent of the swept length, its 95%% interval, and the one declared\n");
  if (table->names_apart)
    print_growths_narrow(table, report);
  else
    print_growths_wide(table, report);
  print_advice(table, report);
}

/* What "verified" means, with the words of the point of which least was checked. */
static void print_checked(const report *report, FILE *out) {
  const result *least = NULL;
  char checked[FORMAT_CHECKED_BYTES];
  for (size_t i = 0; i < report->result_count; i++) {
    const result *result = &report->results[i];
    if (result->rows_total == 0) continue;
    const bool less = least && (result->rows_projected > 0) < (least->rows_projected > 0);
    const bool same = least && (result->rows_projected > 0) == (least->rows_projected > 0);
    if (!least || less ||
        (same && (double)result->rows_checked / (double)result->rows_total <
                     (double)least->rows_checked / (double)least->rows_total))
      least = result;
  }
  if (!least) return;
  format_checked(checked, least);
  fprintf(out, "\nChecked: at least %s (%s)\n", checked, least->name);
  if (least->rows_projected > 0)
    fprintf(out,
            "and while it was timed all rows that way, and by the reference the one that changed most\n");
}

void report_console(const report *report, const report_options *options, FILE *out) {
  table table = {.options = options};
  print_context(report, out);
  print_results(&table, report, out);
  print_growths(&table, report);
  print_checked(report, out);
}
