/* See folder.h. */
#define _GNU_SOURCE
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool folder_make(const char *folder, char *why, size_t why_size) {
  char *path = strdup(folder);
  bool made = path != NULL;
  for (char *slash = path; made && slash;) {
    slash = strchr(slash + 1, '/');
    if (slash) *slash = '\0';
    made = mkdir(path, 0777) == 0 || errno == EEXIST;
    if (slash) *slash = '/';
  }
  struct stat status;
  if (made && stat(folder, &status) == 0 && !S_ISDIR(status.st_mode)) {
    made = false;
    errno = ENOTDIR;
  }
  made = made && access(folder, W_OK | X_OK) == 0;
  if (!made)
    snprintf(why, why_size, "--out %s: %s; give a folder that can be written", folder, strerror(errno));
  free(path);
  return made;
}

const char *folder_temporary(void) {
  const char *named = getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

FILE *folder_nameless_file(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/attnbench-XXXXXX", folder_temporary());
  const int descriptor = mkostemp(path, O_CLOEXEC);
  if (descriptor < 0) return NULL;
  unlink(path);
  FILE *file = fdopen(descriptor, "w+");
  if (!file) close(descriptor);
  return file;
}
