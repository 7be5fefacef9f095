/* See side_effects.h. One row of a table for each thing: what remembers it before the run, and what looks afterwards
 * whether it is the same, puts it back, and has the words for it. */
#define _GNU_SOURCE
#include "side_effects.h"

#include <ctype.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "descriptors.h"

enum { OUTPUTS = 2, LIMITS = RLIM_NLIMITS, TIMERS = 3 };

struct surroundings {
  bool first, silent, was_silent;
  int written[OUTPUTS]; /* what stands in for the standard output and error; -1: nothing does */
  descriptors descriptors;
  int folder;
  mode_t umask;
  struct sigaction handlers[NSIG];
  stack_t signal_stack;
  sigset_t blocked;
  char *environment; /* its lines, each with its zero */
  size_t environment_bytes;
  char *locale;
  locale_t thread_locale;
  struct itimerval timers[TIMERS];
  struct rlimit limits[LIMITS];
  cpu_set_t processors;
  int priority;
  char *violation;
  size_t size;
};

/* Of the process's own outputs, where to give them back to; for the handler of a signal. */
static volatile int outputs[OUTPUTS] = {-1, -1};

__attribute__((format(printf, 2, 3))) static void violate(surroundings *of, const char *format, ...) {
  of->was_silent = of->was_silent || of->silent;
  if (of->violation[0] || of->silent) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(of->violation, of->size, format, arguments);
  va_end(arguments);
}

/* ---- standard output and error ---- */

/* Numbers that a kernel which opens files does not get. */
enum { OUT_OF_THE_WAY = 100 };

static void redirect(surroundings *of) {
  fflush(stdout);
  fflush(stderr);
  for (int n = 0; n < OUTPUTS; n++) {
    const int file = memfd_create("written inside run", MFD_CLOEXEC);
    of->written[n] = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    if (file >= 0) close(file);
    outputs[n] = of->written[n] < 0 ? -1 : fcntl(STDOUT_FILENO + n, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    if (outputs[n] >= 0) dup2(of->written[n], STDOUT_FILENO + n);
  }
}

void side_effects_give_output_back(void) {
  for (int n = 0; n < OUTPUTS; n++)
    if (outputs[n] >= 0) dup2(outputs[n], STDOUT_FILENO + n);
}

static bool is_same_file(int one, int other) {
  struct stat of_one, of_other;
  return fstat(one, &of_one) == 0 && fstat(other, &of_other) == 0 && of_one.st_ino == of_other.st_ino &&
         of_one.st_dev == of_other.st_dev;
}

/* The beginning of it, in one line. */
static void say_written(surroundings *of, int n) {
  char words[33] = "";
  if (!is_same_file(of->written[n], STDOUT_FILENO + n))
    violate(of, "closes or replaces %s", n == 0 ? "stdout" : "stderr");
  const ssize_t count = pread(of->written[n], words, sizeof words - 1, 0);
  for (ssize_t at = 0; at < count; at++)
    if (!isprint((unsigned char)words[at]) || words[at] == '\'') words[at] = ' ';
  if (count > 0) violate(of, "writes to %s inside run: '%s'", n == 0 ? "stdout" : "stderr", words);
}

static void look_at_outputs(surroundings *of) {
  fflush(stdout);
  fflush(stderr);
  for (int n = 0; n < OUTPUTS; n++)
    if (outputs[n] >= 0) say_written(of, n);
  side_effects_give_output_back();
  for (int n = 0; n < OUTPUTS; n++) {
    if (outputs[n] >= 0) close(outputs[n]);
    if (of->written[n] >= 0) close(of->written[n]);
    outputs[n] = -1;
  }
}

/* ---- files ---- */

static void note_descriptors(surroundings *of) { descriptors_note(&of->descriptors); }

static void look_at_descriptors(surroundings *of) {
  int number;
  const descriptor_change change = descriptors_put_back(&of->descriptors, &number);
  if (change == DESCRIPTOR_LEFT_OPEN) violate(of, "leaves descriptor %d open", number);
  if (change == DESCRIPTOR_CLOSED)
    violate(of, "closes or replaces descriptor %d, which is not its own", number);
}

static void note_folder(surroundings *of) {
  of->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  of->umask = umask(0);
  umask(of->umask);
}

static void look_at_folder(surroundings *of) {
  struct stat before, now;
  if (of->folder < 0 || fstat(of->folder, &before) != 0) return;
  if (stat(".", &now) != 0 || now.st_ino != before.st_ino || now.st_dev != before.st_dev) {
    violate(of, "leaves the working directory changed");
    if (fchdir(of->folder) != 0) return; /* it is there no more */
  }
  if (umask(of->umask) != of->umask) violate(of, "leaves the umask changed");
}

/* ---- signals ---- */

static void note_signals(surroundings *of) {
  for (int number = 1; number < NSIG; number++)
    if (sigaction(number, NULL, &of->handlers[number]) != 0) of->handlers[number].sa_handler = SIG_ERR;
  sigaltstack(NULL, &of->signal_stack);
}

static void note_mask(surroundings *of) { pthread_sigmask(SIG_SETMASK, NULL, &of->blocked); }

static void say_handler(surroundings *of, int number) {
  const char *name = sigabbrev_np(number);
  if (name)
    violate(of, "leaves the handler of SIG%s changed", name);
  else
    violate(of, "leaves the handler of signal %d changed", number);
}

static void look_at_signals(surroundings *of) {
  struct sigaction now;
  stack_t stack;
  for (int number = 1; number < NSIG; number++) {
    const struct sigaction *before = &of->handlers[number];
    if (before->sa_handler == SIG_ERR || sigaction(number, NULL, &now) != 0) continue;
    if (now.sa_handler == before->sa_handler && now.sa_flags == before->sa_flags) continue;
    say_handler(of, number);
    sigaction(number, before, NULL);
  }
  sigaltstack(NULL, &stack);
  if (stack.ss_sp != of->signal_stack.ss_sp || stack.ss_flags != of->signal_stack.ss_flags) {
    violate(of, "leaves the stack of signal handlers changed");
    sigaltstack(&of->signal_stack, NULL);
  }
}

static void look_at_mask(surroundings *of) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, &of->blocked, &blocked);
  for (int number = 1; number < NSIG; number++)
    if (sigismember(&blocked, number) != sigismember(&of->blocked, number))
      violate(of, "leaves the signal mask changed");
}

/* ---- environment and locale ---- */

static size_t environment_bytes(void) {
  size_t bytes = 0;
  for (char **line = environ; line && *line; line++) bytes += strlen(*line) + 1;
  return bytes;
}

static void note_environment(surroundings *of) {
  of->environment_bytes = environment_bytes();
  of->environment = malloc(of->environment_bytes + 1);
  char *to = of->environment;
  for (char **line = environ; to && line && *line; line++) to = stpcpy(to, *line) + 1;
}

static bool has_line(const char *wanted) {
  char **line = environ;
  while (*line && strcmp(*line, wanted) != 0) line++;
  return *line;
}

/* NULL, or the first line that is another one, or that there was. */
static const char *other_line(const surroundings *of) {
  const char *before = of->environment, *end = before + of->environment_bytes;
  char **line = environ;
  for (; line && *line; line++, before += strlen(before) + 1)
    if (before >= end || strcmp(*line, before) != 0)
      return before < end && !has_line(before) ? before : *line;
  return before < end ? before : NULL;
}

static void look_at_environment(surroundings *of) {
  const char *other = of->environment ? other_line(of) : NULL;
  if (other) {
    const int name = (int)strcspn(other, "=");
    violate(of, "leaves the environment changed (%.*s)", name < 64 ? name : 64, other);
    clearenv();
    for (char *line = of->environment; line < of->environment + of->environment_bytes;) {
      char *next = line + strlen(line) + 1, *value = strchr(line, '=');
      if (value) {
        *value = '\0';
        setenv(line, value + 1, 1);
      }
      line = next;
    }
  }
  free(of->environment);
}

static void note_locale(surroundings *of) {
  const char *now = setlocale(LC_ALL, NULL);
  of->locale = now ? strdup(now) : NULL;
  of->thread_locale = uselocale((locale_t)0);
}

static void look_at_locale(surroundings *of) {
  const char *now = setlocale(LC_ALL, NULL);
  if (of->locale && (!now || strcmp(now, of->locale) != 0)) {
    violate(of, "leaves the locale changed");
    setlocale(LC_ALL, of->locale);
  }
  if (uselocale(of->thread_locale) != of->thread_locale) violate(of, "leaves the locale changed");
  free(of->locale);
}

/* ---- timers, limits, processors ---- */

static void note_timers(surroundings *of) {
  for (int n = 0; n < TIMERS; n++) getitimer((__itimer_which_t)n, &of->timers[n]);
}

static bool is_later(struct timeval a, struct timeval b) {
  return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_usec > b.tv_usec);
}

static bool is_set(const struct itimerval *timer) {
  return timer->it_value.tv_sec || timer->it_value.tv_usec;
}

/* One that was set before runs on. */
static void look_at_timers(surroundings *of) {
  for (int n = 0; n < TIMERS; n++) {
    struct itimerval now;
    const struct itimerval *before = &of->timers[n];
    getitimer((__itimer_which_t)n, &now);
    if (is_set(&now) == is_set(before) && !is_later(now.it_value, before->it_value)) continue;
    violate(of, is_set(&now) ? "leaves a timer set" : "stops a timer that is not its own");
    setitimer((__itimer_which_t)n, before, NULL);
  }
}

static void note_limits(surroundings *of) {
  for (int n = 0; n < LIMITS; n++) getrlimit((__rlimit_resource_t)n, &of->limits[n]);
}

static void look_at_limits(surroundings *of) {
  for (int n = 0; n < LIMITS; n++) {
    struct rlimit now;
    const struct rlimit *before = &of->limits[n];
    getrlimit((__rlimit_resource_t)n, &now);
    if (now.rlim_cur == before->rlim_cur && now.rlim_max == before->rlim_max) continue;
    violate(of, "leaves a limit of the process's resources changed");
    setrlimit((__rlimit_resource_t)n, before);
  }
}

static void note_processors(surroundings *of) {
  if (sched_getaffinity(0, sizeof of->processors, &of->processors) != 0) CPU_ZERO(&of->processors);
}

static void look_at_processors(surroundings *of) {
  cpu_set_t now;
  if (CPU_COUNT(&of->processors) == 0 || sched_getaffinity(0, sizeof now, &now) != 0) return;
  if (CPU_EQUAL(&now, &of->processors)) return;
  violate(of, "leaves its thread bound to other processors");
  sched_setaffinity(0, sizeof of->processors, &of->processors);
}

static void note_priority(surroundings *of) { of->priority = getpriority(PRIO_PROCESS, 0); }

static void look_at_priority(surroundings *of) {
  if (getpriority(PRIO_PROCESS, 0) == of->priority) return;
  violate(of, "leaves its priority changed");
  setpriority(PRIO_PROCESS, 0, of->priority);
}

/* ---- all of it ---- */

/* What a library behind a variant may set up in its first run: put back without a word; or left to it, who goes on using
 * it. */
typedef enum first_run { NOBODYS, PUT_BACK, LEFT_TO_LIBRARIES } first_run;

/* In this order before the run, and in the other one after it. */
static const struct {
  void (*note)(surroundings *before);
  void (*look)(surroundings *before);
  first_run of_libraries;
} things[] = {
    {note_folder, look_at_folder, NOBODYS},     {note_signals, look_at_signals, PUT_BACK},
    {note_mask, look_at_mask, NOBODYS},         {note_environment, look_at_environment, PUT_BACK},
    {note_locale, look_at_locale, NOBODYS},     {note_timers, look_at_timers, NOBODYS},
    {note_limits, look_at_limits, NOBODYS},     {note_processors, look_at_processors, NOBODYS},
    {note_priority, look_at_priority, NOBODYS}, {note_descriptors, look_at_descriptors, LEFT_TO_LIBRARIES},
    {redirect, look_at_outputs, NOBODYS},
};

enum { THINGS = sizeof things / sizeof *things };

surroundings *side_effects_begin(bool first) {
  surroundings *before = calloc(1, sizeof *before);
  if (!before) return NULL;
  before->first = first;
  for (int n = 0; n < THINGS; n++)
    if (!first || things[n].of_libraries != LEFT_TO_LIBRARIES) things[n].note(before);
  return before;
}

bool side_effects_end(surroundings *before, char *violation, size_t size) {
  before->violation = violation;
  before->size = size;
  violation[0] = '\0';
  for (int n = THINGS; n-- > 0;) {
    before->silent = before->first && things[n].of_libraries == PUT_BACK;
    if (!before->first || things[n].of_libraries != LEFT_TO_LIBRARIES) things[n].look(before);
  }
  const bool was_silent = before->was_silent;
  if (before->folder >= 0) close(before->folder);
  free(before);
  return was_silent;
}
