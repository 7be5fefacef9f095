/* From where attention takes longer than the projections around it: reads what scripts/layer.sh has measured, prints
 * a line for each length and the crossover, and draws crossover.png and crossover.svg beside it.
 * Usage: crossover FOLDER PLOTS, the latter being scripts/plots */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/crossover.h"
#include "report/captions.h"
#include "report/drawing.h"
#include "report/format.h"

/* A layer without keys that anybody sees is its projections: all rows are projected, and there is nothing between. */
enum { PROJECTIONS, ATTENTION, WHOLE, CURVES };
static const char *const names[CURVES] = {"projections", "attention", "the layer"};

enum { CAPTIONS = 3, LETTERS = 132, TEXT = 512 };

typedef struct study {
  report report;
  int family[CURVES];
  const result *first; /* of the layer */
  contest contest;     /* attention against projections */
  double counted;      /* T at which as many operations are counted of both */
} study;

static int curve_of(const result *result) {
  if (result->workload.function == ATTN_SOFTMAX) return ATTENTION;
  return result->workload.has_lengths && result->workload.lengths[0] == 0 ? PROJECTIONS : WHOLE;
}

static const result *find(const study *of, int curve, int64_t length) {
  for (size_t n = 0; n < of->report.result_count; n++) {
    const result *result = &of->report.results[n];
    if (curve_of(result) == curve && result->workload.key_length == length && result_is_measured(result))
      return result;
  }
  return NULL;
}

/* The next length at which all are known; 0: there is none. */
static int64_t next_length(const study *of, int64_t after) {
  int64_t next = 0;
  for (size_t n = 0; n < of->report.result_count; n++) {
    const int64_t length = of->report.results[n].workload.key_length;
    if (length > after && (next == 0 || length < next) && find(of, PROJECTIONS, length) &&
        find(of, ATTENTION, length) && find(of, WHOLE, length))
      next = length;
  }
  return next;
}

static double flops(const study *of, int curve, int64_t length) { return find(of, curve, length)->flops; }

/* Operations of attention grow by T beside those of the projections, or by less at the edge of a band. */
static double find_counted(const study *of) {
  int64_t before = next_length(of, 0);
  for (int64_t T = next_length(of, before); T; before = T, T = next_length(of, T)) {
    const double from = log(flops(of, PROJECTIONS, before) / flops(of, ATTENTION, before)),
                 to = log(flops(of, PROJECTIONS, T) / flops(of, ATTENTION, T));
    if (from >= 0 && to <= 0)
      return (double)before * exp(from / (from - to) * log((double)T / (double)before));
  }
  return NAN;
}

static bool study_read(study *of, const char *path, char *why, size_t why_size) {
  if (!report_read(&of->report, path, why, why_size)) return false;
  for (size_t n = 0; n < of->report.result_count; n++)
    of->family[curve_of(&of->report.results[n])] = of->report.results[n].family_index;
  const int64_t first = next_length(of, 0);
  snprintf(why, why_size, "results.json has no layer with its parts at two lengths");
  if (!first || !next_length(of, first)) return false;
  of->first = find(of, WHOLE, first);
  of->contest = contest_judge(&of->report, of->family[ATTENTION], of->family[PROJECTIONS]);
  of->counted = find_counted(of);
  return true;
}

/* ---- in words ---- */

static void write_shape(const study *of, char text[TEXT]) {
  const workload *w = &of->first->workload;
  snprintf(text, TEXT, "d_model %lld, %lld heads of %lld, float32", (long long)w->model_dim,
           (long long)w->query_heads, (long long)w->head_dim);
}

static void write_verdict(const study *of, char text[TEXT]) {
  char at[3][FORMAT_BYTES];
  size_t used = 0;
  if (isfinite(of->counted))
    used = (size_t)snprintf(text, TEXT, "As many operations at T = %.0f. ", of->counted);
  if (of->contest.crossover_count != 1) {
    snprintf(text + used, TEXT - used, "As much time at %s measured T.",
             of->contest.crossover_count ? "more than one" : "no");
    return;
  }
  const crossover *one = &of->contest.crossovers[0];
  const double numbers[] = {one->smooth.estimate, one->smooth.low, one->smooth.high};
  for (int n = 0; n < 3; n++) format_number(at[n], numbers[n], 3);
  snprintf(text + used, TEXT - used, "As much time at T = %s [%s, %s], surely between %lld and %lld.", at[0],
           at[1], at[2], (long long)one->after, (long long)one->before);
}

static void print(const study *of) {
  char text[TEXT];
  write_shape(of, text);
  printf("%s, %s, %d thread%s\n", text, of->report.machine.cpu, of->report.machine.threads,
         of->report.machine.threads == 1 ? "" : "s");
  printf("%6s %13s %13s %13s  %-26s %s\n", "T", names[PROJECTIONS], names[ATTENTION], names[WHOLE],
         "attention / projections", "of operations");
  for (int64_t T = next_length(of, 0); T; T = next_length(of, T)) {
    char ratio[FORMAT_RATIO_BYTES];
    format_ratio(ratio, paired_lag(find(of, ATTENTION, T), find(of, PROJECTIONS, T), 0.95));
    printf("%6lld", (long long)T);
    for (int curve = 0; curve < CURVES; curve++)
      printf(" %10.3f ms", 1e3 * find(of, curve, T)->seconds_median.estimate);
    printf("  %-26s %.3f\n", ratio, flops(of, ATTENTION, T) / flops(of, PROJECTIONS, T));
  }
  write_verdict(of, text);
  puts(text);
}

/* ---- as a picture ---- */

static void put_settings(const void *what, const plot_style *style, FILE *out) {
  const study *of = what;
  char shape[TEXT], verdict[TEXT], machine[2 * TEXT];
  (void)style;
  write_shape(of, shape);
  write_verdict(of, verdict);
  snprintf(machine, sizeof machine, "%s; %s, %d thread%s", shape, of->report.machine.cpu,
           of->report.machine.threads, of->report.machine.threads == 1 ? "" : "s");
  const char *const lines[CAPTIONS] = {machine, verdict,
                                       "Bars: 95% intervals of the medians. Band: the interval of the "
                                       "measured crossover. Dashes: the counted one."};
  captions_put_lines(out, LETTERS, lines, CAPTIONS);
  caption_string(out, "title", "A layer: its projections and its attention against sequence length");
  const crossover *one = of->contest.crossover_count == 1 ? &of->contest.crossovers[0] : NULL;
  fprintf(out, "counted = %.17g\ncrossed_low = %.17g\ncrossed_high = %.17g\n",
          isfinite(of->counted) ? of->counted : 0, one ? one->smooth.low : 0, one ? one->smooth.high : 0);
  fprintf(out, "array name[%d]\n", CURVES);
  for (int curve = 0; curve < CURVES; curve++) {
    char name[32];
    snprintf(name, sizeof name, "name[%d]", curve + 1);
    caption_string(out, name, names[curve]);
  }
}

/* A block for each curve: T, operations, seconds with the ends of their interval. */
static void put_data(const void *what, FILE *out) {
  const study *of = what;
  for (int curve = 0; curve < CURVES; curve++) {
    for (int64_t T = next_length(of, 0); T; T = next_length(of, T)) {
      const result *at = find(of, curve, T);
      fprintf(out, "%lld %.17g %.17g %.17g %.17g\n", (long long)T, at->flops, at->seconds_median.estimate,
              at->seconds_median.low, at->seconds_median.high);
    }
    fputs("\n\n", out);
  }
}

static bool draw(const study *of, const char *folder, const char *scripts, char *why, size_t why_size) {
  const plot_style style = {.scripts = scripts};
  const drawing_picture picture = {"crossover", "layer", of, put_settings, put_data};
  drawing drawing;
  if (!drawing_begin(&drawing, &style, folder, why, why_size)) return false;
  const bool good = drawing_make(&drawing, &picture);
  drawing_end(&drawing);
  return good;
}

int main(int count, char **arguments) {
  char why[TEXT], path[4096];
  study *of = calloc(1, sizeof *of);
  if (count != 3 || !of) {
    fprintf(stderr,
            "usage: crossover FOLDER PLOTS: where scripts/layer.sh has measured, and scripts/plots\n");
    free(of);
    return 2;
  }
  snprintf(path, sizeof path, "%s/results.json", arguments[1]);
  const bool known = study_read(of, path, why, sizeof why);
  if (known) print(of);
  const bool good = known && draw(of, arguments[1], arguments[2], why, sizeof why);
  if (!good) fprintf(stderr, "crossover: %s\n", why);
  report_destroy(&of->report);
  free(of);
  return good ? 0 : 2;
}
