/* How every form of a report says its numbers; see report_format.h. */
#include "report_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double format_half_width(interval interval) {
  double half = 0.5 * (interval.high - interval.low);
  return isfinite(half) && half >= 0 ? half : INFINITY;
}

int format_digits(double value, double half_width) {
  if (!isfinite(half_width) || !isfinite(value) || value == 0) return 3;
  if (half_width == 0) return 4;
  double digits = floor(log10(fabs(value))) - floor(log10(half_width)) + 1; /* 105 +- 2 ends in the 5 */
  return digits < 1 ? 1 : digits > 4 ? 4 : (int)digits;
}

void format_number(char text[FORMAT_BYTES], double value, int digits) {
  if (!isfinite(value)) {
    snprintf(text, FORMAT_BYTES, "-");
    return;
  }
  /* Rounded first: 9.996 in three digits is 10.0, not 10.00. */
  char rounded[FORMAT_BYTES];
  snprintf(rounded, sizeof rounded, "%.*e", digits - 1, value);
  int exponent = (int)strtol(strchr(rounded, 'e') + 1, NULL, 10);
  int decimals = digits - 1 - exponent;
  snprintf(text, FORMAT_BYTES, "%.*f", value == 0 || decimals < 0 ? 0 : decimals, strtod(rounded, NULL));
}

static const struct time_unit {
  const char *name;
  double seconds;
} time_units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
enum { TIME_UNITS = sizeof time_units / sizeof time_units[0] };

double format_unit_seconds(const char *unit) {
  for (size_t i = 0; i < TIME_UNITS; i++)
    if (strcmp(unit, time_units[i].name) == 0) return time_units[i].seconds;
  return 0;
}

void format_time(char text[FORMAT_BYTES], double seconds, int digits, const char *unit) {
  size_t best = 0;
  while (best + 1 < TIME_UNITS && fabs(seconds) >= time_units[best + 1].seconds) best++;
  if (unit)
    for (size_t i = 0; i < TIME_UNITS; i++)
      if (strcmp(unit, time_units[i].name) == 0) best = i;
  char number[FORMAT_BYTES];
  format_number(number, seconds / time_units[best].seconds, digits);
  snprintf(text, FORMAT_BYTES, "%.40s %s", number, time_units[best].name);
}

void format_bytes(char text[FORMAT_BYTES], double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit < 4 && bytes >= 1024) {
    bytes /= 1024;
    unit++;
  }
  if (!isfinite(bytes))
    snprintf(text, FORMAT_BYTES, "-");
  else
    snprintf(text, FORMAT_BYTES, "%.*f %s", unit == 0 || bytes >= 100 || bytes == floor(bytes) ? 0 : 1, bytes,
             units[unit]);
}

void format_share(char text[FORMAT_BYTES], double share) {
  if (isnan(share))
    snprintf(text, FORMAT_BYTES, "-");
  else
    snprintf(text, FORMAT_BYTES, "%.2g", share);
}

void format_spread(char text[FORMAT_BYTES], double share) {
  if (!isfinite(share)) {
    snprintf(text, FORMAT_BYTES, "?");
    return;
  }
  char number[FORMAT_BYTES];
  format_number(number, fmax(100 * share, 0.01), share < 0.1 ? 2 : 3);
  snprintf(text, FORMAT_BYTES, "%.40s%%", number);
}

void format_exponent(char text[FORMAT_BYTES], interval interval) {
  double half = format_half_width(interval);
  if (!isfinite(half)) {
    snprintf(text, FORMAT_BYTES, "%.1f [unknown]", interval.estimate);
    return;
  }
  int decimals = half >= 1 ? 0 : half >= 0.1 ? 1 : 2;
  /* Adding zero turns the -0.00 of a rounded small negative number into 0.00. */
  double unit = pow(10, decimals);
  snprintf(text, FORMAT_BYTES, "%.*f [%.*f, %.*f]", decimals, round(interval.estimate * unit) / unit + 0.0,
           decimals, round(interval.low * unit) / unit + 0.0, decimals,
           round(interval.high * unit) / unit + 0.0);
}

/* A quarter on either side: local slopes reach the asymptotic one only slowly, and a logarithm adds 0.1
 * to 0.2 at the lengths that are measured, which no timing tells apart from none. */
static const double tolerance = 0.25;

const char *format_verdict(interval exponent, int declared) {
  if (exponent.low >= declared - tolerance && exponent.high <= declared + tolerance) return "as declared";
  if (exponent.high < declared - tolerance || exponent.low > declared + tolerance) return "not as declared";
  return "inconclusive";
}

/* More passes narrow what varies between them, as their square root; what bends all of them alike only leaves
 * with longer lengths. */
void format_advice(char text[ADVICE_BYTES], const growth *growth) {
  text[0] = '\0';
  if (!growth->has_time) {
    snprintf(text, ADVICE_BYTES, "longer lengths would decide: at most of these, overhead hides the work");
    return;
  }
  if (strcmp(format_verdict(growth->time, growth->time_declared), "inconclusive") != 0) return;
  const double half = format_half_width(growth->time);
  const double room = fabs(tolerance - fabs(growth->time.estimate - growth->time_declared));
  const double passes = ceil((double)growth->blocks * pow(half / room, 2));
  if (growth->time_varying > 0.7 * half && passes > 0 && passes < 1000)
    snprintf(text, ADVICE_BYTES, "a quieter machine or --benchmark_repetitions=%.0f would decide", passes);
  else if (growth->time_varying > 0.7 * half)
    snprintf(text, ADVICE_BYTES, "a quieter machine or longer lengths would decide");
  else
    snprintf(text, ADVICE_BYTES, "longer lengths would decide: the curve still bends at these");
}

const format_memory_part format_memory_parts[FORMAT_MEMORY_PARTS] = {
    {"workspace_bytes", offsetof(result, workspace_bytes)},
    {"workspace_touched_bytes", offsetof(result, workspace_touched_bytes)},
    {"stack_bytes", offsetof(result, stack_bytes)},
    {"static_bytes", offsetof(result, static_bytes)},
    {"hidden_bytes", offsetof(result, hidden_bytes)},
    {"heap_calls", offsetof(result, heap_calls)},
    {"memory_bytes", offsetof(result, memory_bytes)},
};

size_t format_memory(const result *result, int part) {
  size_t value;
  memcpy(&value, (const char *)result + format_memory_parts[part].offset, sizeof value);
  return value;
}

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
