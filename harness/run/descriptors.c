/* See descriptors.h. */
#define _GNU_SOURCE
#include "descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUT_OF_THE_WAY = 100 };

/* What is open at the moment; kept and flags are left out. */
static void list(descriptors *now) {
  DIR *folder = opendir("/proc/self/fd");
  now->count = 0;
  if (!folder) return;
  for (const struct dirent *entry; (entry = readdir(folder)) && now->count < MOST_DESCRIPTORS;) {
    char *end;
    struct stat status;
    const int number = (int)strtol(entry->d_name, &end, 10);
    if (*end || end == entry->d_name || number == dirfd(folder) || fstat(number, &status) != 0) continue;
    now->of[now->count++] =
        (descriptor){.number = number, .kept = -1, .device = status.st_dev, .file = status.st_ino};
  }
  closedir(folder);
}

void descriptors_note(descriptors *now) {
  list(now);
  for (int n = 0; n < now->count; n++) {
    now->of[n].flags = (fcntl(now->of[n].number, F_GETFD) & FD_CLOEXEC) ? O_CLOEXEC : 0;
    now->of[n].kept = fcntl(now->of[n].number, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
  }
}

static const descriptor *find(const descriptors *among, int number) {
  for (int n = 0; n < among->count; n++)
    if (among->of[n].number == number) return &among->of[n];
  return NULL;
}

static bool is_kept(const descriptors *by, int number) {
  for (int n = 0; n < by->count; n++)
    if (by->of[n].kept == number) return true;
  return false;
}

descriptor_change descriptors_put_back(descriptors *before, int *number) {
  descriptors now;
  descriptor_change change = DESCRIPTORS_SAME;
  list(&now);
  for (int n = 0; n < now.count; n++) {
    if (find(before, now.of[n].number) || is_kept(before, now.of[n].number)) continue;
    if (change == DESCRIPTORS_SAME) *number = now.of[n].number;
    change = DESCRIPTOR_LEFT_OPEN;
    close(now.of[n].number);
  }
  for (int n = 0; n < before->count; n++) {
    const descriptor *was = &before->of[n], *is = find(&now, was->number);
    if (!is || is->device != was->device || is->file != was->file) {
      if (change == DESCRIPTORS_SAME) {
        *number = was->number;
        change = DESCRIPTOR_CLOSED;
      }
      if (was->kept >= 0) dup3(was->kept, was->number, was->flags);
    }
    if (was->kept >= 0) close(was->kept);
  }
  return change;
}
