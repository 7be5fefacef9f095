/* See replace.h. */
#define _GNU_SOURCE
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40 }; /* as in path_resolution(7) */

/* The path that a link lying at `link` points to; both for the caller to free. */
static char *follow(const char *link, const char *pointed_to) {
  const char *slash = strrchr(link, '/');
  char *target;
  if (pointed_to[0] == '/' || !slash) return strdup(pointed_to);
  return asprintf(&target, "%.*s%s", (int)(slash + 1 - link), link, pointed_to) < 0 ? NULL : target;
}

char *replace_target(const char *path) {
  char *target = strdup(path), pointed_to[PATH_MAX];
  for (int links = 0; target; links++) {
    const ssize_t length = readlink(target, pointed_to, sizeof pointed_to - 1);
    if (length < 0) return target; /* a file, or nothing yet: whoever opens it sees what is wrong with it */
    char *next = NULL;
    pointed_to[length] = '\0';
    if (links < MOST_LINKS)
      next = follow(target, pointed_to);
    else
      errno = ELOOP;
    free(target);
    target = next;
  }
  return NULL;
}

int replace_rename(const char *beside, const char *path) {
  char *target = replace_target(path);
  const int status = target ? rename(beside, target) : -1;
  free(target);
  return status;
}

FILE *replace_standard_stream(const char *path) {
  FILE *const streams[] = {stdout, stderr};
  struct stat file, stream;
  for (size_t n = 0; n < sizeof streams / sizeof *streams; n++)
    if (stat(path, &file) == 0 && fstat(fileno(streams[n]), &stream) == 0 && file.st_dev == stream.st_dev &&
        file.st_ino == stream.st_ino)
      return streams[n];
  return NULL;
}

/* Writes all and forces it to the disk. errno says why it is false. */
static bool write_all(FILE *file, replace_writer *write, const void *what) {
  errno = 0;
  bool good = write(what, file) && fflush(file) == 0 && !ferror(file);
  /* A pipe or a terminal has nothing to force to the disk. */
  good = good && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS);
  if (!good && !errno) errno = EIO;
  return good;
}

/* Closes the file in any case. */
static bool write_and_close(FILE *file, replace_writer *write, const void *what) {
  const bool good = write_all(file, write, what);
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
static bool write_beside(const char *target, char *beside, replace_writer *write, const void *what) {
  int descriptor = mkstemp(beside);
  if (descriptor < 0) return false;
  mode_t mask = umask(0);
  umask(mask);
  FILE *file = fchmod(descriptor, 0666 & ~mask) == 0 ? fdopen(descriptor, "w") : NULL;
  const bool good = file && write_and_close(file, write, what) && rename(beside, target) == 0;
  const int error = errno;
  if (!file) close(descriptor);
  if (good)
    force_folder(target);
  else
    unlink(beside);
  errno = error;
  return good;
}

static bool replace(const char *path, replace_writer *write, const void *what) {
  static const char suffix[] = ".XXXXXX";
  char *target = replace_target(path);
  const size_t size = target ? strlen(target) + sizeof suffix : 0;
  char *beside = target ? malloc(size) : NULL;
  if (beside) snprintf(beside, size, "%s%s", target, suffix);
  const bool good = beside && write_beside(target, beside, write, what);
  const int error = errno;
  free(beside);
  free(target);
  errno = error;
  return good;
}

bool replace_write(const char *path, replace_writer *write, const void *what, char *why, size_t why_size) {
  struct stat status;
  const bool exists = stat(path, &status) == 0;
  FILE *standard = exists ? replace_standard_stream(path) : NULL;
  bool good;
  if (exists && S_ISDIR(status.st_mode)) {
    good = false;
    errno = EISDIR;
  } else if (standard) {
    good = write_all(standard, write, what);
  } else if (!exists || S_ISREG(status.st_mode)) {
    good = replace(path, write, what);
  } else { /* a device or a pipe is written to, never replaced */
    FILE *file = fopen(path, "w");
    good = file && write_and_close(file, write, what);
  }
  if (!good) snprintf(why, why_size, "cannot write '%s': %s", path, strerror(errno));
  return good;
}
