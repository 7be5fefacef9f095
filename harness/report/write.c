/* Reports into files, in any of their formats. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/replace.h"
#include "measure/shard.h"
#include "report.h"

typedef struct written_report {
  const report *report;
  const report_options *options;
  const char *format;
} written_report;

static bool write_report(const void *what, FILE *file) {
  const written_report *of = what;
  if (strcmp(of->format, "json") == 0) return report_json(of->report, of->options, file);
  if (strcmp(of->format, "csv") == 0)
    report_csv(of->report, of->options, file);
  else if (strcmp(of->format, "summary") == 0)
    report_summary(of->report, of->options->place, file);
  else if (strcmp(of->format, "html") == 0)
    report_page(of->report, of->options, file);
  else
    report_console(of->report, of->options, file);
  if (!of->options->whole || !interrupt_asked()) return true;
  errno = EINTR;
  return false;
}

bool report_write(const report *report, const report_options *options, const char *format, const char *path,
                  char *why, size_t why_size) {
  if (strcmp(format, "json") != 0 && strcmp(format, "csv") != 0 && strcmp(format, "console") != 0 &&
      strcmp(format, "summary") != 0 && strcmp(format, "html") != 0) {
    snprintf(why, why_size, "unknown format '%s': json, csv, console, summary or html", format);
    return false;
  }
  return replace_write(path, write_report, &(written_report){report, options, format}, why, why_size);
}

void report_destroy(report *report) {
  for (size_t i = 0; i < report->result_count; i++) result_destroy(&report->results[i]);
  for (size_t i = 0; i < report->run_count; i++) free(report->runs[i].context);
  free(report->runs);
  sweep_plan_destroy(&report->plan);
  free(report->results);
  free(report->growths);
  memset(report, 0, sizeof *report);
}
