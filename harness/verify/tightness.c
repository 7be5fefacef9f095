/* See tightness.h. */
#include "tightness.h"

#include <stdio.h>
#include <string.h>

#include "base/format.h"
#include "base/statistics.h"
#include "run/supervisor.h"

static bool grow(double **shares, size_t count, size_t room) {
  double *larger = supervisor_keep(room * sizeof *larger);
  if (larger && count > 0) memcpy(larger, *shares, count * sizeof *larger);
  if (larger) *shares = larger;
  return larger != NULL;
}

bool tightness_add(tightness *to, workload_fill fill, const verdict *verdict) {
  const int kind = fill == FILL_UNIFORM || fill == FILL_NORMAL ? 0 : 1;
  if (to->of[kind].count == to->of[kind].room) {
    const size_t room = 2 * to->of[kind].room + 256;
    for (int bound = 0; bound < TIGHTNESS_BOUNDS; bound++)
      if (!grow(&to->of[kind].shares[bound], to->of[kind].count, room)) return false;
    to->of[kind].room = room;
  }
  const double shares[TIGHTNESS_BOUNDS] = {verdict->bound_share, verdict->probabilistic_share};
  for (int bound = 0; bound < TIGHTNESS_BOUNDS; bound++)
    to->of[kind].shares[bound][to->of[kind].count] = shares[bound];
  to->of[kind].count++;
  return true;
}

void tightness_print_head(FILE *out) {
  fprintf(out, "%-*s %-40s %s\n", VARIANT_COLUMN, "", "uniform and normal inputs", "inputs that hurt");
  fprintf(out, "%-*s", VARIANT_COLUMN, "variant");
  for (int kind = 0; kind < TIGHTNESS_INPUTS; kind++)
    fprintf(out, " %6s  %-15s  %-15s", "cases", "worst", "probable");
  fputc('\n', out);
}

static double largest(const double *shares, size_t count) {
  double found = 0;
  for (size_t n = 0; n < count; n++)
    if (shares[n] > found) found = shares[n];
  return found;
}

void tightness_print(const tightness *of, const char *variant, FILE *out) {
  fprintf(out, "%-*s", VARIANT_COLUMN, variant);
  for (int kind = 0; kind < TIGHTNESS_INPUTS; kind++) {
    const size_t count = of->of[kind].count;
    fprintf(out, " %6zu", count);
    for (int bound = 0; bound < TIGHTNESS_BOUNDS; bound++) {
      const double *shares = of->of[kind].shares[bound];
      if (count > 0)
        fprintf(out, "  %-7.2g %-7.2g", statistics_median(shares, count), largest(shares, count));
      else
        fprintf(out, "  %-15s", "-");
    }
  }
  fputc('\n', out);
}
