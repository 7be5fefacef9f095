/* See folder.h. */
#define _GNU_SOURCE
#include "folder.h"

#include <errno.h>
#include <stdio.h>
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
