/* See format.h. */
#include "format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double format_half_width(interval interval) {
  double half = 0.5 * (interval.high - interval.low);
  return isfinite(half) && half >= 0 ? half : INFINITY;
}

int format_digits(double value, double half_width) {
  if (!isfinite(half_width) || half_width < 0 || !isfinite(value) || value == 0) return 3;
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
  if (half == 0) {
    snprintf(text, FORMAT_BYTES, "%g exactly", interval.estimate);
    return;
  }
  int decimals = half >= 1 ? 0 : half >= 0.1 ? 1 : 2;
  /* Adding zero turns the -0.00 of a rounded small negative number into 0.00. */
  double unit = pow(10, decimals);
  snprintf(text, FORMAT_BYTES, "%.*f [%.*f, %.*f]", decimals, round(interval.estimate * unit) / unit + 0.0,
           decimals, round(interval.low * unit) / unit + 0.0, decimals,
           round(interval.high * unit) / unit + 0.0);
}
