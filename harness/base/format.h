/* How numbers are said: no more digits than their interval supports, and units by their size. */
#ifndef ATTN_HARNESS_FORMAT_H
#define ATTN_HARNESS_FORMAT_H

#include "statistics.h"

enum { FORMAT_BYTES = 48 };

/* Of a table: as wide as the longest name of our variants. */
enum { VARIANT_COLUMN = 21 };

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

#endif
