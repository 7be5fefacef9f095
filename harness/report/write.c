/* Reports into files: written beside, forced to the disk, then renamed, so that a reader finds the old
 * file or the whole new one, whatever happens in between. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

static bool fail(char *why, size_t why_size, const char *path, int error) {
  snprintf(why, why_size, "cannot write '%s': %s", path, strerror(error));
  return false;
}

/* Closes the file in any case. errno says why it is false. */
static bool write_and_close(const report *report, const report_options *options, const char *format,
                            FILE *file) {
  errno = 0;
  bool good = true;
  if (strcmp(format, "json") == 0)
    good = report_json(report, options, file);
  else if (strcmp(format, "csv") == 0)
    report_csv(report, options, file);
  else if (strcmp(format, "summary") == 0)
    report_summary(report, options->pictures, file);
  else
    report_console(report, options, file);
  good = good && fflush(file) == 0 && !ferror(file);
  /* A pipe or a terminal has nothing to force to the disk. */
  good = good && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS);
  int error = errno ? errno : EIO;
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

static bool write_beside(const report *report, const report_options *options, const char *format,
                         const char *path, char *beside, char *why, size_t why_size) {
  int descriptor = mkstemp(beside);
  if (descriptor < 0) return fail(why, why_size, path, errno);
  mode_t mask = umask(0);
  umask(mask);
  FILE *file = fchmod(descriptor, 0666 & ~mask) == 0 ? fdopen(descriptor, "w") : NULL;
  if (!file) {
    int error = errno;
    close(descriptor);
    unlink(beside);
    return fail(why, why_size, path, error);
  }
  if (!write_and_close(report, options, format, file) || rename(beside, path) != 0) {
    int error = errno;
    unlink(beside);
    return fail(why, why_size, path, error);
  }
  force_folder(path);
  return true;
}

bool report_write(const report *report, const report_options *options, const char *format, const char *path,
                  char *why, size_t why_size) {
  if (strcmp(format, "json") != 0 && strcmp(format, "csv") != 0 && strcmp(format, "console") != 0 &&
      strcmp(format, "summary") != 0) {
    snprintf(why, why_size, "unknown format '%s': json, csv, console or summary", format);
    return false;
  }
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
    /* A device or a pipe is written to, never replaced. */
    FILE *file = S_ISDIR(status.st_mode) ? NULL : fopen(path, "w");
    if (!file) return fail(why, why_size, path, S_ISDIR(status.st_mode) ? EISDIR : errno);
    return write_and_close(report, options, format, file) || fail(why, why_size, path, errno);
  }
  static const char suffix[] = ".XXXXXX";
  const size_t size = strlen(path) + sizeof suffix;
  char *beside = malloc(size);
  if (!beside) return fail(why, why_size, path, ENOMEM);
  snprintf(beside, size, "%s%s", path, suffix);
  bool good = write_beside(report, options, format, path, beside, why, why_size);
  free(beside);
  return good;
}

void report_destroy(report *report) {
  for (size_t i = 0; i < report->result_count; i++) {
    free(report->results[i].seconds);
    free(report->results[i].cpu_seconds);
  }
  free(report->results);
  free(report->growths);
  memset(report, 0, sizeof *report);
}
