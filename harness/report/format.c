/* See format.h. */
#include "format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verify/projection.h"

/* A quarter on either side: local slopes reach the asymptotic one only slowly, and a logarithm adds 0.1
 * to 0.2 at the lengths that are measured, which no timing tells apart from none. */
static const double tolerance = 0.25;

const char *format_verdict(interval exponent, double declared) {
  if (exponent.low >= declared - tolerance && exponent.high <= declared + tolerance) return "as declared";
  if (exponent.high < declared - tolerance) return "grows slower than declared";
  if (exponent.low > declared + tolerance) return "grows faster than declared";
  return "inconclusive";
}

const char *format_no_time(const growth *growth) {
  if (growth->has_time) return NULL;
  if (growth->memory_only) return "not run";
  return growth->is_hidden ? "hidden by overhead" : "too few points";
}

/* More passes narrow what varies between them, as their square root; what bends all of them alike only leaves
 * with longer lengths. */
void format_advice(char text[ADVICE_BYTES], const growth *growth) {
  const char *longer = growth->swept >= SWEPT_BATCH ? "larger sizes" : "longer lengths";
  text[0] = '\0';
  if (growth->is_hidden) {
    snprintf(text, ADVICE_BYTES, "%s would decide: at these, overhead hides the work", longer);
    return;
  }
  if (!growth->has_time || strcmp(format_verdict(growth->time, growth->time_declared), "inconclusive") != 0)
    return;
  const double half = format_half_width(growth->time);
  const double room = fabs(tolerance - fabs(growth->time.estimate - growth->time_declared));
  const double passes = ceil((double)growth->blocks * pow(half / room, 2));
  if (growth->time_varying > 0.5 * half && passes > 0 && passes < 1000)
    snprintf(text, ADVICE_BYTES, "a quieter machine or --benchmark_repetitions=%.0f would decide", passes);
  else if (growth->time_varying > 0.5 * half)
    snprintf(text, ADVICE_BYTES, "a quieter machine or %s would decide", longer);
  else
    snprintf(text, ADVICE_BYTES, "%s would decide: the curve bends at these", longer);
}

void format_checked(char text[FORMAT_CHECKED_BYTES], const result *result) {
  const long long total = (long long)result->rows_total, checked = (long long)result->rows_checked;
  const char *others = checked < total ? "; the others only for being written" : "";
  if (result->rows_projected > 0)
    snprintf(text, FORMAT_CHECKED_BYTES,
             "%lld of %lld rows by the reference; all along %d random directions, and those that deviate "
             "most by the reference too",
             checked, total, PROJECTION_DIRECTIONS);
  else
    snprintf(text, FORMAT_CHECKED_BYTES, "%lld of %lld rows by the reference%s", checked, total, others);
}

const char *format_limit(const result *result) {
  const result_limit limit = result_limit_of(result);
  return limit == LIMIT_UNKNOWN ? "" : limit == LIMIT_READS ? result->read_level : "multiply-adds";
}

void format_ratio(char text[FORMAT_RATIO_BYTES], interval log_ratio) {
  const double ratio = exp(log_ratio.estimate), low = exp(log_ratio.low), high = exp(log_ratio.high);
  char texts[3][FORMAT_BYTES];
  if (!isfinite(high)) { /* of one repetition */
    format_number(texts[0], ratio, 2);
    snprintf(text, FORMAT_RATIO_BYTES, "%s [unknown]", texts[0]);
    return;
  }
  const int digits = format_digits(ratio, (high - low) / 2);
  format_number(texts[0], ratio, digits);
  format_number(texts[1], low, digits);
  format_number(texts[2], high, digits);
  snprintf(text, FORMAT_RATIO_BYTES, "%.40s [%.40s, %.40s]", texts[0], texts[1], texts[2]);
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
