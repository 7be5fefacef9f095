/* What every form of a report says alike: the one rule that holds a measured growth against the declared one,
 * and the parts of a result's memory. */
#ifndef ATTN_HARNESS_REPORT_FORMAT_H
#define ATTN_HARNESS_REPORT_FORMAT_H

#include "base/format.h"
#include "report.h"

/* "as declared", "grows slower than declared", "grows faster than declared" or "inconclusive". */
const char *format_verdict(interval exponent, double declared);

/* Why there is no exponent of time; NULL: there is one. */
const char *format_no_time(const growth *growth);

/* A line for each thing that spoils the times of a report; none where nothing does. */
void report_warnings(const report *report, const char *prefix, FILE *out);

/* A line where some point had so few repetitions that their range is no interval of 95 %. */
void report_few_repetitions(const report *report, const char *prefix, FILE *out);

/* What would decide an exponent of time that is inconclusive or not known; "" when nothing has to. */
enum { ADVICE_BYTES = 160 };
void format_advice(char text[ADVICE_BYTES], const growth *growth);

/* What of a result was held to the truth, in words. */
enum { FORMAT_CHECKED_BYTES = 192 };
void format_checked(char text[FORMAT_CHECKED_BYTES], const result *result);

/* "multiply-adds", or the level whose reads limit it: "read L2"; "" where that is not known. */
const char *format_limit(const result *result);

/* The ratio whose logarithm this is: "1.36 [1.30, 1.42]"; "1.4 [unknown]" of single repetitions. */
enum { FORMAT_RATIO_BYTES = 3 * FORMAT_BYTES };
void format_ratio(char text[FORMAT_RATIO_BYTES], interval log_ratio);

/* The parts of a result's memory, under the names that they have in JSON and CSV. */
enum { FORMAT_MEMORY_PARTS = 7 };
typedef struct format_memory_part {
  const char *key;
  size_t offset; /* of a size_t in a result */
} format_memory_part;

extern const format_memory_part format_memory_parts[FORMAT_MEMORY_PARTS];
size_t format_memory(const result *result, int part);

#endif
