/* Commands that read reports: plots and pages of one, or one made of those of several shards. */
#define _GNU_SOURCE
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/parts.h"
#include "commands.h"
#include "report/merge.h"
#include "report/report.h"

int run_plots(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES];
  report report = {0};
  const char *file = options->words.items[0];
  char *path = strdup(file);
  if (!path) return command_complain("out of memory");
  const char *folder = options->out ? options->out : dirname(path);
  const plot_style style = command_style(options, found);
  bool drawn = report_read(&report, file, why, sizeof why) &&
               (!options->out || folder_make(options->out, why, sizeof why)) &&
               report_plot(&report, &style, folder, why, sizeof why);
  if (drawn) printf("The pictures lie in %s\n", folder);
  report_destroy(&report);
  free(path);
  return command_status(drawn ? STATUS_GOOD : command_complain(why));
}

/* The page must not take the place of what it is made from. */
static bool check_page(const options *options, const char *page, char *why, size_t why_size) {
  struct stat of_page, of_report;
  if (!command_check_file("--html", page, why, why_size)) return false;
  if (stat(page, &of_page) != 0) return true;
  for (size_t n = 0; n < options->words.count; n++) {
    if (stat(options->words.items[n], &of_report) != 0) continue;
    if (of_report.st_dev != of_page.st_dev || of_report.st_ino != of_page.st_ino) continue;
    snprintf(why, why_size, "--html %.1024s would replace the report that it is made from; give another file",
             page);
    return false;
  }
  return true;
}

/* With two files the first is of the former run. */
int run_report(const options *options) {
  char why[WHY_BYTES], found[PARTS_PATH_BYTES], beside[4096];
  report report = {0}, former = {0};
  const bool compares = options->words.count == 2;
  const char *file = options->words.items[options->words.count - 1];
  const char *slash = strrchr(file, '/');
  const int folder_bytes = slash ? (int)(slash + 1 - file) : 0;
  snprintf(beside, sizeof beside, "%.*sindex.html", folder_bytes, file);
  const char *path = options->html ? options->html : beside;
  const plot_style style = command_style(options, found);
  const report_options how = {.former = compares ? &former : NULL, .whole = true, .style = &style};
  const bool written = check_page(options, path, why, sizeof why) &&
                       report_read(&report, file, why, sizeof why) &&
                       (!compares || report_read(&former, options->words.items[0], why, sizeof why)) &&
                       report_write(&report, &how, "html", path, why, sizeof why);
  if (written) printf("The page is %s\n", path);
  report_destroy(&report);
  report_destroy(&former);
  return command_status(written ? STATUS_GOOD : command_complain(why));
}

/* A file where its name ends so, or else a folder. */
static bool is_json(const char *path) {
  const size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* What is merged is never written over. */
static bool check_merged(const options *options, char *why, size_t why_size) {
  char path[4096];
  if (!options->out) return true;
  snprintf(path, sizeof path, "%s%s", options->out, is_json(options->out) ? "" : "/results.json");
  if (!merge_reads(&options->words, path))
    return !is_json(path) || !is_json(options->out) || command_check_file("--out", path, why, why_size);
  snprintf(why, why_size, "--out %s would replace a report that is merged; give another place", options->out);
  return false;
}

int run_merge(const options *options) {
  static const report_options rows = {.repetitions = true, .aggregates = true};
  char why[WHY_BYTES];
  report report = {0};
  int status = STATUS_UNUSABLE;
  bool good =
      check_merged(options, why, sizeof why) && merge_reports(&report, &options->words, why, sizeof why);
  report_place place = {.folder = options->out};
  if (good && options->out)
    good = is_json(options->out)
               ? report_write(&report, &rows, "json", options->out, why, sizeof why)
               : command_write_folder(&report, options, &rows, &place.has_pictures, why, sizeof why);
  if (good) {
    report_summary(&report, options->out && !is_json(options->out) ? &place : NULL, stdout);
    status = command_status(command_report_status(&report) == STATUS_WRONG ? STATUS_WRONG : STATUS_GOOD);
  } else {
    command_complain(why);
  }
  report_destroy(&report);
  return status;
}
