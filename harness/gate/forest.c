/* The forest plot: one row for each benchmark, its change of time with its interval, the slowest on top. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/replace.h"
#include "gate.h"

enum { PATH_BYTES = 4096 };

/* Row, change, low, high, colour, shape, name. */
static bool write_rows(const gate_times *times, const char *path) {
  char beside[PATH_BYTES + 8];
  snprintf(beside, sizeof beside, "%s.new", path);
  const gate_benchmark *sorted[GATE_MAX_BENCHMARKS];
  const size_t count = gate_sorted(times, sorted);
  FILE *file = fopen(beside, "w");
  for (size_t n = 0; file && n < count; n++) {
    const gate_benchmark *b = sorted[n];
    const int colour = b->verdict == GATE_SLOWER   ? 2
                       : b->verdict == GATE_FASTER ? 4
                       : gate_is_control(b)        ? 8
                                                   : 3;
    fprintf(file, "%zu %.6g %.6g %.6g %d %d \"%s\"\n", count - n, gate_percent(b->change.estimate),
            gate_percent(b->change.low), gate_percent(b->change.high), colour, b->confirmation_count ? 7 : 6,
            b->name);
  }
  if (file && fclose(file) == 0 && replace_rename(beside, path) == 0) return true;
  unlink(beside);
  return false;
}

/* Quotes would end gnuplot's string; the names that come here have none, a git reference may. */
static void put_text(FILE *file, const char *name, const char *text) {
  fprintf(file, "%s = '", name);
  for (; *text; text++) {
    if (*text == '\'') fputc('\'', file);
    fputc(*text, file);
  }
  fputs("'\n", file);
}

static bool write_settings(const gate_times *times, const gate_options *options, const char *format,
                           const char *path, const char *rows, const char *output) {
  FILE *file = fopen(path, "w");
  char note[256];
  if (!file) return false;
  snprintf(note, sizeof note,
           "Filled: %zu processes over %zu links. Open: screened in %zu. 95%% intervals; red: slower, green: "
           "faster, "
           "grey: controls, whose code is the base's.",
           times->confirmations, times->links, times->screens);
  put_text(file, "format", format);
  put_text(file, "output", output);
  put_text(file, "rows", rows);
  put_text(file, "note", note);
  put_text(file, "base", options->base_name);
  fprintf(file, "count = %zu\nlimit = %g\nsmallest = %g\n", times->set.count, gate_axis_limit(times),
          100 * options->smallest);
  return fclose(file) == 0;
}

static bool draw(const gate_options *options, const char *settings, const char *beside, const char *path,
                 char *why, size_t why_size) {
  char common[PATH_BYTES], script[PATH_BYTES], *said;
  snprintf(common, sizeof common, "%s/common.gp", options->scripts);
  snprintf(script, sizeof script, "%s/forest.gp", options->scripts);
  char *argv[] = {"gnuplot", "-d", common, (char *)settings, script, NULL}; /* no settings of the user's */
  const int status = child_run(argv, NULL, &said, why, why_size);
  if (status > 0) snprintf(why, why_size, "gnuplot ended with status %d: %s", status, child_last_line(said));
  free(said);
  if (status == 0 && replace_rename(beside, path) == 0) return true;
  if (status == 0) snprintf(why, why_size, "%s cannot be written", path);
  unlink(beside);
  return false;
}

bool gate_forest_draw(const gate_times *times, const gate_options *options, char *why, size_t why_size) {
  static const char *const formats[] = {"png", "svg"};
  char rows[PATH_BYTES], settings[PATH_BYTES], beside[PATH_BYTES], path[PATH_BYTES];
  snprintf(rows, sizeof rows, "%s/forest.dat", options->out);
  snprintf(settings, sizeof settings, "%s/forest.gp", options->out);
  bool good = write_rows(times, rows);
  if (!good) snprintf(why, why_size, "%s cannot be written", rows);
  for (size_t n = 0; good && n < sizeof formats / sizeof *formats; n++) {
    snprintf(path, sizeof path, "%s/forest.%s", options->out, formats[n]);
    snprintf(beside, sizeof beside, "%s/forest.new.%s", options->out, formats[n]);
    good = write_settings(times, options, formats[n], settings, rows, beside) &&
           draw(options, settings, beside, path, why, why_size);
  }
  unlink(settings);
  return good;
}
