/* See replace.h. */
#define _GNU_SOURCE
#include "replace.h"

#include <errno.h>
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
