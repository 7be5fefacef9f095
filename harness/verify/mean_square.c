/* See mean_square.h. */
#include "mean_square.h"

#include <math.h>

/* Right kernels have a root of up to about 1; the model is an upper estimate. */
static const double alarm = 1.3;

/* A mean quotient above the alarm's by so many standard deviations of its own. Of right kernels the quotients are those of
 * chi^2 of one degree or more; with 16 rows or more the chance of that is below 1e-9. */
static const double standard_errors = 6;
enum { LEAST_ROWS = 16 };

/* A single row that is wrong is the bound's to find: it shall not hide by its size what all others have. */
static const double largest_quotient = 16;

void row_square_add(row_square *row, double computed, double reference, double deviation) {
  const double error = computed - reference;
  if (!isfinite(deviation) || !isfinite(error)) return;
  row->found += error * error;
  row->expected += deviation * deviation;
}

void mean_square_add(mean_square *sums, const row_square *row) {
  if (!(row->expected > 0) || !isfinite(row->expected)) return;
  const double quotient = fmin(row->found / row->expected, largest_quotient);
  sums->rows++;
  sums->quotients += quotient;
  sums->squares += quotient * quotient;
}

double mean_square_root(const mean_square *sums) {
  return sums->rows > 0 ? sqrt(sums->quotients / (double)sums->rows) : 0;
}

double mean_square_share(const mean_square *sums) {
  if (sums->rows < LEAST_ROWS) return 0;
  const double rows = (double)sums->rows, mean = sums->quotients / rows;
  const double variance = fmax(0, sums->squares / rows - mean * mean) / (rows - 1);
  return sqrt(mean / (alarm * alarm + standard_errors * sqrt(variance)));
}
