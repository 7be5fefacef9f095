/* Crash reports. Everything that a report says is put together beforehand, by crash_context: a signal
 * handler may only write it. Any thread may crash, so nothing here depends on which one does. */
#include "crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A report is head, name of the signal, tail. */
static char head[512], tail[8192];
static volatile sig_atomic_t armed;
static atomic_flag reporting = ATOMIC_FLAG_INIT;

static const char *signal_name(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV: access to memory that it was not given";
    case SIGBUS: return "SIGBUS: access to memory that is not there";
    case SIGILL: return "SIGILL: instruction that this processor does not have";
    case SIGFPE: return "SIGFPE: arithmetic fault";
    case SIGABRT: return "SIGABRT: it gave up";
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
  _exit(1);
}

void crash_install(void) {
  /* A handler cannot run on the stack that a runaway recursion has used up. */
  static char stack[65536];
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t n = 0; n < sizeof signals / sizeof signals[0]; n++) sigaction(signals[n], &action, NULL);
}

void crash_context(const char *variant, const char *problem, const char *origin, const char *isa,
                   int threads) {
  armed = 0;
  if (!variant) return;
  snprintf(head, sizeof head, "\nattnbench: variant '%s' crashed (", variant);
  snprintf(tail, sizeof tail,
           ") on %s\n  reproduce: attnbench verify --variant %s --problem '%s'%s%s --threads %d%s%s%s\n",
           problem, variant, problem, isa ? " --isa " : "", isa ? isa : "", threads,
           origin ? " --plugin '" : "", origin ? origin : "", origin ? "'" : "");
  armed = 1;
}
