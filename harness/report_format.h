/* How every form of a report says its numbers: no more digits than their interval supports, units that
 * suit the size, and the one rule that holds a measured growth against the declared one. */
#ifndef ATTN_HARNESS_REPORT_FORMAT_H
#define ATTN_HARNESS_REPORT_FORMAT_H

#include "report.h"

enum { FORMAT_BYTES = 48 };

/* Half the width of an interval; infinity where there is none to speak of. */
double format_half_width(interval interval);

/* Significant digits that a value known to +-half_width supports: 1 to 4; 3 where that is unknown. */
int format_digits(double value, double half_width);

/* Never in exponent notation; "-" for what is not finite. */
void format_number(char text[FORMAT_BYTES], double value, int digits);

/* unit: "ns", "us", "ms", "s", or NULL for what suits the value. */
void format_time(char text[FORMAT_BYTES], double seconds, int digits, const char *unit);
void format_bytes(char text[FORMAT_BYTES], double bytes);         /* 1.5 MiB */
void format_share(char text[FORMAT_BYTES], double share);         /* 2 digits: 0.031, 1.2e-05 */
void format_exponent(char text[FORMAT_BYTES], interval interval); /* 1.98 [1.96, 2.00] */

void format_spread(char text[FORMAT_BYTES], double share); /* 1.2%; ? where there is no interval */

/* Seconds in a time unit; 0 for a word that is none. */
double format_unit_seconds(const char *unit);

/* "as declared", "not as declared" or "inconclusive". */
const char *format_verdict(interval exponent, int declared);

/* A line for each thing that spoils the times of a report; none where nothing does. */
void report_warnings(const report *report, const char *prefix, FILE *out);

/* What would decide an exponent of time that is inconclusive or not known; "" when nothing has to. */
enum { ADVICE_BYTES = 160 };
void format_advice(char text[ADVICE_BYTES], const growth *growth);

/* The T of a result: keys, so that decoding (Tq = 1 against a long cache) has one too. */
int64_t result_length(const result *result);

/* The parts of a result's memory, under the names that they have in JSON and CSV. */
enum { FORMAT_MEMORY_PARTS = 7 };
typedef struct format_memory_part {
  const char *key;
  size_t offset; /* of a size_t in a result */
} format_memory_part;

extern const format_memory_part format_memory_parts[FORMAT_MEMORY_PARTS];
size_t format_memory(const result *result, int part);

/* The growth of a family, or NULL. */
const growth *report_growth(const report *report, int family_index);

/* One more than the largest family index. */
int report_family_count(const report *report);

/* The peak that shares are taken of, as in machine_peak; NULL when none was measured. */
const machine_rate *report_peak(const report *report);

#endif
