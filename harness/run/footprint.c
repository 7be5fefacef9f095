/* The processes behind footprint_measure. One is forked before any variant has run, and waits; for each point
 * that is asked for it forks another, which measures, answers and ends. What is asked is a number alone: the
 * points lie in memory that was there before the first fork. */
#define _GNU_SOURCE
#include "footprint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_calls.h"
#include "base/interrupt.h"

/* The status that a variant is least likely to leave with. */
enum { ANSWERED = 97 };

typedef struct answer {
  bool good;
  char why[256];
  footprint footprint;
} answer;

bool footprint_is_measured(void) { return heap_calls_are_seen(); }

/* ---- the process that waits, and those that measure ---- */

static void reply(int socket, const answer *answer) {
  if (send(socket, answer, sizeof *answer, MSG_NOSIGNAL) != (ssize_t)sizeof *answer) _exit(1);
}

static void measure_in_child(const bench_point *point, int threads, const char *isa, int socket) {
  answer answer = {0};
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    answer.good = footprint_of_run(point, threads, isa, &answer.footprint, answer.why, sizeof answer.why);
    reply(socket, &answer);
    _exit(ANSWERED);
  }
  int status = 0;
  if (child < 0)
    snprintf(answer.why, sizeof answer.why, "cannot fork: %s", strerror(errno));
  else if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == ANSWERED)
    return;
  else if (WIFSIGNALED(status))
    snprintf(answer.why, sizeof answer.why, "signal %d ended the process that ran it", WTERMSIG(status));
  else
    snprintf(answer.why, sizeof answer.why, "the process that ran it ended early");
  reply(socket, &answer);
}

static void serve(const bench_point *points, int threads, const char *isa, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* Ctrl-C is meant for the process that asks, which then ends this one. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  size_t point;
  while (read(socket, &point, sizeof point) == (ssize_t)sizeof point)
    measure_in_child(&points[point], threads, isa, socket);
  _exit(0);
}

/* ---- the process that asks ---- */

static bool refuse(char *why, size_t why_size, const char *reason) {
  snprintf(why, why_size, "its memory cannot be measured: %s", reason);
  return false;
}

bool footprint_begin(footprint_source *source, const bench_point *points, int threads, const char *isa,
                     char *why, size_t why_size) {
  int ends[2];
  *source = (footprint_source){0};
  if (!footprint_is_measured()) return true;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return refuse(why, why_size, strerror(errno));
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    serve(points, threads, isa, ends[1]);
  }
  close(ends[1]);
  *source = (footprint_source){process, ends[0]};
  if (process > 0) return true;
  refuse(why, why_size, strerror(errno));
  close(ends[0]);
  *source = (footprint_source){0};
  return false;
}

void footprint_end(footprint_source *source) {
  if (source->process <= 0) return;
  kill(source->process, SIGKILL);          /* and with it what it has forked */
  (void)waitpid(source->process, NULL, 0); /* how it ended is known */
  close(source->socket);
  *source = (footprint_source){0};
}

static bool await(const footprint_source *source, answer *answer) {
  struct pollfd ready = {.fd = source->socket, .events = POLLIN};
  while (poll(&ready, 1, 100) <= 0)
    if (interrupt_wanted()) return false;
  return read(source->socket, answer, sizeof *answer) == (ssize_t)sizeof *answer;
}

bool footprint_measure(footprint_source *source, size_t point, footprint *footprint, char *why,
                       size_t why_size) {
  answer answer = {0};
  if (source->process <= 0) return refuse(why, why_size, "the process for it has ended");
  if (send(source->socket, &point, sizeof point, MSG_NOSIGNAL) != (ssize_t)sizeof point ||
      !await(source, &answer)) {
    footprint_end(source);
    return refuse(why, why_size, interrupt_wanted() ? "interrupted" : "the process for it has ended");
  }
  *footprint = answer.footprint;
  return answer.good || refuse(why, why_size, answer.why);
}
