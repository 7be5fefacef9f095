/* Crash reports. Everything that a report says is put together beforehand, by crash_context: a signal
 * handler may only write it. Any thread may crash, so nothing here depends on which one does. */
#include "crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A report is head, name of the signal, tail, and the command unless what follows prints a better one. */
static char head[512], tail[2048], command[8192];
static volatile sig_atomic_t armed;

/* What the process becomes after its report, when there is a program to become. */
enum { ARGUMENTS = 14, ARGUMENT_BYTES = 4096 };
static const char *shrinker;
static char texts[ARGUMENTS][ARGUMENT_BYTES], *arguments[ARGUMENTS + 1];

static atomic_flag reporting = ATOMIC_FLAG_INIT;

static const char *signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV: access to memory that it was not given";
    case SIGBUS: return "SIGBUS: access to memory that is not there";
    case SIGILL: return "SIGILL: instruction that this processor does not have";
    case SIGFPE: return "SIGFPE: arithmetic fault";
    case SIGABRT: return "SIGABRT: it gave up";
    case SIGALRM: return "SIGALRM: it did not end";
    default: return "signal";
  }
}

static void write_text(const char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    ssize_t written = write(STDERR_FILENO, text, left);
    if (written <= 0) return;
    text += written;
    left -= (size_t)written;
  }
}

/* exec keeps what is blocked, which the signal being handled is, and what was to alarm us. */
static void become_shrinker(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  alarm(0);
  execv(shrinker, arguments);
}

static void on_signal(int number) {
  if (!armed) { /* not a kernel's crash: let it take its usual course */
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  if (atomic_flag_test_and_set(&reporting))
    for (;;) pause(); /* another thread is writing and will end the process */
  write_text(head);
  write_text(signal_name(number));
  write_text(tail);
  if (shrinker && number != SIGALRM) become_shrinker();
  write_text(command);
  _exit(1);
}

void crash_install(void) {
  /* A handler cannot run on the stack that a runaway recursion has used up. */
  static char stack[65536];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
  for (size_t n = 0; n < sizeof signals / sizeof signals[0]; n++) sigaction(signals[n], &action, NULL);
}

void crash_shrinks(const char *program) { shrinker = program; }

static void prepare_shrinker(const char *variant, const char *problem, const char *origin, const char *isa,
                             const char *threads) {
  const char *const words[ARGUMENTS] = {shrinker,
                                        "fuzz",
                                        "--variant",
                                        variant,
                                        "--problem",
                                        problem,
                                        "--threads",
                                        threads,
                                        origin ? "--plugin" : NULL,
                                        origin,
                                        isa ? "--isa" : NULL,
                                        isa};
  int count = 0;
  for (int n = 0; n < ARGUMENTS; n++) {
    if (!words[n]) continue;
    snprintf(texts[count], ARGUMENT_BYTES, "%s", words[n]);
    arguments[count] = texts[count];
    count++;
  }
  arguments[count] = NULL;
}

void crash_context(const char *variant, const char *problem, const char *origin, const char *isa,
                   int threads) {
  armed = 0;
  if (!variant) return;
  snprintf(head, sizeof head, "\nattnbench: variant '%s' crashed (", variant);
  snprintf(tail, sizeof tail, ") on %s\n", problem);
  snprintf(command, sizeof command,
           "  reproduce: attnbench verify --variant %s --problem '%s'%s%s --threads %d%s%s%s\n", variant,
           problem, isa ? " --isa " : "", isa ? isa : "", threads, origin ? " --plugin '" : "",
           origin ? origin : "", origin ? "'" : "");
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  if (shrinker) prepare_shrinker(variant, problem, origin, isa, count);
  armed = 1;
}
