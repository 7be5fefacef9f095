/* See gnuplot.h. */
#define _GNU_SOURCE
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first line of what gnuplot complained of that names a fault. */
static void read_complaint(const char *path, char *line, size_t size) {
  char next[256];
  FILE *file = fopen(path, "r");
  snprintf(line, size, "it did not say why");
  while (file && fgets(next, sizeof next, file)) {
    next[strcspn(next, "\n")] = 0;
    if (strspn(next, " ^\t") == strlen(next)) continue;
    snprintf(line, size, "%s", next);
    if (strstr(next, "line ") || strstr(next, "annot")) break;
  }
  if (file) fclose(file);
}

bool gnuplot_run(const char *const files[3], const char *complaints, char *why, size_t why_size) {
  char complaint[256];
  char program[] = "gnuplot", defaults[] = "-d"; /* no settings of the user's own */
  char *arguments[] = {program, defaults, (char *)files[0], (char *)files[1], (char *)files[2], NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child;
  int error = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 127 << 8;
  if (error == 0) {
    pid_t ended;
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (error == ENOENT || error == EACCES || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
    snprintf(why, why_size, "gnuplot was not found; apt-get install gnuplot-nox");
    return false;
  }
  read_complaint(complaints, complaint, sizeof complaint);
  snprintf(why, why_size, "gnuplot failed on %s: %s", files[2], complaint);
  return false;
}
