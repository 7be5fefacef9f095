/* See child.h. One pipe takes both outputs, so that an error message comes where it belongs. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *program, int error, char *why, size_t why_size) {
  snprintf(why, why_size, "cannot run %s: %s", program, strerror(error));
  return -1;
}

/* Everything up to the end of the pipe, or NULL without memory; the pipe is emptied in any case, so that
 * the child does not wait for us. */
static char *read_all(int pipe_end) {
  size_t used = 0, size = 4096;
  char *text = malloc(size);
  char rest[512];
  for (;;) {
    if (text && used + 1 == size) {
      char *more = realloc(text, size *= 2);
      if (!more) free(text);
      text = more;
    }
    const ssize_t count =
        text ? read(pipe_end, text + used, size - used - 1) : read(pipe_end, rest, sizeof rest);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    used += (size_t)count;
  }
  if (text) text[used] = '\0';
  return text;
}

static int start(char *const argv[], char *const environment[], const int ends[2], pid_t *process) {
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  if (!error)
    error = posix_spawnp(process, argv[0], &actions, NULL, argv, environment ? environment : environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int child_run(char *const argv[], char *const environment[], char **said, char *why, size_t why_size) {
  int ends[2], status = 0;
  pid_t process;
  *said = NULL;
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(argv[0], errno, why, why_size);
  const int error = start(argv, environment, ends, &process);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    return fail(argv[0], error, why, why_size);
  }
  *said = read_all(ends[0]);
  close(ends[0]);
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return free(*said), *said = NULL, fail(argv[0], errno, why, why_size);
  if (!*said) return fail(argv[0], ENOMEM, why, why_size);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *child_last_line(char *said) {
  size_t length = strlen(said);
  while (length > 0 && (said[length - 1] == '\n' || said[length - 1] == ' ')) said[--length] = '\0';
  char *line = strrchr(said, '\n');
  return line ? line + 1 : said;
}
