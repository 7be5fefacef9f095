/* Reports into files: written beside, forced to the disk, then renamed, so that a reader finds the old
 * file or the whole new one, whatever happens in between. A link stays one: what it points to is replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace.h"
#include "measure/shard.h"
#include "report.h"

static bool fail(char *why, size_t why_size, const char *path, int error) {
  snprintf(why, why_size, "cannot write '%s': %s", path, strerror(error));
  return false;
}

/* errno says why it is false. */
static bool write_report(const report *report, const report_options *options, const char *format,
                         FILE *file) {
  errno = 0;
  bool good = true;
  if (strcmp(format, "json") == 0)
    good = report_json(report, options, file);
  else if (strcmp(format, "csv") == 0)
    report_csv(report, options, file);
  else if (strcmp(format, "summary") == 0)
    report_summary(report, options->pictures, file);
  else if (strcmp(format, "html") == 0)
    report_page(report, options, file);
  else
    report_console(report, options, file);
  good = good && fflush(file) == 0 && !ferror(file);
  /* A pipe or a terminal has nothing to force to the disk. */
  good = good && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS);
  if (!good && !errno) errno = EIO;
  return good;
}

/* Closes the file in any case. */
static bool write_and_close(const report *report, const report_options *options, const char *format,
                            FILE *file) {
  const bool good = write_report(report, options, format, file);
  int error = errno;
  if (fclose(file) != 0 && good) return false;
  errno = error;
  return good;
}

/* So that the rename itself survives a power failure; where the folder cannot be opened, it may not. */
static void force_folder(const char *path) {
  char *folder = strdup(path);
  if (!folder) return;
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  int descriptor = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
  free(folder);
}

/* False with errno. */
static bool write_beside(const report *report, const report_options *options, const char *format,
                         const char *target, char *beside) {
  int descriptor = mkstemp(beside);
  if (descriptor < 0) return false;
  mode_t mask = umask(0);
  umask(mask);
  FILE *file = fchmod(descriptor, 0666 & ~mask) == 0 ? fdopen(descriptor, "w") : NULL;
  const bool good = file && write_and_close(report, options, format, file) && rename(beside, target) == 0;
  const int error = errno;
  if (!file) close(descriptor);
  if (good)
    force_folder(target);
  else
    unlink(beside);
  errno = error;
  return good;
}

static bool replace(const report *report, const report_options *options, const char *format,
                    const char *path) {
  static const char suffix[] = ".XXXXXX";
  char *target = replace_target(path);
  const size_t size = target ? strlen(target) + sizeof suffix : 0;
  char *beside = target ? malloc(size) : NULL;
  if (beside) snprintf(beside, size, "%s%s", target, suffix);
  const bool good = beside && write_beside(report, options, format, target, beside);
  const int error = errno;
  free(beside);
  free(target);
  errno = error;
  return good;
}

bool report_write(const report *report, const report_options *options, const char *format, const char *path,
                  char *why, size_t why_size) {
  if (strcmp(format, "json") != 0 && strcmp(format, "csv") != 0 && strcmp(format, "console") != 0 &&
      strcmp(format, "summary") != 0 && strcmp(format, "html") != 0) {
    snprintf(why, why_size, "unknown format '%s': json, csv, console, summary or html", format);
    return false;
  }
  struct stat status;
  const bool exists = stat(path, &status) == 0;
  FILE *standard = exists ? replace_standard_stream(path) : NULL;
  bool good;
  if (exists && S_ISDIR(status.st_mode)) {
    good = false;
    errno = EISDIR;
  } else if (standard) {
    good = write_report(report, options, format, standard);
  } else if (!exists || S_ISREG(status.st_mode)) {
    good = replace(report, options, format, path);
  } else { /* a device or a pipe is written to, never replaced */
    FILE *file = fopen(path, "w");
    good = file && write_and_close(report, options, format, file);
  }
  return good || fail(why, why_size, path, errno);
}

void report_destroy(report *report) {
  for (size_t i = 0; i < report->result_count; i++) {
    free(report->results[i].seconds);
    free(report->results[i].cpu_seconds);
  }
  for (size_t i = 0; i < report->run_count; i++) free(report->runs[i].context);
  free(report->runs);
  sweep_plan_destroy(&report->plan);
  free(report->results);
  free(report->growths);
  memset(report, 0, sizeof *report);
}
